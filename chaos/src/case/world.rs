//! Effects in the real world, one case for each class, by a program of the lab and by a server of the lab. Each effect
//! of the program is a line in a file that is named after the step's key, and what the server has done looks the same,
//! so that the world tells how often it was there. What the agent says is never asked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::target::Target;
use crate::case::plan::{Kind, PlanCase};
use crate::case::promise::Promise;
use crate::contract::STARTER;

/// The methods that play these cases when nothing is left out; the others play with the agent's own plans.
const METHODS: &[&str] = &["points", "nested", "random", "people", "exhaust", "faults", "pause", "control", "fuzz"];

/// Those of them that play a server: it cannot be put back to an earlier moment, as a folder can.
const SERVED: &[&str] = &["points", "nested", "random", "people", "replies", "pause", "control", "fuzz"];

/// The tool that calls a server.
const CALLER: &str = "http";

/// The variable that says where the server is.
pub const LEDGER: &str = "LEDGER";

/// How long a request may take.
const PATIENCE: &str = "500ms";

/// The name of the case that waits.
const WAITS: &str = "waits";

/// The name of the case whose values flow from step to step.
const FLOWS: &str = "flows";

/// The tools that they are made of.
const TOOLS: [&str; 6] = [STARTER, CALLER, "sleep", "approval", "echo", "fail"];

/// What an everyday run plays of them: these cases, with these methods. The example of the tool that starts programs
/// can be asked about, and is played with all methods.
const EVERYDAY: (&[&str], &[&str]) =
    (&["exec-once", "http-keyed", WAITS, FLOWS], &["points", "people", "replies", "control"]);

/// A plan that has one effect in the world.
#[derive(Debug)]
struct World {
    /// The step that has it.
    step: usize,
    promise: Promise,
    /// Whether a person is asked.
    asks: bool,
    /// Whether it is in a server of the lab, and not in the folder.
    served: bool,
}

impl Kind for World {
    fn words(&self, task: &str) -> Vec<String> {
        vec!["run".to_owned(), task.to_owned()]
    }

    fn is_created(&self) -> bool {
        true
    }

    fn promise(&self, step: usize) -> Option<Promise> {
        (step == self.step).then_some(self.promise)
    }

    fn is_served(&self) -> bool {
        self.served
    }

    fn has_person(&self) -> bool {
        self.asks
    }
}

/// The program. Until the effect is there, a failure says "later"; after it nobody knows, and it dies, so that the
/// class decides.
const HAVE_EFFECT: &str = r#"# Adds a line to the file of its key: `once` each time, `keyed` only where there is none.
file="artifacts/$AGENT_IDEMPOTENCY_KEY.txt" draft="artifacts/.$AGENT_IDEMPOTENCY_KEY.$$.tmp"
say() { printf '{"filed": "%s"}\n' "$file"; }
[ "$1" = pure ] && { say; exit; }
mkdir artifacts 2> /dev/null || [ -d artifacts ] || exit 75
for left in artifacts/."$AGENT_IDEMPOTENCY_KEY".*.tmp; do
    [ ! -e "$left" ] || rm -f "$left" || exit 75
done
if [ "$1" = once ] || [ ! -e "$file" ]; then
    { [ ! -e "$file" ] || cat "$file"; printf '%s\n' "$AGENT_IDEMPOTENCY_KEY"; } > "$draft" || exit 75
    sync "$draft" || exit 75
    mv "$draft" "$file" || exit 75
fi
sync artifacts . || kill -9 $$
say
"#;

/// The check.
const HAS_HAPPENED: &str = r#"# Says whether there is a file of its key.
file="artifacts/$AGENT_IDEMPOTENCY_KEY.txt"
if [ -e "$file" ]; then
    sync artifacts . && printf '{"effect": "happened", "output": {"filed": "%s"}}\n' "$file"
else
    printf '{"effect": "absent"}\n'
fi
"#;

/// All cases.
#[must_use]
pub fn cases() -> Vec<PlanCase> {
    Promise::ALL
        .into_iter()
        .flat_map(|promise| [program(promise), request(promise)])
        .chain([waits(), flows()])
        .collect()
}

/// Those that are played with this agent where nobody names one.
#[must_use]
pub fn played(target: &Target, deep: bool) -> Vec<PlanCase> {
    let mut cases = if why_not(target).is_none() { cases() } else { Vec::new() };
    if !deep {
        cases.retain(|case| EVERYDAY.0.contains(&case.name.as_str()));
        cases.iter_mut().for_each(|case| case.methods = Some(EVERYDAY.1));
    }
    cases
}

