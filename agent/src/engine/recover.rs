//! What comes before the first step of a run.

use std::collections::VecDeque;

use store::crash::{RECOVER_SWEPT, RUN_STARTED};
use store::machine::Command;
use store::model::Terms;

use super::{EngineError, Runner};

impl Runner<'_, '_> {
    /// Sweeps what a killed attempt left, then sets its step back. In that order: once recovery is committed, nothing
    /// says any more that there may be something to sweep.
    pub(super) fn recover(&mut self) -> Result<(), EngineError> {
        if let Some(step) = self.session.state().running() {
            let prepared = self.prepare(step, &mut VecDeque::new())?;
            let key = self.key(step);
            let swept = prepared.tool.sweep(&self.context(&key, &prepared));
            swept.map_err(|source| EngineError::Tool { step, source })?;
        }
        if self.session.state().no_step_left()
            && let Some(completion) = self.completion()?
        {
            completion.sweep(self.session.task())?;
        }
        self.crash.scope(None).point(RECOVER_SWEPT);
        self.commit(&Command::Begin(Terms::limit(self.settings.max_attempts)))?;
        self.crash.scope(None).point(RUN_STARTED);
        Ok(())
    }
}
