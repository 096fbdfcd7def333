//! Calls an HTTP API.

mod answer;
mod request;

use std::sync::LazyLock;

use serde_json::{Map, Value};
use store::CrashSite;
use store::model::PlanError;

use crate::attempt::Backoff;
use crate::error::ToolError;
use crate::http;
use crate::schema::{Field, Form, Kind};
use crate::tool::{Effect, Example, Input, Spec, Tool, ToolContext};

use answer::Call;
use request::Request;

pub(super) struct Http;

/// All is known that will be sent, and nothing is sent.
const READY: CrashSite = CrashSite("http.ready");
/// The answer is read, and nothing of it is recorded.
const ANSWERED: CrashSite = CrashSite("http.answered");

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// How often a GET is sent on to another address.
const REDIRECTS: usize = 5;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    name: "http".into(),
    about: "Sends an HTTP request and gives the answer: what a method may do twice is its class.".into(),
    effect: Effect::Once,
    input: vec![
        Field::new("method", Kind::OneOf(METHODS), "the method"),
        Field::new("url", Kind::Text, "where to, http or https").for_secrets(),
        Field::optional(
            "query",
            Kind::map(Kind::Any),
            "what is added to the address: texts, numbers, booleans or lists",
        ),
        Field::optional("headers", Kind::map(Kind::Text), "headers, by name").for_secrets(),
        Field::optional("json", Kind::Any, "a body, sent as JSON").for_secrets(),
        Field::optional("body", Kind::Text, "a body, sent as it is").for_secrets(),
        Field::optional("expect", Kind::list(Kind::Count), "the statuses that mean done; 200 to 299 if not given"),
        Field::optional("auth", Kind::map(Kind::list(Kind::Text)), "{basic: [user, password]}").for_secrets(),
        Field::optional(
            "key_header",
            Kind::Either(vec![Kind::Text, Kind::Null]),
            "the header that carries the key where the step is keyed; null: the key is elsewhere in the request",
        ),
        Field::optional("key", Kind::Text, "a key that names the effect, in the place of the step's own"),
    ],
    output: vec![
        Field::new("status", Kind::Count, "the status of the answer"),
        Field::new("headers", Kind::map(Kind::Text), "its headers, by name in lower case, without cookies"),
        Field::optional("json", Kind::Any, "the body, where it says that it is JSON, and is"),
        Field::optional("text", Kind::Text, "any other body, where it is text"),
        Field::optional("bytes", Kind::Count, "how long a body is that is neither"),
    ],
    open: false,
    crash_points: vec![READY, ANSWERED],
    retry: Some(Backoff::REMOTE),
    example: Example {
        plan: r#"{"goal": "Open a ticket", "steps": [
            {"tool": "http", "input": {"method": "PUT", "url": "http://127.0.0.1:8080/tickets/17",
                "json": {"title": "The mill burns"}}}]}"#
            .into(),
        files: vec![],
        needs: Some("an HTTP server at 127.0.0.1:8080"),
    },
});

impl Tool for Http {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn effect(&self, input: &Map<String, Value>) -> Effect {
        match input.get("method").and_then(Value::as_str) {
            Some("GET" | "HEAD") => Effect::Pure,
            Some("PUT" | "DELETE") => Effect::Keyed,
            _ => Effect::Once,
        }
    }

    fn check(&self, input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
        request::check(input, form)
    }

    fn label(&self, input: &Map<String, Value>) -> String {
        let text = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("url").split(['/', '?', '#']).nth(2) {
            Some(host) if !host.is_empty() => format!("{} {host}", text("method")),
            _ => SPEC.name.clone(),
        }
    }

    fn call(&self, ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Map<String, Value>, ToolError> {
        let mut request = Request::of(ctx, input)?;
        ctx.crash.point(READY);
        let mut sent_on = 0;
        loop {
            let wire = http::Wire::default();
            let call = Call { ctx, input, request: &request, wire: &wire };
            let answer = call.send()?;
            match answer.leads_to(&request) {
                Some(next) if sent_on < REDIRECTS => {
                    request = next.map_err(ToolError::permanent)?;
                    sent_on += 1;
                }
                Some(_) => return Err(ToolError::permanent(format!("it was sent on more than {REDIRECTS} times"))),
                None => {
                    ctx.crash.point(ANSWERED);
                    return call.judge(answer);
                }
            }
        }
    }
}
