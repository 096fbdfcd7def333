//! A disk, what changes it, and which changes a power cut cannot take back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::tear::Part;
use crate::crash::Image;
use crate::trace::{FileId, Op};

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// A file; it may have several names.
    File(FileId),
    /// A symbolic link and where it points.
    Link(String),
}

/// One change. Each is done by the file system as a whole or not at all, but for [`Effect::Data`], which may be torn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A name stands for this node from now on.
    Name {
        /// The name.
        path: String,
        /// What it stands for.
        node: Node,
    },
    /// A name is gone.
    Remove {
        /// The name.
        path: String,
    },
    /// A folder is there.
    Folder {
        /// Its name.
        path: String,
    },
    /// A folder is gone.
    RemoveFolder {
        /// Its name.
        path: String,
    },
    /// One name became another one, in one piece.
    Move {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
        /// What it stands for.
        node: Node,
    },
    /// Bytes of a file.
    Data {
        /// The file.
        file: FileId,
        /// Where.
        offset: u64,
        /// What.
        data: Arc<[u8]>,
    },
    /// The length of a file.
    Size {
        /// The file.
        file: FileId,
        /// In bytes.
        len: u64,
    },
}

/// What a sync makes safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Content and length of a file.
    File(FileId),
    /// The names in a folder.
    Folder(String),
    /// Everything.
    All,
}

/// Whose promises count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// What POSIX promises and nothing else. The gate.
    Strict,
    /// Roughly a journaling file system like ext4: any sync commits the journal, and with it every name so far.
    /// Information only.
    Journaled,
}

/// The folder that a name is in; the empty path is the top.
#[must_use]
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Effect {
    /// The file whose content it changes.
    #[must_use]
    pub fn file(&self) -> Option<FileId> {
        match self {
            Self::Data { file, .. } | Self::Size { file, .. } => Some(*file),
            _ => None,
        }
    }

    /// Whether a sync makes it safe. A move between two folders needs both, so no single one does.
    #[must_use]
    pub fn covered_by(&self, scope: &Scope, rules: Rules) -> bool {
        let Scope::Folder(folder) = scope else {
            let names_too = rules == Rules::Journaled && self.file().is_none();
            return *scope == Scope::All || names_too || self.file().is_some_and(|file| *scope == Scope::File(file));
        };
        match self {
            Self::Data { .. } | Self::Size { .. } => false,
            _ if rules == Rules::Journaled => true,
            Self::Move { from, to, .. } => folder_of(from) == folder && folder_of(to) == folder,
            Self::Name { path, .. } | Self::Remove { path } | Self::Folder { path } | Self::RemoveFolder { path } => {
                folder_of(path) == folder
            }
        }
    }
}

/// Files, their names and their content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// What each name stands for.
    pub names: BTreeMap<String, Node>,
    /// The folders.
    pub folders: BTreeSet<String>,
    /// The content of files, with or without a name.
    pub contents: BTreeMap<FileId, Arc<[u8]>>,
}

impl Disk {
    /// A folder as it is, with the numbers of its files.
    #[must_use]
    pub fn of(image: &Image, files: &BTreeMap<String, FileId>) -> Self {
        let mut disk = Self { folders: image.folders.clone(), ..Self::default() };
        for (name, bytes) in &image.files {
            if let Some(file) = files.get(name) {
                disk.names.insert(name.clone(), Node::File(*file));
                disk.contents.insert(*file, Arc::clone(bytes));
            }
        }
        let links = image.links.iter().map(|(name, to)| (name.clone(), Node::Link(to.clone())));
        disk.names.extend(links);
        disk
    }

    /// What a call changed, as effects on this disk.
    #[must_use]
    pub fn effects(&self, op: &Op) -> Option<Effect> {
        Some(match op {
            Op::Create { path, file } | Op::Link { path, file } => {
                Effect::Name { path: path.clone(), node: Node::File(*file) }
            }
            Op::Symlink { path, target } => Effect::Name { path: path.clone(), node: Node::Link(target.clone()) },
            Op::Mkdir { path } => Effect::Folder { path: path.clone() },
            Op::Unlink { path } => Effect::Remove { path: path.clone() },
            Op::Rmdir { path } => Effect::RemoveFolder { path: path.clone() },
            Op::Rename { from, to } => {
                let node = self.names.get(from)?.clone();
                Effect::Move { from: from.clone(), to: to.clone(), node }
            }
            Op::Write { file, offset, data, .. } => {
                Effect::Data { file: *file, offset: *offset, data: Arc::clone(data) }
            }
            Op::Resize { file, len, .. } => Effect::Size { file: *file, len: *len },
            Op::SyncFile { .. } | Op::SyncDir { .. } | Op::SyncAll | Op::SyncFailed { .. } | Op::Say { .. } => {
                return None;
            }
        })
    }

    /// Makes a change as a whole.
    pub fn apply(&mut self, effect: &Effect) {
        if let Some(file) = effect.file() {
            let mut content = self.contents.get(&file).map_or_else(Vec::new, |content| content.to_vec());
            change(&mut content, effect, Part::WHOLE);
            self.contents.insert(file, content.into());
        } else {
            self.rename(effect);
        }
    }

    /// Makes a change of names.
    pub(super) fn rename(&mut self, effect: &Effect) {
        match effect {
            Effect::Name { path, node } => {
                self.names.insert(path.clone(), node.clone());
            }
            Effect::Remove { path } => {
                self.names.remove(path);
            }
            Effect::Folder { path } => {
                self.folders.insert(path.clone());
            }
            Effect::RemoveFolder { path } => {
                self.folders.remove(path);
            }
            Effect::Move { from, to, node } => {
                if self.names.get(from) == Some(node) {
                    self.names.remove(from);
                }
                self.names.insert(to.clone(), node.clone());
            }
            Effect::Data { .. } | Effect::Size { .. } => {}
        }
    }

    /// The folder that this disk shows. A name whose folder is missing is lost with it.
    #[must_use]
    pub fn image(&self) -> Image {
        let mut image = Image::default();
        for folder in &self.folders {
            // Parents sort before their children.
            if self.is_there(folder_of(folder), &image) {
                image.folders.insert(folder.clone());
            }
        }
        // One time for all: in a disk that was made up, nothing was written again.
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        image.times = self.names.keys().map(|name| (name.clone(), time)).collect();
        for (name, node) in &self.names {
            if !self.is_there(folder_of(name), &image) {
                continue;
            }
            match node {
                Node::File(file) => {
                    let content = self.contents.get(file).map_or_else(|| Arc::from([]), Arc::clone);
                    image.files.insert(name.clone(), content);
                }
                Node::Link(to) => {
                    image.links.insert(name.clone(), to.clone());
                }
            }
        }
        image
    }

    fn is_there(&self, folder: &str, image: &Image) -> bool {
        folder.is_empty() || image.folders.contains(folder)
    }
}

/// Changes the content of a file; of a write only the sectors of `part` arrive.
pub(super) fn change(content: &mut Vec<u8>, effect: &Effect, part: Part) {
    match effect {
        Effect::Size { len, .. } => content.resize(*len as usize, 0),
        Effect::Data { offset, data, .. } => {
            let (from, to) = part.bytes(*offset, data.len());
            if from == to {
                return;
            }
            let begin = *offset as usize + from;
            let end = *offset as usize + to;
            if content.len() < end {
                content.resize(end, 0);
            }
            content[begin..end].copy_from_slice(&data[from..to]);
        }
        _ => {}
    }
}
