//! Every disk that a power cut can leave during a trail, each once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::enumerate::{Limits, subsets};
use super::model::{Disk, Effect, Node, Rules, change, folder_of};
use super::tear::{Part, tears};
use super::trail::{Entry, Trail, What};
use crate::contract::{DB_FILE, WAL};
use crate::crash::{Image, wal};
use crate::trace::FileId;

/// What became of a change that is on the disk as it was made.
const ARRIVED: &str = "arrived";

/// What became of a pending change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It arrived, as a whole or in part.
    Kept(Part),
}

/// One disk after the cut.
#[derive(Debug, Clone)]
pub struct State {
    /// The last entry that had happened: the latest moment at which this disk is possible, because then most had been
    /// told.
    pub moment: usize,
    /// The entries that were pending, and what became of them.
    pub pending: Vec<(usize, Fate)>,
}

impl State {
    /// The same disk, but what was pending at this place arrived whole; nothing where it did anyway.
    #[must_use]
    pub fn with_arrived(&self, place: usize) -> Option<Self> {
        let whole = Fate::Kept(Part::WHOLE);
        let mut fewer = self.clone();
        let (_, fate) = fewer.pending.get_mut(place).filter(|(_, fate)| *fate != whole)?;
        *fate = whole;
        Some(fewer)
    }
}

/// A disk after a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskReport {
    /// The last thing that had happened, in words.
    pub after: String,
    /// What had been done and was not synced, in order.
    pub pending: Vec<PendingReport>,
    /// The files that the disk shows, with their size in bytes.
    pub files: Vec<(String, u64)>,
}

/// One change that was not synced at a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingReport {
    /// The change in words, e.g. `link artifacts/t1-2.md`.
    pub what: String,
    /// The address of its call, e.g. `write_artifact:2/linkat#1`.
    pub at: String,
    /// What became of it: `arrived`, `lost`, or how it was torn.
    pub fate: String,
}

/// The states of a trail.
pub struct States<'a> {
    trail: &'a Trail,
    safe: Vec<Option<usize>>,
    /// Each distinct state, by the moment.
    pub all: Vec<State>,
    /// How many were made, equal ones included.
    pub made: usize,
    /// The most changes that were pending at one moment.
    pub most_pending: usize,
}

/// The content of a file and its hash, by what was done to it.
type Known = HashMap<(FileId, Vec<(usize, Part)>), (Arc<[u8]>, u64)>;

/// Enumerates the states of a trail under the strict rules.
#[must_use]
pub fn states<'a>(trail: &'a Trail, limits: &Limits, seed: u64) -> States<'a> {
    let mut states = States::again(trail);
    let mut known = Known::new();
    let mut latest: HashMap<u64, State> = HashMap::new();
    for moment in 0..trail.entries.len() {
        let pending = states.pending(moment);
        states.most_pending = states.most_pending.max(pending.len());
        for fates in fates(trail, &pending, limits, seed ^ moment as u64) {
            states.made += 1;
            let state = State { moment, pending: pending.iter().copied().zip(fates).collect() };
            let key = states.build(&state, &mut known).1;
            latest.insert(key, state);
        }
    }
    states.all = latest.into_values().collect();
    states.all.sort_by_cached_key(|state| (state.moment, format!("{:?}", state.pending)));
    states
}

fn fates(trail: &Trail, pending: &[usize], limits: &Limits, seed: u64) -> Vec<Vec<Fate>> {
    let keep = |kept: bool| if kept { Fate::Kept(Part::WHOLE) } else { Fate::Lost };
    let whole = subsets(pending.len(), limits, seed);
    let mut all: Vec<Vec<Fate>> = whole.into_iter().map(|kept| kept.into_iter().map(keep).collect()).collect();
    if limits.tears == 0 {
        return all;
    }
    for (place, entry) in pending.iter().enumerate() {
        let What::Effect(Effect::Data { offset, data, .. }) = &trail.entries[*entry].what else { continue };
        for part in tears(*offset, data.len(), limits.tears) {
            // The others all arrived, or only those that came before.
            for others in [pending.len(), place] {
                let fate = |i: usize| if i == place { Fate::Kept(part) } else { keep(i < others) };
                all.push((0..pending.len()).map(fate).collect());
            }
        }
    }
    all
}

impl<'a> States<'a> {
    /// To look at states of a trail that are known already.
    #[must_use]
    pub fn again(trail: &'a Trail) -> Self {
        States { trail, safe: trail.safe_after(Rules::Strict), all: vec![], made: 0, most_pending: 0 }
    }

    /// The changes that had happened at a moment and were not safe.
    fn pending(&self, moment: usize) -> Vec<usize> {
        let happened = (0..=moment).filter(|i| matches!(self.trail.entries[*i].what, What::Effect(_)));
        happened.filter(|i| self.safe[*i].is_none_or(|safe| safe > moment)).collect()
    }

    /// The disk of a state as a folder.
    #[must_use]
    pub fn image(&self, state: &State) -> Image {
        self.build(state, &mut Known::new()).0.image()
    }

