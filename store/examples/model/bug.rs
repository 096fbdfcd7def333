//! What can be planted. Each bug must be found, or the model is blind.

use crate::claims;
use crate::config::Config;

/// A mistake that somebody could make in the machine, the loop or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bug {
    /// A run begins without setting back what a dead run left running.
    NoRecovery,
    /// A run sets back what it found running before it has the lock.
    RecoveryBeforeLock,
    /// Recovery is committed in a transaction of its own, before `run_started`.
    RecoveryApart,
    /// A run sets back what it found running and does not say so.
    SilentRecovery,
    /// A run announces the recovery of what was not running.
    IdleRecovery,
    /// A run begins the task anew.
    Restarts,
    /// The state that was looked at before the lock is worked on under it.
    LoadBeforeLock,
    /// Nobody looks at the lock.
    NoLock,
    /// A step is committed as done before its effect.
    DoneBeforeEffect,
    /// A run sends the effects of finished steps again.
    RerunDone,
    /// Every attempt has a key of its own.
    KeyPerAttempt,
    /// The effect is sent before the attempt is committed.
    EffectBeforeStart,
    /// Only an attempt that ends in an error counts; one that crashes does not.
    ErrorsOnlyCounted,
    /// Every run counts an attempt when it begins.
    BeginCounted,
    /// The task fails at the first error.
    FailEarly,
    /// One attempt more than the limit is allowed.
    LimitOneMore,
    /// One attempt less than the limit is allowed.
    LimitOneLess,
    /// The task completes while steps are left.
    CompleteEarly,
    /// A run completes what is done already.
    DoneTwice,
    /// A retry leaves one attempt charged.
    RetryShort,
    /// Whoever saw a failed task sets it back, whatever it has become.
    BlindRetry,
    /// A commit under an old token goes through.
    UnfencedCommit,
    /// The row is committed first, its event in a transaction after it.
    JournalApart,
    /// An attempt that was given up in order counts against the limit.
    ReleasedCounted,
    /// The completion does its effect before anything says that it was begun.
    CompletionUnrecorded,
    /// What nobody can find out about is recovered like what has a key.
    OnceAsKeyed,
    /// A receiver that could be asked is not.
    SendsUnasked,
    /// A receiver that does not know is taken at the word that it has not happened.
    UnknownForAbsent,
    /// An attempt is given up in order although its effect may have happened.
    ReleasedLate,
    /// A lost reply is taken for an attempt that has done nothing.
    LostIsNothing,
    /// "It is there already" is taken for a failure though it may be our own.
    ExistsIsFailure,
    /// Another input is sent under the digest of the first.
    DigestNotCompared,
    /// A later plan's class replaces the first.
    ClassReplaced,
    /// The time of the next attempt is known to the process alone.
    DueInMemory,
    /// A run begins though a person has to speak first.
    AnnouncesInVain,
    /// A cancelled task leaves the attempt of a dead run open.
    CancelLeavesOpen,
    /// A second answer is taken.
    AnsweredTwice,
    /// An answer is used for whatever the step does by then.
    AnswerBoundToNothing,
}

impl Bug {
    /// All of them.
    pub(crate) const ALL: [Self; 38] = [
        Self::NoRecovery,
        Self::RecoveryBeforeLock,
        Self::RecoveryApart,
        Self::SilentRecovery,
        Self::IdleRecovery,
        Self::Restarts,
        Self::LoadBeforeLock,
        Self::NoLock,
        Self::DoneBeforeEffect,
        Self::RerunDone,
        Self::KeyPerAttempt,
        Self::EffectBeforeStart,
        Self::ErrorsOnlyCounted,
        Self::BeginCounted,
        Self::FailEarly,
        Self::LimitOneMore,
        Self::LimitOneLess,
        Self::CompleteEarly,
        Self::DoneTwice,
        Self::RetryShort,
        Self::BlindRetry,
        Self::UnfencedCommit,
        Self::JournalApart,
        Self::ReleasedCounted,
        Self::CompletionUnrecorded,
        Self::OnceAsKeyed,
        Self::SendsUnasked,
        Self::UnknownForAbsent,
        Self::ReleasedLate,
        Self::LostIsNothing,
        Self::ExistsIsFailure,
        Self::DigestNotCompared,
        Self::ClassReplaced,
        Self::DueInMemory,
        Self::AnnouncesInVain,
        Self::CancelLeavesOpen,
        Self::AnsweredTwice,
        Self::AnswerBoundToNothing,
    ];

    /// The world in which it does harm.
    pub(crate) fn world(self) -> Config {
        let world = match self {
            Self::OnceAsKeyed
            | Self::ReleasedLate
            | Self::LostIsNothing
            | Self::ClassReplaced
            | Self::AnnouncesInVain
            | Self::CancelLeavesOpen => Config::ONCE,
            Self::SendsUnasked | Self::UnknownForAbsent => Config::VERIFIABLE,
            Self::ExistsIsFailure | Self::DigestNotCompared | Self::DueInMemory => Config::KEYED,
            Self::AnsweredTwice | Self::AnswerBoundToNothing => Config::ASKS,
            _ => Config::FULL,
        };
        world.with(self)
    }

    /// Its name on the command line: `NoRecovery` is `no-recovery`.
    pub(crate) fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// The bug of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }

    /// The claim that the shortest counterexample breaks.
    pub(crate) fn breaks(self) -> &'static str {
        match self {
            Self::NoRecovery => claims::NO_DEAD_END,
            Self::RecoveryBeforeLock | Self::NoLock | Self::UnfencedCommit => claims::ONE_AT_A_TIME,
            Self::RecoveryApart | Self::SilentRecovery | Self::IdleRecovery | Self::DoneTwice | Self::RetryShort => {
                claims::BALANCED
            }
            Self::LoadBeforeLock
            | Self::BlindRetry
            | Self::CompleteEarly
            | Self::JournalApart
            | Self::ReleasedCounted => claims::REPLAYS,
            Self::DoneBeforeEffect => claims::DONE_HAS_EFFECT,
            Self::RerunDone | Self::Restarts => claims::NEVER_AGAIN,
            Self::KeyPerAttempt => claims::EFFECT_ONCE,
            Self::EffectBeforeStart | Self::CompletionUnrecorded => claims::EFFECT_IN_ATTEMPT,
            Self::ErrorsOnlyCounted | Self::BeginCounted => claims::ATTEMPTS_ARE_STARTS,
            Self::OnceAsKeyed
            | Self::SendsUnasked
            | Self::UnknownForAbsent
            | Self::ReleasedLate
            | Self::LostIsNothing => claims::EFFECT_ONCE,
            Self::ExistsIsFailure => claims::FAILURE_ADMITS,
            Self::DigestNotCompared => claims::SAME_INPUT,
            Self::ClassReplaced => claims::CLASS_HELD,
            Self::DueInMemory => claims::NOT_EARLY,
            Self::AnnouncesInVain | Self::CancelLeavesOpen | Self::AnsweredTwice => claims::BALANCED,
            Self::AnswerBoundToNothing => claims::AGREED_TO,
            Self::FailEarly | Self::LimitOneMore | Self::LimitOneLess => claims::LIMIT_KEPT,
        }
    }
}
