//! Plans that say more: inputs, templates, conditions, checks, secrets, with real processes.

use rstest::rstest;
use serde_json::{Value, json};

use crate::journal::kinds;
use crate::lab::Lab;

/// The note that the plans read.
fn lab(note: &str) -> Lab {
    let lab = Lab::new();
    lab.write("inbox/a.txt", note);
    lab
}

fn with_plan(plan: &str) -> Lab {
    let lab = lab("URGENT: the printer burns\n");
    lab.write("p.yaml", plan);
    lab.agent(["create", "t", "p.yaml"]).exits(0);
    lab
}

fn output(lab: &Lab, step: u32) -> Value {
    serde_json::from_str(&lab.query::<String>(&format!("SELECT output FROM steps WHERE idx = {step}"))).unwrap()
}

const TICKET: &str = r#"
goal: Open a ticket for an urgent note
labels: { team: ops, level: 2 }
inputs:
  folder: inbox
  date: { type: string }
steps:
  - id: note
    tool: fetch
    input: { path: "{{ inputs.folder }}/a.txt" }
  - id: ticket
    tool: write_file
    when: "'URGENT' in steps.note.text"
    input: { path: "tickets/{{ key }}.txt", text: "{{ inputs.date }}: {{ steps[0].text }}" }
  - id: calm
    tool: echo
    when: "{{ 'URGENT' not in steps.note.text }}"
    input: { value: calm }
  - tool: echo
    input:
      value: ["{{ steps.note.chars }}", "{{ status.calm }}", "{{ steps.calm }}", "{{ task.id }} {{ task.goal }}", { n: "{{ inputs }}" }]
"#;

#[test]
fn values_flow_from_inputs_and_outputs_into_steps() {
    let lab = lab("URGENT: the printer burns\n");
    lab.write("p.yaml", TICKET);
    lab.agent(["create", "t", "p.yaml", "--input", "date=012", "--label", "team=dev"]).exits(0);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.sandbox.read("tickets/t-1.txt"), "012: URGENT: the printer burns\n");
    assert_eq!(lab.steps("t").into_iter().map(|step| step.0).collect::<Vec<_>>(), ["done", "done", "skipped", "done"]);
    let inputs = json!({ "folder": "inbox", "date": "012" });
    let goal = "t Open a ticket for an urgent note";
    assert_eq!(output(&lab, 3)["value"], json!([26, "skipped", null, goal, { "n": inputs }]));
    let status = lab.status("t");
    assert_eq!((&status["inputs"], &status["labels"]), (&inputs, &json!({ "team": "dev", "level": 2 })));
    assert_eq!((&status["language"], status["plan_sha256"].as_str().unwrap().len()), (&json!(1), 64));
    assert_eq!(lab.query::<String>("SELECT source FROM tasks"), TICKET);
    lab.agent(["verify"]).exits(0);
    let started = lab.journal("t").into_iter().find(|event| event["kind"] == "step_started").unwrap();
    // The digest of {"path":"inbox/a.txt"}.
    assert_eq!(started["input_sha256"], "fdf1e691c2fea6d31b21f5fdeabd5137770f3a59184c13ca46286db9a39c3a74");
}

/// What a text gives is part of what a step is known by: a resumed attempt must be the same one.
#[rstest]
#[case("before_effect:1")]
#[case("after_effect:1")]
#[case("after_commit:1")]
fn a_killed_step_is_rendered_as_before(#[case] point: &str) {
    let lab = lab("URGENT: the printer burns\n");
    lab.write("p.yaml", TICKET);
    lab.agent(["create", "t", "p.yaml", "--input", "date=today"]).exits(0);
    lab.call(["run", "t"]).env("AGENT_CRASH_AT", point).ran().exits(137);
    lab.agent(["run", "t"]).exits(0);
    let journal = lab.journal("t");
    let digests: Vec<_> =
        journal.iter().filter(|event| event["kind"] == "step_started" && event["step"] == 1).collect();
    assert!(digests.iter().all(|event| event["input_sha256"] == digests[0]["input_sha256"]), "{digests:?}");
    assert_eq!(kinds(&journal).iter().filter(|kind| *kind == "step_skipped:2").count(), 1);
    assert_eq!(crate::lab::names(&lab.path("tickets")), ["t-1.txt"]);
    lab.agent(["verify"]).exits(0);
}

