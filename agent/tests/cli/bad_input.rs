//! Everything else that can be wrong with what a user hands in: ids, plan files, databases.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use rstest::rstest;

use crate::journal::assert_sound;
use crate::lab::Lab;

#[rstest]
#[case::empty("", "empty")]
#[case::too_long(&"x".repeat(201), "201 bytes, at most 200")]
#[case::far_too_long(&"x".repeat(250), "at most 200")]
#[case::too_long_in_bytes(&"報".repeat(67), "201 bytes")]
#[case::line_break("a\nb", "U+000A")]
#[case::escape("a\u{1b}[31m", "U+001B")]
#[case::delete("a\u{7f}", "U+007F")]
fn an_id_that_would_do_harm_is_refused_by_every_command(#[case] id: &str, #[case] says: &str) {
    let lab = Lab::with_task();
    let before = lab.tree();
    for arguments in [
        &["create", id, "plan.json"][..],
        &["run", id],
        &["status", id],
        &["export", id],
        &["retry", id],
        &["verify", id],
    ] {
        lab.agent(arguments).fails(64).says(says);
    }
    assert_eq!(lab.tree(), before);
}

#[test]
fn an_id_that_is_not_utf_8_is_wrong_usage() {
    let lab = Lab::with_task();
    lab.call([OsStr::new("run"), OsStr::from_bytes(b"t\xff")]).ran().exits(64);
}

#[rstest]
#[case::space("my task")]
#[case::dots("..")]
#[case::one_dot(".")]
#[case::hidden(".hidden")]
#[case::escape_from_the_folder("../../escape")]
#[case::absolute("/etc/task")]
#[case::slash("a/b")]
#[case::letters("報告書")]
#[case::right_to_left("تقرير")]
#[case::percent("100%")]
#[case::quotes("it's \"x\"; $(touch pwned)")]
#[case::dash_inside("a-1")]
#[case::longest(&"x".repeat(200))]
#[case::longest_escaped(&"報".repeat(66))]
fn any_other_id_works_to_the_end_and_stays_in_its_folders(#[case] id: &str) {
    // The sandbox lies one level deeper, so that an escape would be seen.
    let lab = Lab::new();
    fs::create_dir_all(lab.path("work/deep")).unwrap();
    for name in ["plan.json", "input"] {
        fs::rename(lab.path(name), lab.path("work/deep").join(name)).unwrap();
    }
    let within = |arguments: &[&str]| {
        let inside = format!("cd work/deep && exec {} \"$@\"", env!("CARGO_BIN_EXE_agent"));
        lab.call_through(&["sh", "-c", &inside, "sh"], arguments)
    };
    within(&["create", id, "plan.json"]).ran().exits(0);
    within(&["run", id]).env("AGENT_CRASH_AT", "after_effect:2").ran().exits(137);
    within(&["run", id]).ran().exits(0).says(id);
    assert_eq!(within(&["status", id]).ran().exits(0).json()["task"], id);
    within(&["verify", id]).ran().exits(0);
    let outside: Vec<_> = lab.tree().into_keys().filter(|path| !path.starts_with("work")).collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert_eq!(crate::lab::names(&lab.path("work")), ["deep"]);
    assert_eq!(crate::lab::names(&lab.path("work/deep/artifacts")).len(), 1);
    assert_eq!(
        crate::lab::names(&lab.path("work/deep")),
        ["artifacts", "input", "plan.json", "state.db", "state.db-id", &lock_name(id)]
    );
}

/// Plain ids have the lock that older agents take; of others only the place is fixed.
fn lock_name(id: &str) -> String {
    match id {
        "a-1" => "state.db.a-1.lock".to_owned(),
        _ if id.starts_with('x') => format!("state.db.{id}.lock"),
        _ => {
            let task = store::model::TaskId::new(id).unwrap();
            store::sqlite::lock_path("state.db".as_ref(), &task).to_str().unwrap().to_owned()
        }
    }
}

