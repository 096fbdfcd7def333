//! The report, its audit, and the negative control.

use std::fs;

use serde_json::{Map, Value, json};
use store::Crash;
use tools::{Attempt, Audit, Effect, Input, Stop, ToolContext, World};

use crate::support::{call, folder, from_0, key, names, object, outputs, world};

fn publish(world: &World, summary: &str) -> Map<String, Value> {
    call("write_artifact", world, &outputs(json!({ "summary": summary })), from_0(), &Crash::off()).unwrap()
}

fn audit(world: &World, summary: &str, output: &Map<String, Value>) -> Result<(), String> {
    let (key, outputs, crash, input) = (key(), outputs(json!({ "summary": summary })), Crash::off(), object(from_0()));
    let ctx = ToolContext {
        key: &key,
        world,
        outputs: &outputs,
        crash: crash.scope(None),
        stop: &Stop::default(),
        attempt: Attempt::first(Effect::Keyed),
    };
    match tools::Registry::builtin().find("write_artifact").unwrap().audit(&ctx, Input(&input), output) {
        Audit::Sound => Ok(()),
        Audit::Differs(why) => Err(why),
        Audit::NotLookedAt => panic!("a file can be looked at"),
    }
}

#[test]
fn the_report_is_named_by_its_key_and_says_whether_it_was_there() {
    let folder = folder();
    let world = world(folder.path());
    let path = world.artifacts.join("t1-2.md");
    let first = publish(&world, "zwei\nZeilen");
    assert_eq!(Value::Object(first.clone()), json!({ "deduplicated": false, "path": path }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "zwei\nZeilen");
    let second = publish(&world, "zwei\nZeilen");
    assert_eq!(Value::Object(second), json!({ "deduplicated": true, "path": path }));
    assert_eq!(names(&world.artifacts), ["t1-2.md"]);
}

/// A line break was added to the summary: whoever compared the file with the output of its step, or a file of this
/// agent with one of another, found them different. Files that were published so count as the same.
#[test]
fn the_report_is_the_summary_byte_for_byte_and_an_older_one_with_a_line_break_still_counts() {
    for summary in ["", "text", "text\n", "Grüße\n\n 東京"] {
        let folder = folder();
        let world = world(folder.path());
        let output = publish(&world, summary);
        let path = world.artifacts.join("t1-2.md");
        assert_eq!(fs::read_to_string(&path).unwrap(), summary);
        fs::write(&path, format!("{summary}\n")).unwrap();
        assert_eq!(publish(&world, summary)["deduplicated"], true);
        assert_eq!(audit(&world, summary, &output), Ok(()));
        fs::write(&path, format!("{summary}\n\n")).unwrap();
        assert!(audit(&world, summary, &output).is_err(), "one line break, and no more");
    }
}

#[test]
fn an_audit_sees_a_report_that_was_changed_or_removed() {
    let folder = folder();
    let world = world(folder.path());
    let output = publish(&world, "text");
    assert_eq!(audit(&world, "text", &output), Ok(()));
    assert!(audit(&world, "another", &output).unwrap_err().contains("other content"));
    fs::write(world.artifacts.join("t1-2.md"), "tex").unwrap();
    assert!(audit(&world, "text", &output).unwrap_err().contains("other content"));
    fs::remove_file(world.artifacts.join("t1-2.md")).unwrap();
    assert!(audit(&world, "text", &output).unwrap_err().contains("t1-2.md is missing"));
}

#[test]
fn the_unsafe_effect_is_repeated_and_the_audit_sees_it() {
    let folder = folder();
    let world = World { unsafe_effects: true, ..world(folder.path()) };
    let output = publish(&world, "a\nb");
    assert_eq!(audit(&world, "a\nb", &output), Ok(()));
    publish(&world, "a\nb");
    assert_eq!(names(&world.artifacts), ["report.log"]);
    assert_eq!(fs::read_to_string(world.artifacts.join("report.log")).unwrap(), "a\nb\n---\na\nb\n---\n");
    assert!(audit(&world, "a\nb", &output).unwrap_err().contains("stands 2 times"));
}

#[test]
fn a_sweep_of_the_step_removes_its_leftovers_only() {
    let folder = folder();
    let world = world(folder.path());
    publish(&world, "text");
    for name in [".t1-2.999999.tmp", ".t1-1.999999.tmp"] {
        fs::write(world.artifacts.join(name), "half").unwrap();
    }
    let (key, none, crash) = (key(), tools::Outputs::new(), Crash::off());
    let ctx = ToolContext {
        key: &key,
        world: &world,
        outputs: &none,
        crash: crash.scope(Some(2)),
        stop: &Stop::default(),
        attempt: Attempt::first(Effect::Keyed),
    };
    tools::Registry::builtin().find("write_artifact").unwrap().sweep(&ctx, Input(&object(from_0()))).unwrap();
    assert_eq!(names(&world.artifacts), [".t1-1.999999.tmp", "t1-2.md"]);
}

/// The output names the file as text, so this must be found before the effect and not after it.
#[test]
fn a_folder_whose_name_is_not_utf_8_is_refused_before_the_effect() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder();
    for unsafe_effects in [false, true] {
        let artifacts = folder.path().join(std::ffi::OsStr::from_bytes(b"art\xff"));
        let world = World { artifacts, unsafe_effects, ..world(folder.path()) };
        let outputs = outputs(json!({ "summary": "text" }));
        let error = call("write_artifact", &world, &outputs, from_0(), &Crash::off()).unwrap_err();
        assert!(error.to_string().contains("not UTF-8"), "{error}");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}