#[test]
fn the_same_task_may_be_there_already_and_another_may_not() {
    let lab = lab("x");
    lab.write("p.yaml", TICKET);
    let create = ["create", "t", "p.yaml", "--exists-ok", "--input", "date=1"];
    lab.agent(create).exits(0).says("is created");
    let before = lab.query::<i64>("SELECT count(*) FROM events");
    lab.agent(create).exits(0).says("there already");
    lab.agent(["create", "t", "p.yaml", "--input", "date=1"]).fails(73);
    lab.agent(["create", "t", "p.yaml", "--exists-ok", "--input", "date=2"]).fails(73).says("other inputs");
    lab.write("q.yaml", TICKET.replace("urgent", "calm"));
    lab.agent(["create", "t", "q.yaml", "--exists-ok", "--input", "date=1"]).fails(73).says("another plan");
    assert_eq!(lab.query::<i64>("SELECT count(*) FROM events"), before);
}

#[test]
fn inputs_come_from_options_and_files_and_a_plan_from_standard_input() {
    let lab = lab("x");
    lab.write(
        "p.json",
        json!({ "goal": "g", "inputs": { "n": 1, "list": { "type": "array" } }, "steps": [
        { "tool": "echo", "input": { "value": ["{{ inputs.n }}", "{{ inputs.list }}"] } }] })
        .to_string(),
    );
    lab.write("in.json", r#"{"n": 5, "list": [1]}"#);
    lab.agent(["create", "a", "p.json", "--inputs", "in.json", "--input", "n=7"]).exits(0);
    lab.agent(["run", "a"]).exits(0);
    assert_eq!(output(&lab, 0)["value"], json!([7, [1]]));
    let script = "exec \"$0\" create b - --inputs in.json < p.json";
    let shell = ["/bin/sh", "-c", script, env!("CARGO_BIN_EXE_agent")];
    lab.call_through(&shell, None::<&str>).ran().exits(0);
    lab.agent(["run", "b"]).exits(0);
    let before = lab.tree();
    for (arguments, code, says) in [
        (&["--input", "list=[1]", "--input", "m=1"][..], 64, "no input `m`"),
        (&["--input", "list=1"], 64, "does not fit"),
        (&["--input", "list=["], 64, "must be of type array"),
        (&[], 64, "`list` must be given"),
        (&["--inputs", "none.json"], 66, "none.json"),
        (&["--inputs", "inbox/a.txt"], 65, "inbox/a.txt"),
    ] {
        lab.agent(["create", "c", "p.json"].iter().chain(arguments)).fails(code).says(says);
    }
    lab.agent(["create", "c", "p.json", "--input", "list"]).exits(64).says("it must be NAME=VALUE");
    assert_eq!(lab.tree(), before);
}

/// Each slip is named with its step and field, before anything is stored.
#[rstest]
#[case(
    "- { tool: echo, input: { value: '{{ inputs.no }}' } }",
    "step 0 (echo): field `value`: the plan has no input `no`"
)]
#[case("- { tool: echo, input: { value: ['{{ steps.no }}'] } }", "field `value[0]`: `steps.no` is not an earlier step")]
#[case("- { tool: echo, id: a, input: { value: '{{ steps.a.value }}' } }", "`steps.a` is not an earlier step")]
#[case("- { tool: echo, input: { value: '{{ steps[0].value }}' } }", "`steps[0]` is not an earlier step")]
#[case(
    "- { tool: fetch, id: n, input: { path: a } }\n- { tool: echo, input: { value: { x: '{{ steps.n.txt }}' } } }",
    "step 1 (echo): field `value.x`: `steps.n` (fetch) gives no `txt`; it gives chars, sha256, text"
)]
#[case(
    "- { tool: echo, id: a, input: { value: 1 } }\n- { tool: echo, id: a, input: { value: 1 } }",
    "step 1 (echo): field `id`"
)]
#[case("- { tool: echo, when: nope, input: { value: 1 } }", "field `when`: there is no name `nope`")]
#[case("- { tool: echo, when: 3, input: { value: 1 } }", "field `when`: must be an expression")]
#[case("- { tool: echo, when: output.value, input: { value: 1 } }", "there is no `output` here")]
#[case("- { tool: echo, input: { value: '{{ secret(\"A\") }}' } }", "no place for secret('A')")]
#[case(
    "- { tool: exec, input: { command: ['x', '{{ secret(\"A\") }}'] } }",
    "field `command[1]`: no place for secret('A')"
)]
#[case(
    "- { tool: http, when: secret('A'), input: { method: GET, url: 'http://h' } }",
    "field `when`: no place for secret"
)]
#[case("- { tool: exec, until: output.a, input: { command: ['x'] } }", "field `until`: repeats the step")]
#[case("- { tool: exec, effect: verifiable, input: { command: ['x'] } }", "no `check`")]
#[case(
    "- { tool: exec, check: { tool: fetch, input: {}, happened: 'true' }, input: { command: ['x'] } }",
    "`check.input.path`: missing"
)]
#[case(
    "- { tool: exec, check: { tool: nope, input: {}, happened: 'true' }, input: { command: ['x'] } }",
    "`check.tool`: unknown tool"
)]
#[case(
    "- { tool: exec, check: { tool: fetch, input: { path: a } }, input: { command: ['x'] } }",
    "`check.happened`: missing"
)]
#[case(
    "- { tool: exec, check: { tool: exec, input: { command: ['x'] }, happened: 'true' }, input: { command: ['x'] } }",
    "`check.tool`: must be a call that changes nothing"
)]
#[case(
    "- { tool: exec, check: { tool: fetch, input: { path: a }, happend: 'true' }, input: { command: ['x'] } }",
    "`check.happend`: unknown field"
)]
#[case("- { tool: approval, input: { show: x, schema: { type: strin } } }", "field `schema`: is not a JSON Schema")]
#[case("- { tool: echo, input: { value: 012 } }", "`012` is a number with leading zeros")]
#[case("- { tool: echo, input: { value: {{ inputs.x }} } }", "quoted in YAML")]
#[case("- { tool: echo, input: { value: '{{.Names}}' } }", "{% raw %}")]
fn a_slip_is_named_with_its_place_and_nothing_is_stored(#[case] steps: &str, #[case] says: &str) {
    let lab = Lab::new();
    lab.write("p.yaml", format!("goal: g\nsteps:\n{steps}\n"));
    let before = lab.tree();
    lab.agent(["create", "t", "p.yaml"]).fails(65).says(says);
    lab.agent(["check", "p.yaml"]).fails(65).says(says);
    assert_eq!(lab.tree(), before);
}

