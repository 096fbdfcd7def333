-- home: the folder that the task's relative paths start from; relative to the database's folder or absolute. NULL where
-- an earlier version created the task and none of this one has run it yet.
ALTER TABLE tasks ADD COLUMN home TEXT;
-- artifacts: the folder of the artifacts in the last run, as it was given.
ALTER TABLE tasks ADD COLUMN artifacts TEXT;
-- The attempts of the completion, as those of a step.
ALTER TABLE tasks ADD COLUMN completion_status TEXT NOT NULL DEFAULT 'pending';
ALTER TABLE tasks ADD COLUMN completion_attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN completion_forgiven INTEGER NOT NULL DEFAULT 0;
-- What a log holds is read from the log: a position that was kept elsewhere outlived logs that were cut.
DROP TABLE log_positions;
