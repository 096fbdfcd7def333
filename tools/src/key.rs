//! The key that a tool sends.

use serde_json::Value;

use crate::tool::{Input, ToolContext};

/// The step's own, or a better one of its input. In the negative control each process has its own, so that whatever
/// relies on it happens twice.
pub(crate) fn key_of(ctx: &ToolContext<'_>, input: Input<'_>) -> String {
    let key = input.0.get("key").and_then(Value::as_str).map_or_else(|| ctx.key.to_string(), str::to_owned);
    if ctx.world.unsafe_effects { format!("{key}.{}", std::process::id()) } else { key }
}
