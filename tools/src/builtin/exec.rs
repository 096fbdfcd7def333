//! Starts any program: what it reads and what it may say back is docs/exec-protocol.md.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use store::model::{PlanError, codec};
use store::{CrashSite, limits};

use crate::attempt::{Backoff, Probe};
use crate::error::ToolError;
use crate::key::key_of;
use crate::process::{End, Ended, Launch, end_former, note, run};
use crate::schema::{Field, Form, Kind, has_nul, is_template};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

pub(super) struct Exec;

/// The keeper is ready, and the program is not started.
const NOTED: CrashSite = CrashSite("exec.noted");
/// The program has ended and is gone, and nothing of that is recorded.
const ENDED: CrashSite = CrashSite("exec.ended");

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "exec".into(),
    about: "Starts a program, which gets its input as JSON and prints its output as JSON.".into(),
    effect: Effect::Once,
    input: vec![
        Field::new("command", Kind::list(Kind::Text), "the program and its arguments; no shell reads them"),
        Field::optional("check", Kind::list(Kind::Text), "a program that finds out whether the effect has happened"),
        Field::optional("json", Kind::Any, "what the program gets as `input`; null if not given"),
        Field::optional(
            "env",
            Kind::Either(vec![Kind::list(Kind::Text), Kind::map(Kind::Text)]),
            "variables: names to pass on, or names with values",
        )
        .for_secrets(),
        Field::optional(
            "stdout",
            Kind::OneOf(&["json", "text"]),
            "what it prints: one JSON object (if not given), or text",
        ),
        Field::optional("expect", Kind::list(Kind::Count), "the exit codes that mean done; [0] if not given"),
        Field::optional("cwd", Kind::Text, "the folder that it runs in, relative to the task's home"),
        Field::optional("key", Kind::Text, "a key that names the effect, in the place of the step's own"),
    ],
    output: vec![Field::optional("stdout", Kind::Text, "what it printed, where `stdout` is text; else its own fields")],
    open: true,
    crash_points: vec![NOTED, ENDED],
    retry: Some(Backoff::REMOTE),
    example: Example {
        plan: r#"{"goal": "Have a program of one's own file a note, once", "steps": [
            {"tool": "exec", "input": {
                "command": ["/bin/sh", "file_note.sh", "The mill burns"],
                "check": ["/bin/sh", "note_is_filed.sh"]},
             "retry": {"backoff": "10ms"}}]}"#
            .into(),
        files: vec![("file_note.sh".into(), FILE_NOTE.into()), ("note_is_filed.sh".into(), NOTE_IS_FILED.into())],
        needs: None,
    },
});

const FILE_NOTE: &str = r#"# Files its argument under its key: whole, once, and so that a power cut does not undo it.
set -eu
trap '[ $? = 0 ] || exit 75' EXIT  # whatever is in the way may be gone later
name="$AGENT_IDEMPOTENCY_KEY"
mkdir -p artifacts
rm -f "artifacts/.$name".*.tmp
printf '%s\n' "$1" > "artifacts/.$name.$$.tmp"
sync "artifacts/.$name.$$.tmp"
mv "artifacts/.$name.$$.tmp" "artifacts/$name.txt"
sync artifacts .
printf '{"filed": "artifacts/%s.txt"}\n' "$name"
"#;

const NOTE_IS_FILED: &str = r#"# Says whether the note of this key is filed.
name="$AGENT_IDEMPOTENCY_KEY"
if [ -e "artifacts/$name.txt" ]; then
    sync artifacts .
    printf '{"effect": "happened", "output": {"filed": "artifacts/%s.txt"}}\n' "$name"
else
    printf '{"effect": "absent"}\n'
fi
"#;

/// Says "try again later".
const LATER: i32 = 75;

impl Tool for Exec {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn secrets(&self, input: &Map<String, Value>) -> Vec<String> {
        let names = input.get("env").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn effect(&self, input: &Map<String, Value>) -> Effect {
        if input.contains_key("check") { Effect::Verifiable } else { Effect::Once }
    }

