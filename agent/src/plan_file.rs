//! A plan file: checked as a whole before anything is stored, and read once more while it is, so that a long plan never
//! lies in memory.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use store::limits;
use store::model::{PlanError, PlanReader, PlanSource, PlannedStep, ReadPlanError};
use tools::{PlanCheck, Registry};

use crate::engine;
use crate::exit::{Exit, Failure};

/// A plan that is in order.
#[derive(Debug)]
pub(crate) struct PlanFile {
    path: PathBuf,
    file: File,
    goal: String,
    count: u32,
    /// Of the file as it was checked.
    digest: Vec<u8>,
    /// Why it could not be read once more.
    failure: Mutex<Option<String>>,
}

impl PlanFile {
    /// Reads and checks a plan; what was checked is given back too.
    ///
    /// # Errors
    /// It cannot be read, or it is not a plan: the step and the field at fault.
    pub(crate) fn open<'t>(path: &Path, tools: &'t Registry) -> Result<(Self, PlanCheck<'t>), Failure> {
        let shown = path.display();
        let unreadable =
            |error: io::Error| Failure::new(Exit::NoInput, format!("cannot read the plan {shown}: {error}"));
        let bad = |why: String| Failure::new(Exit::BadPlan, format!("plan {shown}: {why}"));
        let file = tools::open_regular(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() > limits::PLAN_FILE_BYTES {
            return Err(bad(format!("more than {} bytes", limits::PLAN_FILE_BYTES)));
        }
        let mut reader = PlanReader::new(Content::of(&file));
        let (mut check, mut count, mut ids) = (PlanCheck::new(tools), 0, HashSet::new());
        while let Some(step) = reader.next_step().map_err(|error| match error {
            ReadPlanError::Io(error) => unreadable(error),
            ReadPlanError::Plan(error) => bad(error.to_string()),
        })? {
            check.step(&step).map_err(|error| bad(error.to_string()))?;
            settings(&step, tools, &mut ids)
                .map_err(|why| bad(PlanError::whole(why).in_step(count, &step.tool).to_string()))?;
            count += 1;
        }
        let (goal, digest) = (reader.goal().to_owned(), reader.get_ref().digest());
        Ok((Self { path: path.to_owned(), file, goal, count, digest, failure: Mutex::default() }, check))
    }

    /// Why storing it failed, where the plan itself is the cause.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let why = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let shown = self.path.display();
        Some(Failure::new(
            Exit::NoInput,
            format!("the plan {shown}: {why} while it was being stored; nothing is stored"),
        ))
    }
}

/// What a step says beside its tool and its input; `ids` are those of the steps before it.
fn settings(step: &PlannedStep, tools: &Registry, ids: &mut HashSet<String>) -> Result<(), String> {
    let Some(tool) = tools.find(&step.tool) else { return Ok(()) };
    match engine::check_settings(step, tool.as_ref())? {
        Some(id) if !ids.insert(id.to_owned()) => Err(format!("its id `{id}` is that of an earlier step")),
        _ => Ok(()),
    }
}

impl PlanSource for PlanFile {
    fn goal(&self) -> &str {
        &self.goal
    }

    fn count(&self) -> u32 {
        self.count
    }

    fn steps(&self) -> Box<dyn Iterator<Item = Cow<'_, PlannedStep>> + '_> {
        let mut steps = Steps { plan: self, reader: PlanReader::new(Content::of(&self.file)), next: None, count: 0 };
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
            Ok(Some(step)) if self.count < self.plan.count => {
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

/// The content of a file from its beginning, with the digest of what has been read of it.
struct Content<'a> {
    file: &'a File,
    at: u64,
    digest: Sha256,
}

impl<'a> Content<'a> {
    fn of(file: &'a File) -> Self {
        Self { file, at: 0, digest: Sha256::new() }
    }

    fn digest(&self) -> Vec<u8> {
        self.digest.clone().finalize().to_vec()
    }
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
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
        let (plan, check) = PlanFile::open(&path, &tools).unwrap();
        assert_eq!((plan.goal(), plan.count(), check.tool_of(2), check.tool_of(3)), ("g", 3, Some("echo"), None));
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
            let (plan, _) = PlanFile::open(&path, &tools).unwrap();
            fs::write(&path, &later).unwrap();
            assert_ne!(steps(&plan), 2, "{later}");
            let failure = plan.failure().unwrap().to_string();
            assert!(failure.contains("it was changed while"), "{failure}");
        }
    }
}