/// Why an agent cannot play them.
#[must_use]
pub fn why_not(target: &Target) -> Option<String> {
    let missing = TOOLS.into_iter().find(|tool| target.tool(tool).is_none())?;
    Some(format!("the agent has no tool `{missing}` that it tells of"))
}

/// Whether one of these cases could be played by the method.
#[must_use]
pub fn could_play(method: &str) -> bool {
    METHODS.contains(&method) || SERVED.contains(&method)
}

/// The effect of a class, in the folder or in a server.
fn world(promise: Promise, served: bool) -> &'static World {
    match (promise, served) {
        (Promise::Pure, false) => &World { step: 0, promise: Promise::Pure, asks: false, served: false },
        (Promise::Pure, true) => &World { step: 0, promise: Promise::Pure, asks: false, served: true },
        (Promise::Keyed, false) => &World { step: 0, promise: Promise::Keyed, asks: false, served: false },
        (Promise::Keyed, true) => &World { step: 0, promise: Promise::Keyed, asks: false, served: true },
        (Promise::Verifiable, false) => &World { step: 0, promise: Promise::Verifiable, asks: false, served: false },
        (Promise::Verifiable, true) => &World { step: 0, promise: Promise::Verifiable, asks: false, served: true },
        (Promise::Once, false) => &World { step: 0, promise: Promise::Once, asks: true, served: false },
        (Promise::Once, true) => &World { step: 0, promise: Promise::Once, asks: true, served: true },
    }
}

fn program(promise: Promise) -> PlanCase {
    let word = promise.word();
    let plan = json!({ "goal": format!("Have an effect that is {word}"), "steps": [step(promise)] });
    case(&format!("{STARTER}-{word}"), &plan, world(promise, false))
}

/// A request to the ledger, whose address is a secret, so that the plan is the same in each scenario.
fn request(promise: Promise) -> PlanCase {
    let word = promise.word();
    let url = |path: &str| format!("{{{{ secret('{LEDGER}') }}}}/{path}");
    let of_key = url("{{ key | urlencode }}");
    let retry = json!({ "backoff": "10ms", "max_attempts": 20 });
    let post = json!({ "method": "POST", "url": of_key, "json": { "key": "{{ key }}" } });
    let step = match promise {
        Promise::Pure => {
            let get = json!({ "method": "GET", "url": url("effects") });
            json!({ "tool": CALLER, "timeout": PATIENCE, "retry": retry, "input": get })
        }
        Promise::Verifiable => {
            let get = json!({ "method": "GET", "url": of_key, "expect": [200, 404] });
            let (happened, output) = ("output.status == 200", "{'status': 200, 'headers': {}}");
            let check = json!({ "tool": CALLER, "input": get, "happened": happened, "output": output });
            json!({ "tool": CALLER, "timeout": PATIENCE, "retry": retry, "input": post, "check": check })
        }
        _ => json!({ "tool": CALLER, "timeout": PATIENCE, "retry": retry, "effect": word, "input": post }),
    };
    let plan = json!({ "goal": format!("Send a request that is {word}"), "steps": [step] });
    let mut case = case(&format!("{CALLER}-{word}"), &plan, world(promise, true));
    case.methods = Some(SERVED);
    case
}

/// A time that is waited for, a person who is asked, and an effect.
fn waits() -> PlanCase {
    let plan = json!({ "goal": "Have an effect when it is time and somebody has agreed", "steps": [
        { "tool": "sleep", "input": { "for": "10ms" } },
        { "tool": "approval", "input": { "show": "Shall it be?" } },
        step(Promise::Keyed),
    ] });
    case(WAITS, &plan, &World { step: 2, promise: Promise::Keyed, asks: true, served: false })
}

