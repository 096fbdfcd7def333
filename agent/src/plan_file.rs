//! A plan file: checked as a whole before anything is stored, and read once more while it is, so that a long plan never
//! lies in memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use store::limits;
use store::model::{Digest, Origin, PlanError, PlanReader, PlanSource, PlannedStep, ReadPlanError};
use tools::{Input, Pause, PlanCheck, Registry};

use crate::engine;
use crate::exit::{Exit, Failure};
use crate::language::{self, Given, Inputs, TextCheck};

/// A plan that is in order.
#[derive(Debug)]
pub(crate) struct PlanFile {
    /// As people call it.
    name: String,
    text: Text,
    goal: String,
    count: u32,
    /// What the task keeps of it.
    origin: Origin,
    source: Option<String>,
    /// What is stored with steps beside what the plan says of them, by their index.
    found: HashMap<u32, Map<String, Value>>,
    /// Of the text as it was checked.
    digest: Vec<u8>,
    /// Why it could not be read once more.
    failure: Mutex<Option<String>>,
}

/// What a plan is read for.
pub(crate) struct Checked<'t> {
    pub(crate) plan: PlanFile,
    /// What its steps call.
    pub(crate) tools: PlanCheck<'t>,
    pub(crate) inputs: Inputs,
}

impl PlanFile {
    /// Reads and checks a plan: JSON, or YAML where its name says so; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be read, or it is not a plan: the step and the field at fault.
    pub(crate) fn open<'t>(path: &Path, tools: &'t Registry) -> Result<Checked<'t>, Failure> {
        let name = if path == Path::new("-") { "on standard input".to_owned() } else { path.display().to_string() };
        let unreadable =
            |error: io::Error| Failure::new(Exit::NoInput, format!("cannot read the plan {name}: {error}"));
        let bad = |why: String| Failure::new(Exit::BadPlan, format!("plan {name}: {why}"));
        let file = if path == Path::new("-") { standard_input() } else { tools::open_regular(path) };
        let file = file.map_err(unreadable)?;
        let (text, given) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                check_size(&file, limits::YAML_BYTES).map_err(unreadable)?.map_err(bad)?;
                let given = whole(&file).map_err(unreadable)?;
                let yaml = std::str::from_utf8(&given)
                    .map_err(|error| bad(format!("not UTF-8: invalid byte at offset {}", error.valid_up_to())))?;
                let json = language::parse_yaml(yaml).map_err(bad)?;
                (Text::Memory(json.to_string().into_bytes()), Some(given))
            }
            _ => {
                check_size(&file, limits::PLAN_FILE_BYTES).map_err(unreadable)?.map_err(bad)?;
                (Text::File(file), None)
            }
        };
        let mut reader = PlanReader::new(Content::of(&text));
        let (mut calls, mut texts, mut count, mut found) =
            (PlanCheck::new(tools).templated(), TextCheck::default(), 0, HashMap::new());
        while let Some(step) = reader.next_step().map_err(|error| match error {
            ReadPlanError::Io(error) => unreadable(error),
            ReadPlanError::Plan(error) => bad(error.to_string()),
        })? {
            let more =
                check_step(&step, count, &mut calls, &mut texts, tools).map_err(|error| bad(error.to_string()))?;
            found.extend(more.map(|more| (count, more)));
            count += 1;
        }
        let refused = |error: PlanError| bad(error.to_string());
        let inputs = Inputs::read(reader.inputs()).map_err(refused)?;
        texts.finish(&inputs).map_err(refused)?;
        let labels = language::labels(reader.labels(), &[]).map_err(refused)?;
        let (goal, digest) = (reader.goal().to_owned(), reader.get_ref().digest());
        drop(reader);
        let sha256 = given.as_ref().map_or_else(|| digest.clone(), |given| Sha256::digest(given).to_vec());
        let source = given.map_or_else(|| text.kept(&digest), |given| Ok(Some(given))).map_err(unreadable)?;
        let source = source.filter(|source| source.len() as u64 <= limits::PLAN_SOURCE_BYTES);
        let source = source.and_then(|source| String::from_utf8(source).ok());
        let origin = Origin {
            inputs: None,
            labels,
            digest: sha256.try_into().map(Digest).ok(),
            language: Some(language::VERSION),
        };
        let failure = Mutex::default();
        let plan = Self { name, text, goal, count, origin, source, found, digest, failure };
        Ok(Checked { plan, tools: calls, inputs })
    }

    /// Why storing it failed, where the plan itself is the cause.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let why = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let shown = &self.name;
        Some(Failure::new(
            Exit::NoInput,
            format!("the plan {shown}: {why} while it was being stored; nothing is stored"),
        ))
    }
}

