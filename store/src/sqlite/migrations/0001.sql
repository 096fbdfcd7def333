-- Version 1, exactly as the first agents wrote it (with no user_version set). Never change this file.
CREATE TABLE tasks(id TEXT PRIMARY KEY, goal TEXT, status TEXT, created_at REAL, updated_at REAL);
CREATE TABLE steps(task_id TEXT, idx INTEGER, tool TEXT, input TEXT, status TEXT DEFAULT 'pending', output TEXT,
                   attempts INTEGER DEFAULT 0, PRIMARY KEY(task_id, idx));
CREATE TABLE events(seq INTEGER PRIMARY KEY AUTOINCREMENT, ts REAL, task_id TEXT, run_id TEXT, kind TEXT,
                    step_idx INTEGER, data TEXT);
