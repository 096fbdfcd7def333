//! A file that appears whole or not at all, once, and whose name survives a power cut.
//!
//! The order is what counts: the content is synced before it gets its name, and the folder is synced before the caller
//! hears of success, because a name is durable only when its folder is. A kill between any two calls leaves either no
//! file of that name or the complete one, and at most a temporary file, which [`crate::sweep_temporaries`] removes.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use store::{CrashScope, CrashSite};

use crate::durable::{PublishError, failed, make_folder, sync_folder, unsynced};
use crate::regular::open_regular;
use crate::temporary::Temporary;

/// The crash points between the stages of [`publish`], named by the caller.
#[derive(Clone, Copy, Debug)]
pub struct PublishSites {
    /// The temporary file is written and synced; the name is not there.
    pub written: CrashSite,
    /// The name is there; the temporary name too, and the folder is not synced.
    pub linked: CrashSite,
    /// The name was there before, with the same content; the folder is not synced.
    pub deduplicated: CrashSite,
    /// All is synced; the caller does not know yet.
    pub published: CrashSite,
}

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// This call made it.
    New,
    /// It was there already, byte for byte the same.
    AlreadyThere,
}

/// A file to be published.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// The folder; it is made where it is missing.
    pub folder: &'a Path,
    /// The file's name in it.
    pub name: &'a str,
    /// Names the temporary file, `.<key>.<pid>.tmp` in the same folder.
    pub key: &'a str,
    /// What the file holds.
    pub content: &'a [u8],
    /// Other contents that count as published where the file is there already: what earlier programs wrote.
    pub older: &'a [&'a [u8]],
}

/// Puts a file under its name: whole, once, and so that the name survives a power cut.
///
/// # Errors
/// See [`PublishError`]. Nothing half-made is left, whatever fails.
pub fn publish(file: &Publication<'_>, sites: PublishSites, crash: CrashScope<'_>) -> Result<Published, PublishError> {
    let &Publication { folder, name, key, content, older } = file;
    make_folder(folder)?;
    let target = folder.join(name);
    for _ in 0..SWEPT {
        let temporary = Temporary::write(folder, key, content)?;
        crash.point(sites.written);
        let published = match temporary.name(&target) {
            Ok(true) => {
                crash.point(sites.linked);
                Published::New
            }
            Ok(false) => continue,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                compare(&target, content, older)?;
                crash.point(sites.deduplicated);
                Published::AlreadyThere
            }
            Err(error) => return Err(failed("name", &target)(error)),
        };
        temporary.remove()?;
        sync_folder(folder)?;
        crash.point(sites.published);
        return Ok(published);
    }
    Err(failed("name", &target)(io::Error::other("somebody else removes the temporary file each time")))
}

/// How often a temporary file that somebody else has swept is written anew.
const SWEPT: usize = 4;

/// Whether what stands under the name is what would be published; if so it is synced, since who wrote it is unknown.
fn compare(target: &Path, content: &[u8], older: &[&[u8]]) -> Result<(), PublishError> {
    let occupied = |why: String| PublishError::Occupied { path: target.to_owned(), why };
    let meta = fs::symlink_metadata(target).map_err(failed("look at", target))?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "a link or special file" };
        return Err(occupied(format!("it is {what}")));
    }
    let file = open_regular(target).map_err(failed("read", target))?;
    let mut found = Vec::with_capacity(content.len());
    (&file).take(content.len() as u64 + 1).read_to_end(&mut found).map_err(failed("read", target))?;
    if found != content && !older.contains(&found.as_slice()) {
        let there = fs::read(target).map_err(failed("read", target))?;
        return Err(occupied(format!("it has SHA-256 {}, this step's is {}", digest(&there), digest(content))));
    }
    file.sync_all().map_err(unsynced(target))
}

/// The SHA-256 in hex, as `sha256sum` prints it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
