//! Traced processes as one list of changes, syncs and words, over all of them: what one process left unsynced is still
//! unsynced while the next one works.

use std::sync::Arc;

use super::acks::{Facts, told};
use super::model::{Disk, Effect, Rules, Scope};
use crate::agent::process::{Ended, Env, Outcome};
use crate::case::TASK;
use crate::contract::{DB_FILE, DB_SUFFIXES};
use crate::crash::{Addresses, Image, Seen, counts, database, traced};
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::look::sandbox::Sandbox;
use crate::schedule::CallPoint;
use crate::trace::{Call, Class, Done, Op, Recorder, Verb, Watch};

/// What one entry of a trail is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A change.
    Effect(Effect),
    /// A promise.
    Sync(Scope),
    /// A promise that was asked for and not given.
    Failed(Scope),
    /// A printed line or the end of a process.
    Told,
}

/// One entry of a trail.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The call that it belongs to.
    pub at: CallPoint,
    /// How many calls with an address its process had made before.
    pub call: usize,
    /// What it is.
    pub what: What,
    /// The same in words.
    pub text: String,
    /// The process that it belongs to, in [`Trail::processes`].
    pub process: usize,
    /// What the world had been told when it was over.
    pub told: Facts,
}

/// Everything that traced processes did, one after another.
#[derive(Debug, Clone)]
pub struct Trail {
    /// The disk before, all of it safe.
    pub base: Disk,
    /// What was done.
    pub entries: Vec<Entry>,
    /// The processes: their command and how they ended.
    pub processes: Vec<(String, Outcome)>,
    /// What happened that no call told.
    pub blind: Vec<String>,
    /// The most threads and children at the same time.
    pub threads: usize,
}

impl Trail {
    /// For each entry the number of the entry after which it is safe; nothing where it never is, and for what changes
    /// nothing.
    #[must_use]
    pub fn safe_after(&self, rules: Rules) -> Vec<Option<usize>> {
        let safe = |(i, entry): (usize, &Entry)| {
            let What::Effect(effect) = &entry.what else { return None };
            let later = self.entries.iter().enumerate().skip(i + 1);
            let mut syncs = later.filter(|(_, later)| match &later.what {
                What::Sync(scope) | What::Failed(scope) => effect.covered_by(scope, rules),
                _ => false,
            });
            // After one that failed, a later one may succeed without any effect.
            syncs.next().and_then(|(at, entry)| matches!(entry.what, What::Sync(_)).then_some(at))
        };
        self.entries.iter().enumerate().map(safe).collect()
    }
}

/// What is done to a process at the call that has so many others with an address before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blow {
    /// How many come before.
    pub call: usize,
    /// What becomes of the call; a kill comes after it.
    pub verb: Verb,
}

/// Listens to a process, and strikes once.
struct Listener {
    heard: Vec<(Call, Vec<Op>)>,
    blow: Option<Blow>,
    calls: usize,
}

impl Watch for Listener {
    fn before(&mut self, call: &Call) -> Result<Verb, LabError> {
        let here = counts(call) && self.blow.is_some_and(|blow| blow.call == self.calls);
        Ok(match self.blow {
            Some(Blow { verb, .. }) if here && verb != Verb::Kill => verb,
            _ => Verb::Go,
        })
    }

    fn after(&mut self, call: &Call, done: Done) -> Result<Verb, LabError> {
        if !counts(call) && call.class != Class::Say {
            return Ok(Verb::Go);
        }
        self.calls += usize::from(counts(call));
        let here = counts(call) && self.blow.is_some_and(|blow| blow.call + 1 == self.calls);
        let kill = here && self.blow.is_some_and(|blow| blow.verb == Verb::Kill);
        self.heard.push((call.clone(), done.ops));
        Ok(if kill { Verb::Kill } else { Verb::Go })
    }
}

/// Runs a process that is struck once, without keeping a trail of it.
///
/// # Errors
/// The lab's own failures.
pub fn strike(
    lab: &Lab,
    sandbox: &mut Sandbox,
    args: &[impl AsRef<str>],
    env: &Env,
    blow: Blow,
) -> Result<Outcome, LabError> {
    let mut recorder = Recorder::new(&sandbox.world())?;
    let mut listener = Listener { heard: Vec::new(), blow: Some(blow), calls: 0 };
    Ok(traced(lab, sandbox, args, env, &mut recorder, &mut listener)?.outcome)
}

/// Puts processes together into a trail.
pub struct Scribe<'a> {
    lab: &'a Lab,
    recorder: Recorder,
    now: Disk,
    seen: Arc<Seen>,
    first: Arc<Seen>,
    shown: Vec<Arc<Seen>>,
    trail: Trail,
}

