//! What `status` and `export` say, word for word against the tables; and what
//! nobody may have changed who was only asked, or refused.

use serde_json::Value;

use crate::agent::process::{Ended, Outcome};
use crate::look::snapshot::Snapshot;
use crate::look::tables::{EventRow, Tables};

/// Words of an exported event that are the row's own; a field of the event's data
/// that is called like one of them stands in `data`.
const TAKEN: [&str; 6] = ["seq", "ts", "run", "kind", "step", "data"];

/// What is wrong with the answer of `status`.
#[must_use]
pub fn status(outcome: &Outcome, tables: &Tables, task: &str) -> Vec<String> {
    let mut wrong = ended(outcome, "status");
    let Ok(said) = serde_json::from_str::<Value>(&outcome.stdout) else {
        wrong.push("status: it prints no JSON".to_owned());
        return wrong;
    };
    let Some(row) = tables.task(task) else { return wrong };
    let mut same = |what: String, said: &Value, is: Value| {
        if *said != is {
            wrong.push(format!("status of {task}: {what} is said to be {said}, the tables have {is}"));
        }
    };
    same("`task`".to_owned(), &said["task"], row.id.as_str().into());
    same("`goal`".to_owned(), &said["goal"], row.goal.as_str().into());
    same("`status`".to_owned(), &said["status"], row.status.as_str().into());
    let rows: Vec<_> = tables.steps_of(task).collect();
    same("the number of steps".to_owned(), &said["steps"].as_array().map(Vec::len).into(), rows.len().into());
    for (at, row) in rows.into_iter().enumerate() {
        let step = &said["steps"][at];
        let fields = [
            ("idx", Value::from(row.idx)),
            ("tool", row.tool.as_str().into()),
            ("status", row.status.as_str().into()),
            ("attempts", row.attempts.into()),
        ];
        for (field, is) in fields {
            same(format!("`{field}` of step {at}"), &step[field], is);
        }
    }
    wrong
}

/// What is wrong with the answer of `export`.
#[must_use]
pub fn export(outcome: &Outcome, tables: &Tables, task: &str) -> Vec<String> {
    let mut wrong = ended(outcome, "export");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let rows: Vec<_> = tables.events_of(task).collect();
    if lines.len() != rows.len() {
        wrong.push(format!("export of {task}: {} lines, the journal has {} events", lines.len(), rows.len()));
    }
    for (line, row) in lines.into_iter().zip(rows) {
        if let Err(why) = event(line, row) {
            wrong.push(format!("export of {task}: event {}: {why}", row.describe()));
            break;
        }
    }
    wrong
}

fn event(line: &str, row: &EventRow) -> Result<(), String> {
    let said: Value = serde_json::from_str(line).map_err(|_| "its line is not JSON".to_owned())?;
    let same = |field: &str, said: &Value, is: &Value| {
        let number = said.as_f64().is_some() && said.as_f64() == is.as_f64();
        if said == is || number { Ok(()) } else { Err(format!("`{field}` is {said}, the journal has {is}")) }
    };
    same("seq", &said["seq"], &row.seq.into())?;
    same("ts", &said["ts"], &row.ts.into())?;
    same("run", &said["run"], &row.run.as_str().into())?;
    same("kind", &said["kind"], &row.kind.as_str().into())?;
    same("step", &said["step"], &row.step.into())?;
    let data: Value = serde_json::from_str(&row.data).unwrap_or_default();
    for (field, is) in data.as_object().into_iter().flatten() {
        let said = if TAKEN.contains(&field.as_str()) { &said["data"][field] } else { &said[field] };
        same(field, said, is)?;
    }
    Ok(())
}

fn ended(outcome: &Outcome, command: &str) -> Vec<String> {
    let good = outcome.ended == Ended::Exited(0);
    if good { Vec::new() } else { vec![format!("{command}: {}, must end with 0", outcome.describe())] }
}

/// What is wrong with how somebody was refused: with this code where there is one,
/// with any but 0 where not, and with a word of why.
#[must_use]
pub fn refused(who: &str, outcome: &Outcome, code: Option<i32>) -> Vec<String> {
    let good = match (outcome.ended, code) {
        (Ended::Exited(is), Some(code)) => is == code,
        (Ended::Exited(is), None) => is != 0,
        _ => false,
    };
    let must = code.map_or_else(|| "be refused".to_owned(), |code| format!("end with {code}"));
    let mut wrong = Vec::new();
    if !good {
        wrong.push(format!("{who}: {}, must {must}", outcome.describe()));
    }
    if outcome.stderr.trim().is_empty() {
        wrong.push(format!("{who} does not say why"));
    }
    wrong
}

