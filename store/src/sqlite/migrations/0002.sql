-- fence: the number of the last lease; a commit under an older one is refused.
ALTER TABLE tasks ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
-- forgiven: attempts before the last retry, which no longer count against the limit.
ALTER TABLE steps ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0;
-- completion: what a run does once every step is done and before the task is, as a JSON object; NULL for nothing.
ALTER TABLE tasks ADD COLUMN completion TEXT;
-- first_event: no event of the task has a lower seq, so that its journal is found without reading those of others; 0
-- where that is not known.
ALTER TABLE tasks ADD COLUMN first_event INTEGER NOT NULL DEFAULT 0;
-- How far an action log is known to hold a task's events. Only a hint that spares reading the log from its start: it
-- is verified against the file, and a log without one is read whole.
CREATE TABLE log_positions(log TEXT NOT NULL, task_id TEXT NOT NULL, offset INTEGER NOT NULL, seq INTEGER NOT NULL,
                           digest TEXT NOT NULL, PRIMARY KEY(log, task_id)) WITHOUT ROWID;
