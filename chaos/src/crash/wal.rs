//! What nobody reads of a database: the bytes of a write-ahead log behind its last commit, and the pages of the file
//! that the log has anew. Two folders that differ in nothing else are one state, since no later process can tell them
//! apart.
//!
//! The format is SQLite's own (its document "WAL-mode File Format").

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const HEADER: usize = 32;
const FRAME: usize = 24;

/// What a log begins with; the last bit says how its checksums count bytes.
const MAGIC: u32 = 0x377f_0682;

/// The part of a log that a reader reads.
struct Read {
    /// So many bytes, from the beginning.
    len: usize,
    page_size: usize,
    /// The pages of the database that stand in it.
    pages: BTreeSet<u32>,
}

/// The same for two databases that no reader can tell apart, each with its log.
#[must_use]
pub fn key(db: Option<&[u8]>, wal: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let read = wal.and_then(read);
    match (&read, wal) {
        (Some(read), Some(wal)) => wal[..read.len].hash(&mut hasher),
        // A log without a commit counts as none, but how it was begun may matter to who opens it.
        (_, wal) => wal.map(|wal| wal.len().min(HEADER + 1)).hash(&mut hasher),
    }
    let Some(read) = read else {
        db.hash(&mut hasher);
        return hasher.finish();
    };
    for (page, number) in db.unwrap_or_default().chunks(read.page_size).zip(1_u32..) {
        if !read.pages.contains(&number) {
            (number, page).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Nothing where the log has no commit.
fn read(wal: &[u8]) -> Option<Read> {
    let magic = word(wal, 0)?;
    let page_size = word(wal, 8)? as usize;
    if magic & !1 != MAGIC || !page_size.is_power_of_two() || !(512..=65536).contains(&page_size) {
        return None;
    }
    let big = magic & 1 == 1;
    let mut sum = checksum([0, 0], wal.get(..24)?, big);
    if sum != [word(wal, 24)?, word(wal, 28)?] {
        return None;
    }
    let mut found = Read { len: 0, page_size, pages: BTreeSet::new() };
    let mut open = BTreeSet::new();
    let mut at = HEADER;
    while let Some(frame) = wal.get(at..at + FRAME + page_size) {
        sum = checksum(checksum(sum, &frame[..8], big), &frame[FRAME..], big);
        if frame[8..16] != wal[16..24] || sum != [word(frame, 16)?, word(frame, 20)?] {
            break;
        }
        at += frame.len();
        open.insert(word(frame, 0)?);
        if word(frame, 4)? != 0 {
            found.len = at;
            found.pages.append(&mut open);
        }
    }
    (found.len > 0).then_some(found)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn checksum([mut one, mut two]: [u32; 2], bytes: &[u8], big: bool) -> [u32; 2] {
    let number = |at: usize| {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    for at in (0..bytes.len() / 8 * 8).step_by(8) {
        one = one.wrapping_add(number(at)).wrapping_add(two);
        two = two.wrapping_add(number(at + 4)).wrapping_add(one);
    }
    [one, two]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with these frames: page, whether it commits, what the page is full of.
    fn wal(frames: &[(u32, bool, u8)]) -> Vec<u8> {
        let mut wal = [MAGIC, 3_007_000, 512, 0, 7, 9].map(u32::to_be_bytes).concat();
        let mut sum = checksum([0, 0], &wal, false);
        wal.extend(sum.map(u32::to_be_bytes).concat());
        for &(page, commits, fill) in frames {
            let head = [page, u32::from(commits) * 4].map(u32::to_be_bytes).concat();
            let data = [fill; 512];
            sum = checksum(checksum(sum, &head, false), &data, false);
            wal.extend(head);
            wal.extend([7, 9, sum[0], sum[1]].map(u32::to_be_bytes).concat());
            wal.extend(data);
        }
        wal
    }

    #[test]
    fn what_stands_behind_the_last_commit_and_pages_that_the_log_has_are_not_read() {
        let committed = wal(&[(1, true, 1)]);
        let more = wal(&[(1, true, 1), (2, false, 2)]);
        let half = &more[..more.len() - 100];
        let db = [[5_u8; 512], [6; 512]].concat();
        let state = key(Some(&db), Some(&committed));
        assert_eq!(key(Some(&db), Some(&more)), state);
        assert_eq!(key(Some(&db), Some(half)), state);
        let mut checkpointed = db.clone();
        checkpointed[..512].fill(1);
        assert_eq!(key(Some(&checkpointed), Some(&committed)), state);
    }

    #[test]
    fn a_commit_more_another_page_and_a_log_that_is_gone_are_other_states() {
        let db = [[5_u8; 512], [6; 512]].concat();
        let committed = wal(&[(1, true, 1)]);
        let state = key(Some(&db), Some(&committed));
        let mut other = db.clone();
        other[600] = 0;
        let mut broken = committed.clone();
        broken[100] ^= 1;
        for (db, wal) in [
            (&db, Some(wal(&[(1, true, 1), (2, true, 2)]))),
            (&other, Some(committed)),
            (&db, Some(broken)),
            (&db, Some(Vec::new())),
            (&db, None),
        ] {
            assert_ne!(key(Some(db), wal.as_deref()), state);
        }
    }

    #[test]
    fn sqlite_reads_as_far_as_the_lab_says() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("state.db");
        let story = crate::look::reader::testing_database(&path);
        let wal = std::fs::read(dir.path().join("state.db-wal")).expect("a log");
        assert_eq!(read(&wal).expect("a commit").len, wal.len());
        drop(story);
    }
}
