//! A value that cannot be understood is refused before anything happens: a typing slip must never make a crash test
//! pass.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rstest::rstest;

use crate::lab::Lab;

#[rstest]
#[case("AGENT_CRASH_AT", "after_efect:2")]
#[case("AGENT_CRASH_AT", "after_effect:3")]
#[case("AGENT_CRASH_AT", "after_effect:99")]
#[case("AGENT_CRASH_AT", "after_effect")]
#[case("AGENT_CRASH_AT", "after_effect:")]
#[case("AGENT_CRASH_AT", "after_effect:-1")]
#[case("AGENT_CRASH_AT", "after_effect:two")]
#[case("AGENT_CRASH_AT", "after_effect:2 ")]
#[case("AGENT_CRASH_AT", "after_effect:2#0")]
#[case("AGENT_CRASH_AT", "after_effect:2#")]
#[case("AGENT_CRASH_AT", "After_Effect:2")]
#[case("AGENT_CRASH_AT", ":2")]
#[case("AGENT_CRASH_AT", "write_artifact.linked:0")]
#[case("AGENT_CRASH_AT", "write_artifact.linked")]
#[case("AGENT_CRASH_AT", "write_artifact.linkd:2")]
#[case("AGENT_CRASH_AT", "run.started:1")]
#[case("AGENT_CRASH_AT", "commit.written:3")]
#[case("AGENT_MAX_ATTEMPTS", "0")]
#[case("AGENT_MAX_ATTEMPTS", "x")]
#[case("AGENT_MAX_ATTEMPTS", "-1")]
#[case("AGENT_MAX_ATTEMPTS", "+1")]
#[case("AGENT_MAX_ATTEMPTS", "1.5")]
#[case("AGENT_MAX_ATTEMPTS", "99999999999")]
#[case("AGENT_STEP_DELAY", "-1")]
#[case("AGENT_STEP_DELAY", "nan")]
#[case("AGENT_STEP_DELAY", "inf")]
#[case("AGENT_STEP_DELAY", "1e30")]
#[case("AGENT_STEP_DELAY", "x")]
#[case("AGENT_STEP_DELAY", "1s")]
#[case("AGENT_UNSAFE_EFFECTS", "yes")]
#[case("AGENT_UNSAFE_EFFECTS", "true")]
#[case("AGENT_UNSAFE_KEYS", "2")]
#[case("AGENT_LLM", "gpt")]
#[case("AGENT_LLM", "Ollama")]
fn a_value_that_makes_no_sense_is_refused_before_the_first_transaction(#[case] name: &str, #[case] value: &str) {
    let lab = Lab::with_task();
    let before = lab.tree();
    for arguments in [&["run", "t1"][..], &["create", "t2", "plan.json"]] {
        lab.call(arguments).env(name, value).ran().fails(64).says(name);
        assert_eq!(lab.tree(), before, "{arguments:?}");
    }
    let lab = Lab::new();
    let before = lab.tree();
    lab.call(["create", "t1", "plan.json"]).env(name, value).ran().fails(64);
    assert_eq!(lab.tree(), before, "no database is made");
}

#[rstest]
#[case("after_effect:3", "the plan has 3 steps, 0 to 2")]
#[case("after_effect", "needs a step, such as after_effect:0")]
#[case("write_artifact.linked:0", "step 0 calls fetch, the point is in write_artifact")]
#[case("after_efect:2", "no such crash point")]
#[case("run.started:1", "outside the steps")]
fn the_message_says_what_would_be_right(#[case] point: &str, #[case] says: &str) {
    Lab::with_task().call(["run", "t1"]).env("AGENT_CRASH_AT", point).ran().fails(64).says(point).says(says);
}

#[test]
fn a_slip_is_found_on_a_task_that_is_over_too() {
    let lab = Lab::golden("v1-done");
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "after_efect:2").ran().fails(64);
    lab.call(["run", "t1"]).env("AGENT_CRASH_AT", "after_effect:2").ran().exits(0);
}

#[rstest]
#[case("AGENT_LLM_TIMEOUT", "-1")]
#[case("AGENT_LLM_TIMEOUT", "soon")]
#[case("AGENT_LLM_TIMEOUT", "0")]
#[case("AGENT_LLM_TIMEOUT", "0.0")]
#[case("AGENT_LLM_TIMEOUT", "1e-12")]
fn settings_of_the_model_are_checked_where_a_model_is_asked(#[case] name: &str, #[case] value: &str) {
    let lab = Lab::with_task();
    let before = lab.tree();
    lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env(name, value).ran().fails(64).says(name);
    assert_eq!(lab.tree(), before);
}

/// `AGENT_CRASH_ATT=after_effect:2` tested nothing, and passed.
#[rstest]
#[case("AGENT_CRASH_ATT")]
#[case("AGENT_MAX_ATEMPTS")]
#[case("AGENT_UNSAFE_EFFECT")]
#[case("AGENT_ARTEFACTS")]
fn a_name_that_is_misspelt_is_refused(#[case] name: &str) {
    let lab = Lab::with_task();
    let before = lab.tree();
    lab.call(["run", "t1"]).env(name, "1").ran().fails(64).says(name);
    assert_eq!(lab.tree(), before);
    lab.call(["run", "t1"]).env("AGENT_NAME", "of a build server").ran().exits(0);
}

