//! The progress bar: on a terminal only, never in CI.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use crate::judge::verdict::VerdictKind;
use crate::run::runner::Progress;

/// A bar that may be nothing at all.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar where standard error is a terminal and nobody says `CI`.
    #[must_use]
    pub fn new() -> Self {
        let wanted = std::io::stderr().is_terminal() && std::env::var_os("CI").is_none();
        let bar = if wanted { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{prefix:<11} {bar:40} {pos}/{len} {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows what the run tells.
    pub fn tell(&self, told: &Progress<'_>) {
        match told {
            Progress::Preparing(plan) => self.0.set_prefix(format!("prepare {plan}")),
            Progress::Begins(method, scenarios) => {
                self.0.set_length(*scenarios as u64);
                self.0.set_position(0);
                self.0.set_prefix((*method).to_owned());
            }
            Progress::Played(report) => {
                self.0.inc(1);
                if report.verdict != VerdictKind::Holds {
                    self.0.set_message(format!("failed: {}", report.id));
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn close(&self) {
        self.0.finish_and_clear();
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}