    fn check(&self, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
        for field in ["command", "check"] {
            let Some(words) = input.get(field).and_then(Value::as_array) else { continue };
            let Some(program) = words.first() else { return Err(PlanError::field(field, "names no program")) };
            if program.as_str() == Some("") {
                return Err(PlanError::field(field, "the name of the program is empty"));
            }
            if words.iter().filter_map(Value::as_str).any(|word| word.contains('\0')) {
                return Err(PlanError::field(field, "has a NUL in it, which no program can be given"));
            }
        }
        let names: Vec<&str> = match input.get("env") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::Object(values)) => values.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let literal = |name: &&&str| form == Form::Literal || !is_template(name);
        match names.iter().filter(literal).find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            Some(name) => Err(PlanError::field("env", format!("`{name}` is not the name of a variable"))),
            None => Ok(()),
        }
    }

    fn label(&self, input: &Map<String, Value>) -> String {
        let words = input.get("command").and_then(Value::as_array);
        let program = words.and_then(|words| words.first()).and_then(Value::as_str);
        let name = program.and_then(|program| Path::new(program).file_name()).and_then(|name| name.to_str());
        name.unwrap_or(&SPEC.name).to_owned()
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let mut launch = launch(ctx, input, "command")?;
        (launch.noted, launch.keep) = (Some(NOTED), ctx.attempt.keep);
        let ended = run(ctx, &launch)?;
        ctx.crash.point(ENDED);
        let expected = |code: &i32| match input.0.get("expect").and_then(Value::as_array) {
            Some(codes) => codes.contains(&json!(code)),
            None => *code == 0,
        };
        match &ended.end {
            End::Exit(code) if expected(code) => {
                let text = input.0.get("stdout").is_some_and(|stdout| stdout == "text");
                printed(&ended, text).map_err(|why| ToolError::unknown(format!("the program is done, but {why}")))
            }
            _ => Err(failure(ctx, &launch, &ended)),
        }
    }

    fn probe(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Probe, ToolError> {
        if ctx.world.unsafe_effects {
            return Ok(Probe::Absent);
        }
        if !input.0.contains_key("check") {
            return Ok(Probe::Unknown("the step has no `check`".to_owned()));
        }
        let ended = run(ctx, &Launch { part: ".check", ..launch(ctx, input, "check")? })?;
        let unclear = |why: String| Ok(Probe::Unknown(format!("the check does not say: {why}")));
        if ended.stopped {
            return Err(ToolError::Stopped);
        }
        if ended.end != End::Exit(0) {
            return unclear(how(&ended));
        }
        let said = match printed(&ended, false) {
            Ok(said) => said,
            Err(why) => return unclear(why),
        };
        match (said.get("effect").and_then(Value::as_str), said.get("output")) {
            (Some("happened"), None) => Ok(Probe::Happened(Map::new())),
            (Some("happened"), Some(Value::Object(output))) => Ok(Probe::Happened(output.clone())),
            (Some("happened"), Some(_)) => unclear("its `output` is not an object".to_owned()),
            (Some("absent"), _) => Ok(Probe::Absent),
            (Some("unknown"), _) => Ok(Probe::Unknown("the check says that it cannot know".to_owned())),
            _ => unclear("its `effect` is none of happened, absent, unknown".to_owned()),
        }
    }

    fn sweep(&self, ctx: &ToolContext<'_>, _input: Input<'_>) -> Result<(), ToolError> {
        end_former(&note(ctx))
    }
}

/// What is to be started.
fn launch<'a>(ctx: &ToolContext<'_>, input: Input<'_>, field: &str) -> Result<Launch<'a>, ToolError> {
    let words = input.any(field)?.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut command: Vec<OsString> = words.map(OsString::from).collect();
    let Some(program) = command.first_mut() else {
        return Err(ToolError::permanent(format!("`{field}` names no program")));
    };
    if program.to_str().is_some_and(|program| program.contains('/')) {
        *program = absolute(ctx, Path::new(&*program))?.into();
    }
    let folder = absolute(ctx, Path::new(input.0.get("cwd").and_then(Value::as_str).unwrap_or_default()))?;
    if !folder.is_dir() {
        return Err(ToolError::permanent(format!("there is no folder {}", folder.display())));
    }
    let key = key_of(ctx, input);
    let (task, step) = (ctx.key.task().as_str(), ctx.key.step());
    let attempt = ctx.attempt.number;
    let mut environment = ctx.world.programs.environment.clone();
    environment.extend(variables(ctx, input)?);
    let own = [
        ("AGENT_IDEMPOTENCY_KEY", key.clone()),
        ("AGENT_TASK", task.to_owned()),
        ("AGENT_STEP", step.to_string()),
        ("AGENT_ATTEMPT", attempt.to_string()),
    ];
    environment.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
    let payload = input.0.get("json").unwrap_or(&Value::Null);
    let told = json!({
        "input": payload, "key": key, "task": task, "step": step, "attempt": attempt,
        "checkpoint": ctx.attempt.checkpoint,
    });
    Ok(Launch {
        command,
        folder,
        environment,
        input: format!("{told}\n"),
        timeout: ctx.attempt.timeout.unwrap_or(limits::PROGRAM_TIME),
        part: "",
        noted: None,
        keep: None,
    })
}