#[test]
fn what_is_found_at_run_time_only_fails_the_step_for_good_and_says_where() {
    for (value, says) in [
        ("{{ steps.a.value.no == 1 }}", "field `value`: `steps.a.value.no` is not there"),
        ("{{ steps.a.value | length }} {{ null }}", "null cannot stand in a text"),
    ] {
        let lab = with_plan(&format!(
            "goal: g\nsteps:\n- {{ tool: echo, id: a, input: {{ value: {{ b: 1 }} }} }}\n- {{ tool: echo, input: {{ value: '{value}' }} }}\n"
        ));
        lab.agent(["run", "t"]).exits(2).says(says);
        assert_eq!(lab.steps("t")[1], ("failed".to_owned(), 1));
    }
    // A misspelt name in a condition once skipped the step.
    let lab = with_plan(
        "goal: g\nsteps:\n- { tool: echo, id: a, input: { value: { b: 1 } } }\n- { tool: echo, when: steps.a.value.c == 1, input: { value: 1 } }\n",
    );
    lab.agent(["run", "t"]).exits(2).says("`when`: `steps.a.value.c` is not there");
    let lab = with_plan("goal: g\nsteps:\n- { tool: echo, when: \"'a'\", input: { value: 1 } }\n");
    lab.agent(["run", "t"]).exits(2).says("`when` must give true or false");
    // An input that only fits once it is rendered is checked then.
    let lab = with_plan("goal: g\ninputs: { n: 1 }\nsteps:\n- { tool: fetch, input: { path: '{{ inputs.n }}' } }\n");
    lab.agent(["run", "t"]).exits(2).says("field `path`: must be text, is 1");
}

