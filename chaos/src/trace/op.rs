//! What a call did to the folder, as plain data.

use std::fmt;
use std::sync::Arc;

/// A file as such, whatever its names: two names of one file share it.
pub type FileId = u64;

/// One change, or one promise that changes are durable. Paths are relative to the folder; the folder itself is the
/// empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A new, empty file got this name.
    Create {
        /// The name.
        path: String,
        /// The file.
        file: FileId,
    },
    /// A new folder.
    Mkdir {
        /// The name.
        path: String,
    },
    /// A new symbolic link.
    Symlink {
        /// The name.
        path: String,
        /// Where it points.
        target: String,
    },
    /// One more name of a file.
    Link {
        /// The new name.
        path: String,
        /// The file.
        file: FileId,
    },
    /// A name became another one, replacing what had it.
    Rename {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// A name is gone.
    Unlink {
        /// The name.
        path: String,
    },
    /// A folder is gone.
    Rmdir {
        /// The name.
        path: String,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: FileId,
        /// A name that it had then, for people.
        path: Arc<str>,
        /// Where in the file.
        offset: u64,
        /// What.
        data: Arc<[u8]>,
    },
    /// A file became so long, by cutting it or by zeros.
    Resize {
        /// The file.
        file: FileId,
        /// A name that it had then, for people.
        path: Arc<str>,
        /// The new length in bytes.
        len: u64,
    },
    /// Content and length of a file are durable.
    SyncFile {
        /// The file.
        file: FileId,
        /// A name that it had then, for people.
        path: Arc<str>,
    },
    /// The names in a folder are durable.
    SyncDir {
        /// The folder.
        path: String,
    },
    /// Everything is durable.
    SyncAll,
    /// A sync failed: what it was for may be lost, and no later sync brings it back, because the kernel may call the
    /// pages clean now.
    SyncFailed {
        /// The file; nothing for a folder.
        file: Option<FileId>,
        /// The name, for people; of a folder, the folder.
        path: String,
    },
    /// The agent printed this.
    Say {
        /// The text.
        text: String,
    },
}

impl Op {
    /// Whether it promises durability.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        matches!(self, Self::SyncFile { .. } | Self::SyncDir { .. } | Self::SyncAll)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { path, .. } => write!(f, "create {path}"),
            Self::Mkdir { path } => write!(f, "mkdir {path}"),
            Self::Symlink { path, target } => write!(f, "symlink {path} -> {target}"),
            Self::Link { path, .. } => write!(f, "link {path}"),
            Self::Rename { from, to } => write!(f, "rename {from} -> {to}"),
            Self::Unlink { path } => write!(f, "unlink {path}"),
            Self::Rmdir { path } => write!(f, "rmdir {path}"),
            Self::Write { path, offset, data, .. } => write!(f, "write {path} [{offset}, +{}]", data.len()),
            Self::Resize { path, len, .. } => write!(f, "resize {path} to {len}"),
            Self::SyncFile { path, .. } => write!(f, "sync {path}"),
            Self::SyncDir { path } => write!(f, "sync the folder {}", if path.is_empty() { "." } else { path }),
            Self::SyncAll => f.write_str("sync everything"),
            Self::SyncFailed { path, .. } => write!(f, "failed to sync {path}"),
            Self::Say { text } => write!(f, "print {text:?}"),
        }
    }
}