impl Checked<'_> {
    /// Gives the plan its inputs, and labels of the task's own.
    ///
    /// # Errors
    /// What is missing, or does not fit.
    pub(crate) fn give(&mut self, given: &Given, labels: &[(String, String)]) -> Result<(), Failure> {
        let usage = |why: String| Failure::new(Exit::Usage, why);
        self.plan.origin.inputs = self.inputs.values(given).map_err(usage)?;
        let labels = language::labels(self.plan.origin.labels.as_ref(), labels);
        self.plan.origin.labels = labels.map_err(|error| usage(error.to_string()))?;
        Ok(())
    }
}

/// Checks one step; gives what is to be stored of it beside what the plan says.
fn check_step(
    step: &PlannedStep,
    index: u32,
    calls: &mut PlanCheck<'_>,
    texts: &mut TextCheck,
    tools: &Registry,
) -> Result<Option<Map<String, Value>>, PlanError> {
    calls.step(step)?;
    let Some(tool) = tools.find(&step.tool) else { return Ok(None) };
    let checked = engine::check_settings(step, tool.as_ref()).map_err(PlanError::whole);
    let checked = checked.and_then(|()| match tool.wait(Input(&step.input)) {
        Ok(Some(Pause::Approval { schema: Some(schema), .. })) => {
            language::check_schema(&schema).map_err(|why| PlanError::field("schema", why))
        }
        _ => Ok(()),
    });
    let found = checked.and_then(|()| texts.step(step, tool.as_ref(), calls, tools));
    found.map_err(|error| error.in_step(index, &step.tool))
}

/// Standard input, as a file that can be read more than once.
fn standard_input() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock().take(limits::PLAN_FILE_BYTES + 1), &mut file)?;
    file.flush()?;
    Ok(file)
}

fn check_size(file: &File, most: u64) -> io::Result<Result<(), String>> {
    Ok(if file.metadata()?.len() > most { Err(format!("more than {most} bytes")) } else { Ok(()) })
}

fn whole(file: &File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Content { text: Source::File(file), at: 0, digest: Sha256::new() }.read_to_end(&mut text)?;
    Ok(text)
}

/// The text of a plan, as JSON.
#[derive(Debug)]
enum Text {
    File(File),
    Memory(Vec<u8>),
}

impl Text {
    /// The text itself, where it is short enough to be kept.
    fn kept(&self, digest: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::File(file) if file.metadata()?.len() <= limits::PLAN_SOURCE_BYTES => {
                let text = whole(file)?;
                // One that was changed meanwhile is found out when it is stored.
                Ok((Sha256::digest(&text).as_slice() == digest).then_some(text))
            }
            _ => Ok(None),
        }
    }
}

impl PlanSource for PlanFile {
    fn goal(&self) -> &str {
        &self.goal
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        let mut steps = Steps { plan: self, reader: PlanReader::new(Content::of(&self.text)), next: None, count: 0 };
        steps.next = steps.read();
        Box::new(steps)
    }
}

/// The steps, read once more. The last one is given only when the whole file is known to be as it was checked; without
/// it, the plan has too few steps, and the transaction that is to store it fails.
struct Steps<'a> {
    plan: &'a PlanFile,
    reader: PlanReader<Content<'a>>,
    next: Option<PlannedStep>,
    /// How many have been read.
    count: u32,
}

