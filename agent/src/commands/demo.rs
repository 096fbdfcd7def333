//! `agent demo`: the story in two acts, played by real processes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use store::model::TaskId;
use store::sqlite::SqliteReader;
use store::{Reader, limits};

use crate::config::VARIABLES;
use crate::exit::{Exit, Failure};
use crate::narrate;
use crate::output::Output;

const TASK: &str = "report";
const CRASH: &str = "after_effect:2";
const PLAN: &str = r#"{ "goal": "Summarize notes into a report",
  "steps": [
    {"tool": "fetch",          "input": {"path": "input/notes.txt"}},
    {"tool": "summarize",      "input": {"from": 0}},
    {"tool": "write_artifact", "input": {"from": 1}} ] }
"#;
const NOTES: &str = "Agents die halfway: out of memory, a deploy, a closed lid.\n\
    On restart they have lost their place, or send the mail twice.\n\
    This one goes on where it was.\n\
    (The summary takes the first three lines.)\n";

pub(crate) fn demo(dir: Option<&Path>) -> Result<Exit, Failure> {
    let folder = lab_folder(dir)?;
    let mut out = Output::new();
    out.line(&format!("Lab folder: {}", folder.display()))?;

    out.line("\n== A task is killed right after its effect, and resumed ==\n")?;
    let mut act = Act { folder: folder.join("safe"), unsafe_effects: false, out: &mut out };
    act.play()?;
    act.show_outcome("deduplicated: true", "the report stands once")?;
    act.tell_journal()?;

    out.line("\n== The same, with an effect that is not idempotent (AGENT_UNSAFE_EFFECTS=1) ==\n")?;
    let mut act = Act { folder: folder.join("unsafe"), unsafe_effects: true, out: &mut out };
    act.play()?;
    act.show_outcome("deduplicated: false", "the report stands twice")?;

    out.line(&format!("\nLook around: cd {}/safe; sqlite3 state.db 'SELECT * FROM steps'", folder.display()))?;
    out.finish()?;
    Ok(Exit::Done)
}

fn lab_folder(dir: Option<&Path>) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::CannotCreate, format!("cannot make the lab folder {}: {error}", path.display()))
    };
    match dir {
        None => {
            let folder = tempfile::Builder::new().prefix("agent-demo-").tempdir();
            // Kept: the point is to look around in it.
            folder.map(tempfile::TempDir::keep).map_err(|error| failed(&std::env::temp_dir(), error))
        }
        Some(dir) => {
            fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
            let mut entries = fs::read_dir(dir).map_err(|error| failed(dir, error))?;
            if entries.next().is_some() {
                let why = format!("{} is not empty; the demo writes into a fresh folder only", dir.display());
                return Err(Failure::new(Exit::CannotCreate, why));
            }
            fs::canonicalize(dir).map_err(|error| failed(dir, error))
        }
    }
}

/// One act: a task in a folder of its own.
struct Act<'a> {
    folder: PathBuf,
    unsafe_effects: bool,
    out: &'a mut Output,
}

