//! No task without an end: what comes after the last step is limited, and can be mended, like a step.

use std::os::unix::fs::symlink;

use crate::lab::{Lab, REPORT};

fn kinds(lab: &Lab) -> Vec<String> {
    lab.journal("t").iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

/// A report that killed its process each time was tried for ever, and no command helped.
#[test]
fn a_report_that_kills_its_process_each_time_fails_the_task_and_a_retry_brings_it() {
    let lab = Lab::new();
    for point in ["complete.ready", "report.written", "report.renamed"] {
        lab.inbox_with([("AGENT_CRASH_AT", point)]).exits(137);
    }
    lab.inbox().exits(2).says("its report used up its attempts").says("ended with its process");
    let failed = lab.journal("t").pop().unwrap();
    assert_eq!((failed["kind"].as_str(), &failed["step"]), (Some("task_failed"), &serde_json::Value::Null));
    assert_eq!(failed["known"].as_array().unwrap().len(), 3);
    assert_eq!(lab.status("t")["status"], "failed");
    lab.agent(["verify"]).exits(0);
    lab.agent(["run", "t"]).exits(2).says("already failed");

    lab.agent(["retry", "t"]).exits(0).says("its report");
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.assert_sound("t");
}

#[test]
fn a_place_that_is_taken_costs_the_report_no_attempt() {
    let lab = Lab::killed_at("before_effect:1");
    symlink("elsewhere", lab.path("report.json")).unwrap();
    for _ in 0..5 {
        lab.agent(["run", "t"]).exits(73).says("link");
    }
    assert!(!kinds(&lab).contains(&"task_failed".to_owned()));
    lab.remove("report.json");
    lab.inbox().exits(0);
    assert_eq!(lab.sandbox.read("report.json"), REPORT);
    lab.assert_sound("t");
}
