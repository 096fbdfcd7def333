//! A progress bar on a terminal, for plans that take a while.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use store::Reader;
use store::model::{Event, TaskState};

use crate::engine::{Observer, ObserverError};

/// Fewer steps need no bar.
const WORTH_A_BAR: u32 = 20;

/// Shows how many steps are done. Draws on standard error, and only where that is a terminal; it starts no thread.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(state: TaskState) -> Self {
        let shown = state.steps >= WORTH_A_BAR && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::with_draw_target(Some(state.steps.into()), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {per_sec}, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(state.cursor.into());
            bar.reset_eta();
            bar
        });
        Self { bar }
    }
}

impl Observer for Progress {
    fn committed(
        &mut self,
        _reader: &mut dyn Reader,
        state: TaskState,
        _events: &[Event],
    ) -> Result<(), ObserverError> {
        if let Some(bar) = &self.bar {
            bar.set_position(state.cursor.into());
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
