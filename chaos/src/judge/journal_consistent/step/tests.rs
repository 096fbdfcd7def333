use crate::testing::{Story, breaks, holds};

const NAME: &str = "journal_consistent";

/// Kind, run and data of an event of the middle step.
type Told = (&'static str, &'static str, String);

/// A run without a crash, in which this is told between the first step's end and that of the second. Where nothing is
/// under way then, the second is not finished.
fn story(told: &[Told]) -> Story {
    let mut story = Story::clean();
    let is_start = |kind: &str, step| kind == "step_started" && step == Some(1);
    story.last().tables.events.retain(|event| !is_start(&event.kind, event.step));
    for (kind, run, data) in told {
        story.insert_event("new", Some(1), "step_finished", 1);
        let event = story.event("new", 0);
        (event.kind, event.run, event.data) = ((*kind).to_owned(), (*run).to_owned(), data.clone());
    }
    if told.last().is_some_and(|(kind, ..)| !matches!(*kind, "step_started" | "step_checkpoint")) {
        story.last().tables.events.retain(|event| event.kind != "step_finished" || event.step != Some(1));
    }
    story
}

fn by_run(kind: &'static str, data: &str) -> Told {
    (kind, "run2", data.to_owned())
}

fn by_person(kind: &'static str, data: &str) -> Told {
    (kind, "person", data.to_owned())
}