impl Act<'_> {
    /// Create, run into the kill, look, resume.
    fn play(&mut self) -> Result<(), Failure> {
        let broken = |error: std::io::Error| Failure::new(Exit::CannotCreate, format!("cannot set the scene: {error}"));
        fs::create_dir_all(self.folder.join("input")).map_err(broken)?;
        fs::write(self.folder.join("input/notes.txt"), NOTES).map_err(broken)?;
        fs::write(self.folder.join("plan.json"), PLAN).map_err(broken)?;
        self.agent(&["create", TASK, "plan.json"], None, Some(0))?;
        self.agent(&["run", TASK], Some(CRASH), None)?;
        self.out.line("  killed with SIGKILL: the report is written, and nothing says so yet\n")?;
        self.out.line("What survived:")?;
        self.show_state()?;
        self.out.line("")?;
        self.agent(&["run", TASK], None, Some(0))
    }

    /// Runs this very program; `exit` is the code it must end with, none for SIGKILL.
    fn agent(&mut self, args: &[&str], crash: Option<&str>, exit: Option<i32>) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(Exit::Internal, format!("cannot find this program: {error}")))?;
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.folder).stdin(Stdio::null());
        for name in VARIABLES.iter().flat_map(|(names, _)| names.split(", ")) {
            command.env_remove(name);
        }
        let mut shown = String::new();
        if self.unsafe_effects {
            command.env("AGENT_UNSAFE_EFFECTS", "1");
        }
        if let Some(point) = crash {
            command.env("AGENT_CRASH_AT", point);
            shown = format!("AGENT_CRASH_AT={point} ");
        }
        self.out.line(&format!("$ {shown}agent {}", args.join(" ")))?;
        let done = command
            .output()
            .map_err(|error| Failure::new(Exit::Internal, format!("cannot start this program: {error}")))?;
        let said = String::from_utf8_lossy(&done.stderr);
        for line in said.lines() {
            self.out.line(&format!("  {line}"))?;
        }
        let as_told = match exit {
            Some(code) => done.status.code() == Some(code),
            None => done.status.signal() == Some(9),
        };
        let why = || format!("the demo expected another end of `agent {}` than {}", args.join(" "), done.status);
        if as_told { Ok(()) } else { Err(Failure::new(Exit::Internal, why())) }
    }

    fn show_state(&mut self) -> Result<(), Failure> {
        let (mut reader, task) = self.reader()?;
        for row in reader.steps(&task, 0, limits::STEP_PAGE)? {
            let line = format!(
                "  step {}  {:<14}  {:<7}  attempt {}",
                row.idx, row.tool, row.state.status, row.state.attempts
            );
            self.out.line(&line)?;
        }
        let journal = reader.journal(Some(&task), 0, limits::JOURNAL_PAGE)?;
        let last = journal.last().map(narrate::sentence).unwrap_or_default();
        self.out.line(&format!("  journal  {} events; the last: {last}", journal.len()))?;
        for (name, text) in self.artifacts()? {
            self.out.line(&format!("  file     artifacts/{name}, {} bytes", text.len()))?;
        }
        Ok(())
    }

    /// Shows what the last step says and how often the report stands, counted in the files; and insists on it.
    fn show_outcome(&mut self, output: &str, outcome: &str) -> Result<(), Failure> {
        let (mut reader, task) = self.reader()?;
        let stored = reader.output(&task, 2)?.unwrap_or_default();
        let deduplicated = stored.get("deduplicated").and_then(serde_json::Value::as_bool).unwrap_or_default();
        let report = NOTES.lines().take(3).collect::<Vec<_>>().join("\n");
        let files = self.artifacts()?;
        let times: usize = files.iter().map(|(_, text)| text.matches(&report).count()).sum();
        let stands = format!("the report stands {}", if times == 1 { "once" } else { "twice" });
        let says = format!("deduplicated: {deduplicated}");
        if (says.as_str(), stands.as_str()) != (output, outcome) || times > 2 {
            let why = format!("the demo expected {output} and that {outcome}, found {says} and it {times} times");
            return Err(Failure::new(Exit::Internal, why));
        }
        let names: Vec<_> = files.iter().map(|(name, _)| format!("artifacts/{name}")).collect();
        self.out.line(&format!("  {says}; {stands}, in {}", names.join(", ")))
    }

    fn tell_journal(&mut self) -> Result<(), Failure> {
        let (mut reader, task) = self.reader()?;
        self.out.line("\nIts journal, in words:")?;
        let (mut run, mut processes) = (None, 0);
        for entry in reader.journal(Some(&task), 0, limits::JOURNAL_PAGE)? {
            if run.as_ref() != Some(&entry.run) {
                processes += 1;
                self.out.line(&format!("  process {processes}"))?;
                run = Some(entry.run.clone());
            }
            self.out.line(&format!("    {:>2}  {}", entry.seq, narrate::sentence(&entry)))?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<(SqliteReader, TaskId), Failure> {
        let task = super::task_id(TASK)?;
        Ok((SqliteReader::open(&self.folder.join("state.db"))?, task))
    }

    fn artifacts(&self) -> Result<Vec<(String, String)>, Failure> {
        let folder = self.folder.join("artifacts");
        let unreadable =
            |error: std::io::Error| Failure::new(Exit::NoInput, format!("cannot read {}: {error}", folder.display()));
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let text = fs::read_to_string(entry.path()).map_err(unreadable)?;
            files.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
        files.sort();
        Ok(files)
    }
}
