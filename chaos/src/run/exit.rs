//! The exit codes of the lab, in one table.

use crate::error::LabError;
use crate::report::model::Conclusion;

/// What the process `chaos` ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was selected was played and held.
    Held,
    /// A property was violated, a kill was not reached, or the gate is shut.
    Violated,
    /// A clean run cannot be judged: the plan fails without any crash already.
    BaselineFailed,
    /// Nothing was selected, or the budget cut the run short.
    CutShort,
    /// A negative control did not bite.
    ControlSilent,
    /// The command line makes no sense.
    Usage,
    /// The lab itself failed: no verdict.
    LabFailed,
}

/// Every code with its meaning, in the order of the table in the help.
pub const TABLE: [(Exit, &str); 7] = [
    (Exit::Held, "everything that was selected held"),
    (
        Exit::Violated,
        "a property was violated, a kill missed, the gate is shut, or a tool claims more than it has earned",
    ),
    (Exit::BaselineFailed, "a clean run cannot be judged: the plan fails where nothing is killed"),
    (Exit::CutShort, "nothing was selected, or the budget ended first"),
    (Exit::ControlSilent, "a negative control did not bite: the lab is blind here"),
    (Exit::Usage, "the command line makes no sense"),
    (Exit::LabFailed, "the lab itself failed, there is no verdict"),
];

/// What a lab that was told to stop ends with: 128 and the signal.
const STOPPED: &str = "129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM, which does not count as passed";

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Held => 0,
            Self::Violated => 1,
            Self::BaselineFailed => 2,
            Self::CutShort => 4,
            Self::ControlSilent => 5,
            Self::Usage => 64,
            Self::LabFailed => 70,
        }
    }

    /// The table as lines of `code  meaning` for the help.
    #[must_use]
    pub fn help() -> String {
        let table = TABLE.iter().map(|(exit, meaning)| format!("  {:>2}  {meaning}\n", exit.code()));
        table.chain([format!("  {STOPPED}\n")]).collect()
    }
}

impl From<Conclusion> for Exit {
    fn from(outcome: Conclusion) -> Self {
        match outcome {
            Conclusion::Held => Self::Held,
            Conclusion::Violated => Self::Violated,
            Conclusion::BaselineFailed => Self::BaselineFailed,
            Conclusion::CutShort => Self::CutShort,
            Conclusion::ControlSilent => Self::ControlSilent,
        }
    }
}

impl From<&LabError> for Exit {
    fn from(error: &LabError) -> Self {
        match error {
            LabError::Usage(_) | LabError::Spawn { .. } => Self::Usage,
            // The agent's own words are the agent's, and no failure of the lab.
            LabError::Inventory(_) | LabError::Unjudged(_) => Self::BaselineFailed,
            _ => Self::LabFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_agent_is_no_failure_of_the_lab() {
        let code = |error: LabError| Exit::from(&error).code();
        assert_eq!(code(LabError::Inventory("not JSON".to_owned())), 2);
        assert_eq!(code(LabError::Unjudged("exit 1".to_owned())), 2);
        assert_eq!(code(LabError::Usage("no such folder".to_owned())), 64);
        assert_eq!(code(LabError::Internal("a thread panicked".to_owned())), 70);
    }

    #[test]
    fn the_table_has_every_code_once_and_ascending() {
        let codes: Vec<i32> = TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 4, 5, 64, 70]);
    }
}
