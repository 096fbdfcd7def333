//! The engine: one run of one task under lease, from recovery to its end.
//!
//! It knows no environment, no signal, no exit code and no action log: what it may do is in [`Settings`], whether it
//! has to stop is a [`tools::Stop`], what happened is an [`Outcome`] or an [`EngineError`], and an [`Observer`] hears
//! of each commit and can only read.
//!
//! * `runner`: what a run has, and how it commits;
//! * `run`: the loop;
//! * `recover`: what comes before the first step;
//! * `attempt`: one attempt of one step;
//! * `call`: the call of its tool, and what that says of itself;
//! * `check`: the call by which a plan finds out whether an effect has happened;
//! * `rules`: what a step goes by: its plan's settings, the environment, its tool;
//! * `prepared`: a step with everything that its attempt needs, as far as reading tells;
//! * `completion`: what comes after the last step;
//! * `history`: what the journal knows of earlier attempts.

mod attempt;
mod call;
mod check;
mod completion;
mod error;
mod history;
mod observer;
mod prepared;
mod recover;
mod rules;
mod run;
mod runner;

pub(crate) use completion::{Completion, RUN_SITES, Replace, temporary_key};
pub(crate) use error::EngineError;
pub(crate) use history::said;
pub(crate) use observer::{Observer, ObserverError, Remark};
pub(crate) use prepared::{Prepared, Stored, preflight, stored_output};
pub(crate) use rules::{check as check_settings, effect_of, goes_on};
pub(crate) use run::{Ended, Outcome};
pub(crate) use runner::Runner;
pub use runner::Settings;
