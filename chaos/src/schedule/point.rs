//! A place in the agent's code where it can be killed.

use std::fmt;

use crate::contract::CRASH_SITES;

/// `site[:step][#hit]`, the form of `AGENT_CRASH_AT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrashPoint {
    /// Dotted name of the place, e.g. `write_artifact.linked`.
    pub site: String,
    /// The step during which it is passed; `None` for the run itself.
    pub step: Option<usize>,
    /// Which pass of that site in that step within one process, from 1.
    pub hit: u32,
}

impl CrashPoint {
    /// The first pass of `site` in `step`.
    #[must_use]
    pub fn new(site: &str, step: usize) -> Self {
        Self { site: site.to_owned(), step: Some(step), hit: 1 }
    }

    /// The contract's points of a plan of `steps` steps, in running order.
    #[must_use]
    pub fn of_contract(steps: usize) -> Vec<Self> {
        (0..steps).flat_map(|step| CRASH_SITES.map(|site| Self::new(site, step))).collect()
    }

    /// Whether every agent has this point (in a plan that is long enough).
    #[must_use]
    pub fn is_of_contract(&self) -> bool {
        self.hit == 1 && self.step.is_some() && CRASH_SITES.contains(&self.site.as_str())
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site)?;
        if let Some(step) = self.step {
            write!(f, ":{step}")?;
        }
        // The contract's form has no hit, so the first one is never written: an agent that knows only `<point>:<idx>`
        // understands it.
        if self.hit != 1 {
            write!(f, "#{}", self.hit)?;
        }
        Ok(())
    }
}
