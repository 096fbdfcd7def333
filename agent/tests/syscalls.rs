//! What happens on the way to the disk, counted and ordered: noise does not touch a trace of system calls.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::fs;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// Enough steps to tell the cost of one from that of the process, few enough that no WAL checkpoint falls among them.
const FEW: u32 = 20;
const MANY: u32 = 120;
const COMMITS_PER_STEP: u32 = 2;

struct Count {
    all: u32,
    syncs: u32,
}

/// Runs a task of `steps` echo steps under strace, up to the last step's commit: closing the database would add a
/// checkpoint.
fn counted(steps: u32) -> Count {
    let folder = tempfile::tempdir().unwrap();
    let step = serde_json::json!({"tool": "echo", "input": {"value": 1}});
    let plan = serde_json::json!({"goal": "g", "steps": vec![step; steps as usize]});
    fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    let created =
        Command::new(cargo_bin("agent")).args(["create", "t", "plan.json"]).current_dir(folder.path()).output();
    assert!(created.unwrap().status.success());
    let trace = folder.path().join("trace.txt");
    let run = strace(&trace)
        .args([cargo_bin("agent").as_os_str(), "run".as_ref(), "t".as_ref()])
        .env("AGENT_CRASH_AT", format!("after_commit:{}", steps - 1))
        .current_dir(folder.path())
        .output()
        .expect("this test needs strace: apt-get install strace");
    assert!(!run.status.success(), "the run was to be killed after its last commit");
    let lines = fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> = lines.lines().filter(|line| line.contains('(')).collect();
    let is_sync = |line: &&&str| line.contains("fsync(") || line.contains("fdatasync(");
    Count { all: calls.len() as u32, syncs: calls.iter().filter(is_sync).count() as u32 }
}

fn strace(trace: &Path) -> Command {
    let mut command = Command::new("strace");
    command.arg("-f").arg("-o").arg(trace);
    command
}

#[test]
fn a_commit_is_one_sync_and_at_most_fourteen_system_calls() {
    let (few, many) = (counted(FEW), counted(MANY));
    let commits = (MANY - FEW) * COMMITS_PER_STEP;
    assert_eq!(many.syncs - few.syncs, commits, "one sync for each commit, no more and no less");
    let calls = f64::from(many.all - few.all) / f64::from(commits);
    assert!(calls <= 14.0, "{calls} system calls for each commit");
    assert!(calls >= 8.0, "{calls} system calls for each commit: too few to be true");
}

/// A killed attempt left its temporary file; the next run removed it and committed its recovery, and then the power was
/// cut before the removal had reached the disk. The file was back, and nobody looked for it any more.
#[test]
fn a_sweep_is_synced_before_recovery_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("input")).unwrap();
    fs::write(folder.path().join("input/notes.txt"), "one\n").unwrap();
    let plan = fixtures::report_plan().to_string();
    fs::write(folder.path().join("plan.json"), plan).unwrap();
    let agent = |args: &[&str]| {
        let mut command = Command::new(cargo_bin("agent"));
        command.args(args).current_dir(folder.path());
        command
    };
    assert!(agent(&["create", "t", "plan.json"]).status().unwrap().success());
    let killed = agent(&["run", "t"]).env("AGENT_CRASH_AT", "write_artifact.written:2").status().unwrap();
    assert!(!killed.success());
    let trace = folder.path().join("trace.txt");
    let run = strace(&trace)
        .args(["-y", "-e", "trace=unlink,unlinkat,fsync,fdatasync"])
        .args([cargo_bin("agent").as_os_str(), "run".as_ref(), "t".as_ref()])
        .env("AGENT_CRASH_AT", "run.started")
        .current_dir(folder.path())
        .output()
        .expect("this test needs strace: apt-get install strace");
    assert!(!run.status.success());
    let lines = fs::read_to_string(&trace).unwrap();
    let calls: Vec<&str> = lines.lines().filter(|line| line.contains('(')).collect();
    let removed = calls.iter().position(|call| call.contains("unlink") && call.contains(".tmp"));
    let removed = removed.expect("the temporary file is swept");
    assert!(calls[removed + 1].contains("/artifacts>"), "the folder is synced next: {}", calls[removed + 1]);
    assert!(calls[removed + 2..].iter().any(|call| call.contains("state.db-wal>")), "recovery is committed after it");
}

/// A sync failed while the new database was being changed to WAL. SQLite gives the row "wal" first and commits after
/// it, the error came with the second step that nobody took, and the task ran to its end in a database with a rollback
/// journal.
#[test]
fn a_failed_sync_while_a_database_is_made_is_never_taken_for_success() {
    const WAL: [u8; 2] = [2, 2];
    let mut failures = 0;
    for nth in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let plan = folder.path().join("plan.json");
        fs::write(&plan, fixtures::report_plan().to_string()).unwrap();
        let trace = folder.path().join("trace.txt");
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={nth}");
        let create = |command: &mut Command| command.current_dir(folder.path()).output().unwrap();
        let agent = cargo_bin("agent");
        let args = ["create".as_ref(), "t".as_ref(), plan.as_os_str()];
        let inject = ["-e", "trace=fsync,fdatasync", "-e", &inject];
        let made = create(strace(&trace).args(inject).arg(&agent).args(args));
        if !fs::read_to_string(&trace).unwrap().contains("INJECTED") {
            break;
        }
        failures += 1;
        let mode = |file| fs::read(file).unwrap()[18..20].to_vec();
        let database = folder.path().join("state.db");
        if made.status.success() {
            assert_eq!(mode(&database), WAL, "sync {nth}");
        } else {
            assert_eq!(made.status.code(), Some(74), "sync {nth}");
            let again = create(Command::new(&agent).args(args));
            // The commit's own sync is the last: whether it stored the task is then for the disk to say.
            assert!(matches!(again.status.code(), Some(0 | 73)), "sync {nth}: {again:?}");
            assert_eq!(mode(&database), WAL, "sync {nth}");
        }
    }
    assert!(failures >= 6, "only {failures} syncs were made to fail");
}