impl<'a> Scribe<'a> {
    /// For the folder of a sandbox whose content `base` is safe. `base` is given because reading the folder here would
    /// drop the locks of a connection that this program may have to its database.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn new(lab: &'a Lab, sandbox: &Sandbox, base: &Image) -> Result<Self, LabError> {
        let mut recorder = Recorder::new(&sandbox.world())?;
        let disk = Disk::of(base, &recorder.names()?);
        let seen = Arc::new(database(lab, base)?);
        let trail = Trail { base: disk.clone(), entries: vec![], processes: vec![], blind: vec![], threads: 1 };
        Ok(Self { lab, recorder, now: disk, first: Arc::clone(&seen), seen, shown: Vec::new(), trail })
    }

    /// Runs one more process.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn process(
        &mut self,
        sandbox: &mut Sandbox,
        args: &[impl AsRef<str>],
        env: &Env,
        blow: Option<Blow>,
    ) -> Result<Ended, LabError> {
        let mut listener = Listener { heard: Vec::new(), blow, calls: 0 };
        let done = traced(self.lab, sandbox, args, env, &mut self.recorder, &mut listener)?;
        let words: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let creates = words.first() == Some(&"create");
        let found = Arc::clone(&self.seen);
        let mut addresses = Addresses::new(TASK, creates, &found.0);
        let process = self.trail.processes.len();
        let mut index = 0;
        for (call, ops) in listener.heard {
            let at = addresses.next(&self.seen.0, call.name);
            // Shared memory is rebuilt after a cut, whatever is left of it.
            for op in ops.iter().filter(|_| call.class != Class::Shm) {
                self.entry(&at, index, op, process)?;
            }
            index += usize::from(counts(&call));
        }
        let last = addresses.next(&self.seen.0, "exit");
        let ended = done.outcome.ended;
        self.push(last, index, What::Told, format!("the process ends: {ended}"), process);
        self.trail.threads = self.trail.threads.max(done.threads);
        self.trail.processes.push((words.join(" "), done.outcome));
        Ok(ended)
    }

    fn entry(&mut self, at: &CallPoint, call: usize, op: &Op, process: usize) -> Result<(), LabError> {
        let what = match op {
            Op::SyncFile { file, .. } => What::Sync(Scope::File(*file)),
            Op::SyncDir { path } => What::Sync(Scope::Folder(path.clone())),
            Op::SyncAll => What::Sync(Scope::All),
            Op::SyncFailed { file: Some(file), .. } => What::Failed(Scope::File(*file)),
            Op::SyncFailed { file: None, path } => What::Failed(Scope::Folder(path.clone())),
            Op::Say { .. } => What::Told,
            change => match self.now.effects(change) {
                Some(effect) => What::Effect(effect),
                None => {
                    self.trail.blind.push(format!("`{op}` could not be followed"));
                    return Ok(());
                }
            },
        };
        if let What::Effect(effect) = &what {
            let before = self.database_files();
            self.now.apply(effect);
            if self.database_files() != before {
                self.seen = Arc::new(database(self.lab, &self.now.image())?);
            }
        }
        self.push(at.clone(), call, what, op.to_string(), process);
        Ok(())
    }

    fn database_files(&self) -> [Option<Arc<[u8]>>; DB_SUFFIXES.len()] {
        DB_SUFFIXES.map(|suffix| match self.now.names.get(&format!("{DB_FILE}{suffix}")) {
            Some(super::model::Node::File(file)) => self.now.contents.get(file).map(Arc::clone),
            _ => None,
        })
    }

    fn push(&mut self, at: CallPoint, call: usize, what: What, text: String, process: usize) {
        self.shown.push(Arc::clone(&self.seen));
        self.trail.entries.push(Entry { at, call, what, text, process, told: Facts::new() });
    }

    /// The disk as it is, with everything that is not yet safe.
    #[must_use]
    pub fn now(&self) -> &Disk {
        &self.now
    }

    /// The trail of all processes so far.
    #[must_use]
    pub fn finish(mut self) -> Trail {
        let syncs = self.trail.entries.iter().map(|entry| matches!(entry.what, What::Sync(_) | What::Failed(_)));
        let moments = syncs.zip(self.shown.iter().map(|seen| &seen.0));
        let told = told(moments, &self.first.0);
        for (entry, told) in self.trail.entries.iter_mut().zip(told) {
            entry.told = told;
        }
        self.trail.blind.extend(self.recorder.blind());
        self.trail
    }
}
