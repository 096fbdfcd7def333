//! Whether the paths still lead to the files that were opened.
//!
//! SQLite goes on writing into files that were moved or removed, and a commit into them would be told as durable while
//! nobody will ever find it. So a commit looks before it promises anything.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::beside::beside;
use super::error::io_failed;
use crate::error::{ErrorKind, StoreError};

/// Database and WAL, as they were when they were opened.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    database: (u64, u64),
    wal: (u64, u64),
    /// The length of the WAL when it was looked at last.
    length: u64,
}

/// What became of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    Same,
    /// The path of the database leads elsewhere, nowhere, or to a file that was emptied.
    DatabaseGone,
    /// The WAL has no name any more.
    WalRemoved,
    /// Under the name of the WAL lies another.
    WalReplaced,
    /// Frames that were committed are no longer in the WAL.
    WalCut,
}

impl Opened {
    /// Once there is a WAL, which there is after the first transaction.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let look = |path: &Path| fs::metadata(path).map_err(io_failed("look at", path));
        let wal = look(&beside(path, "-wal"))?;
        Ok(Self { database: id(&look(path)?), wal: id(&wal), length: wal.len() })
    }

    /// What became of the files.
    pub(super) fn files(&self, path: &Path) -> Files {
        let mut now = *self;
        now.look(path)
    }

    fn look(&mut self, path: &Path) -> Files {
        match fs::metadata(path) {
            Ok(meta) if id(&meta) == self.database && meta.len() > 0 => self.look_at_wal(path),
            _ => Files::DatabaseGone,
        }
    }

    fn look_at_wal(&mut self, path: &Path) -> Files {
        let meta = match fs::metadata(beside(path, "-wal")) {
            Ok(meta) if id(&meta) == self.wal => meta,
            Ok(_) => return Files::WalReplaced,
            Err(_) => return Files::WalRemoved,
        };
        // A WAL that was cut is shorter, or has a hole where the next frames were written behind what is missing.
        let suspicious = meta.len() < self.length || meta.blocks() * 512 < meta.len();
        self.length = meta.len();
        if suspicious && lacks_frames(path, meta.len()).unwrap_or(false) { Files::WalCut } else { Files::Same }
    }

    /// Refuses files that are no longer those that were opened. To be called within a write transaction.
    pub(super) fn check(&mut self, path: &Path) -> Result<(), StoreError> {
        accept(self.look(path), path)
    }

    /// Refuses a WAL that is no longer the one that was opened. To be called within a write transaction.
    pub(super) fn check_wal(&mut self, path: &Path) -> Result<(), StoreError> {
        accept(self.look_at_wal(path), path)
    }
}

/// Whether the WAL has less than its index says. Other programs may cut it where all of it is in the database; then the
/// index says so too. For the layout see "WAL-Index Format" in SQLite's documentation.
fn lacks_frames(path: &Path, length: u64) -> std::io::Result<bool> {
    const HEADER: u64 = 32;
    const FRAME_HEADER: u64 = 24;
    let mut index = [0; 20];
    File::open(beside(path, "-shm"))?.read_exact_at(&mut index, 0)?;
    let page = match u16::from_ne_bytes([index[14], index[15]]) {
        1 => 1 << 16,
        size => u64::from(size),
    };
    let frames = u64::from(u32::from_ne_bytes([index[16], index[17], index[18], index[19]]));
    if frames == 0 {
        return Ok(false);
    }
    let mut magic = [0; 4];
    let begins = File::open(beside(path, "-wal"))?.read_exact_at(&mut magic, 0).is_ok() && magic != [0; 4];
    Ok(!begins || length < HEADER + frames * (FRAME_HEADER + page))
}

fn accept(files: Files, path: &Path) -> Result<(), StoreError> {
    let (database, wal) = (path.display(), beside(path, "-wal"));
    let wal = wal.display();
    let why = match files {
        Files::Same => return Ok(()),
        Files::DatabaseGone => format!(
            "{database} is no longer the file that this run opened: it was moved, removed or replaced; the run stops. What \
             it had committed last is in {wal}, which needs that file beside it under that name"
        ),
        Files::WalRemoved => format!("{wal} was removed under this run, which stops"),
        Files::WalCut => format!(
            "{wal} was cut under this run, which stops: what was committed since its pages last went into {database} is \
             lost; `agent run` does it again"
        ),
        Files::WalReplaced => format!(
            "{wal} is no longer the file that this run opened: it was moved, removed or replaced; the run stops. What it \
             had committed last is in the file that was moved"
        ),
    };
    Err(StoreError::new(ErrorKind::Conflict, why))
}

fn id(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}