/// On a file system without hard links no artifact could be published at all.
#[test]
fn where_hard_links_are_refused_an_artifact_is_published_by_an_exclusive_rename() {
    for error in ["EPERM", "EOPNOTSUPP", "EMLINK", "ENOSYS"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("input")).unwrap();
        fs::write(folder.path().join("input/notes.txt"), "one\n").unwrap();
        fs::write(folder.path().join("plan.json"), fixtures::report_plan().to_string()).unwrap();
        let artifact = |task: &str| fs::read_to_string(folder.path().join(format!("artifacts/{task}-2.md"))).unwrap();
        for (task, there) in [("t", false), ("u", true)] {
            let agent = |command: &mut Command| command.current_dir(folder.path()).status().unwrap();
            assert!(agent(Command::new(cargo_bin("agent")).args(["create", task, "plan.json"])).success());
            if there {
                fs::write(folder.path().join("artifacts/u-2.md"), "theirs").unwrap();
            }
            let trace = folder.path().join("trace.txt");
            let inject = format!("inject=link,linkat:error={error}");
            let mut run = strace(&trace);
            run.args(["-e", "trace=link,linkat,renameat2", "-e", &inject]).arg(cargo_bin("agent")).args(["run", task]);
            // A name that is taken is still not replaced; the step fails.
            assert_eq!(agent(&mut run).code(), Some(if there { 2 } else { 0 }), "{error}");
            let calls = fs::read_to_string(&trace).unwrap();
            assert!(calls.contains("INJECTED") && calls.contains("RENAME_NOREPLACE"), "{error}: {calls}");
            assert_eq!(artifact(task), if there { "theirs" } else { "one" });
        }
        assert_eq!(fs::read_dir(folder.path().join("artifacts")).unwrap().count(), 2, "no temporary file stays");
    }
}

/// What `status` says of a folder's task: its exit code, and how its first step stands.
fn first_step(folder: &Path) -> (i32, String) {
    let status = agent(folder, &["status", "t"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
    (status.status.code().unwrap(), json["steps"][0]["status"].as_str().unwrap_or_default().to_owned())
}

fn agent(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin("agent"));
    command.args(args).current_dir(folder);
    command
}

/// A restore that is killed at any call that changes a file leaves the old database or the new one, or says what lies
/// there, and never something of both; done again it is done.
#[test]
fn a_restore_that_is_killed_at_any_call_leaves_the_old_database_or_the_new_one() {
    const CALLS: [&str; 9] =
        ["write", "pwrite64", "ftruncate", "fsync", "fdatasync", "rename", "unlink", "unlinkat", "fchmod"];
    let folder = tempfile::tempdir().unwrap();
    let succeeds = |folder: &Path, args: &[&str]| agent(folder, args).output().unwrap().status.success();
    fs::write(folder.path().join("plan.json"), fixtures::echo_plan(3).to_string()).unwrap();
    assert!(succeeds(folder.path(), &["create", "t", "plan.json"]));
    assert!(succeeds(folder.path(), &["backup", "copy.db"]));
    assert!(!agent(folder.path(), &["run", "t"]).env("AGENT_CRASH_AT", "after_commit:1").status().unwrap().success());
    let (mut old, mut refused, mut new) = (0, 0, 0);
    for call in CALLS {
        // The many writes of one page after another are all alike.
        for nth in (1..).step_by(if call == "pwrite64" { 4 } else { 1 }) {
            let copy = tempfile::tempdir().unwrap();
            for entry in fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
            let inject = format!("inject={call}:signal=KILL:when={nth}");
            let restore = strace(&copy.path().join("trace.txt"))
                .args(["-e", &format!("trace={call}"), "-e", &inject])
                .args([cargo_bin("agent").as_os_str(), "restore".as_ref(), "copy.db".as_ref()])
                .current_dir(copy.path())
                .output()
                .expect("this test needs strace: apt-get install strace");
            if restore.status.success() {
                break;
            }
            match first_step(copy.path()) {
                (0, step) if step == "done" => old += 1,
                (0, step) if step == "pending" => new += 1,
                (78, _) => refused += 1,
                other => panic!("{call} {nth}: {other:?}"),
            }
            assert!(succeeds(copy.path(), &["restore", "copy.db"]), "{call} {nth}");
            assert_eq!(first_step(copy.path()), (0, "pending".to_owned()), "{call} {nth}");
            let left = fs::read_dir(copy.path()).unwrap().map(|entry| entry.unwrap().path().join("copy.db"));
            assert_eq!(left.filter(|inner| inner.exists()).count(), 0, "{call} {nth}: a copy is left");
        }
    }
    assert!(
        old > 20 && refused > 1 && new > 2,
        "of the kills {old} left the old one, {refused} both, {new} the new one"
    );
}