const POLLS: &str = r#"
goal: Wait for the third
steps:
  - tool: exec
    effect: pure
    until: output.n == 3
    retry: { max_attempts: 5, backoff: 10ms }
    input: { command: [sh, -c, 'echo x >> calls; echo "{\"n\": $(wc -l < calls)}"'] }
"#;

#[test]
fn until_polls_by_the_rules_of_retry() {
    let lab = with_plan(POLLS);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(output(&lab, 0), json!({ "n": 3 }));
    assert_eq!(lab.steps("t"), [("done".to_owned(), 3)]);
    let errors: Vec<_> = lab.journal("t").into_iter().filter(|event| event["kind"] == "step_error").collect();
    assert!(errors.len() == 2 && errors[0]["error"].as_str().unwrap().contains("`until`"), "{errors:?}");
}

const CHECKED: &str = r#"
goal: Send it once, whatever happens
steps:
  - id: sent
    tool: exec
    input: { command: [sh, -c, 'echo sent >> world/sent; echo {}'] }
    check:
      tool: list_files
      input: { folder: world }
      happened: "'sent' in output.files | map(attribute='name')"
      output: "{'found': output.files | length, 'key': key}"
  - { tool: echo, input: { value: "{{ steps.sent }}" } }
"#;

#[rstest]
#[case("before_effect:0", json!({}))]
#[case("after_effect:0", json!({ "found": 1, "key": "t-0" }))]
fn a_check_of_the_plan_finds_out_what_a_killed_step_has_done(#[case] point: &str, #[case] gives: Value) {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("world")).unwrap();
    lab.write("p.yaml", CHECKED);
    lab.agent(["create", "t", "p.yaml"]).exits(0);
    lab.call(["run", "t"]).env("AGENT_CRASH_AT", point).ran().exits(137);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.sandbox.read("world/sent"), "sent\n");
    assert_eq!(output(&lab, 1)["value"], gives);
    assert_eq!(lab.journal("t").iter().find(|event| event["kind"] == "step_started").unwrap()["effect"], "verifiable");
    lab.agent(["verify"]).exits(0);
}

const SENDS: &str = r#"
goal: Send a secret
steps:
  - { tool: echo, input: { value: 1 } }
  - tool: exec
    effect: pure
    input:
      command: [sh, -c, 'echo >&2 "see $T"; echo "{\"got\": \"$T\"}"']
      env: { T: "x{{ secret('TOKEN_OF_TEST') }}" }
"#;

#[test]
fn a_secret_is_sent_and_is_nowhere_else() {
    let lab = with_plan(SENDS);
    lab.agent(["run", "t"]).fails(64).says("step 1 needs the secret TOKEN_OF_TEST");
    assert_eq!(lab.steps("t")[0], ("pending".to_owned(), 0), "it is said before the first step");
    lab.call(["run", "t"]).env("TOKEN_OF_TEST", "s3cr3t-value").ran().exits(0);
    assert_eq!(output(&lab, 1), json!({ "got": "x***TOKEN_OF_TEST***" }));
    for (name, content) in lab.tree() {
        assert!(!content.contains("s3cr3t-value"), "{name}");
    }
    assert!(!lab.agent(["export", "t"]).exits(0).stdout.contains("s3cr3t"));
    let digest = |lab: &Lab| {
        lab.journal("t").into_iter().rfind(|event| event["kind"] == "step_started").unwrap()["input_sha256"].clone()
    };
    let first = digest(&lab);
    let again = with_plan(&lab.sandbox.read("p.yaml"));
    again.call(["run", "t"]).env("TOKEN_OF_TEST", "another-value").ran().exits(0);
    assert_eq!(digest(&again), first, "its name stands for it");
}