#[test]
fn ids_that_look_alike_do_not_meet() {
    let lab = Lab::new();
    let ids = ["a b", "a%20b", "a_b", "A b", ".a", "%2Ea", "a", "a-2", "a-2-2"];
    for id in ids {
        lab.agent(["create", id, "plan.json"]).exits(0);
    }
    for id in ids {
        lab.agent(["run", id]).exits(0);
    }
    assert_eq!(lab.artifacts().len(), ids.len());
    let locks = crate::lab::names(lab.sandbox.path()).into_iter().filter(|name| name.ends_with(".lock")).count();
    assert_eq!(locks, ids.len());
    lab.agent(["verify"]).exits(0);
}

#[test]
fn a_second_task_of_the_same_id_is_refused_and_changes_nothing() {
    let lab = Lab::killed_at("after_effect:1");
    let (status, journal) = (lab.status("t1"), lab.journal("t1"));
    lab.agent(["create", "t1", "plan.json"]).fails(73).says("`t1`");
    assert_eq!((lab.status("t1"), lab.journal("t1")), (status, journal));
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_plan_file_that_cannot_be_read_is_named() {
    let lab = Lab::new();
    let before = lab.tree();
    lab.agent(["create", "t1", "none.json"]).fails(66).says("none.json").says("No such file");
    lab.agent(["create", "t1", "input"]).fails(66).says("input");
    lab.agent(["create", "t1", "plan.json/x"]).fails(66);
    assert_eq!(lab.tree(), before);
}

#[test]
fn a_plan_that_is_no_text_is_a_bad_plan() {
    let lab = Lab::new();
    lab.write("latin1.json", b"{\"goal\": \"Gr\xfc\xdfe\"}");
    lab.agent(["create", "t1", "latin1.json"]).fails(65).says("offset 12");
    lab.write("nul.json", [0; 100]);
    lab.agent(["create", "t1", "nul.json"]).fails(65).says("not JSON");
    lab.write("empty.json", "");
    lab.agent(["create", "t1", "empty.json"]).fails(65).says("not JSON");
    lab.write("deep.json", "[".repeat(200_000));
    lab.agent(["create", "t1", "deep.json"]).fails(65).says("not JSON");
    assert!(!lab.path("state.db").exists());
}

#[test]
fn an_unknown_task_is_1_for_every_command_that_names_one() {
    for lab in [Lab::new(), Lab::with_task()] {
        let before = lab.tree();
        for command in ["run", "status", "export", "retry", "verify"] {
            lab.agent([command, "t2"]).fails(1).says("t2");
        }
        assert_eq!(lab.tree(), before);
    }
}

/// Commands that need a database, with what they would do to it.
const COMMANDS: [&[&str]; 8] = [
    &["create", "t9", "plan.json"],
    &["run", "t1"],
    &["status", "t1"],
    &["export", "t1"],
    &["retry", "t1"],
    &["list"],
    &["verify"],
    &["backup", "copy.db"],
];

#[rstest]
#[case::garbage(b"this is not a database, and it is long enough to be taken for the header of one at first sight".as_slice())]
#[case::short(b"short")]
#[case::half_a_header(b"SQLite format 3\0")]
fn what_is_no_database_is_refused_and_left_alone(#[case] bytes: &[u8]) {
    let lab = Lab::new();
    lab.write("state.db", bytes);
    let before = lab.tree();
    for arguments in COMMANDS {
        lab.agent(arguments).fails(78).says("state.db");
        assert_eq!(lab.tree(), before, "{arguments:?}");
    }
}

#[test]
fn a_folder_in_the_place_of_the_database_is_refused() {
    let lab = Lab::new();
    fs::create_dir(lab.path("state.db")).unwrap();
    let before = lab.tree();
    for arguments in COMMANDS {
        lab.agent(arguments).fails(78).says("state.db");
        assert_eq!(lab.tree(), before, "{arguments:?}");
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let lab = Lab::new();
    lab.sql("CREATE TABLE recipes(id INTEGER PRIMARY KEY); INSERT INTO recipes VALUES (1);");
    let before = lab.tree();
    for arguments in COMMANDS {
        lab.agent(arguments).fails(78).says("another program");
        assert_eq!(lab.tree(), before, "{arguments:?}");
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let lab = Lab::with_task();
    lab.sql("PRAGMA user_version = 99;");
    let before = lab.tree();
    for arguments in COMMANDS {
        lab.agent(arguments).fails(78).says("version 99");
        assert_eq!(lab.tree(), before, "{arguments:?}");
    }
}

#[test]
fn a_database_in_a_folder_that_does_not_exist_is_not_made() {
    let lab = Lab::new();
    let before = lab.tree();
    lab.agent(["--db", "none/state.db", "create", "t1", "plan.json"]).fails(73).says("none/state.db");
    for command in ["run", "status", "export", "retry"] {
        lab.agent(["--db", "none/state.db", command, "t1"]).fails(1).says("none/state.db");
    }
    for command in ["list", "verify"] {
        lab.agent(["--db", "none/state.db", command]).fails(66).says("none/state.db");
    }
    assert_eq!(lab.tree(), before);
}

#[rstest]
#[case(":memory:")]
#[case("file:x?mode=memory")]
#[case("state with space.db")]
#[case("データ.db")]
#[case("./a/../state.db")]
fn a_database_name_is_a_file_name_and_nothing_else(#[case] name: &str) {
    let lab = Lab::new();
    fs::create_dir(lab.path("a")).unwrap();
    lab.agent(["--db", name, "create", "t1", "plan.json"]).exits(0);
    lab.agent(["--db", name, "run", "t1"]).exits(0);
    assert!(lab.path(name).is_file());
    lab.agent(["--db", name, "verify"]).exits(0);
}

/// SQLite keeps the WAL beside the file that the link leads to. A reader that looked beside the link once saw the state
/// before the WAL, and two names of one database gave one task two locks.
#[test]
fn a_database_behind_a_link_is_the_one_it_leads_to() {
    let lab = Lab::killed_at("after_effect:2");
    fs::create_dir(lab.path("links")).unwrap();
    std::os::unix::fs::symlink("../state.db", lab.path("links/link.db")).unwrap();
    let before = lab.tree();
    assert_eq!(lab.agent(["--db", "links/link.db", "status", "t1"]).exits(0).json(), lab.status("t1"));
    assert_eq!(lab.tree(), before);
    let holder = fs::File::open(lab.path("state.db.t1.lock")).unwrap();
    holder.lock().unwrap();
    lab.agent(["--db", "links/link.db", "run", "t1"]).fails(3);
    fixtures::unlock(holder);
    lab.agent(["--db", "links/link.db", "run", "t1"]).exits(0);
    assert_eq!(crate::lab::names(&lab.path("links")), ["link.db"]);
    assert_sound(&lab, "t1", None);
}

#[test]
fn a_link_to_nowhere_leads_to_the_database_that_is_made_there() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("elsewhere.db", lab.path("state.db")).unwrap();
    lab.agent(["status", "t1"]).fails(1);
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    assert!(lab.path("elsewhere.db").is_file());
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

/// What a kill in the making of a database leaves.
#[test]
fn an_empty_file_is_made_a_database() {
    let lab = Lab::new();
    lab.write("state.db", "");
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.agent(["run", "t1"]).exits(0);
    assert_sound(&lab, "t1", None);
}

#[test]
fn an_id_may_look_like_an_option() {
    let lab = Lab::new();
    lab.agent(["create", "--", "--db", "plan.json"]).exits(0);
    lab.agent(["run", "--", "--db"]).exits(0);
    assert_eq!(lab.artifacts(), ["--db-2.md"]);
}

#[test]
fn a_message_stays_one_line_whatever_names_are_in_it() {
    let lab = Lab::with_task();
    let name = "a\nb\u{1b}[31m";
    lab.write(&format!("{name}.db"), "there already");
    for ran in [
        lab.agent(["create", "t2", name]),
        lab.agent(["--db", name, "list"]),
        lab.agent(["backup", &format!("{name}.db")]),
        lab.call(["run", "t1"]).env("AGENT_LLM", name).ran(),
        lab.call(["run", "t1"]).env("AGENT_CRASH_AT", name).ran(),
    ] {
        let code = ran.code;
        assert!(code != 0 && !ran.stderr.contains('\u{1b}'), "{ran:?}");
        ran.fails(code).says(r"a\nb\u{1b}[31m");
    }
}

#[test]
fn a_goal_cannot_write_to_the_terminal() {
    let lab = Lab::new();
    lab.write("plan.json", r#"{"goal":"a\nb\u001b[31m","steps":[{"tool":"echo","input":{"value":1}}]}"#);
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    let table = lab.agent(["list"]).exits(0).stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    assert_eq!(lab.status("t1")["goal"], "a\nb\u{1b}[31m", "programs get it as it is");
}

/// The code that journaled the task may have had tools that this program lacks.
#[test]
fn a_task_of_another_version_is_refused_without_costing_an_attempt() {
    let lab = Lab::with_task();
    lab.sql("UPDATE steps SET tool = 'teleport' WHERE idx = 0;");
    let before = lab.tree();
    lab.agent(["run", "t1"]).fails(78).says("step 0").says("teleport");
    assert_eq!(lab.tree(), before);
}

/// Whatever is wrong with a stored output, it is found before the step that reads it begins.
#[rstest]
#[case::not_json("UPDATE steps SET output = '{' WHERE idx = 0", "not JSON")]
#[case::no_object("UPDATE steps SET output = '[]' WHERE idx = 0", "not an object")]
#[case::no_field("UPDATE steps SET output = '{\"chars\":1,\"sha256\":\"\"}' WHERE idx = 0", "`text`")]
#[case::nothing("UPDATE steps SET output = NULL WHERE idx = 0", "missing")]
#[case::bad_input("UPDATE steps SET input = '{' WHERE idx = 1", "input is not JSON")]
#[case::bad_status("UPDATE steps SET status = 'dancing' WHERE idx = 1", "dancing")]
fn a_stored_value_that_does_not_decode_is_named_and_the_file_stays(#[case] sql: &str, #[case] says: &str) {
    let lab = Lab::killed_at("after_commit:0");
    lab.sql(sql);
    let before = lab.tree();
    lab.agent(["run", "t1"]).fails(78).says(says);
    assert_eq!(lab.tree(), before);
}

/// `agent create` waited for ever for somebody to write the plan into a pipe.
#[test]
fn a_plan_that_is_not_a_file_is_refused_at_once() {
    let lab = Lab::new();
    nix::unistd::mkfifo(&lab.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let before = crate::lab::names(&lab.path("."));
    for (plan, what) in [("pipe", "a named pipe"), ("input", "a folder"), ("/dev/zero", "a device")] {
        lab.agent(["create", "t1", plan]).fails(66).says(plan).says(what);
    }
    assert_eq!(crate::lab::names(&lab.path(".")), before);
}

/// Some editors begin a file with a mark, which was taken for something that is not JSON.
#[test]
fn a_plan_may_begin_with_a_byte_order_mark() {
    let lab = Lab::new();
    let plan = lab.sandbox.read("plan.json");
    lab.write("plan.json", format!("\u{feff}{plan}"));
    lab.agent(["create", "t1", "plan.json"]).exits(0);
    lab.write("plan.json", format!("\u{feff}\u{feff}{plan}"));
    lab.agent(["create", "t2", "plan.json"]).fails(65).says("not JSON");
}

/// A plan of a million steps took 1.6 GB to store and 93 MB to show: it was held as a whole, more than once.
#[test]
fn a_long_plan_is_stored_and_shown_in_little_memory() {
    const STEPS: usize = 150_000;
    let lab = Lab::new();
    let step = |note: usize| {
        format!(r#"{{"tool":"count_words","input":{{"path":"inbox/a-note-with-a-name-{note:07}.txt"}}}}"#)
    };
    let steps: Vec<String> = (0..STEPS).map(step).collect();
    lab.write("plan.json", format!(r#"{{"goal":"g","steps":[{}]}}"#, steps.join(",\n")));
    let limited = |arguments: &[&str]| {
        let script = format!("ulimit -v 65536; exec {} \"$@\"", env!("CARGO_BIN_EXE_agent"));
        lab.call_through(&["sh", "-c", &script, "sh"], arguments).ran()
    };
    limited(&["create", "t1", "plan.json"]).exits(0).says("150000 steps");
    let steps = limited(&["status", "t1"]).exits(0).json()["steps"].take();
    assert_eq!(steps.as_array().unwrap().len(), STEPS);
    assert_eq!(steps[STEPS - 1]["idx"], STEPS - 1);
}
