//! `run --log`: an action log for any task.

use fixtures::Sandbox;

use crate::lab::Lab;

fn shown(lab: &Lab) -> Vec<String> {
    let mark = |reconciled| if reconciled { " reconciled" } else { "" };
    let lines = lab.log("t").into_iter();
    lines
        .map(|line| match (line.event.1, line.event.2) {
            (Some(step), Some(name)) => format!("{} {step} {name}{}", line.event.0, mark(line.reconciled)),
            _ => format!("{}{}", line.event.0, mark(line.reconciled)),
        })
        .collect()
}

#[test]
fn any_task_can_have_a_log_and_its_first_run_resumes_nothing() {
    let lab = Lab { sandbox: Sandbox::new() };
    lab.agent(["create", "t", "plan.json"]).exits(0);
    let mut command = lab.command(["run", "t", "--log", "actions.jsonl"]);
    command.env("AGENT_CRASH_AT", "after_effect:1");
    crate::lab::run(command).exits(137);
    lab.agent(["run", "t", "--log", "actions.jsonl"]).exits(0);
    lab.agent(["run", "t", "--log", "actions.jsonl"]).exits(0).says("already done");
    let due = [
        "task_created reconciled",
        "step_started 0 fetch",
        "step_done 0 fetch",
        "step_started 1 summarize",
        "task_resumed",
        "step_started 1 summarize",
        "step_done 1 summarize",
        "step_started 2 write_artifact",
        "step_done 2 write_artifact",
        "task_done",
        "already_done",
    ];
    assert_eq!(shown(&lab), due);
}

#[test]
fn what_runs_without_the_log_did_is_in_the_log_after_a_run_with_it() {
    let lab = Lab { sandbox: Sandbox::new() };
    lab.agent(["create", "t", "plan.json"]).exits(0);
    lab.agent(["run", "t"]).exits(0);
    assert!(!lab.path("actions.jsonl").exists(), "no log that nobody asked for");
    lab.agent(["run", "t", "--log", "actions.jsonl"]).exits(0);
    let lines = shown(&lab);
    assert_eq!(lines.len(), 9);
    assert!(lines[..8].iter().all(|line| line.ends_with(" reconciled")), "{lines:?}");
    assert_eq!(lines[8], "already_done");
}

#[test]
fn the_database_is_never_taken_for_a_log() {
    let lab = Lab::new();
    lab.agent(["create", "t", "plan.json"]).exits(0);
    std::os::unix::fs::symlink("state.db", lab.path("link")).unwrap();
    std::fs::hard_link(lab.path("state.db"), lab.path("name")).unwrap();
    let before = lab.sandbox.tree();
    for log in ["state.db", "./input/../state.db", "state.db-wal", "link", "name"] {
        lab.agent(["run", "t", "--log", log]).exits(64).says("file of the database");
    }
    assert_eq!(lab.sandbox.tree(), before);
}

#[test]
fn best_effort_without_a_log_is_a_slip() {
    let lab = Lab::new();
    lab.agent(["create", "t", "plan.json"]).exits(0);
    lab.agent(["run", "t", "--log-best-effort"]).exits(64).says("--log");
}

/// The log's lines were appended to the notes of a task, and its next step read them as the user's text.
#[test]
fn a_file_that_the_task_reads_is_never_taken_for_a_log() {
    let lab = Lab { sandbox: Sandbox::new() };
    let read = r#"{"tool":"fetch","input":{"path":"input/notes.txt"}}"#;
    let later = r#"{"tool":"fetch","input":{"path":"later/notes.txt"}}"#;
    let link = r#"{"tool":"count_words","input":{"path":"lost"}}"#;
    std::os::unix::fs::symlink("found/notes.txt", lab.path("lost")).unwrap();
    std::os::unix::fs::symlink("input", lab.path("link")).unwrap();
    std::fs::hard_link(lab.path("input/notes.txt"), lab.path("name")).unwrap();
    lab.sandbox.write("all.json", format!(r#"{{"goal":"g","steps":[{read},{later},{link}]}}"#));
    lab.sandbox.write("one.json", format!(r#"{{"goal":"g","steps":[{read}]}}"#));
    lab.agent(["create", "t", "all.json"]).exits(0);
    lab.agent(["create", "done", "one.json"]).exits(0);
    lab.agent(["run", "done"]).exits(0);
    let before = lab.sandbox.tree();
    for (log, step) in
        [("input/notes.txt", 0), ("./link/notes.txt", 0), ("name", 0), ("later/notes.txt", 1), ("found/notes.txt", 2)]
    {
        lab.agent(["run", "t", "--log", log]).exits(64).says(&format!("is what step {step} of the task reads"));
    }
    lab.agent(["run", "done", "--log", "input/notes.txt"]).exits(64).says("step 0");
    assert_eq!(lab.sandbox.tree(), before);
    lab.agent(["run", "done", "--log", "input/notes.jsonl"]).exits(0);
}

/// A run appended to the artifact that its task had published, and `verify` found it spoiled.
#[test]
fn a_file_that_the_task_publishes_is_never_taken_for_a_log() {
    let lab = Lab { sandbox: Sandbox::new() };
    lab.agent(["create", "t", "plan.json"]).exits(0);
    for _ in 0..2 {
        lab.agent(["run", "t", "--log", "artifacts/t-2.md"]).exits(64).says("is what step 2 of the task publishes");
        lab.agent(["run", "t", "--log", "artifacts/t-1.md"]).exits(0);
    }
    lab.agent(["verify"]).exits(0);
}
