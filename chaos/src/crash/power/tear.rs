//! Writes that arrived in part: a disk writes sectors, and a write of several may be cut between any two of them.

/// What a disk writes in one piece, in bytes.
pub const SECTOR: u64 = 512;

/// The sectors of a write that arrived, counted from its first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    from: u64,
    to: u64,
}

impl Part {
    /// All of it.
    pub const WHOLE: Self = Self { from: 0, to: u64::MAX };

    /// The bytes of a write of `len` bytes at `offset` that arrived, as a range of the write. Sectors lie where the
    /// file has them, not the write.
    #[must_use]
    pub fn bytes(self, offset: u64, len: usize) -> (usize, usize) {
        let first = offset / SECTOR;
        let place = |sector: u64| {
            let at = first.saturating_add(sector).saturating_mul(SECTOR);
            usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX).min(len)
        };
        (place(self.from), place(self.to))
    }
}

/// Every way to tear a write of `len` bytes at `offset` in two: only what comes before a boundary arrived, or only what
/// comes after it. At most `limit` ways, spread over the whole.
#[must_use]
pub fn tears(offset: u64, len: usize, limit: usize) -> Vec<Part> {
    if len == 0 {
        return Vec::new();
    }
    let sectors = (offset + len as u64 - 1) / SECTOR - offset / SECTOR + 1;
    let before = (1..sectors).map(|at| Part { from: 0, to: at });
    let after = (1..sectors).map(|at| Part { from: at, to: u64::MAX });
    let all: Vec<Part> = before.chain(after).collect();
    let step = all.len().div_ceil(limit.max(1)).max(1);
    all.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_within_a_sector_is_never_torn() {
        assert_eq!(tears(0, 512, 99), []);
        assert_eq!(tears(24, 24, 99), []);
        assert_eq!(tears(100, 0, 99), []);
    }

    #[test]
    fn boundaries_lie_where_the_file_has_them() {
        let ways: Vec<_> = tears(500, 600, 99).into_iter().map(|part| part.bytes(500, 600)).collect();
        assert_eq!(ways, [(0, 12), (0, 524), (12, 600), (524, 600)]);
        assert_eq!(Part::WHOLE.bytes(500, 600), (0, 600));
    }

    #[test]
    fn a_limit_spreads_the_ways() {
        assert_eq!(tears(0, 4096, 99).len(), 14);
        let few = tears(0, 4096, 4);
        assert!((2..=4).contains(&few.len()), "{few:?}");
    }
}