fn absolute(ctx: &ToolContext<'_>, path: &Path) -> Result<PathBuf, ToolError> {
    // The empty path is the task's home, and that may be the working directory.
    let path = ctx.world.at(path);
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
    std::path::absolute(path).map_err(|error| ToolError::step(format!("cannot find {}: {error}", path.display())))
}

fn variables(ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Vec<(OsString, OsString)>, ToolError> {
    let secrets = &ctx.world.secrets;
    let variable = |name: &str, value: String| (OsString::from(name), OsString::from(value));
    let variables: Result<_, String> = match input.0.get("env") {
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(|name| Ok(variable(name, secrets.value(name)?))).collect()
        }
        Some(Value::Object(values)) => {
            let values = values.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
            values.map(|(name, value)| Ok(variable(name, secrets.reveal(value)?))).collect()
        }
        _ => Ok(Vec::new()),
    };
    let variables: Vec<(OsString, OsString)> = variables.map_err(ToolError::permanent)?;
    match variables.iter().find(|(_, value)| value.as_encoded_bytes().contains(&0)) {
        Some((name, _)) => Err(ToolError::permanent(format!("the variable {} has a NUL in it", name.display()))),
        None => Ok(variables),
    }
}

/// What an end other than the expected one means.
fn failure(ctx: &ToolContext<'_>, launch: &Launch<'_>, ended: &Ended) -> ToolError {
    let pure = ctx.attempt.effect == Effect::Pure;
    match &ended.end {
        End::NotStarted(..) if ended.stopped => ToolError::Stopped,
        End::NotStarted(number, why) => {
            let why = format!("cannot start {}: {why}", launch.command[0].display());
            let no_such =
                [nix::libc::ENOENT, nix::libc::EACCES, nix::libc::ENOEXEC, nix::libc::ENOTDIR, nix::libc::E2BIG];
            if no_such.contains(number) { ToolError::Permanent(why) } else { ToolError::transient(why) }
        }
        End::Exit(LATER) => ToolError::transient(how(ended)),
        // It was asked to stop, so what it says need not be about its input.
        _ if ended.stopped && pure => ToolError::Stopped,
        End::Exit(_) if !ended.stopped => ToolError::permanent(how(ended)),
        _ => ToolError::unknown(how(ended)),
    }
}

/// How a program ended, with the end of what it said.
fn how(ended: &Ended) -> String {
    let how = match &ended.end {
        End::NotStarted(_, why) => format!("it could not be started: {why}"),
        End::Exit(LATER) => "the program asks to be tried again later (exit code 75)".to_owned(),
        End::Exit(code) => format!("the program ended with exit code {code}"),
        End::Signal(signal) => format!("the program was ended by signal {signal}"),
        End::TimedOut => "the program did not end in time, and was ended".to_owned(),
        End::Flooded => format!("the program printed more than {} bytes, and was ended", limits::PROGRAM_OUTPUT_BYTES),
        End::Lost => "the program's keeper was killed, and the program was ended".to_owned(),
    };
    let stopped = if ended.stopped { ", after it was asked to stop" } else { "" };
    match ended.stderr.trim() {
        "" => format!("{how}{stopped}"),
        said => format!("{how}{stopped}: {said}"),
    }
}

/// The output that a program has printed.
fn printed(ended: &Ended, text: bool) -> Result<Map<String, Value>, String> {
    let said = std::str::from_utf8(&ended.stdout)
        .map_err(|error| format!("what it printed is not UTF-8: invalid byte at offset {}", error.valid_up_to()))?;
    if text {
        return match said.contains('\0') {
            true => Err("what it printed has a NUL in it".to_owned()),
            false => Ok(Map::from_iter([("stdout".to_owned(), Value::from(said))])),
        };
    }
    if said.trim().is_empty() {
        return Err("it printed nothing, not even a JSON object; `stdout: text` takes any text".to_owned());
    }
    match codec::value_from_json(said) {
        Ok(Value::Object(output)) => match output.iter().any(|(name, value)| name.contains('\0') || has_nul(value)) {
            true => Err("what it printed has a NUL in it".to_owned()),
            false => Ok(output),
        },
        Ok(other) => Err(format!("what it printed is {}, not a JSON object", codec::kind_of(&other))),
        Err(why) => Err(format!("what it printed is not JSON: {why}")),
    }
}
