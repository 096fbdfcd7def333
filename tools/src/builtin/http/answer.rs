//! How it is sent, and what the answer means.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::{Map, Value, json};
use store::limits;
use store::model::codec;
use ureq::Body;
use ureq::http::{Request as HttpRequest, Response};

use super::request::Request;
use crate::error::ToolError;
use crate::http::{Wire, agent};
use crate::schema::has_nul;
use crate::tool::{Effect, Input, ToolContext};

/// One request on its way.
pub(super) struct Call<'a> {
    pub(super) ctx: &'a ToolContext<'a>,
    pub(super) input: Input<'a>,
    pub(super) request: &'a Request,
    /// Tells whether anything of it was sent.
    pub(super) wire: &'a Wire,
}

/// What came back.
pub(super) struct Answer {
    status: u16,
    headers: Map<String, Value>,
    body: Result<Vec<u8>, ureq::Error>,
}

/// How much of what an unwelcome answer says stands in the message.
const SAID_CHARS: usize = 200;

/// The longest that a server may ask to be left alone.
const LONGEST_REST: Duration = Duration::from_secs(30 * 86_400);

impl Call<'_> {
    /// Sends it and reads the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) fn send(&self) -> Result<Answer, ToolError> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(self.ctx.attempt.timeout.unwrap_or(limits::HTTP_TIME)))
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .build();
        let agent = agent(config, self.ctx.stop, self.wire);
        let mut builder = HttpRequest::builder().method(self.request.method.as_str()).uri(self.request.url.clone());
        for (name, value) in &self.request.headers {
            builder = builder.header(name, value);
        }
        let bad = |error: ureq::http::Error| ToolError::permanent(self.about(&format!("it cannot be sent: {error}")));
        let sent = match &self.request.body {
            Some(body) => agent.run(builder.body(body.as_slice()).map_err(bad)?),
            None => agent.run(builder.body(()).map_err(bad)?),
        };
        sent.map(Answer::of).map_err(|error| self.lost(&error))
    }

    /// What the answer means.
    ///
    /// # Errors
    /// It is not one that was expected.
    pub(super) fn judge(&self, answer: Answer) -> Result<Map<String, Value>, ToolError> {
        let status = answer.status;
        let expected = match self.input.0.get("expect").and_then(Value::as_array) {
            Some(statuses) => statuses.contains(&json!(status)),
            None => (200..300).contains(&status),
        };
        // What an earlier attempt has deleted is not there any more.
        let gone = self.request.method == "DELETE" && self.ctx.attempt.repeated && matches!(status, 404 | 410);
        if expected || gone {
            return self.output(answer);
        }
        let pure = self.ctx.attempt.effect == Effect::Pure;
        let (after, said) = (answer.rest(), answer.said());
        let why = self.about(&format!("it answered {status}{said}"));
        Err(match status {
            425 | 429 => ToolError::Transient { why, after },
            409 if self.request.keyed => {
                let why = format!("{why} (a request with this key is still under way)");
                ToolError::Transient { why, after }
            }
            408 | 500.. if pure => ToolError::Transient { why, after },
            408 | 500.. => ToolError::Unknown { why, after },
            // It did something, or says where to read what it did.
            200..=303 if !pure => ToolError::Unknown { why: format!("{why}, which `expect` does not name"), after },
            200..=399 => ToolError::Permanent(format!("{why}, which `expect` does not name")),
            _ => ToolError::Permanent(why),
        })
    }

    fn output(&self, answer: Answer) -> Result<Map<String, Value>, ToolError> {
        let body = match answer.body {
            Ok(body) => body,
            Err(ureq::Error::BodyExceedsLimit(most)) => {
                let why = self.about(&format!("it answered {} with more than {most} bytes", answer.status));
                let pure = self.ctx.attempt.effect == Effect::Pure;
                return Err(if pure { ToolError::Permanent(why) } else { ToolError::unknown(why) });
            }
            Err(error) => return Err(self.lost(&error)),
        };
        let kind = answer.headers.get("content-type").and_then(Value::as_str).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let says_json = kind == "application/json" || kind.ends_with("+json");
        let bytes = body.len();
        let text = String::from_utf8(body).ok().filter(|text| !text.contains('\0'));
        let json = text.as_deref().filter(|_| says_json).and_then(|text| codec::value_from_json(text).ok());
        let (name, body) = match (json.filter(|json| !has_nul(json)), text) {
            (Some(json), _) => ("json", json),
            (None, Some(text)) => ("text", Value::from(text)),
            (None, None) => ("bytes", Value::from(bytes)),
        };
        let mut output = Map::new();
        output.insert("status".to_owned(), Value::from(answer.status));
        output.insert("headers".to_owned(), Value::Object(answer.headers));
        output.insert(name.to_owned(), body);
        Ok(output)
    }

    /// There is no answer, or not all of it. What was not sent has done nothing.
    fn lost(&self, error: &ureq::Error) -> ToolError {
        let harmless = !self.wire.was_used() || self.ctx.attempt.effect == Effect::Pure;
        if self.ctx.stop.asked() && harmless {
            return ToolError::Stopped;
        }
        let why = match error {
            ureq::Error::Timeout(_) => "it did not answer in time".to_owned(),
            ureq::Error::HostNotFound => "its host is not known".to_owned(),
            other => other.to_string(),
        };
        match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => ToolError::Permanent(self.about(&why)),
            _ if harmless => ToolError::transient(self.about(&why)),
            _ => ToolError::unknown(self.about(&format!("the answer is lost: {why}"))),
        }
    }

    fn about(&self, what: &str) -> String {
        let Request { method, shown, .. } = self.request;
        self.ctx.world.secrets.hide(&format!("{method} {shown}: {what}"))
    }
}

impl Answer {
    fn of(mut response: Response<Body>) -> Self {
        let mut headers = Map::new();
        for (name, value) in response.headers().iter().filter(|(name, _)| *name != "set-cookie") {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            match headers.get_mut(name.as_str()) {
                Some(Value::String(known)) => known.push_str(&format!(", {value}")),
                _ => drop(headers.insert(name.as_str().to_owned(), Value::from(value))),
            }
        }
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(limits::HTTP_BODY_BYTES).read_to_vec();
        Self { status, headers, body }
    }

    /// The request that it wants to be asked instead; only what changes nothing is sent on.
    pub(super) fn leads_to(&self, request: &Request) -> Option<Result<Request, String>> {
        let asks = matches!(request.method.as_str(), "GET" | "HEAD");
        let location = self.header("location").filter(|_| matches!(self.status, 301 | 302 | 303 | 307 | 308))?;
        asks.then(|| request.sent_on(location))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(Value::as_str)
    }

    /// How long it asks to be left alone: seconds, or a date.
    fn rest(&self) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        let rest = match text.parse() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let date = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
                Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default()
            }
        };
        Some(rest.min(LONGEST_REST))
    }

    fn said(&self) -> String {
        let text = self.body.as_ref().map(|body| String::from_utf8_lossy(body)).unwrap_or_default();
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SAID_CHARS).collect();
        let line = line.trim();
        let leads = self.header("location").map(|to| format!(" and leads to {to}")).unwrap_or_default();
        if line.is_empty() { leads } else { format!("{leads}: {line}") }
    }
}