impl Steps<'_> {
    fn read(&mut self) -> Option<PlannedStep> {
        let why = match self.reader.next_step() {
            Ok(Some(mut step)) if self.count < self.plan.count => {
                if let Some(found) = self.plan.found.get(&self.count) {
                    step.settings.get_or_insert_default().extend(found.clone());
                }
                self.count += 1;
                return Some(step);
            }
            Ok(None) if self.reader.get_ref().digest() == self.plan.digest => return None,
            Ok(_) | Err(ReadPlanError::Plan(_)) => "it was changed".to_owned(),
            Err(ReadPlanError::Io(error)) => format!("it could not be read ({error})"),
        };
        *self.plan.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        None
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = Cow<'a, PlannedStep>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.next.take()?;
        self.next = self.read();
        let failed = self.plan.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        (!failed).then_some(Cow::Owned(step))
    }
}

/// A text from its beginning, with the digest of what has been read of it.
struct Content<'a> {
    text: Source<'a>,
    at: u64,
    digest: Sha256,
}

enum Source<'a> {
    File(&'a File),
    Memory(&'a [u8]),
}

impl<'a> Content<'a> {
    fn of(text: &'a Text) -> Self {
        let text = match text {
            Text::File(file) => Source::File(file),
            Text::Memory(bytes) => Source::Memory(bytes),
        };
        Self { text, at: 0, digest: Sha256::new() }
    }

    fn digest(&self) -> Vec<u8> {
        self.digest.clone().finalize().to_vec()
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.text {
            Source::File(file) => file.read_at(buffer, self.at)?,
            Source::Memory(bytes) => bytes.read(buffer)?,
        };
        self.digest.update(&buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn plan(steps: &str) -> String {
        format!(r#"{{"steps":[{steps}],"goal":"g"}}"#)
    }

    const ONE: &str = r#"{"tool":"echo","input":{"value":1}}"#;

    fn steps(plan: &PlanFile) -> usize {
        plan.steps().count()
    }

    #[test]
    fn the_steps_come_again_as_they_were_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        fs::write(&path, plan(&[ONE; 3].join(","))).unwrap();
        let tools = Registry::builtin();
        let Checked { plan, tools: check, .. } = PlanFile::open(&path, &tools).unwrap();
        assert_eq!(
            (plan.goal(), plan.count(), check.spec_of(2).unwrap().name.as_str(), check.spec_of(3).is_none()),
            ("g", 3, "echo", true)
        );
        for _ in 0..2 {
            let steps: Vec<_> = plan.steps().map(Cow::into_owned).collect();
            assert!(steps.len() == 3 && steps.iter().all(|step| step.input["value"] == 1));
        }
        assert!(plan.failure().is_none());
    }

    #[test]
    fn a_plan_file_that_is_too_large_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let refused = |length: u64| {
            File::create(&path).unwrap().set_len(length).unwrap();
            PlanFile::open(&path, &Registry::builtin()).err().unwrap().to_string()
        };
        assert!(refused(limits::PLAN_FILE_BYTES).contains("not JSON"), "it is as large as may be");
        assert!(refused(limits::PLAN_FILE_BYTES + 1).contains("more than 536870912 bytes"));
    }

    /// Only what was checked may be stored, and the file is read twice.
    #[test]
    fn a_plan_that_changes_between_check_and_storing_never_comes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let tools = Registry::builtin();
        let two = plan(&[ONE; 2].join(","));
        for later in
            [two.replace('1', "2"), plan(ONE), plan(&[ONE; 3].join(",")), two.clone() + " ", two[1..].into(), "".into()]
        {
            fs::write(&path, &two).unwrap();
            let plan = PlanFile::open(&path, &tools).unwrap().plan;
            fs::write(&path, &later).unwrap();
            assert_ne!(steps(&plan), 2, "{later}");
            let failure = plan.failure().unwrap().to_string();
            assert!(failure.contains("it was changed while"), "{failure}");
        }
    }
}
