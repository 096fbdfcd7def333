//! Shortens a text: by a rule, or by asking a local model.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use store::model::codec;

use crate::error::ToolError;
use crate::http;
use crate::schema::{Field, Kind};
use crate::stop::Stop;
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};
use crate::world::{Engine, Ollama};

pub(super) struct Summarize;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "summarize".into(),
    about: "Summarizes the text of an earlier step: its first three lines, or what a local model says.".into(),
    effect: Effect::Pure,
    input: vec![Field::new("from", Kind::From("text".into()), "the step whose text is summarized")],
    output: vec![
        Field::new("engine", Kind::Text, "who summarized: stub or ollama"),
        Field::new("summary", Kind::Text, "the summary"),
    ],
    open: false,
    crash_points: vec![],
    retry: None,
    example: Example {
        plan: r#"{"goal": "Summarize the notes", "steps": [
            {"tool": "fetch", "input": {"path": "input/notes.txt"}},
            {"tool": "summarize", "input": {"from": 0}}]}"#
            .into(),
        files: vec![("input/notes.txt".into(), "\n  first  \n\nsecond\nthird\nfourth is left out\n".into())],
        needs: None,
    },
});

/// Lines that the stub takes.
const STUB_LINES: usize = 3;

/// More than any summary; a server that streams without end must not fill the memory.
const REPLY_BYTES: u64 = 16 << 20;

impl Tool for Summarize {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let text = input.from("from", ctx.outputs, "text")?;
        let (engine, summary) = match &ctx.world.engine {
            Engine::Stub => ("stub", first_lines(text)),
            Engine::Ollama(server) => ("ollama", ask(server, text, ctx.stop)?),
        };
        Ok(Map::from_iter([("engine".to_owned(), Value::from(engine)), ("summary".to_owned(), Value::from(summary))]))
    }
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(STUB_LINES).collect();
    lines.join("\n")
}

fn ask(server: &Ollama, text: &str, stop: &Stop) -> Result<String, ToolError> {
    let url = server.address.join("api/generate");
    let failed = |why: String| match stop.asked() {
        true => ToolError::Stopped,
        false => ToolError::step(format!("ollama at {url}: {why}")),
    };
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(server.timeout))
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .build();
    let http = http::agent(config, stop, &http::Wire::default());
    let prompt = format!("Summarize the following notes in at most three short lines.\n\n{text}");
    let request = json!({ "model": server.model, "prompt": prompt, "stream": false });
    let mut response = http.post(&url).send_json(&request).map_err(|error| failed(reason(&error, server)))?;
    let status = response.status();
    let body = response
        .body_mut()
        .with_config()
        .limit(REPLY_BYTES)
        .read_to_string()
        .map_err(|error| failed(reason(&error, server)))?;
    if !status.is_success() {
        let said: String = body.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        return Err(failed(format!("HTTP status {}: {said}", status.as_u16())));
    }
    let reply = codec::value_from_json(&body).map_err(|why| failed(format!("the reply cannot be read: {why}")))?;
    summary_of(&reply).map_err(failed)
}

/// The answer in a reply, if it is whole: half a summary is published as if it were one.
fn summary_of(reply: &Value) -> Result<String, String> {
    let Some(response) = reply.get("response").and_then(Value::as_str) else {
        return Err("the reply has no text `response`".to_owned());
    };
    if reply.get("done").is_some_and(|done| *done != Value::Bool(true)) {
        return Err("the answer is not finished (`done` is not true)".to_owned());
    }
    match reply.get("done_reason").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::String(reason) if reason == "stop" => {}
        reason => return Err(format!("the answer is not whole (`done_reason` is {reason}, not \"stop\")")),
    }
    match response.trim() {
        "" => Err("the answer is empty".to_owned()),
        summary => Ok(summary.to_owned()),
    }
}

fn reason(error: &ureq::Error, server: &Ollama) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", server.timeout.as_secs_f64()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", "")]
    #[case("\n  \n", "")]
    #[case("  a \n\n b\r\nc\nd", "a\nb\nc")]
    #[case("一\n二", "一\n二")]
    fn the_stub_takes_three_trimmed_lines_that_are_not_empty(#[case] text: &str, #[case] summary: &str) {
        assert_eq!(first_lines(text), summary);
    }
}
