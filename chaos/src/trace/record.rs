//! From the registers of a call to what it did to the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::unistd::Pid;

use super::arch::{Flags, Shape};
use super::call::{Call, Class};
use super::files::{self, Ids, descriptor, resolve};
use super::memory;
use super::op::{FileId, Op};
use crate::error::LabError;
use crate::look;

/// The end of the name of SQLite's shared memory.
const SHM: &str = "-shm";

/// Open flags after which each write is durable by itself.
const SYNCED: u32 = (libc::O_DSYNC | libc::O_SYNC) as u32;

/// Knows one folder and its files over any number of traced processes.
pub struct Recorder {
    world: PathBuf,
    ids: Ids,
    /// Where what the agent prints goes to.
    printed: Vec<PathBuf>,
    blind: BTreeSet<String>,
    /// Files that are mapped to be written, and have not been synced by their mapping since.
    mapped: BTreeSet<String>,
}

/// A call on its way: what its entry told, for its exit to go on with.
pub(super) struct Pending {
    pub(super) call: Call,
    about: About,
}

enum About {
    Open { path: String, existed: bool },
    Write { fd: u64, key: (u64, u64), at: Option<u64>, buffer: u64, list: Option<u64> },
    Copy { fd: u64, key: (u64, u64), at: Option<u64> },
    Resize { key: (u64, u64), len: Option<u64> },
    Link { path: String },
    Symlink { path: String, target: String },
    Rename { from: Option<String>, to: Option<String> },
    Unlink { path: String, folder: bool },
    Mkdir { path: String },
    SyncFile { key: (u64, u64) },
    Mapped { key: (u64, u64), synced: bool },
    SyncDir { path: String },
    SyncAll,
}

impl Recorder {
    /// A recorder of the folder `world`.
    ///
    /// # Errors
    /// A folder that is not there.
    pub fn new(world: &Path) -> Result<Self, LabError> {
        let world = std::fs::canonicalize(world).map_err(LabError::io("find", world))?;
        Ok(Self { world, ids: Ids::default(), printed: Vec::new(), blind: BTreeSet::new(), mapped: BTreeSet::new() })
    }

    /// The number of the file that has this name now.
    pub fn file(&mut self, path: &str) -> Option<FileId> {
        self.ids.at(&self.world.join(path))
    }

    /// The files that keep what the next process prints.
    pub(super) fn prints_to(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.printed = files.into_iter().filter_map(|file| std::fs::canonicalize(file).ok()).collect();
    }

    /// What happened in the folder that no call tells, in words.
    #[must_use]
    pub fn blind(&self) -> Vec<String> {
        let unseen = |path| format!("not reached: blind here, `{path}` is written through a mapping that nobody syncs");
        self.blind.iter().cloned().chain(self.mapped.iter().map(unseen)).collect()
    }

