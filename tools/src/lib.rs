//! What touches the world: the [`Tool`] trait, and one file per tool under `builtin/`.
//!
//! A tool is added in one file: what it is ([`Spec`]: name, effect class, input, output, crash points, an example) and
//! what it does ([`Tool::call`]), a `mod` line and a row in `builtin/mod.rs`. Plans are checked, schemas are printed
//! and crash tests are found from there, with nothing more to write. A program may have others: see [`Registry`].
//!
//! The crate reads no environment and prints nothing; what a tool may know of its surroundings is in [`World`].

mod address;
mod attempt;
mod builtin;
mod check;
mod durable;
mod error;
mod http;
mod key;
mod length;
mod process;
mod publish;
mod registry;
mod regular;
mod replace;
mod schema;
mod secrets;
mod stop;
mod temporary;
mod text_file;
mod tool;
mod world;

pub use address::Address;
pub use attempt::{Attempt, Audit, Backoff, Due, Keep, Pause, Probe};
pub use check::{PlanCheck, check_input, check_output, check_plan, named_steps};
pub use durable::{PublishError, make_folder, sync_folder, sync_folder_of_others};
pub use error::ToolError;
pub use length::{LENGTH, TIME, parse_due, parse_length, parse_time};
pub use process::{keeper, stderr_files};
pub use publish::{Publication, PublishSites, Published, publish};
pub use registry::Registry;
pub use regular::{check_appendable, check_regular, open_regular};
pub use replace::{Content, ReplaceSites, check_replaceable, has_content, replace};
pub use schema::{Field, Form, Kind, Misfit, is_template, schema_of};
pub use secrets::Secrets;
pub use stop::Stop;
pub use store::files::folder_of;
pub use temporary::{is_temporary, sweep_temporaries};
pub use text_file::read_text;
pub use tool::{Effect, Example, Input, Outputs, Spec, Tool, ToolContext};
pub use world::{Engine, Moved, Ollama, Programs, World};
