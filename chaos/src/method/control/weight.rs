//! Negative controls: the agent is made unsafe on purpose, and the lab must see the doubled effect at exactly the
//! points between effect and commit. A control that stays green shows that kills miss their window or that the lab is
//! blind.

use crate::agent::target::Target;
use crate::contract::PUBLISHER;
use crate::look::snapshot::Snapshot;

/// A variable that makes an agent unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// The contract's: effects are deliberately not idempotent.
    Effects,
    /// Every attempt gets a key of its own, so that whatever relies on its key happens twice. Needs nothing of the
    /// tool.
    Keys,
}

impl Control {
    /// The variable's name.
    #[must_use]
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Effects => "AGENT_UNSAFE_EFFECTS",
            Self::Keys => "AGENT_UNSAFE_KEYS",
        }
    }

    /// A short name for scenario ids.
    #[must_use]
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Effects => "effects",
            Self::Keys => "keys",
        }
    }

    /// The controls that fit a tool with an effect. The contract's is understood
    /// by the contract's tool; the generic one by an agent with an inventory, for
    /// whatever it declares to have an effect. Of another tool nobody has said
    /// anything, and nothing is asked of it.
    #[must_use]
    pub(super) fn of(target: &Target, tool: &str) -> Vec<Self> {
        let mut fitting = Vec::new();
        if tool == PUBLISHER {
            fitting.push(Self::Effects);
        }
        if target.inventory.is_some() {
            fitting.push(Self::Keys);
        }
        fitting
    }
}

/// How much effect is in the world. Names do not count: an attempt with a key of its own writes the same under another
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    /// Files that are not temporary ones.
    pub(super) files: usize,
    /// Bytes in them.
    pub(super) bytes: usize,
}

impl Weight {
    /// Weighs the folder.
    #[must_use]
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let results = snapshot.world.iter().filter(|(name, _)| !crate::judge::looks_temporary(name));
        let sizes: Vec<usize> = results.map(|(_, content)| content.len()).collect();
        Self { files: sizes.len(), bytes: sizes.iter().sum() }
    }

    /// Whether there is more than in the other.
    #[must_use]
    pub(super) fn exceeds(self, other: Self) -> bool {
        self.files > other.files || self.bytes > other.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_second_file_and_a_longer_one_weigh_more_and_a_temporary_one_nothing() {
        let mut snapshot = Snapshot::default();
        snapshot.world.insert("artifacts/t1-2.md".to_owned(), b"text".to_vec());
        let one = Weight::of(&snapshot);
        snapshot.world.insert("artifacts/.t1-2.9.tmp".to_owned(), b"text".to_vec());
        assert_eq!(Weight::of(&snapshot), one);
        let mut second = snapshot.clone();
        second.world.insert("artifacts/t1-2-attempt2.md".to_owned(), Vec::new());
        assert!(Weight::of(&second).exceeds(one));
        snapshot.world.insert("artifacts/t1-2.md".to_owned(), b"texttext".to_vec());
        assert!(Weight::of(&snapshot).exceeds(one));
        assert!(!one.exceeds(one));
    }

    #[test]
    fn an_agent_without_inventory_is_given_the_contracts_control_only() {
        let target = Target::new("agent", Path::new("."), Vec::new()).expect("words");
        assert_eq!(Control::of(&target, PUBLISHER), [Control::Effects]);
        assert_eq!(Control::of(&target, "launch_rocket"), []);
    }
}