    fn build(&self, state: &State, known: &mut Known) -> (Disk, u64) {
        let mut disk = self.trail.base.clone();
        let mut done: BTreeMap<FileId, Vec<(usize, Part)>> = BTreeMap::new();
        let mut fates = state.pending.iter().peekable();
        for (i, entry) in self.trail.entries[..=state.moment].iter().enumerate() {
            let What::Effect(effect) = &entry.what else { continue };
            let fate = match fates.next_if(|(at, _)| *at == i) {
                Some((_, fate)) => *fate,
                None => Fate::Kept(Part::WHOLE),
            };
            match (fate, effect.file()) {
                (Fate::Lost, _) => {}
                (Fate::Kept(part), Some(file)) => done.entry(file).or_default().push((i, part)),
                (Fate::Kept(_), None) => disk.rename(effect),
            }
        }
        let mut hashes = BTreeMap::new();
        for (file, changes) in done {
            let (content, hash) = known.entry((file, changes)).or_insert_with_key(|(file, changes)| {
                let mut content = disk.contents.get(file).map_or_else(Vec::new, |content| content.to_vec());
                for (i, part) in changes {
                    if let What::Effect(effect) = &self.trail.entries[*i].what {
                        change(&mut content, effect, *part);
                    }
                }
                let mut hasher = DefaultHasher::new();
                content.hash(&mut hasher);
                (content.into(), hasher.finish())
            });
            disk.contents.insert(file, Arc::clone(content));
            hashes.insert(file, *hash);
        }
        let key = key(&disk, &hashes);
        (disk, key)
    }

    /// The state as it is reported.
    #[must_use]
    pub fn report(&self, state: &State) -> DiskReport {
        let last = &self.trail.entries[state.moment];
        let pending = state.pending.iter().map(|(i, fate)| {
            let entry = &self.trail.entries[*i];
            PendingReport { what: entry.text.clone(), at: entry.at.to_string(), fate: became(entry, *fate) }
        });
        let files = self.image(state).files.into_iter().map(|(name, bytes)| (name, bytes.len() as u64));
        let after = format!("{} ({})", last.at, last.text);
        DiskReport { after, pending: pending.collect(), files: files.collect() }
    }

    /// The state in words: what of the pending changes did not arrive, or not whole.
    #[must_use]
    pub fn describe(&self, state: &State) -> String {
        let report = self.report(state);
        let mut text = format!("the power went after {}", report.after);
        let lost: Vec<&PendingReport> = report.pending.iter().filter(|pending| pending.fate != ARRIVED).collect();
        if lost.is_empty() {
            text += "; nothing was lost";
        }
        for pending in lost {
            text += &format!("\n  not synced: {} ({}): {}", pending.what, pending.at, pending.fate);
        }
        text
    }

    /// Whether a journaling file system could leave this disk too: all names that any later sync committed are there,
    /// and of the rest none without those before it.
    #[must_use]
    pub fn journaled_too(&self, state: &State) -> bool {
        let safe = self.trail.safe_after(Rules::Journaled);
        let mut lost_a_name = false;
        for (i, fate) in &state.pending {
            let lost = *fate == Fate::Lost;
            if lost && safe[*i].is_some_and(|safe| safe <= state.moment) {
                return false;
            }
            if matches!(&self.trail.entries[*i].what, What::Effect(effect) if effect.file().is_none()) {
                if lost_a_name && !lost {
                    return false;
                }
                lost_a_name |= lost;
            }
        }
        true
    }
}

fn became(entry: &Entry, fate: Fate) -> String {
    match (fate, &entry.what) {
        (Fate::Lost, _) => "lost".to_owned(),
        (Fate::Kept(part), What::Effect(Effect::Data { offset, data, .. })) if part != Part::WHOLE => {
            let (from, to) = part.bytes(*offset, data.len());
            format!("torn: bytes {from} to {to} arrived")
        }
        (Fate::Kept(_), _) => ARRIVED.to_owned(),
    }
}

/// The same for two disks that show the same folder.
fn key(disk: &Disk, changed: &BTreeMap<FileId, u64>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let there = |folder: &str| {
        let mut folder = folder;
        while !folder.is_empty() {
            if !disk.folders.contains(folder) {
                return false;
            }
            folder = folder_of(folder);
        }
        true
    };
    for folder in disk.folders.iter().filter(|folder| there(folder)) {
        folder.hash(&mut hasher);
    }
    let content = |name: &str| match disk.names.get(name) {
        Some(Node::File(file)) => disk.contents.get(file).map(AsRef::as_ref),
        _ => None,
    };
    let wal = format!("{DB_FILE}{WAL}");
    wal::key(content(DB_FILE), content(&wal)).hash(&mut hasher);
    for (name, node) in disk.names.iter().filter(|(name, _)| there(folder_of(name))) {
        name.hash(&mut hasher);
        if name == DB_FILE || *name == wal {
            continue;
        }
        match node {
            // A file that no entry touched is told by its number.
            Node::File(file) => match changed.get(file) {
                Some(hash) => (1_u8, hash).hash(&mut hasher),
                None => (2_u8, file).hash(&mut hasher),
            },
            Node::Link(to) => (3_u8, to).hash(&mut hasher),
        }
    }
    hasher.finish()
}
