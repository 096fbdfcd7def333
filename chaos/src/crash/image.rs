//! A folder's whole content as data. Content that two images share is kept once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::wal;
use crate::contract::{DB_FILE, WAL};
use crate::error::LabError;
use crate::look::files;

/// Files whose content is rebuilt by whoever opens the database first.
const REBUILT: &str = "-shm";

/// Everything below a folder, by path relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Files and their bytes.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// When files were last written, where that is known: it tells whether a result was made again. Two folders that
    /// differ in it only are the same state.
    pub times: BTreeMap<String, SystemTime>,
    /// Symbolic links and where they point.
    pub links: BTreeMap<String, String>,
    /// Folders.
    pub folders: BTreeSet<String>,
}

impl Image {
    /// Reads a folder; pipes, sockets and devices do not count. Content that is still as in `before` is not kept
    /// twice.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn read(folder: &Path, before: Option<&Self>) -> Result<Self, LabError> {
        let mut image = Self::default();
        image.read_below(folder, "", before)?;
        Ok(image)
    }

    fn read_below(&mut self, root: &Path, below: &str, before: Option<&Self>) -> Result<(), LabError> {
        let folder = root.join(below);
        for entry in std::fs::read_dir(&folder).map_err(LabError::io("read", &folder))? {
            let entry = entry.map_err(LabError::io("read", &folder))?;
            let path = entry.path();
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(LabError::io("read", &path))?;
            if kind.is_dir() {
                self.read_below(root, &format!("{name}/"), before)?;
                self.folders.insert(name);
            } else if kind.is_symlink() {
                let to = std::fs::read_link(&path).map_err(LabError::io("read", &path))?;
                self.links.insert(name, to.to_string_lossy().into_owned());
            } else if kind.is_file() {
                let written = entry.metadata().and_then(|meta| meta.modified());
                self.times.insert(name.clone(), written.map_err(LabError::io("look at", &path))?);
                let bytes = files::read(&path).map_err(LabError::io("read", &path))?;
                let same = before.and_then(|image| image.files.get(&name)).filter(|old| old[..] == bytes[..]);
                let bytes = same.map_or_else(|| bytes.into(), Arc::clone);
                self.files.insert(name, bytes);
            }
        }
        Ok(())
    }

    /// Writes everything into a folder that has none of it.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), LabError> {
        for name in &self.folders {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(LabError::io("create", &path))?;
        }
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            let mut file = File::create(&path).map_err(LabError::io("create", &path))?;
            let written = file.write_all(bytes);
            let dated = self.times.get(name).map_or(Ok(()), |time| file.set_modified(*time));
            written.and(dated).map_err(LabError::io("write", &path))?;
        }
        for (name, to) in &self.links {
            let path = folder.join(name);
            std::os::unix::fs::symlink(to, &path).map_err(LabError::io("create", &path))?;
        }
        Ok(())
    }

    /// The same for two images that no process can tell apart: what nobody reads of a write-ahead log makes no
    /// difference.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let of_database = |suffix| self.files.get(&format!("{DB_FILE}{suffix}")).map(AsRef::as_ref);
        wal::key(of_database(""), of_database(WAL)).hash(&mut hasher);
        let is_read = |name: &str| name == DB_FILE || name.strip_prefix(DB_FILE) == Some(WAL);
        for (name, bytes) in self.files.iter().filter(|(name, _)| !name.ends_with(REBUILT) && !is_read(name)) {
            (name, bytes).hash(&mut hasher);
        }
        (&self.links, &self.folders).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_comes_back_from_its_folder() {
        let (from, to) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        std::fs::create_dir_all(from.path().join("a/empty")).expect("dir");
        std::fs::write(from.path().join("a/f"), "x").expect("write");
        std::os::unix::fs::symlink("a/f", from.path().join("l")).expect("link");
        let image = Image::read(from.path(), None).expect("read");
        image.write(to.path()).expect("write");
        assert_eq!(Image::read(to.path(), Some(&image)).expect("read"), image);
    }

    #[test]
    fn a_name_a_byte_and_a_folder_make_another_state_and_shared_memory_does_not() {
        let image = |files: &[(&str, &str)], folders: &[&str]| Image {
            files: files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into())).collect(),
            folders: folders.iter().map(|name| (*name).to_owned()).collect(),
            ..Image::default()
        };
        let key = image(&[("f", "x")], &[]).key();
        for other in [image(&[("f", "y")], &[]), image(&[("g", "x")], &[]), image(&[("f", "x")], &["d"])] {
            assert_ne!(other.key(), key);
        }
        assert_eq!(image(&[("f", "x"), ("s.db-shm", "z")], &[]).key(), key);
    }
}