/// What has changed between two looks though `who` was at work that may change nothing.
#[must_use]
pub fn changed(who: &str, before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut wrong = Vec::new();
    if before.tables != after.tables {
        let known = before.tables.events.len();
        let new: Vec<String> = after.tables.events.iter().skip(known).map(EventRow::describe).collect();
        wrong.push(format!("{who} changed the tables; new events: {new:?}"));
    }
    if before.world != after.world || before.log != after.log {
        wrong.push(format!("{who} changed files"));
    }
    let kept = |look: &Snapshot| -> Vec<String> {
        // What SQLite itself makes and removes is nobody's trace.
        let own = |name: &&String| !name.ends_with("-wal") && !name.ends_with("-shm");
        look.own_files.iter().filter(own).cloned().collect()
    };
    if kept(before) != kept(after) {
        wrong.push(format!("{who} left {:?} beside the database, there was {:?}", kept(after), kept(before)));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::TASK;
    use crate::testing::{Story, outcome};

    fn answer(text: String) -> Outcome {
        Outcome { stdout: text, ..outcome(Ended::Exited(0)) }
    }

    fn told(story: &mut Story) -> (Value, Vec<Value>) {
        let tables = &story.last().tables;
        let row = tables.task(TASK).expect("a task");
        let step = |row: &crate::look::tables::StepRow| json!({"idx": row.idx, "tool": row.tool, "status": row.status, "attempts": row.attempts});
        let steps: Vec<Value> = tables.steps_of(TASK).map(step).collect();
        let line = |row: &EventRow| {
            let mut line = json!({"seq": row.seq, "ts": row.ts, "run": row.run, "kind": row.kind, "step": row.step});
            let data: Value = serde_json::from_str(&row.data).expect("data");
            for (key, value) in data.as_object().expect("an object") {
                line[key] = value.clone();
            }
            line
        };
        let status = json!({"task": TASK, "goal": row.goal, "status": row.status, "steps": steps});
        (status, tables.events_of(TASK).map(line).collect())
    }

    #[test]
    fn the_words_of_the_tables_are_accepted_and_each_other_word_is_not() {
        let mut story = Story::killed_at("after_effect:1");
        let (said, _) = told(&mut story);
        let tables = story.last().tables.clone();
        assert!(status(&answer(said.to_string()), &tables, TASK).is_empty());
        for pointer in
            ["/task", "/goal", "/status", "/steps/1/idx", "/steps/1/tool", "/steps/1/status", "/steps/1/attempts"]
        {
            let mut bent = said.clone();
            *bent.pointer_mut(pointer).expect("a field") = json!("x");
            assert!(!status(&answer(bent.to_string()), &tables, TASK).is_empty(), "{pointer}");
        }
        assert!(!status(&outcome(Ended::Exited(1)), &tables, TASK).is_empty());
    }

    #[test]
    fn an_export_has_each_event_with_each_of_its_fields() {
        let mut story = Story::killed_at("after_effect:1");
        let (_, lines) = told(&mut story);
        let tables = story.last().tables.clone();
        let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(export(&answer(text(&lines)), &tables, TASK), Vec::<String>::new());
        assert!(!export(&answer(text(&lines[1..])), &tables, TASK).is_empty());
        for field in ["seq", "ts", "run", "kind", "attempt"] {
            let mut bent = lines.clone();
            let at = bent.iter().position(|line| line["kind"] == "step_started").expect("a start");
            bent[at][field] = json!("x");
            assert!(!export(&answer(text(&bent)), &tables, TASK).is_empty(), "{field}");
        }
    }

    #[test]
    fn a_refusal_has_a_code_a_word_and_no_trace() {
        let mut no = outcome(Ended::Exited(1));
        assert!(!refused("run", &no, Some(1)).is_empty(), "without a word");
        no.stderr = "no such task".to_owned();
        assert!(refused("run", &no, Some(1)).is_empty() && refused("create", &no, None).is_empty());
        assert!(!refused("run", &no, Some(3)).is_empty());
        assert!(!refused("create", &outcome(Ended::Exited(0)), None).is_empty());
        let before = Story::clean().last().clone();
        let mut after = before.clone();
        after.own_files.push("state.db-wal".to_owned());
        assert!(changed("run", &before, &after).is_empty());
        after.own_files.push("state.db.x.lock".to_owned());
        assert!(!changed("run", &before, &after).is_empty());
    }
}
