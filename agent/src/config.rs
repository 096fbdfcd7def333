//! Settings from the environment. Nothing else in the workspace's libraries reads it.
//!
//! A value that cannot be understood is refused before anything happens: a typing slip must never make a crash test
//! pass. An empty value is refused too: it is what a shell makes of a misspelt variable.

use std::env::{self, VarError};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use store::CrashPoint;
use tools::{Engine, Ollama, Programs, Secrets, World};

use crate::engine::Settings;
use crate::exit::{Exit, Failure};

/// How a run behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the engine goes by.
    pub settings: Settings,
    /// How long what is under way may take once the process has been asked to stop.
    pub grace: Duration,
    /// Where to kill this process.
    pub crash_at: Option<CrashPoint>,
    /// File that names every crash point passed.
    pub crash_record: Option<PathBuf>,
}

/// The variables, for `--help`.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("AGENT_ARTIFACTS", "folder for artifacts [default: artifacts]"),
    (
        "AGENT_MAX_ATTEMPTS",
        "attempts per step before the task fails; a plan that says how many comes first [default: the tool's, else 3]",
    ),
    ("AGENT_LLM", "who summarizes: stub or ollama [default: stub]"),
    ("AGENT_LLM_TIMEOUT", "seconds that one request to a model may take [default: 300]"),
    ("OLLAMA_MODEL, OLLAMA_URL", "[defaults: llama3.2, http://127.0.0.1:11434]"),
    ("AGENT_STEP_DELAY", "tests: seconds to pause inside every step, before its effect"),
    ("AGENT_CRASH_AT", "tests: kill this process at <point>:<step>, e.g. after_effect:2; see `agent tools`"),
    ("AGENT_CRASH_RECORD", "tests: append every crash point passed to this file"),
    ("AGENT_UNSAFE_EFFECTS", "negative control: 1 makes effects not idempotent"),
    ("AGENT_UNSAFE_KEYS", "negative control: 1 gives every attempt its own idempotency key"),
];

/// The grace unless an option says otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// This program as a keeper, also where its file has been replaced meanwhile.
const KEEPER: [&str; 2] = ["/proc/self/exe", "keeper"];

/// The variables that every program gets that a step starts.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

fn passed() -> Vec<(OsString, OsString)> {
    PASSED.iter().filter_map(|name| Some((OsString::from(name), env::var_os(name)?))).collect()
}

/// Longest pause: a day.
const MAX_DELAY: f64 = 86_400.0;

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// A value that cannot be understood, with its variable.
    pub fn from_env() -> Result<Self, Failure> {
        refuse_misspelt()?;
        let world = World {
            home: PathBuf::new(),
            moved: None,
            artifacts: text("AGENT_ARTIFACTS")?.map_or_else(|| PathBuf::from("artifacts"), PathBuf::from),
            unsafe_effects: flag("AGENT_UNSAFE_EFFECTS")?,
            engine: engine()?,
            secrets: Secrets::new(|name| env::var(name).ok()),
            programs: Programs {
                keeper: KEEPER.map(Into::into).to_vec(),
                folder: PathBuf::new(),
                environment: passed(),
            },
            database: PathBuf::new(),
        };
        let settings = Settings {
            world,
            max_attempts: attempts()?,
            no_wait: false,
            step_delay: seconds("AGENT_STEP_DELAY")?.unwrap_or_default(),
            unsafe_keys: flag("AGENT_UNSAFE_KEYS")?,
        };
        Ok(Self { settings, grace: GRACE, crash_at: crash_point()?, crash_record: path("AGENT_CRASH_RECORD")? })
    }
}

/// Who gives the command, as the journal has it.
#[must_use]
pub(crate) fn person() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok().filter(|name| !name.is_empty()));
    named.unwrap_or_else(|| format!("uid {}", nix::unistd::getuid()))
}