#[test]
fn an_answer_fits_the_schema_of_its_question() {
    let lab = with_plan(
        "goal: g\ninputs: { most: 5 }\nsteps:\n- { tool: approval, id: how, input: { show: 'How many of {{ inputs.most }}?', schema: { type: integer, maximum: 5 } } }\n- { tool: echo, input: { value: '{{ steps.how.answer }}' } }\n",
    );
    lab.agent(["run", "t"]).exits(6).says("How many of 5?");
    assert_eq!(lab.agent(["list", "--waiting", "--json"]).exits(0).json()["waiting"][0]["what"], "How many of 5?");
    lab.agent(["approve", "t", "how", "--answer", "9"]).fails(64).says("does not fit");
    lab.agent(["approve", "t", "how"]).fails(64).says("--answer true does not fit");
    lab.agent(["approve", "t", "how", "--answer", "3"]).exits(0);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(output(&lab, 1)["value"], 3);
}

#[test]
fn check_says_how_a_plan_is_understood_without_a_database() {
    let lab = lab("x");
    lab.write("p.yaml", TICKET);
    let before = lab.tree();
    let said = lab.agent(["check", "p.yaml"]).exits(0).stdout;
    for part in
        ["4 steps", "input date must be given", "label team = \"ops\"", "keyed", "once in effect", "when 'URGENT' in"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(lab.agent(["check", "p.yaml", "--input", "date=1"]).exits(0).stdout.contains("input date = \"1\""));
    lab.agent(["check", "p.yaml", "--input", "dat=1"]).fails(64);
    let drawn = lab.agent(["check", "p.yaml", "--mermaid"]).exits(0).stdout;
    assert!(
        drawn.starts_with("flowchart TD\n") && drawn.contains("s0 -->|\"when 'URGENT' in steps.note.text\"| s1"),
        "{drawn}"
    );
    lab.write(
        "once.json",
        json!({ "goal": "g", "steps": [{ "tool": "exec", "input": { "command": ["mail"] } }] }).to_string(),
    );
    assert!(lab.agent(["check", "once.json"]).exits(0).stdout.contains("may end in doubt"));
    assert!(lab.agent(["create", "--help"]).exits(0).stdout.contains("agent tools NAME"));
    assert!(!before.contains_key("state.db") && !lab.tree().contains_key("state.db"));
}

/// Plans of earlier versions have texts that only look like templates.
#[test]
fn what_an_earlier_version_has_stored_is_taken_literally() {
    let lab = Lab::new();
    lab.write("p.json", r#"{"goal": "g", "steps": [{"tool": "echo", "input": {"value": 1}}]}"#);
    lab.agent(["create", "t", "p.json"]).exits(0);
    lab.sql(r#"UPDATE steps SET input = '{"value": "{{ inputs.x }}"}'; UPDATE tasks SET language = NULL"#);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(output(&lab, 0)["value"], "{{ inputs.x }}");
}

/// A page of examples that nobody runs is wrong sooner or later.
#[test]
fn the_plans_of_the_documents_are_good_plans() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/plans.md");
    let (text, lab) = (std::fs::read_to_string(docs).unwrap(), Lab::new());
    let plans: Vec<_> = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(plans.len() >= 2);
    for plan in plans {
        lab.write("p.yaml", plan);
        lab.agent(["check", "p.yaml"]).exits(0);
    }
}

/// A step that was said to have happened with nothing to show for it stopped the run at the next step that read it.
#[test]
fn what_has_happened_is_said_with_the_output_that_the_tool_gives() {
    let lab =
        with_plan("goal: g\nsteps:\n- { tool: http, id: send, input: { method: POST, url: 'http://127.0.0.1:1/' } }\n");
    lab.call(["run", "t"]).env("AGENT_CRASH_AT", "before_effect:0").ran().exits(137);
    lab.agent(["run", "t"]).exits(6);
    lab.agent(["resolve", "t", "send", "--happened", "--why", "seen"]).fails(64).says("has no `status`");
    let output = r#"{"status": 201, "headers": {}}"#;
    lab.agent(["resolve", "t", "send", "--happened", output, "--why", "seen"]).exits(0);
    lab.agent(["run", "t"]).exits(0);
    assert_eq!(lab.status("t")["steps"][0]["id"], "send");
    assert!(lab.agent(["stderr", "t", "send"]).exits(0).stdout.is_empty());
}
