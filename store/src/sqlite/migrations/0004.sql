-- settings: what the plan says of the step beside tool and input, as a JSON object; NULL where it says nothing more.
ALTER TABLE steps ADD COLUMN settings TEXT;
-- wait, due: what the step waits for or has waited for (time, approval), and the time of that in seconds since the epoch:
-- when it is due, or when its question expires.
ALTER TABLE steps ADD COLUMN wait TEXT;
ALTER TABLE steps ADD COLUMN due REAL;
-- input_sha256, effect: what its attempts intend, the digest of the rendered input and the class in force; NULL where they
-- change nothing and their input is taken as it stands.
ALTER TABLE steps ADD COLUMN input_sha256 TEXT;
ALTER TABLE steps ADD COLUMN effect TEXT;
-- unknown: 1 where an earlier attempt may have had its effect.
ALTER TABLE steps ADD COLUMN unknown INTEGER;
-- checkpoint: how far the last attempt said that it was, as JSON.
ALTER TABLE steps ADD COLUMN checkpoint TEXT;
-- answer: what a person answered to its last question, as a JSON object with answer, by and why.
ALTER TABLE steps ADD COLUMN answer TEXT;
-- What the task keeps of its plan file: the values of its inputs and its labels (JSON objects), the SHA-256 of the file, the
-- version of the plan language, and the file itself. NULL for plans that are taken literally.
ALTER TABLE tasks ADD COLUMN inputs TEXT;
ALTER TABLE tasks ADD COLUMN labels TEXT;
ALTER TABLE tasks ADD COLUMN plan_sha256 TEXT;
ALTER TABLE tasks ADD COLUMN language INTEGER;
ALTER TABLE tasks ADD COLUMN source TEXT;