fn start() -> Told {
    by_run("step_started", r#"{"attempt":1,"tool":"summarize"}"#)
}

fn intends(attempt: u32, class: &str, digest: &str) -> Told {
    let intent = format!(r#""effect":"{class}","input_sha256":"{digest}""#);
    by_run("step_started", &format!(r#"{{"attempt":{attempt},{intent},"tool":"summarize"}}"#))
}

fn asks() -> Told {
    by_run("step_waiting", r#"{"for":"approval"}"#)
}

fn agrees() -> Told {
    by_person("answer_given", r#"{"answer":true,"by":"me","why":null}"#)
}

fn refuses() -> Told {
    by_person("answer_given", r#"{"answer":false,"by":"me","rejected":true,"why":"no"}"#)
}

fn until(time: &str) -> Told {
    by_run("step_waiting", &format!(r#"{{"for":"time","until":{time}}}"#))
}

fn errs(known: &str) -> Told {
    by_run("step_error", &format!(r#"{{"error":"cut",{known}}}"#))
}

fn doubts() -> Told {
    by_run("step_in_doubt", r#"{"known":"it was cut"}"#)
}

fn says(word: &str) -> Told {
    by_person("doubt_resolved", &format!(r#"{{"by":"me","why":"seen","word":"{word}"}}"#))
}

/// Every event of the stories has the time 1.5.
#[test]
fn waits_doubts_and_answers_as_the_contract_has_them_are_accepted() {
    for told in [
        vec![until("1.5"), start()],
        vec![until("1.0"), asks(), agrees(), start()],
        vec![asks(), refuses(), by_person("step_failed", r#"{"reason":"rejected"}"#)],
        vec![asks(), by_run("step_failed", r#"{"reason":"expired"}"#)],
        vec![by_run("step_waiting", r#"{"for":"children"}"#), start()],
        vec![by_run("step_skipped", "{}")],
        vec![start(), by_run("step_checkpoint", r#"{"checkpoint":{"page":3}}"#)],
        vec![intends(1, "once", "a"), doubts(), says("absent"), intends(2, "once", "b")],
        vec![intends(1, "once", "a"), doubts(), says("happened")],
        vec![intends(1, "once", "a"), doubts(), says("abandon"), by_person("step_failed", r#"{"reason":"abandoned"}"#)],
        vec![intends(1, "keyed", "a"), errs(r#""retry_at":1.2,"unknown":true"#), intends(2, "keyed", "a")],
        vec![intends(1, "keyed", "a"), errs(r#""permanent":false"#), intends(2, "keyed", "b")],
        // The input has changed, and is not sent.
        vec![intends(1, "keyed", "a"), errs(r#""unknown":true"#), doubts(), says("absent"), intends(2, "keyed", "b")],
        vec![start(), errs(r#""permanent":true"#), by_run("step_failed", r#"{"reason":"permanent"}"#)],
    ] {
        println!("{told:?}");
        holds(NAME, &story(&told));
    }
}

fn rejects(cases: Vec<(Vec<Told>, &str)>) {
    for (told, why) in cases {
        breaks(NAME, &story(&told), why);
    }
}

#[test]
fn waits_that_are_not_kept_are_rejected() {
    let wait = |data| vec![by_run("step_waiting", data), start()];
    rejects(vec![
        (vec![until("2.0"), start()], "was to wait until 2"),
        (vec![start(), errs(r#""retry_at":9.0"#), intends(2, "keyed", "a")], "was to wait until 9"),
        (wait(r#"{"for":"time"}"#), "does not say until when"),
        (wait(r#"{"for":"godot"}"#), "nothing to wait for"),
        (vec![start(), until("1.0"), intends(2, "keyed", "a")], "open, finished or unknown"),
        (vec![by_run("step_checkpoint", r#"{"checkpoint":1}"#), start()], "has not under way"),
        (vec![start(), by_run("step_checkpoint", "{}")], "gives no checkpoint"),
        (
            vec![start(), by_run("step_checkpoint", &format!(r#"{{"checkpoint":"{}"}}"#, "x".repeat(70_000)))],
            "larger than 64 KiB",
        ),
    ]);
}

#[test]
fn questions_are_answered_once_and_before_the_step_begins() {
    let answer = |data| vec![asks(), by_person("answer_given", data), start()];
    let fails = |reason: &str| by_run("step_failed", &format!(r#"{{"reason":"{reason}"}}"#));
    rejects(vec![
        (vec![asks(), start()], "before its question is answered"),
        (vec![asks(), asks(), agrees(), start()], "waits while its question"),
        (vec![agrees(), start()], "answers what is not asked"),
        (vec![asks(), agrees(), agrees(), start()], "answers what is not asked"),
        (answer(r#"{"answer":true}"#), "gives no by"),
        (answer(r#"{"by":"me"}"#), "gives no answer"),
        (vec![asks(), refuses(), start()], "although it has failed for good"),
        (vec![asks(), refuses(), fails("expired")], "a person said rejected"),
        (vec![asks(), agrees(), fails("rejected")], "a person said nothing"),
        (vec![fails("expired")], "expires without a question"),
        (vec![asks(), ("step_failed", "run9", r#"{"reason":"expired"}"#.to_owned())], "at work is run2"),
    ]);
}

#[test]
fn what_contradicts_the_class_of_an_effect_is_rejected() {
    let recovered = || by_run("step_recovered", "{}");
    rejects(vec![
        (vec![intends(1, "pure", "a"), doubts(), says("happened")], "without any effect"),
        (vec![intends(1, "once", "a"), recovered(), intends(2, "once", "a")], "recovers an effect"),
        (vec![intends(1, "once", "a"), errs(r#""unknown":true"#), intends(2, "once", "a")], "gives up an effect"),
        (vec![intends(1, "once", "a"), errs(r#""unknown":false"#), intends(2, "pure", "a")], "its first attempt was"),
        (vec![intends(1, "keyed", "a"), recovered(), intends(2, "keyed", "b")], "sends another input"),
        (vec![intends(1, "keyed", "a"), errs(r#""unknown":true"#), intends(2, "keyed", "b")], "sends another input"),
        (vec![intends(1, "keyed", "a"), errs(r#""permanent":false"#), doubts()], "closes a step that is not open"),
        (vec![intends(1, "once", "a"), doubts(), says("perhaps")], "is not a word for it"),
        (vec![intends(1, "once", "a"), doubts(), says("abandon"), intends(2, "once", "a")], "failed for good"),
        (vec![start(), errs(r#""permanent":true"#), intends(2, "keyed", "a")], "failed for good"),
        (vec![start(), errs(r#""permanent":true,"retry_at":1.0"#)], "is permanent and to be tried again"),
    ]);
}

#[test]
fn steps_that_are_left_out_or_cut_off_are_rejected_where_they_were_begun() {
    rejects(vec![
        (vec![start(), by_run("step_skipped", "{}")], "open, finished or unknown"),
        (vec![start(), errs(r#""permanent":false"#), by_run("step_skipped", "{}")], "leaves out what was begun"),
        (vec![by_run("step_failed", "{}")], "gives no reason"),
        (vec![start(), by_person("task_cancelled", r#"{"by":"me"}"#)], "leaves step 1 open"),
        (vec![by_person("task_cancelled", r#"{"by":"me"}"#), start()], "comes after the end of the task"),
        (vec![by_person("task_cancelled", "{}"), start()], "gives no by"),
    ]);
}
