-- fence: the number of the last lease; a commit under an older one is refused.
ALTER TABLE tasks ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
-- forgiven: attempts before the last retry, which no longer count against the limit.
ALTER TABLE steps ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0;