    /// The path below the folder; nothing for what is elsewhere.
    fn inside(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.world).ok()?.to_string_lossy().into_owned())
    }

    fn named(&self, pid: Pid, args: &[u64; 6], at: (Option<usize>, usize)) -> Option<String> {
        let text = memory::text(pid, args[at.1]).ok()?;
        self.inside(&resolve(pid, at.0.map(|dir| args[dir]), &text)?)
    }

    /// Reads a call at its entry; nothing where it does not touch the folder.
    pub(super) fn entry(&mut self, pid: Pid, name: &'static str, shape: Shape, args: &[u64; 6]) -> Option<Pending> {
        let one = |class, path: &str, about| {
            let call =
                Call { name, class: class_of(class, path), path: path.to_owned(), bytes: 0, thread: pid.as_raw() };
            Some(Pending { call, about })
        };
        match shape {
            Shape::Open { dir, path, flags } => {
                let flags = open_flags(pid, args, flags)?;
                if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
                    return None;
                }
                let path = self.named(pid, args, (dir, path))?;
                let existed = self.world.join(&path).exists();
                let changes = !existed || flags & libc::O_TRUNC != 0;
                changes.then(|| one(Class::Change, &path, About::Open { path: path.clone(), existed }))?
            }
            Shape::Write { at } => self.write(pid, name, args, at, None),
            Shape::WriteList { at } => self.write(pid, name, args, at, Some(args[2])),
            Shape::CopyInto { file, at } => {
                let (path, found) = self.open_file(pid, args[file])?;
                let at = at.map(|at| args[at]).filter(|at| *at != 0);
                let at = at.and_then(|at| memory::word(pid, at).ok());
                one(Class::Change, &path, About::Copy { fd: args[file], key: found, at })
            }
            Shape::Ftruncate => {
                let (path, key) = self.open_file(pid, args[0])?;
                one(Class::Change, &path, About::Resize { key, len: Some(args[1]) })
            }
            Shape::Fallocate => {
                let (path, key) = self.open_file(pid, args[0])?;
                one(Class::Change, &path, About::Resize { key, len: None })
            }
            Shape::Msync => {
                let path = self.inside(&mapped(pid, args[0])?)?;
                let key = files::key_of(&self.world.join(&path))?;
                one(Class::Sync, &path, About::Mapped { key, synced: args[2] as i32 & libc::MS_SYNC != 0 })
            }
            Shape::Mmap => self.mapping(pid, args),
            Shape::Ring => {
                self.blind.insert("not reached: blind here, the agent uses io_uring".to_owned());
                None
            }
            Shape::Sync => {
                let found = descriptor(pid, args[0])?;
                let path = self.inside(&found.path)?;
                let about = match found.is_dir {
                    true => About::SyncDir { path: path.clone() },
                    false => About::SyncFile { key: found.key },
                };
                one(Class::Sync, &path, about)
            }
            Shape::SyncAll => one(Class::Sync, "", About::SyncAll),
            named => self.name_change(pid, name, named, args),
        }
    }

    fn name_change(&self, pid: Pid, name: &'static str, shape: Shape, args: &[u64; 6]) -> Option<Pending> {
        let (path, about) = match shape {
            Shape::Truncate => {
                let path = self.named(pid, args, (None, 0))?;
                let key = files::key_of(&self.world.join(&path))?;
                (path, About::Resize { key, len: Some(args[1]) })
            }
            Shape::Link { new, .. } => {
                let path = self.named(pid, args, new)?;
                (path.clone(), About::Link { path })
            }
            Shape::Symlink { target, new } => {
                let target = memory::text(pid, args[target]).ok()?;
                let path = self.named(pid, args, new)?;
                (path.clone(), About::Symlink { path, target })
            }
            Shape::Rename { old, new } => {
                let (from, to) = (self.named(pid, args, old), self.named(pid, args, new));
                (to.clone().or(from.clone())?, About::Rename { from, to })
            }
            Shape::Unlink { at } => {
                let path = self.named(pid, args, at)?;
                let folder = at.0.is_some() && args[2] as i32 & libc::AT_REMOVEDIR != 0;
                (path.clone(), About::Unlink { path, folder })
            }
            Shape::Rmdir => {
                let path = self.named(pid, args, (None, 0))?;
                (path.clone(), About::Unlink { path, folder: true })
            }
            Shape::Mkdir { at } => {
                let path = self.named(pid, args, at)?;
                (path.clone(), About::Mkdir { path })
            }
            _ => return None,
        };
        let call = Call { name, class: class_of(Class::Change, &path), path, bytes: 0, thread: pid.as_raw() };
        Some(Pending { call, about })
    }

    /// The path and the key of an open file of the folder.
    fn open_file(&self, pid: Pid, fd: u64) -> Option<(String, (u64, u64))> {
        let found = descriptor(pid, fd)?;
        (!found.is_dir).then_some(())?;
        Some((self.inside(&found.path)?, found.key))
    }

    fn write(
        &mut self,
        pid: Pid,
        name: &'static str,
        args: &[u64; 6],
        at: Option<usize>,
        list: Option<u64>,
    ) -> Option<Pending> {
        let thread = pid.as_raw();
        let bytes = match list {
            Some(count) => memory::list_len(pid, args[1], count).ok()?,
            None => usize::try_from(args[2]).ok()?,
        };
        let fd = args[0];
        let Some((path, key)) = self.open_file(pid, fd) else {
            let printed = || descriptor(pid, fd).is_some_and(|found| self.printed.contains(&found.path));
            let says = matches!(fd, 1 | 2) && list.is_none() && printed();
            let about = About::Write { fd, key: (0, 0), at: None, buffer: args[1], list };
            let call = Call { name, class: Class::Say, path: String::new(), bytes, thread };
            return says.then_some(Pending { call, about });
        };
        // A place of -1 means the file's own position.
        let at = at.map(|at| args[at]).filter(|at| *at != u64::MAX);
        let call = Call { name, class: class_of(Class::Change, &path), path, bytes, thread };
        Some(Pending { call, about: About::Write { fd, key, at, buffer: args[1], list } })
    }

    fn mapping(&mut self, pid: Pid, args: &[u64; 6]) -> Option<Pending> {
        let written = args[2] as i32 & libc::PROT_WRITE != 0 && args[3] as i32 & libc::MAP_SHARED != 0;
        if written {
            let (path, _) = self.open_file(pid, args[4])?;
            if !path.ends_with(SHM) {
                self.mapped.insert(path.clone());
            }
        }
        None
    }

    /// What a call that succeeded did.
    pub(super) fn exit(&mut self, pid: Pid, pending: &Pending, result: i64) -> Vec<Op> {
        let Ok(result) = u64::try_from(result) else { return self.failed(pending, result) };
        let name = || pending.call.path.as_str().into();
        match &pending.about {
            About::Open { path, existed } => {
                let Some(key) = files::key_of(&self.world.join(path)) else { return Vec::new() };
                vec![match existed {
                    true => Op::Resize { file: self.ids.of(key), path: name(), len: 0 },
                    false => Op::Create { path: path.clone(), file: self.ids.fresh(key) },
                }]
            }
            About::Write { .. } | About::Copy { .. } => self.written(pid, pending, result as usize),
            About::Resize { key, len } => {
                let len = len.or_else(|| std::fs::metadata(self.world.join(&pending.call.path)).ok().map(|m| m.len()));
                let resize = |len| Op::Resize { file: self.ids.of(*key), path: name(), len };
                len.map(resize).into_iter().collect()
            }
            About::Link { path } => {
                let link = |file| Op::Link { path: path.clone(), file };
                self.file(path).map(link).into_iter().collect()
            }
            About::Symlink { path, target } => vec![Op::Symlink { path: path.clone(), target: target.clone() }],
            About::Rename { from, to } => self.renamed(from.as_deref(), to.as_deref()),
            About::Unlink { path, folder: false } => vec![Op::Unlink { path: path.clone() }],
            About::Unlink { path, folder: true } => vec![Op::Rmdir { path: path.clone() }],
            About::Mkdir { path } => vec![Op::Mkdir { path: path.clone() }],
            // The file's own sync takes along what was stored through a mapping of it.
            About::SyncFile { key } if self.mapped.contains(&pending.call.path) => {
                self.flushed(&pending.call.path, *key, true)
            }
            About::SyncFile { key } => vec![Op::SyncFile { file: self.ids.of(*key), path: name() }],
            About::Mapped { key, synced } => self.flushed(&pending.call.path, *key, *synced),
            About::SyncDir { path } => vec![Op::SyncDir { path: path.clone() }],
            About::SyncAll => vec![Op::SyncAll],
        }
    }

    /// A call that failed did nothing, but for a sync that lost something.
    fn failed(&mut self, pending: &Pending, result: i64) -> Vec<Op> {
        let lost = [libc::EIO, libc::ENOSPC, libc::EDQUOT].contains(&(-result as i32));
        let path = pending.call.path.clone();
        match &pending.about {
            About::SyncFile { key } | About::Mapped { key, .. } if lost => {
                vec![Op::SyncFailed { file: Some(self.ids.of(*key)), path }]
            }
            About::SyncDir { .. } if lost => vec![Op::SyncFailed { file: None, path }],
            _ => Vec::new(),
        }
    }

    /// What was stored through a mapping is followed where the mapping is synced: the file's whole content then.
    fn flushed(&mut self, path: &str, key: (u64, u64), synced: bool) -> Vec<Op> {
        self.mapped.remove(path);
        let file = self.ids.of(key);
        let mut ops = Vec::new();
        match look::files::read(&self.world.join(path)) {
            Ok(data) => ops.push(Op::Write { file, path: path.into(), offset: 0, data: data.into() }),
            Err(_) => {
                self.blind.extend([format!("not reached: blind here, the mapping of `{path}` could not be read")]);
            }
        }
        if synced {
            ops.push(Op::SyncFile { file, path: path.into() });
        }
        ops
    }

    fn written(&mut self, pid: Pid, pending: &Pending, len: usize) -> Vec<Op> {
        let path = pending.call.path.as_str();
        let (fd, key, at, data) = match &pending.about {
            About::Write { fd, key, at, buffer, list } => {
                let data = match list {
                    Some(count) => memory::list(pid, *buffer, *count, len),
                    None => memory::bytes(pid, *buffer, len),
                };
                (*fd, *key, *at, data.ok())
            }
            About::Copy { fd, key, at } => (*fd, *key, *at, None),
            _ => return Vec::new(),
        };
        if pending.call.class == Class::Say {
            let text = String::from_utf8_lossy(&data.unwrap_or_default()).into_owned();
            return vec![Op::Say { text }];
        }
        if len == 0 {
            return Vec::new();
        }
        let (position, flags) = files::position(pid, fd).unwrap_or_default();
        let offset = at.unwrap_or(position.saturating_sub(len as u64));
        let Some(data) = data.or_else(|| files::read_back(pid, fd, offset, len)) else {
            self.blind.insert(format!("not reached: blind here, what was written to `{path}` could not be read"));
            return Vec::new();
        };
        let file = self.ids.of(key);
        let mut ops = vec![Op::Write { file, path: path.into(), offset, data: data.into() }];
        if flags & SYNCED != 0 {
            ops.push(Op::SyncFile { file, path: path.into() });
        }
        ops
    }

    /// A file that comes from outside the folder brings its whole content along.
    fn renamed(&mut self, from: Option<&str>, to: Option<&str>) -> Vec<Op> {
        match (from, to) {
            (Some(from), Some(to)) => vec![Op::Rename { from: from.to_owned(), to: to.to_owned() }],
            (Some(from), None) => vec![Op::Unlink { path: from.to_owned() }],
            (None, Some(to)) => {
                let Some(file) = self.file(to) else { return Vec::new() };
                let data = look::files::read(&self.world.join(to)).unwrap_or_default();
                vec![
                    Op::Create { path: to.to_owned(), file },
                    Op::Write { file, path: to.into(), offset: 0, data: data.into() },
                ]
            }
            (None, None) => Vec::new(),
        }
    }

    /// Every name below the folder with the number of its file; folders are not told.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn names(&mut self) -> Result<BTreeMap<String, FileId>, LabError> {
        let mut names = BTreeMap::new();
        let mut folders = vec![self.world.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(LabError::io("read", &folder))? {
                let entry = entry.map_err(LabError::io("read", &folder))?;
                let (path, kind) = (entry.path(), entry.file_type().map_err(LabError::io("read", &folder))?);
                if kind.is_dir() {
                    folders.push(path);
                } else if !kind.is_file() && !kind.is_symlink() {
                    // A pipe, a socket or a device is not what a disk holds.
                } else if let (Some(name), Some(file)) = (self.inside(&path), self.ids.at(&path)) {
                    names.insert(name, file);
                }
            }
        }
        Ok(names)
    }
}

fn class_of(class: Class, path: &str) -> Class {
    if path.ends_with(SHM) { Class::Shm } else { class }
}

fn open_flags(pid: Pid, args: &[u64; 6], flags: Flags) -> Option<i32> {
    match flags {
        Flags::Arg(place) => Some(args[place] as i32),
        Flags::Behind(place) => memory::word(pid, args[place]).ok().map(|flags| flags as i32),
        Flags::Creat => Some(libc::O_CREAT | libc::O_TRUNC),
    }
}

/// The file that is mapped at this address.
fn mapped(pid: Pid, address: u64) -> Option<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(from, to)| {
            let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            (number(from)..number(to)).contains(&address)
        })
    })?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}