/// Values that flow from inputs and outputs into later steps, a step that is skipped, and one that the task goes on
/// without.
fn flows() -> PlanCase {
    let mut effect = step(Promise::Keyed);
    effect["when"] = "status.off == 'skipped' and steps.off == null".into();
    effect["input"]["command"][2] = "{{ steps.given.value.habit }}".into();
    let plan = json!({
        "goal": "Have an effect where its condition holds",
        "inputs": { "habit": Promise::Keyed.word() },
        "steps": [
            { "id": "given", "tool": "echo", "input": { "value": { "habit": "{{ inputs.habit }}", "n": 2 } } },
            { "id": "off", "tool": "echo", "when": "steps.given.value.n > 2", "input": { "value": "never" } },
            { "id": "lost", "tool": "fail", "on_error": "continue", "input": { "message": "as planned" } },
            effect,
        ],
    });
    case(FLOWS, &plan, &World { step: 3, promise: Promise::Keyed, asks: false, served: false })
}

/// A step of a plan that starts the program.
fn step(promise: Promise) -> Value {
    // Who can be asked has no other protection.
    let habit = if promise == Promise::Verifiable { "once" } else { promise.word() };
    let mut input = json!({ "command": ["/bin/sh", "have_effect.sh", habit] });
    let mut step = json!({ "tool": STARTER, "retry": { "backoff": "10ms" } });
    if promise == Promise::Verifiable {
        input["check"] = json!(["/bin/sh", "has_happened.sh"]);
    } else {
        step["effect"] = promise.word().into();
    }
    step["input"] = input;
    step
}

fn case(name: &str, plan: &Value, kind: &'static dyn Kind) -> PlanCase {
    let mut case = PlanCase::parse(name, &plan.to_string()).expect("a built-in plan is a plan");
    let files = [("have_effect.sh", HAVE_EFFECT), ("has_happened.sh", HAS_HAPPENED)];
    case.files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into();
    case.kind = kind;
    case.methods = Some(METHODS);
    case
}

/// The file that holds the effects of a step.
#[must_use]
pub fn file_of(task: &str, step: usize) -> String {
    file_of_key(&format!("{task}-{step}"))
}

/// The file that holds the effects of a key.
#[must_use]
pub fn file_of_key(key: &str) -> String {
    format!("artifacts/{key}.txt")
}

/// What a person says that came of it.
#[must_use]
pub fn output_of(kind: &dyn Kind, task: &str, step: usize) -> Value {
    if kind.is_served() { json!({ "status": 200, "headers": {} }) } else { json!({ "filed": file_of(task, step) }) }
}

/// How often the effect of a step is in the world.
#[must_use]
pub fn count(world: &BTreeMap<String, Vec<u8>>, task: &str, step: usize) -> usize {
    world.get(&file_of(task, step)).map_or(0, |content| content.split_inclusive(|byte| *byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    fn call(folder: &std::path::Path, script: &str, habit: &str) -> Output {
        let mut sh = Command::new("/bin/sh");
        sh.args(["-c", script, "sh", habit]).current_dir(folder).env("AGENT_IDEMPOTENCY_KEY", "t1-0");
        sh.output().expect("a shell")
    }

    /// The lab's own program is what its judges count by.
    #[test]
    fn a_repeated_effect_is_counted_and_a_key_is_kept() {
        for (habit, effects) in [("pure", 0), ("keyed", 1), ("once", 2)] {
            let folder = tempfile::tempdir().expect("a folder");
            let asked = |when: &str| {
                let said = call(folder.path(), HAS_HAPPENED, "");
                assert!(String::from_utf8_lossy(&said.stdout).contains(when), "{habit}: {said:?}");
            };
            asked("absent");
            for _ in 0..2 {
                let said = call(folder.path(), HAVE_EFFECT, habit);
                assert_eq!(
                    serde_json::from_slice::<Value>(&said.stdout).ok(),
                    Some(output_of(world(Promise::Pure, false), "t1", 0)),
                    "{said:?}"
                );
            }
            let content = std::fs::read(folder.path().join(file_of("t1", 0)));
            let world = content.map(|content| (file_of("t1", 0), content)).into_iter().collect();
            assert_eq!(count(&world, "t1", 0), effects, "{habit}");
            asked(if effects > 0 { "happened" } else { "absent" });
        }
    }

    #[test]
    fn an_effect_that_cannot_be_had_is_put_off_and_one_that_cannot_be_vouched_for_is_unknown() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("artifacts"), "in the way").expect("written");
        assert_eq!(call(folder.path(), HAVE_EFFECT, "once").status.code(), Some(75));
        std::fs::remove_file(folder.path().join("artifacts")).expect("removed");
        let unsynced = HAVE_EFFECT.replace("sync artifacts .", "false");
        assert_eq!(call(folder.path(), &unsynced, "once").status.code(), None, "it dies");
    }
}
