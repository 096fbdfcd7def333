//! Which of the changes that are not safe a power cut keeps: all subsets while they are few, a spread of them beyond.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// How much of everything is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Up to so many pending changes all subsets are taken.
    pub all_up_to: usize,
    /// So many seeded samples are taken beyond.
    pub samples: usize,
    /// So many ways to tear each write.
    pub tears: usize,
    /// No more disks than this from one trail, drawn by the seed.
    pub most: usize,
}

/// What is kept of the pending changes, in their order.
pub type Kept = Vec<bool>;

/// The subsets of `pending` changes to look at, each once; first those that keep everything and nothing.
#[must_use]
pub fn subsets(pending: usize, limits: &Limits, seed: u64) -> Vec<Kept> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut add = |kept: Kept| {
        if seen.insert(kept.clone()) {
            all.push(kept);
        }
    };
    add(vec![true; pending]);
    add(vec![false; pending]);
    if pending <= limits.all_up_to.min(20) {
        for bits in 0..1_u32 << pending {
            add((0..pending).map(|i| bits >> i & 1 == 1).collect());
        }
        return all;
    }
    for i in 0..pending {
        add((0..pending).map(|j| j < i).collect());
        add((0..pending).map(|j| j != i).collect());
        add((0..pending).map(|j| j == i).collect());
    }
    let mut luck = StdRng::seed_from_u64(seed);
    for _ in 0..limits.samples {
        let share = luck.random::<f64>();
        add((0..pending).map(|_| luck.random_bool(share)).collect());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { all_up_to: 4, samples: 50, tears: 99, most: usize::MAX };

    #[test]
    fn few_pending_changes_give_every_subset_once() {
        for pending in 0..=4 {
            assert_eq!(subsets(pending, &LIMITS, 1).len(), 1 << pending);
        }
    }

    #[test]
    fn many_give_prefixes_all_but_one_one_alone_and_samples_of_the_seed() {
        let kept = subsets(9, &LIMITS, 1);
        for i in 0..9 {
            assert!(kept.contains(&(0..9).map(|j| j < i).collect()));
            assert!(kept.contains(&(0..9).map(|j| j != i).collect()));
            assert!(kept.contains(&(0..9).map(|j| j == i).collect()));
        }
        assert!(kept.len() > 3 * 9);
        assert_eq!(kept, subsets(9, &LIMITS, 1));
        assert_ne!(kept, subsets(9, &LIMITS, 2));
    }
}
