//! One traced process of the agent on tape: every call that touched the folder, what it did, and the folder after it.

use std::sync::Arc;

use super::address::Addresses;
use super::image::Image;
use super::traced::traced;
use crate::agent::process::{Env, Outcome};
use crate::case::TASK;
use crate::case::plan::PlanCase;
use crate::contract::{DB_FILE, DB_SUFFIXES};
use crate::error::LabError;
use crate::look::lab::Lab;
use crate::look::reader;
use crate::look::sandbox::Sandbox;
use crate::look::snapshot::Snapshot;
use crate::look::tables::Tables;
use crate::schedule::CallPoint;
use crate::trace::{Call, Class, Done, Op, Recorder, Verb, Watch};

/// One call of a tape.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its address.
    pub at: CallPoint,
    /// The call.
    pub call: Call,
    /// What it did.
    pub ops: Vec<Op>,
    /// The place of the folder after it in [`Tape::images`].
    pub image: usize,
    /// Whether the folder was another one before it.
    pub changed: bool,
}

/// Tables, and what is wrong with the database that they are in.
pub type Seen = (Tables, Vec<String>);

/// A recorded process.
#[derive(Debug, Clone)]
pub struct Tape {
    /// The folder as the process found it, then each other one that it made.
    pub images: Vec<Arc<Image>>,
    /// The tables in each of them, and what is wrong with the database.
    pub seen: Vec<Arc<Seen>>,
    /// What the lab saw in the folder before the process.
    pub found: Snapshot,
    /// The calls, without those that print.
    pub frames: Vec<Frame>,
    /// How the process ended.
    pub outcome: Outcome,
    /// The most threads and children at the same time; with more than one the order of calls may differ from run to
    /// run.
    pub threads: usize,
    /// What happened in the folder that no call told.
    pub blind: Vec<String>,
}

impl Tape {
    /// The tables as they stood before the call at this place.
    #[must_use]
    pub fn before(&self, at: usize) -> &Tables {
        let image = at.checked_sub(1).map_or(0, |earlier| self.frames[earlier].image);
        &self.seen[image].0
    }
}

/// Whether a call has an address: all but printing.
#[must_use]
pub fn counts(call: &Call) -> bool {
    call.class != Class::Say
}

struct Camera<'a> {
    world: &'a std::path::Path,
    images: Vec<Arc<Image>>,
    frames: Vec<(Call, Vec<Op>, usize, bool)>,
}

impl Watch for Camera<'_> {
    fn after(&mut self, call: &Call, done: Done) -> Result<Verb, LabError> {
        if !counts(call) {
            return Ok(Verb::Go);
        }
        let last = self.images.len() - 1;
        let mut changed = false;
        if call.class == Class::Change && done.result >= 0 {
            let image = Image::read(self.world, Some(&self.images[last]))?;
            changed = image.key() != self.images[last].key();
            if changed {
                self.images.push(Arc::new(image));
            }
        }
        self.frames.push((call.clone(), done.ops, self.images.len() - 1, changed));
        Ok(Verb::Go)
    }
}

/// Runs `args` on the folder of `sandbox` under the tracer and keeps everything.
///
/// # Errors
/// The lab's own failures.
pub fn record(lab: &Lab, sandbox: &mut Sandbox, args: &[impl AsRef<str>], env: &Env) -> Result<Tape, LabError> {
    let world = sandbox.world();
    let found = sandbox.look()?;
    let mut recorder = Recorder::new(&world)?;
    let first = Arc::new(Image::read(&world, None)?);
    let mut camera = Camera { world: &world, images: vec![first], frames: Vec::new() };
    let done = traced(lab, sandbox, args, env, &mut recorder, &mut camera)?;
    let Camera { images, frames, .. } = camera;
    let seen = look_at_all(lab, &images)?;
    let creates = args.first().is_some_and(|first| first.as_ref() == "create");
    let first = Arc::clone(&seen[0]);
    let mut addresses = Addresses::new(TASK, creates, &first.0);
    let mut before: &Tables = &first.0;
    let mut addressed = Vec::new();
    for (call, ops, image, changed) in frames {
        addressed.push(Frame { at: addresses.next(before, call.name), call, ops, image, changed });
        before = &seen[image].0;
    }
    Ok(Tape {
        seen,
        found,
        images,
        frames: addressed,
        outcome: done.outcome,
        threads: done.threads,
        blind: recorder.blind(),
    })
}

/// [`record`] in a folder of its own that begins as `image`.
///
/// # Errors
/// The lab's own failures.
pub fn record_from(
    lab: &Lab,
    case: &Arc<PlanCase>,
    image: &Image,
    args: &[impl AsRef<str>],
    env: &Env,
) -> Result<Tape, LabError> {
    let mut sandbox = Sandbox::empty(&lab.root, case)?;
    image.write(&sandbox.world())?;
    record(lab, &mut sandbox, args, env)
}

/// Looks into the database of each folder; again only where it has changed.
fn look_at_all(lab: &Lab, images: &[Arc<Image>]) -> Result<Vec<Arc<Seen>>, LabError> {
    let mut seen: Vec<Arc<Seen>> = Vec::new();
    for (i, image) in images.iter().enumerate() {
        let known = (i > 0 && same_database(&images[i - 1], image)).then(|| Arc::clone(&seen[i - 1]));
        seen.push(match known {
            Some(known) => known,
            None => Arc::new(database(lab, image)?),
        });
    }
    Ok(seen)
}

fn same_database(one: &Image, other: &Image) -> bool {
    let files = |image: &Image| DB_SUFFIXES.map(|suffix| image.files.get(&format!("{DB_FILE}{suffix}")).cloned());
    files(one) == files(other)
}

/// The tables of an image and what is wrong with its database.
///
/// # Errors
/// Files that cannot be written.
pub fn database(lab: &Lab, image: &Image) -> Result<Seen, LabError> {
    let scratch = tempfile::Builder::new().prefix(crate::agent::stray::PREFIX).tempdir_in(&lab.root);
    let scratch = scratch.map_err(LabError::io("create a folder in", &lab.root))?;
    let db = scratch.path().join(DB_FILE);
    for suffix in DB_SUFFIXES {
        if let Some(bytes) = image.files.get(&format!("{DB_FILE}{suffix}")) {
            let file = scratch.path().join(format!("{DB_FILE}{suffix}"));
            std::fs::write(&file, bytes).map_err(LabError::io("write", &file))?;
        }
    }
    reader::read_at_rest(&db, scratch.path())
}
