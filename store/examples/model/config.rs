//! How large the explored world is, and what is wrong with it.

use std::fmt;

use store::model::Effect;

use crate::bug::Bug;

/// Room for processes and steps; arrays make a state cheap to copy.
pub(crate) const MAX_RUNNERS: usize = 3;
/// See [`MAX_RUNNERS`].
pub(crate) const MAX_STEPS: usize = 3;
/// A place for each step, and behind the last one that of the completion.
pub(crate) const PLACES: usize = MAX_STEPS + 1;

/// One world to be explored. Faults are bounded, so that the world is finite and every order of them is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Processes that `run` or `retry` the task, each again and again.
    pub(crate) runners: u8,
    /// Steps of the plan, each with an effect at a receiver that knows keys.
    pub(crate) steps: u8,
    /// Whether the task has a completion, an effect between its last step and its end.
    pub(crate) completion: bool,
    /// The attempt limit.
    pub(crate) max_attempts: u32,
    /// The class of the steps, as their first plan names it: they then say what they intend, and their receivers do
    /// what the class says. None for steps of which nothing is said, and receivers that know keys.
    pub(crate) effect: Option<Effect>,
    /// Whether each step asks a person first.
    pub(crate) asks: bool,
    /// How many faults there may be.
    pub(crate) faults: Faults,
    /// What is planted; `None` is what ships.
    pub(crate) bug: Option<Bug>,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A process dies, between any two actions; its death frees the lock.
    pub(crate) crashes: u8,
    /// A tool fails, before or after its effect.
    pub(crate) errors: u8,
    /// A process is asked to stop before its effect, and gives the attempt up in order.
    pub(crate) stops: u8,
    /// The lock is freed under its living holder, who does not notice: a removed lock file, a lease that expired.
    pub(crate) expiries: u8,
    /// A failed task is retried. How many people try at once is bounded only by the runners.
    pub(crate) retries: u8,
    /// The reply of a receiver is lost, or a request: nobody knows whether its effect has happened.
    pub(crate) lost: u8,
    /// A receiver refuses for good: that may be because the effect is there already.
    pub(crate) refusals: u8,
    /// A receiver wants to be asked again later, and not before.
    pub(crate) deferrals: u8,
    /// A receiver that is asked whether the effect has happened does not know.
    pub(crate) blinds: u8,
    /// There is a later plan and program: it renders another input and names another class.
    pub(crate) upgrades: u8,
    /// A person ends the task.
    pub(crate) cancels: u8,
    /// A run comes although a person has to speak first.
    pub(crate) idles: u8,
}

impl Faults {
    /// Nothing goes wrong.
    pub(crate) const NONE: Self = Self {
        crashes: 0,
        errors: 0,
        stops: 0,
        expiries: 0,
        retries: 0,
        lost: 0,
        refusals: 0,
        deferrals: 0,
        blinds: 0,
        upgrades: 0,
        cancels: 0,
        idles: 0,
    };
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("crashes", self.crashes),
            ("errors", self.errors),
            ("stops", self.stops),
            ("lost locks", self.expiries),
            ("retries", self.retries),
            ("lost replies", self.lost),
            ("refusals", self.refusals),
            ("deferrals", self.deferrals),
            ("receivers that do not know", self.blinds),
            ("upgrades", self.upgrades),
            ("cancels", self.cancels),
            ("runs in vain", self.idles),
        ];
        let some = all.into_iter().filter(|(_, most)| *most > 0);
        f.write_str(&some.map(|(what, most)| format!("{what} {most}")).collect::<Vec<_>>().join(", "))
    }
}

impl Config {
    /// Seconds even without optimisation: for `cargo test`.
    pub(crate) const SMALL: Self = Self {
        runners: 2,
        steps: 1,
        completion: true,
        max_attempts: 2,
        effect: None,
        asks: false,
        faults: Faults { crashes: 1, errors: 1, stops: 1, expiries: 1, retries: 1, ..Faults::NONE },
        bug: None,
    };

    /// One step whose class decides what becomes of it, and what can go wrong with its effect.
    const fn class(effect: Effect, faults: Faults) -> Self {
        Self { effect: Some(effect), completion: false, max_attempts: 3, faults, ..Self::SMALL }
    }

    const EFFECT: Faults =
        Faults { crashes: 1, stops: 1, lost: 1, refusals: 1, deferrals: 1, upgrades: 1, ..Faults::NONE };

    /// See [`Config::class`].
    pub(crate) const KEYED: Self = Self::class(Effect::Keyed, Faults { cancels: 1, ..Self::EFFECT });
    /// See [`Config::class`].
    pub(crate) const VERIFIABLE: Self =
        Self::class(Effect::Verifiable, Faults { blinds: 1, cancels: 1, ..Self::EFFECT });
    /// See [`Config::class`].
    pub(crate) const ONCE: Self =
        Self::class(Effect::Once, Faults { cancels: 1, idles: 1, deferrals: 0, ..Self::EFFECT });

    /// Steps that ask first, and what they show may change.
    pub(crate) const ASKS: Self = Self {
        asks: true,
        ..Self::class(
            Effect::Pure,
            Faults { crashes: 1, deferrals: 1, upgrades: 1, cancels: 1, idles: 1, ..Faults::NONE },
        )
    };

    /// The worlds that are part of every check, with their names and the fewest states that each must have: fewer, and
    /// the model has lost something that it used to try.
    pub(crate) const EVERY: [(&'static str, Self, usize); 5] = [
        ("effects under keys", Self::FULL, 2_000_000),
        ("class keyed", Self::KEYED, 500_000),
        ("class verifiable", Self::VERIFIABLE, 700_000),
        ("class once", Self::ONCE, 1_000_000),
        ("questions", Self::ASKS, 300_000),
    ];

    /// Part of every check.
    pub(crate) const FULL: Self = Self { steps: 2, ..Self::SMALL };

    /// Minutes, all of them: many processes, many faults, many holders whose lock is gone without their knowing. What a
    /// completion and a stop in order add is explored in full above.
    pub(crate) const DEEP: [Self; 3] = [
        Self { runners: 3, ..Self::BARE },
        Self { steps: 3, faults: Faults { crashes: 2, errors: 2, ..Self::BARE.faults }, ..Self::BARE },
        Self { faults: Faults { expiries: 2, ..Self::BARE.faults }, ..Self::BARE },
    ];

    const BARE: Self = Self { completion: false, faults: Faults { stops: 0, ..Self::FULL.faults }, ..Self::FULL };

    /// The same world with something planted in it.
    pub(crate) const fn with(self, bug: Bug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    /// Whether this is planted.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}