/// Names that only begin like one of ours: other programs have variables named `AGENT_…` too, but none like these, and
/// a crash test that was asked for in vain would pass.
fn refuse_misspelt() -> Result<(), Failure> {
    const BEGINNINGS: [&str; 6] = ["AGENT_ART", "AGENT_CRASH", "AGENT_LLM", "AGENT_MAX", "AGENT_STEP", "AGENT_UNSAFE"];
    let known = |name: &str| VARIABLES.iter().any(|(names, _)| names.split(", ").any(|known| known == name));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !known(&name) {
            return Err(Failure::new(Exit::Usage, format!("{name} is set and there is no such variable; see --help")));
        }
    }
    Ok(())
}

fn engine() -> Result<Engine, Failure> {
    const TIMEOUT: &str = "AGENT_LLM_TIMEOUT";
    let timeout = seconds(TIMEOUT)?.unwrap_or(Duration::from_secs(300));
    if timeout.is_zero() {
        // A limit that nothing can keep: every request would fail, after all that was done before it.
        return Err(refused(TIMEOUT, &text(TIMEOUT)?.unwrap_or_default(), "seconds above 0 and up to 86400"));
    }
    match text("AGENT_LLM")?.as_deref() {
        None | Some("stub") => Ok(Engine::Stub),
        Some("ollama") => {
            let url = text("OLLAMA_URL")?.unwrap_or_else(|| "http://127.0.0.1:11434".to_owned());
            let not_one =
                |why| Failure::new(Exit::Usage, format!("OLLAMA_URL={url} is not the address of a server: {why}"));
            let address = url.parse().map_err(not_one)?;
            let model = text("OLLAMA_MODEL")?.unwrap_or_else(|| "llama3.2".to_owned());
            Ok(Engine::Ollama(Ollama { address, model, timeout }))
        }
        Some(other) => Err(refused("AGENT_LLM", other, "stub or ollama")),
    }
}

fn text(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Err(empty(name)),
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::new(Exit::Usage, format!("{name} is not UTF-8"))),
    }
}

fn path(name: &str) -> Result<Option<PathBuf>, Failure> {
    match env::var_os(name) {
        Some(value) if value.is_empty() => Err(empty(name)),
        value => Ok(value.map(PathBuf::from)),
    }
}

fn empty(name: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{name} is set and empty: give it a value or unset it"))
}

fn flag(name: &str) -> Result<bool, Failure> {
    match text(name)?.as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(refused(name, other, "1 or 0")),
    }
}

fn attempts() -> Result<Option<u32>, Failure> {
    const NAME: &str = "AGENT_MAX_ATTEMPTS";
    let Some(value) = text(NAME)? else { return Ok(None) };
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten().filter(|&number| number > 0);
    number.map(Some).ok_or_else(|| refused(NAME, &value, "a whole number from 1"))
}

fn seconds(name: &str) -> Result<Option<Duration>, Failure> {
    let Some(value) = text(name)? else { return Ok(None) };
    match parse_seconds(&value) {
        Some(pause) => Ok(Some(pause)),
        None => Err(refused(name, &value, SECONDS)),
    }
}

/// What a number of seconds must be.
pub(crate) const SECONDS: &str = "seconds from 0 to 86400, such as 0.5";

/// A pause, as variables and options have it; `None` where it makes no sense, see [`SECONDS`].
pub(crate) fn parse_seconds(text: &str) -> Option<Duration> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=MAX_DELAY).contains(number));
    number.map(Duration::from_secs_f64)
}

fn crash_point() -> Result<Option<CrashPoint>, Failure> {
    let Some(value) = text("AGENT_CRASH_AT")? else { return Ok(None) };
    value.parse().map(Some).map_err(|error| Failure::new(Exit::Usage, format!("AGENT_CRASH_AT: {error}")))
}

fn refused(name: &str, value: &str, expected: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{name}={value} makes no sense, it must be {expected}"))
}
