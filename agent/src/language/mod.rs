//! The language of plans: what a step may say beside the tool that it calls, and what its texts may name.
//!
//! * `yaml`: a plan that is not JSON, as JSON;
//! * `inputs`: what a plan is given;
//! * `template`: a text or an expression, taken apart and rendered; `names`: what it names; `value`: what it gives;
//!   `environment`: what every one can do, and how much;
//! * `step`: all that can be known of a step before its plan is stored;
//! * `scope`: what its texts see when it begins.

mod environment;
mod inputs;
mod names;
mod scope;
mod step;
mod template;
mod value;
mod yaml;

pub(crate) use inputs::{Given, Inputs, check_schema, fits, labels};
pub(crate) use scope::{Earlier, Scope};
pub(crate) use step::{READS, SECRETS, TextCheck};
pub(crate) use yaml::parse as parse_yaml;

/// The version of the language, which is stored with each task: what a text gives is part of what a step is known by.
pub(crate) const VERSION: u32 = 1;

/// What a plan may call a step or an input, so that templates can.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain)
}
