//! Which file a descriptor or a path of a stopped thread means, by way of `/proc`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nix::libc;
use nix::unistd::Pid;

use super::op::FileId;

/// What `/proc` says of a descriptor.
pub(super) struct Descriptor {
    /// The file's path; of a file without a name, the last one that it had.
    pub(super) path: PathBuf,
    /// Whether it is a folder.
    pub(super) is_dir: bool,
    /// Device and number, which name the file as such.
    pub(super) key: (u64, u64),
}

/// The link of a descriptor below `/proc`.
pub(super) fn link(pid: Pid, fd: u64) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/fd/{}", fd as i32))
}

/// Looks a descriptor up; nothing where there is no such descriptor.
pub(super) fn descriptor(pid: Pid, fd: u64) -> Option<Descriptor> {
    let link = link(pid, fd);
    let path = std::fs::read_link(&link).ok()?;
    if !path.is_absolute() {
        return None; // A pipe, a socket, an event.
    }
    let meta = std::fs::metadata(&link).ok()?;
    let text = path.to_string_lossy();
    let path = text.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path);
    Some(Descriptor { path, is_dir: meta.is_dir(), key: (meta.dev(), meta.ino()) })
}

/// Position and open flags of a descriptor.
pub(super) fn position(pid: Pid, fd: u64) -> Option<(u64, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", fd as i32)).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let position = field("pos:")?.parse().ok()?;
    let flags = u32::from_str_radix(field("flags:")?, 8).ok()?;
    Some((position, flags))
}

/// What a path argument means: links in the folders above it are followed, the last component is not, because calls
/// that make or remove a name do not either.
pub(super) fn resolve(pid: Pid, dir: Option<u64>, text: &str) -> Option<PathBuf> {
    let given = Path::new(text);
    let whole = if given.is_absolute() {
        given.to_owned()
    } else {
        let base = match dir {
            Some(fd) if fd as i32 != libc::AT_FDCWD => std::fs::read_link(link(pid, fd)).ok()?,
            _ => std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        };
        base.join(given)
    };
    match (whole.parent(), whole.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => Some(std::fs::canonicalize(parent).ok()?.join(name)),
        _ => std::fs::canonicalize(&whole).ok(),
    }
}

/// What names the file of this path as such, links not followed.
pub(super) fn key_of(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Bytes of an open file, for calls whose data never passed the agent's memory.
pub(super) fn read_back(pid: Pid, fd: u64, offset: u64, len: usize) -> Option<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let mut data = vec![0; len];
    std::fs::File::open(link(pid, fd)).ok()?.read_exact_at(&mut data, offset).ok()?;
    Some(data)
}

/// Numbers for files: the kernel's own are given again once a file is gone.
#[derive(Debug, Default)]
pub(super) struct Ids {
    known: BTreeMap<(u64, u64), FileId>,
    last: FileId,
}

impl Ids {
    /// The number of a file.
    pub(super) fn of(&mut self, key: (u64, u64)) -> FileId {
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        self.fresh(key)
    }

    /// A new number, for a file that has just been made.
    pub(super) fn fresh(&mut self, key: (u64, u64)) -> FileId {
        self.last += 1;
        self.known.insert(key, self.last);
        self.last
    }

    /// The number of the file of this name, links not followed.
    pub(super) fn at(&mut self, path: &Path) -> Option<FileId> {
        Some(self.of(key_of(path)?))
    }
}
