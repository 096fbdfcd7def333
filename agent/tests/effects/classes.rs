//! Crashes and lost replies, by class.

use agent::{Exit, Says};
use rstest::rstest;
use serde_json::json;
use store::model::Effect;

use crate::lab::{Act, Lab};

#[rstest]
#[case(Effect::Pure, Act::Done, 0)]
#[case(Effect::Keyed, Act::Done, 0)]
#[case(Effect::Verifiable, Act::Absent, 1)]
fn a_crash_is_recovered_by_the_class(#[case] effect: Effect, #[case] act: Act, #[case] probes: u32) {
    let lab = Lab::of(effect.as_str(), [act]);
    lab.die_in_attempt(effect);
    assert_eq!(lab.run(), Exit::Done);
    assert_eq!(lab.seen.lock().unwrap().probes, probes);
    let told = lab.seen.lock().unwrap().attempts[0].clone();
    // Once it has been asked about, nothing is repeated.
    assert_eq!((told["number"].clone(), told["repeated"].clone()), (json!(2), json!(effect == Effect::Keyed)));
    lab.is_sound();
}

#[test]
fn a_crash_of_what_is_done_once_is_in_doubt_and_no_run_begins() {
    let lab = Lab::of("once", []);
    lab.die_in_attempt(Effect::Once);
    assert_eq!(lab.run(), Exit::Person);
    let before = lab.kinds();
    assert_eq!(before[1..], ["step_started", "step_in_doubt"]);
    assert_eq!(lab.run(), Exit::Person);
    assert_eq!(lab.kinds(), before, "a run that waits for a person writes nothing");
    assert_eq!(lab.effects(), 0);
    lab.is_sound();
}

#[test]
fn a_lost_reply_of_what_is_done_once_waits_for_a_word_and_is_not_repeated() {
    let lab = Lab::new(&[("once", json!({ "id": "mail" })), ("pure", json!({}))], [Act::Lost]);
    assert_eq!(lab.run(), Exit::Person);
    assert_eq!(lab.kinds(), ["run_started", "step_started", "step_in_doubt"]);
    assert_eq!(lab.last("step_in_doubt"), json!({ "known": "the reply was lost" }));
    assert_eq!(lab.say("mail", Says::Happened(Some(r#"{"id": 7}"#))).unwrap(), Exit::Done);
    assert_eq!(lab.run(), Exit::Done);
    assert_eq!(lab.output(0), json!({ "id": 7 }));
    // The second effect is that of the second step.
    assert_eq!(lab.effects(), 2);
    assert!(!lab.kinds()[..5].contains(&"step_finished".to_owned()), "{:?}", lab.kinds());
    lab.is_sound();
}

#[test]
fn what_is_absent_is_done_and_what_is_abandoned_fails() {
    let lab = Lab::of("once", [Act::NeverSent]);
    assert_eq!(lab.run(), Exit::Person);
    lab.say("0", Says::Absent).unwrap();
    assert_eq!((lab.run(), lab.effects()), (Exit::Done, 1));
    lab.is_sound();

    let lab = Lab::of("once", [Act::Lost]);
    assert_eq!(lab.run(), Exit::Person);
    lab.say("0", Says::Abandon).unwrap();
    assert_eq!(lab.run(), Exit::TaskFailed);
    assert_eq!(lab.last("task_failed")["reason"], "abandoned");
    assert_eq!(lab.effects(), 1);
    lab.is_sound();
}

#[test]
fn who_asks_first_adopts_what_is_there() {
    let lab = Lab::of("verifiable", [Act::Lost, Act::Happened]);
    assert_eq!((lab.run(), lab.effects()), (Exit::Done, 1));
    assert_eq!(lab.last("step_finished"), json!({ "tool": "verifiable", "adopted": true }));
    assert_eq!(lab.output(0), json!({ "found": true }));
    lab.is_sound();
}

#[rstest]
#[case::nobody_knows(vec![Act::Lost, Act::Unknown], Exit::Person, "step_in_doubt")]
// Nothing was found out; the third attempt asks again.
#[case::the_server_is_down(vec![Act::Lost, Act::Step, Act::Happened], Exit::Done, "step_finished")]
#[case::it_is_not_there(vec![Act::NeverSent, Act::Absent, Act::Done], Exit::Done, "step_finished")]
#[case::it_is_not_there_and_not_to_be_had(vec![Act::NeverSent, Act::Absent, Act::Permanent], Exit::TaskFailed, "task_failed")]
fn a_probe_says_what_is_done(#[case] script: Vec<Act>, #[case] exit: Exit, #[case] last: &str) {
    let lab = Lab::of("verifiable", script);
    assert_eq!(lab.run(), exit);
    assert!(lab.kinds().contains(&last.to_owned()), "{:?}", lab.kinds());
    assert!(lab.effects() <= 1);
    lab.is_sound();
}

/// After a lost reply the second call said "already exists", and the engine called the task failed.
#[test]
fn already_exists_on_a_repeated_attempt_may_be_our_own() {
    let lab = Lab::of("keyed", [Act::Lost, Act::Permanent]);
    assert_eq!(lab.run(), Exit::Person);
    assert_eq!(lab.last("step_in_doubt"), json!({ "known": "it exists already" }));
    let lab = Lab::of("keyed", [Act::Permanent]);
    assert_eq!(lab.run(), Exit::TaskFailed);
    assert_eq!(lab.last("task_failed")["reason"], "permanent");
    lab.is_sound();
}

#[test]
fn at_the_limit_the_journal_says_that_the_effect_may_have_happened() {
    let lab = Lab::of("keyed", [Act::NeverSent, Act::NeverSent, Act::Lost]);
    assert_eq!(lab.run(), Exit::TaskFailed);
    let failed = lab.last("task_failed");
    assert_eq!((&failed["reason"], &failed["unknown"]), (&json!("max_attempts"), &json!(true)));
    lab.is_sound();
}

#[test]
fn what_an_attempt_intends_is_in_the_journal_and_a_plain_step_says_nothing() {
    let lab = Lab::new(&[("keyed", json!({})), ("pure", json!({})), ("pure", json!({ "effect": "once" }))], []);
    assert_eq!(lab.run(), Exit::Done);
    let started: Vec<_> = lab.events().into_iter().filter(|(kind, _)| kind == "step_started").collect();
    // The SHA-256 of `{}`.
    let digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!((&started[0].1["effect"], &started[0].1["input_sha256"]), (&json!("keyed"), &json!(digest)));
    assert_eq!(started[1].1, json!({ "attempt": 1, "tool": "pure" }));
    assert_eq!(started[2].1["effect"], "once");
}
