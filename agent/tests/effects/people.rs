//! What people answer, resolve, refuse and cancel.

use agent::{Exit, Says};
use rstest::rstest;
use serde_json::json;
use store::Reader as _;
use store::model::Effect;

use crate::lab::{Act, Lab};

#[test]
fn an_answer_becomes_the_output_and_counts_once() {
    let lab = Lab::of("approval", []);
    assert_eq!(lab.run(), Exit::Person);
    assert_eq!(lab.kinds(), ["run_started", "step_waiting"], "a question is not an attempt");
    assert_eq!(lab.last("step_waiting")["for"], "approval");
    assert_eq!(lab.reader().questions().unwrap().len(), 1);
    assert_eq!(lab.say("0", Says::Approve(Some(r#"{"n": 1}"#))).unwrap(), Exit::Done);
    assert!(lab.reader().questions().unwrap().is_empty());
    let late = lab.say("0", Says::Reject).unwrap_err();
    assert_eq!(late.exit(), Exit::Refused);
    assert!(late.to_string().contains(r#"answers {"n":1} to step 0: seen"#), "{late}");
    assert_eq!(lab.run(), Exit::Done);
    let output = lab.output(0);
    assert_eq!((&output["answer"], &output["why"]), (&json!({ "n": 1 }), &json!("seen")));
    assert!(output["by"].is_string());
    let late = lab.say("0", Says::Approve(None)).unwrap_err();
    assert_eq!(late.exit(), Exit::Refused, "{late}");
    lab.is_sound();
}

#[test]
fn what_is_refused_or_not_answered_in_time_fails() {
    let lab = Lab::of("approval", []);
    lab.run();
    assert_eq!(lab.say("0", Says::Reject).unwrap(), Exit::Done);
    assert_eq!(lab.last("task_failed")["reason"], "rejected");
    assert_eq!((lab.run(), lab.effects()), (Exit::TaskFailed, 0));
    lab.is_sound();

    let lab = Lab::of("expired", []);
    assert_eq!(lab.run(), Exit::TaskFailed);
    assert_eq!(lab.kinds(), ["run_started", "step_waiting", "task_failed"]);
    assert_eq!(lab.last("task_failed")["reason"], "expired");
    lab.is_sound();
}

#[test]
fn of_two_words_for_a_doubt_the_first_counts() {
    let lab = Lab::of("once", [Act::Lost]);
    assert_eq!(lab.run(), Exit::Person);
    lab.say("0", Says::Happened(None)).unwrap();
    let late = lab.say("0", Says::Absent).unwrap_err();
    assert_eq!(late.exit(), Exit::Refused);
    assert!(late.to_string().contains("says that step 0 has had its effect"), "{late}");
    assert_eq!((lab.run(), lab.effects()), (Exit::Done, 1));
    let early = Lab::of("once", []).say("0", Says::Absent).unwrap_err();
    assert_eq!(early.exit(), Exit::Refused, "{early}");
}

#[rstest]
#[case("1", Says::Absent, Exit::Usage, "no step `1`")]
#[case("mail", Says::Absent, Exit::Usage, "no step `mail`")]
#[case("0", Says::Happened(Some("{")), Exit::Usage, "--happened")]
#[case("0", Says::Happened(Some("[1]")), Exit::Usage, "a JSON object")]
#[case("0", Says::Approve(None), Exit::Refused, "step 0 is in_doubt")]
fn what_makes_no_sense_is_refused(#[case] step: &str, #[case] says: Says<'_>, #[case] exit: Exit, #[case] why: &str) {
    let lab = Lab::of("once", [Act::Lost]);
    lab.run();
    let before = lab.kinds();
    let error = lab.say(step, says).unwrap_err();
    assert_eq!(error.exit(), exit);
    assert!(error.to_string().contains(why), "{error}");
    assert_eq!(lab.kinds(), before);
}

#[test]
fn a_cancelled_task_is_over_and_what_may_have_happened_is_not_hidden() {
    for (effect, closed) in [(Effect::Pure, "step_recovered"), (Effect::Once, "step_in_doubt")] {
        let lab = Lab::of(effect.as_str(), []);
        lab.die_in_attempt(effect);
        assert_eq!(lab.cancel().unwrap(), Exit::Done);
        assert_eq!(lab.kinds()[2..], [closed, "task_cancelled"]);
        let before = lab.kinds();
        assert_eq!(lab.run(), Exit::Cancelled);
        assert_eq!(lab.cancel().unwrap_err().exit(), Exit::Refused);
        assert_eq!((lab.kinds(), lab.effects()), (before, 0));
        lab.is_sound();
    }
    for lab in [Lab::of("approval", []), Lab::of("sleep", []), Lab::of("once", [Act::Lost])] {
        lab.run();
        assert_eq!(lab.cancel().unwrap(), Exit::Done);
        assert_eq!(lab.run(), Exit::Cancelled);
        assert!(lab.reader().questions().unwrap().is_empty());
        lab.is_sound();
    }
}
