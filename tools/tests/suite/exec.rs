//! Programs: what they are told, what their end means, and that nothing of them outlives what it must not.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Map, Value, json};
use store::Crash;
use tools::{
    Attempt, Effect, Form, Input, Outputs, Probe, Registry, Secrets, Stop, Tool, ToolContext, ToolError, World,
    check_input,
};

use crate::support::{folder, key, names, object, world};

/// A world whose tasks are at home in `folder`.
fn at_home(folder: &Path) -> World {
    World { home: folder.to_owned(), ..world(folder) }
}

fn shell(script: &str) -> Value {
    json!({ "command": ["/bin/sh", "-c", script] })
}

fn with<R>(
    world: &World,
    attempt: Attempt<'_>,
    stop: &Stop,
    use_it: impl FnOnce(&dyn Tool, &ToolContext<'_>) -> R,
) -> R {
    let (key, outputs, crash) = (key(), Outputs::new(), Crash::off());
    let ctx = ToolContext { key: &key, world, outputs: &outputs, crash: crash.scope(Some(2)), stop, attempt };
    use_it(Registry::builtin().find("exec").unwrap().as_ref(), &ctx)
}

fn call_as(world: &World, attempt: Attempt<'_>, input: Value) -> Result<Map<String, Value>, ToolError> {
    let input = object(input);
    with(world, attempt, &Stop::default(), |tool, ctx| {
        assert_eq!(check_input(tool, &input, Form::Literal), Ok(()));
        tool.call(ctx, Input(&input))
    })
}

fn call(world: &World, input: Value) -> Result<Map<String, Value>, ToolError> {
    call_as(world, Attempt::first(Effect::Once), input)
}

fn merged(one: Value, two: Value) -> Value {
    let mut one = object(one);
    one.extend(object(two));
    Value::Object(one)
}

#[test]
fn a_program_is_told_what_it_needs_and_its_object_is_the_output() {
    let folder = folder();
    let world = at_home(folder.path());
    let script = r#"read -r line; printf '{"told": %s, "env": "%s %s %s %s", "here": "%s"}' "$line" \
        "$AGENT_IDEMPOTENCY_KEY" "$AGENT_TASK" "$AGENT_STEP" "$AGENT_ATTEMPT" "$(pwd)""#;
    let input = merged(shell(script), json!({ "json": { "a": ["ü\n"] } }));
    let checkpoint = json!(7);
    let attempt = Attempt { number: 3, checkpoint: Some(&checkpoint), ..Attempt::first(Effect::Once) };
    let output = call_as(&world, attempt, input.clone()).unwrap();
    let told = json!({
        "input": { "a": ["ü\n"] }, "key": "t1-2", "task": "t1", "step": 2, "attempt": 3, "checkpoint": 7
    });
    assert_eq!(output["told"], told);
    assert_eq!(output["env"], "t1-2 t1 2 3");
    assert_eq!(output["here"], folder.path().canonicalize().unwrap().to_str().unwrap());
    let output = call(&world, merged(input, json!({ "key": "order-17" }))).unwrap();
    assert_eq!((&output["told"]["key"], &output["env"]), (&json!("order-17"), &json!("order-17 t1 2 1")));
}

#[test]
fn nothing_is_inherited_but_what_is_named() {
    let folder = folder();
    let secrets = Secrets::new(|name| (name == "TOKEN").then(|| "hunter22".to_owned()));
    let world = World { secrets: secrets.clone(), ..at_home(folder.path()) };
    let env = |input: Value| {
        let output = call(&world, merged(merged(shell("env"), json!({ "stdout": "text" })), input)).unwrap();
        let mut names: Vec<String> = output["stdout"]
            .as_str()
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with("AGENT_") && !line.starts_with("PWD=") && !line.starts_with("_="))
            .filter(|line| !line.starts_with("SHLVL=") && !line.starts_with("OLDPWD="))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    assert_eq!(env(json!({})), ["PATH=/usr/bin:/bin"]);
    assert_eq!(env(json!({ "env": ["TOKEN"] })), ["PATH=/usr/bin:/bin", "TOKEN=hunter22"]);
    let marked = format!("Bearer {}", secrets.mark("TOKEN"));
    assert_eq!(env(json!({ "env": { "AUTH": marked } })), ["AUTH=Bearer hunter22", "PATH=/usr/bin:/bin"]);
    let error = call(&world, merged(shell("true"), json!({ "env": ["NONE"] }))).unwrap_err();
    assert!(matches!(&error, ToolError::Permanent(why) if why.contains("NONE")), "{error:?}");
}

#[rstest]
#[case("exit 0", "", "printed nothing")]
#[case("echo hello", "", "not JSON")]
#[case("echo '[1]'", "", "a list, not a JSON object")]
#[case(r#"printf '{"a": '"#, "", "not JSON")]
#[case(r#"printf '{"a": "\\u0000"}'"#, "", "NUL")]
#[case(r"printf '{\000}'", "", "not JSON")]
#[case(r"printf 'a\000b'", "text", "NUL")]
#[case(r"printf 'a\377b'", "text", "not UTF-8: invalid byte at offset 1")]
#[case("kill -9 $$", "", "signal 9")]
#[case("kill -15 $$", "", "signal 15")]
fn what_cannot_be_used_leaves_the_outcome_unknown(#[case] script: &str, #[case] stdout: &str, #[case] says: &str) {
    let folder = folder();
    let stdout = if stdout.is_empty() { "json" } else { stdout };
    let error = call(&at_home(folder.path()), merged(shell(script), json!({ "stdout": stdout }))).unwrap_err();
    assert!(matches!(&error, ToolError::Unknown { why, .. } if why.contains(says)), "{error:?}");
}

#[test]
fn an_exit_code_says_whether_it_may_be_tried_again() {
    let folder = folder();
    let world = at_home(folder.path());
    let error = call(&world, shell("echo busy >&2; exit 75")).unwrap_err();
    assert!(matches!(&error, ToolError::Transient { why, .. } if why.ends_with("(exit code 75): busy")), "{error:?}");
    let error = call(&world, shell("echo first >&2; echo 'no such user' >&2; exit 3")).unwrap_err();
    assert_eq!(error, ToolError::permanent("the program ended with exit code 3: first\nno such user"));
    let input = json!({ "expect": [1, 75], "stdout": "text" });
    for code in [1, 75] {
        assert_eq!(call(&world, merged(shell(&format!("exit {code}")), input.clone())).unwrap()["stdout"], "");
    }
    assert!(
        matches!(call(&world, merged(shell("exit 0"), input)), Err(ToolError::Permanent(_))),
        "0 is not among them"
    );
}

#[test]
fn what_cannot_be_started_has_done_nothing() {
    let folder = folder();
    let world = at_home(folder.path());
    fs::write(folder.path().join("plain"), "").unwrap();
    for (program, says) in
        [("no-such-program", "No such file"), ("./plain", "Permission denied"), ("./none", "No such")]
    {
        let error = call(&world, json!({ "command": [program] })).unwrap_err();
        assert!(matches!(&error, ToolError::Permanent(why) if why.contains(says)), "{error:?}");
    }
    let error = call(&world, merged(shell("true"), json!({ "cwd": "nowhere" }))).unwrap_err();
    assert!(matches!(&error, ToolError::Permanent(why) if why.contains("nowhere")), "{error:?}");
    let none = World { programs: tools::Programs { keeper: vec![], ..world.programs.clone() }, ..world };
    assert!(matches!(call(&none, shell("true")), Err(ToolError::Transient { .. })));
}

#[rstest]
#[case(json!({ "command": [] }), "`command`: names no program")]
#[case(json!({ "command": [""] }), "`command`: the name of the program is empty")]
#[case(json!({ "command": ["a\u{0}"] }), "`command`: has a NUL")]
#[case(json!({ "command": "ls -l" }), "`command`: must be a list of texts, is text")]
#[case(json!({ "command": ["ls", 1] }), "`command[1]`: must be text, is 1")]
#[case(json!({ "command": ["ls"], "check": [] }), "`check`: names no program")]
#[case(json!({ "command": ["ls"], "env": ["A=B"] }), "`env`: `A=B` is not the name of a variable")]
#[case(json!({ "command": ["ls"], "env": { "": "x" } }), "`env`: `` is not the name")]
#[case(json!({ "command": ["ls"], "stdout": "xml" }), "`stdout`: must be one of json, text, is `xml`")]
#[case(json!({ "command": ["ls"], "expect": [-1] }), "`expect[0]`: must be a whole number")]
#[case(json!({ "command": ["ls"], "input": {} }), "`input`: unknown field")]
fn a_bad_input_is_refused_before_anything_is_stored(#[case] input: Value, #[case] says: &str) {
    let tools = Registry::builtin();
    let error = check_input(tools.find("exec").unwrap().as_ref(), &object(input), Form::Templated).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn what_takes_too_long_or_prints_too_much_is_ended() {
    let folder = folder();
    let world = at_home(folder.path());
    let attempt = Attempt { timeout: Some(Duration::from_millis(300)), ..Attempt::first(Effect::Once) };
    // It does not heed polite requests, and has a child that does not either.
    let script = "trap '' TERM; (trap '' TERM; sleep 1; touch late) & sleep 60";
    let error = call_as(&world, attempt, shell(script)).unwrap_err();
    assert!(matches!(&error, ToolError::Unknown { why, .. } if why.contains("in time")), "{error:?}");
    let error = call(&world, shell("exec yes")).unwrap_err();
    assert!(matches!(&error, ToolError::Unknown { why, .. } if why.contains("printed more than")), "{error:?}");
    std::thread::sleep(Duration::from_millis(900));
    assert!(!folder.path().join("late").exists());
    assert_eq!(names(&world.programs.folder), [""; 0], "nothing is left of them");
}

#[test]
fn what_is_said_on_standard_error_is_kept_up_to_a_limit() {
    let folder = folder();
    let world = at_home(folder.path());
    let script = "echo '{}'; head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2";
    call(&world, shell(script)).unwrap();
    let kept = tools::stderr_files(&world.programs.folder, "t1-2").unwrap();
    assert_eq!(kept.iter().map(|(attempt, _)| attempt.as_str()).collect::<Vec<_>>(), ["1"]);
    let size = fs::metadata(&kept[0].1).unwrap().len();
    assert!((1 << 20..(1 << 20) + 100).contains(&size), "{size}");
}

#[test]
fn a_checkpoint_is_kept_as_it_comes_and_a_bad_one_does_no_harm() {
    let folder = folder();
    let world = at_home(folder.path());
    let seen = Mutex::new(Vec::new());
    let keep = |checkpoint: &Value| {
        seen.lock().unwrap().push(checkpoint.clone());
        Ok(())
    };
    let attempt = Attempt { keep: Some(&keep), ..Attempt::first(Effect::Once) };
    let script = r#"echo '{"checkpoint": 1}' >&3; echo nonsense >&3; head -c 70000 /dev/zero | tr '\0' x >&3; echo >&3
        echo '{"checkpoint": {"page": 2}}' >&3; echo '{}'"#;
    call_as(&world, attempt, shell(script)).unwrap();
    assert_eq!(*seen.lock().unwrap(), [json!(1), json!({ "page": 2 })]);
    let kept = &tools::stderr_files(&world.programs.folder, "t1-2").unwrap()[0].1;
    let said = fs::read_to_string(kept).unwrap();
    assert!(said.contains("nonsense") && said.contains("more than 65536 bytes"), "{said}");
    // What cannot be kept ends the attempt, and its program.
    let refuse = |_: &Value| Err(ToolError::Poison("the disk".into()));
    let attempt = Attempt { keep: Some(&refuse), ..attempt };
    let error = call_as(&world, attempt, shell(r#"echo '{"checkpoint": 1}' >&3; sleep 1; touch late; echo '{}'"#));
    assert_eq!(error, Err(ToolError::Poison("the disk".into())));
    std::thread::sleep(Duration::from_millis(1200));
    assert!(!folder.path().join("late").exists());
}

#[test]
fn a_stop_is_passed_on_and_the_class_says_what_it_means() {
    let folder = folder();
    let world = at_home(folder.path());
    let stopped = |effect, script: &str| {
        let stop = Stop::default();
        let flag = stop.flag();
        let timer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            flag.store(true, Ordering::Relaxed);
        });
        let input = object(shell(script));
        let result = with(&world, Attempt::first(effect), &stop, |tool, ctx| tool.call(ctx, Input(&input)));
        timer.join().unwrap();
        result
    };
    assert_eq!(stopped(Effect::Pure, "sleep 60"), Err(ToolError::Stopped));
    let error = stopped(Effect::Once, "sleep 60").unwrap_err();
    assert!(matches!(&error, ToolError::Unknown { why, .. } if why.contains("asked to stop")), "{error:?}");
    // What ends in order is done, and what asks to be tried again may be.
    let orderly = r#"trap 'echo "{\"a\": 1}"; exit 0' TERM; sleep 60 & wait"#;
    assert_eq!(stopped(Effect::Once, orderly).unwrap()["a"], 1);
    let later = "trap 'exit 75' TERM; sleep 60 & wait";
    assert!(matches!(stopped(Effect::Once, later), Err(ToolError::Transient { .. })));
    let stop = Stop::default();
    stop.flag().store(true, Ordering::Relaxed);
    let input = object(shell("touch started"));
    let result = with(&world, Attempt::first(Effect::Once), &stop, |tool, ctx| tool.call(ctx, Input(&input)));
    assert_eq!(result, Err(ToolError::Stopped));
    assert!(!folder.path().join("started").exists(), "an effect that has not begun does not begin");
}

/// A background job of a program that had ended well wrote on while the next step ran.
#[test]
fn what_a_program_leaves_behind_is_ended_with_it() {
    let folder = folder();
    let world = at_home(folder.path());
    let begun = Instant::now();
    call(&world, shell("(sleep 1; touch late) & echo '{}'")).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(900), "it is not waited for");
    std::thread::sleep(Duration::from_millis(1300));
    assert!(!folder.path().join("late").exists());
}

/// A killed agent's child lived on and wrote again.
#[rstest]
#[case::in_its_group("sleep 1; touch late; echo '{}'")]
#[case::in_a_session_of_its_own("setsid sh -c 'sleep 1; touch late' > /dev/null 2>&1 3>&- & sleep 60")]
#[case::deaf("trap '' TERM HUP INT; sleep 1; touch late; sleep 60")]
fn a_program_never_acts_once_its_attempt_was_swept(#[case] script: &str) {
    let folder = folder();
    let world = at_home(folder.path());
    // The agent of the earlier attempt: a process that is killed while its program runs.
    let keeper = env!("CARGO_BIN_EXE_tools-keeper");
    let order = json!({
        "command": ["/bin/sh", "-c", format!("touch begun; {script}")],
        "note": world.programs.folder.join("t1-2.keeper").to_str().unwrap(), "input": "",
    });
    fs::create_dir_all(&world.programs.folder).unwrap();
    // Of its descendants only the keeper has the line, so that it is not told of the agent's death: the sweep alone
    // must be enough.
    let python = "import socket, subprocess, sys, time, os\n\
        ours, its = socket.socketpair()\n\
        subprocess.Popen([sys.argv[1]], stdin=its, stdout=subprocess.DEVNULL, cwd=sys.argv[2], process_group=0,\n\
            pass_fds=[ours.fileno()] if sys.argv[4] == 'held' else [])\n\
        its.close()\n\
        ours.sendall(sys.argv[3].encode() + b'\\n')\n\
        assert ours.recv(6) == b'ready\\n'\n\
        ours.sendall(b'go\\n')\n\
        time.sleep(60)\n";
    for held in ["let go", "held"] {
        let mut agent = Command::new("python3")
            .args(["-c", python, keeper, folder.path().to_str().unwrap(), &order.to_string(), held])
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !folder.path().join("begun").exists() {
            assert!(Instant::now() < deadline && agent.try_wait().unwrap().is_none(), "it does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        agent.kill().unwrap();
        agent.wait().unwrap();
        with(&world, Attempt::first(Effect::Once), &Stop::default(), |tool, ctx| tool.sweep(ctx, Input(&Map::new())))
            .unwrap();
        assert_eq!(names(&world.programs.folder), [""; 0], "the proof is there");
        std::thread::sleep(Duration::from_millis(1300));
        assert!(!folder.path().join("late").exists(), "{held}");
        fs::remove_file(folder.path().join("begun")).unwrap();
    }
}

#[rstest]
#[case(r#"{"effect": "happened", "output": {"id": 7}}"#, Probe::Happened(Map::from_iter([("id".to_owned(), json!(7))])))]
#[case(r#"{"effect": "happened"}"#, Probe::Happened(Map::new()))]
#[case(r#"{"effect": "absent"}"#, Probe::Absent)]
fn a_check_says_whether_the_effect_has_happened(#[case] says: &str, #[case] found: Probe) {
    assert_eq!(probe(&format!("echo '{says}'")), found);
}

/// Unknown was taken for absent, and the effect happened twice.
#[rstest]
#[case(r#"echo '{"effect": "unknown"}'"#, "cannot know")]
#[case(r#"echo '{"effect": "no"}'"#, "none of happened, absent, unknown")]
#[case(r#"echo '{"effect": "happened", "output": 1}'"#, "not an object")]
#[case("exit 1", "exit code 1")]
#[case("exit 75", "exit code 75")]
#[case("echo '{\"effect\": \"absent\"}'; exit 1", "exit code 1")]
#[case("kill -9 $$", "signal 9")]
#[case("true", "printed nothing")]
#[case("exec /nonexistent", "exit code 127")]
fn a_check_that_does_not_say_leaves_it_unknown(#[case] script: &str, #[case] says: &str) {
    match probe(script) {
        Probe::Unknown(why) => assert!(why.contains(says), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn probe(script: &str) -> Probe {
    let folder = folder();
    let input = object(json!({ "command": ["false"], "check": ["/bin/sh", "-c", script] }));
    let world = at_home(folder.path());
    with(&world, Attempt::first(Effect::Verifiable), &Stop::default(), |tool, ctx| tool.probe(ctx, Input(&input)))
        .unwrap()
}

#[test]
fn a_check_makes_a_step_verifiable_and_without_one_it_happens_once() {
    let tools = Registry::builtin();
    let effect = |input: Value| tools.find("exec").unwrap().effect(&object(input));
    assert_eq!(effect(json!({ "command": ["a"] })), Effect::Once);
    assert_eq!(effect(json!({ "command": ["a"], "check": ["b"] })), Effect::Verifiable);
}
