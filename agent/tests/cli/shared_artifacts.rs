//! Two databases, one artifacts folder, the same task id: the second once took the first one's report for its own.

use crate::journal::count;
use crate::lab::Lab;

fn run(lab: &Lab, db: &str) -> crate::lab::Ran {
    lab.agent(["--db", db, "create", "t1", "plan.json"]).exits(0);
    lab.agent(["--db", db, "run", "t1"])
}

#[test]
fn other_content_under_the_same_key_is_an_error_that_names_both_digests() {
    let lab = Lab::new();
    lab.write("input/notes.txt", "abc\n");
    run(&lab, "a.db").exits(0);
    lab.write("input/notes.txt", "def");
    let ran = run(&lab, "b.db").exits(2).says("t1-2.md");
    for text in ["abc", "def"] {
        let digest = sha256(&lab, text);
        assert!(ran.stderr.contains(&digest), "{digest} is not in {}", ran.stderr);
    }
    assert_eq!(lab.report(), "abc", "the first one's report stays");
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    let journal = lab.agent(["--db", "b.db", "export", "t1"]).exits(0).lines();
    assert_eq!((count(&journal, "step_error:2"), count(&journal, "task_failed:2")), (3, 1));
    for db in ["a.db", "b.db"] {
        lab.agent(["--db", db, "verify"]).exits(0);
    }

    // The way on: a folder of its own, and a fresh budget.
    lab.agent(["--db", "b.db", "retry", "t1"]).exits(0);
    lab.call(["--db", "b.db", "run", "t1"]).env("AGENT_ARTIFACTS", "b").ran().exits(0);
    assert_eq!(lab.sandbox.read("b/t1-2.md"), "def");
}

/// The SHA-256 of a text, by the agent's own `fetch` of a file with it.
fn sha256(lab: &Lab, text: &str) -> String {
    lab.write("digest.txt", text);
    lab.write("digest.json", r#"{"goal":"g","steps":[{"tool":"fetch","input":{"path":"digest.txt"}}]}"#);
    let db = format!("digest-{text}.db");
    lab.agent(["--db", &db, "create", "d", "digest.json"]).exits(0);
    lab.agent(["--db", &db, "run", "d"]).exits(0);
    let conn = rusqlite::Connection::open(lab.path(&db)).unwrap();
    let output: String = conn.query_row("SELECT output FROM steps", [], |row| row.get(0)).unwrap();
    serde_json::from_str::<serde_json::Value>(&output).unwrap()["sha256"].as_str().unwrap().to_owned()
}

#[test]
fn the_same_content_under_the_same_key_is_one_report() {
    let lab = Lab::new();
    run(&lab, "a.db").exits(0);
    run(&lab, "b.db").exits(0);
    assert_eq!(lab.artifacts(), ["t1-2.md"]);
    for db in ["a.db", "b.db"] {
        lab.agent(["--db", db, "verify"]).exits(0);
    }
}

#[test]
fn what_stands_in_the_way_of_the_report_is_named() {
    for kind in ["folder", "link"] {
        let lab = Lab::with_task();
        std::fs::create_dir(lab.path("artifacts")).unwrap();
        match kind {
            "folder" => std::fs::create_dir(lab.path("artifacts/t1-2.md")).unwrap(),
            _ => std::os::unix::fs::symlink("/nowhere/at/all", lab.path("artifacts/t1-2.md")).unwrap(),
        }
        lab.agent(["run", "t1"]).exits(2).says("artifacts/t1-2.md").says(kind);
        assert_eq!(lab.artifacts(), ["t1-2.md"], "and no temporary file");
    }
}