#[rstest]
#[case("foo")]
#[case("http://")]
#[case("ftp://host")]
#[case("http://127.0.0.1:114344")]
#[case("http://127.0.0.1:")]
#[case("http://127.0.0.1/?x")]
#[case("http://127.0.0.1/#x")]
#[case("http://me@127.0.0.1")]
#[case("http://127.0.0.1/api/generate")]
fn an_address_of_the_model_that_is_not_one_is_refused_before_it_costs_an_attempt(#[case] url: &str) {
    let lab = Lab::with_task();
    let before = lab.tree();
    lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env("OLLAMA_URL", url).ran().fails(64).says("OLLAMA_URL");
    assert_eq!(lab.tree(), before);
}

/// A recording with a gap names fewer places to kill at than there are.
#[test]
fn a_recording_that_cannot_be_written_ends_the_run() {
    let lab = Lab::with_task();
    lab.call(["run", "t1"]).env("AGENT_CRASH_RECORD", "/dev/full").ran().fails(74).says("AGENT_CRASH_RECORD");
    lab.agent(["run", "t1"]).exits(0);
}

#[test]
fn a_value_that_is_not_utf_8_is_refused() {
    let lab = Lab::with_task();
    let before = lab.tree();
    let value = OsStr::from_bytes(b"\xff");
    lab.call(["run", "t1"]).env("AGENT_MAX_ATTEMPTS", value).ran().fails(64).says("AGENT_MAX_ATTEMPTS");
    assert_eq!(lab.tree(), before);
}

/// `AGENT_CRASH_AT=$POINT` with an unset POINT is a slip like others.
#[test]
fn an_empty_value_is_refused() {
    let lab = Lab::with_task();
    let before = lab.tree();
    for name in fixtures::contract::ENV.into_iter().filter(|name| name.starts_with("AGENT_")) {
        lab.call(["run", "t1"]).env(name, "").ran().fails(64).says(name);
    }
    for name in ["OLLAMA_MODEL", "OLLAMA_URL"] {
        lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env(name, "").ran().fails(64).says(name);
    }
    assert_eq!(lab.tree(), before);
}

/// A retry writes too, and can be killed.
#[test]
fn a_retry_refuses_a_slip_like_a_run() {
    let lab = Lab::failed();
    let before = lab.tree();
    for point in ["after_efect:2", "commit.written:3", "write_artifact.linked:0", "after_effect"] {
        lab.call(["retry", "t1"]).env("AGENT_CRASH_AT", point).ran().fails(64).says(point);
        assert_eq!(lab.tree(), before);
    }
}

/// The output names the report as text, so such a folder cannot be used; it once cost all attempts to say so.
#[test]
fn an_artifacts_folder_that_is_not_utf_8_is_refused_before_it_costs_an_attempt() {
    let lab = Lab::with_task();
    let before = lab.tree();
    let folder = OsStr::from_bytes(b"art\xff");
    lab.call(["run", "t1"]).env("AGENT_ARTIFACTS", folder).ran().fails(64).says("AGENT_ARTIFACTS");
    assert_eq!(lab.tree(), before);
}

#[test]
fn values_at_the_edge_are_understood() {
    let lab = Lab::with_task();
    let call = lab.call(["run", "t1"]).env("AGENT_MAX_ATTEMPTS", "1").env("AGENT_STEP_DELAY", "0.001");
    let call = call.env("AGENT_UNSAFE_EFFECTS", "0").env("AGENT_LLM", "stub").env("AGENT_ARTIFACTS", "a/b/c");
    call.ran().exits(0);
    assert!(lab.path("a/b/c/t1-2.md").is_file() && lab.artifacts().is_empty());
    assert_eq!(lab.journal("t1")[1]["max_attempts"], 1, "the limit in force is in the journal");
}

/// The limit is the run's, and an attempt that crashed counts like one that failed.
#[test]
fn the_attempt_limit_is_that_of_the_run() {
    let lab = Lab::killed_at("before_effect:1");
    lab.call(["run", "t1"]).env("AGENT_MAX_ATTEMPTS", "1").ran().exits(2).says("step 1");
    let lab = Lab::killed_at("before_effect:1");
    lab.call(["run", "t1"]).env("AGENT_MAX_ATTEMPTS", "2").ran().exits(0);
}

#[test]
fn a_recording_that_cannot_be_opened_is_refused() {
    let lab = Lab::with_task();
    let before = lab.tree();
    lab.call(["run", "t1"]).env("AGENT_CRASH_RECORD", "none/file").ran().fails(64).says("AGENT_CRASH_RECORD");
    assert_eq!(lab.tree(), before);
    // Nobody reads it: to open it would wait for ever.
    nix::unistd::mkfifo(&lab.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    lab.call(["run", "t1"]).env("AGENT_CRASH_RECORD", "pipe").ran().fails(64).says("a named pipe");
}

/// A resumed run used the stub where the first one had used the model, and nobody was told.
#[test]
fn a_resumed_run_says_which_settings_are_others_than_at_first() {
    let lab = Lab::with_task();
    let first = lab.call(["run", "t1"]).env("AGENT_LLM", "ollama").env("AGENT_CRASH_AT", "before_effect:0");
    let ran = first.ran().exits(137);
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let ran = lab.call(["run", "t1"]).env("AGENT_ARTIFACTS", "elsewhere").ran().exits(0);
    for says in ["the engine is stub, and was ollama in the first run", "the artifacts folder is elsewhere, and was"] {
        assert!(ran.stderr.contains(says), "{ran:?}");
    }
    let begun: Vec<_> = lab.journal("t1").into_iter().filter(|event| event["kind"] == "run_started").collect();
    assert_eq!((&begun[0]["engine"], &begun[0]["model"]), (&"ollama".into(), &"llama3.2".into()));
    assert_eq!((&begun[1]["engine"], &begun[1]["model"]), (&"stub".into(), &serde_json::Value::Null));
}
