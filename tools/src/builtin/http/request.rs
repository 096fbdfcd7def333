//! What is sent.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use store::model::{PlanError, codec};
use ureq::http::{HeaderName, HeaderValue, Uri};

use crate::error::ToolError;
use crate::key::key_of;
use crate::schema::{Form, is_template};
use crate::secrets::may_be_marked;
use crate::tool::{Effect, Input, ToolContext};

/// The header that carries the key where the plan does not say.
const KEY_HEADER: &str = "Idempotency-Key";

/// What stands for itself in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Headers that another host may see too.
const SHARED: [&str; 3] = ["accept", "accept-language", "user-agent"];

/// A request with its secrets in it; it is never shown.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: Uri,
    /// The address as it may be shown.
    pub(super) shown: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Option<Vec<u8>>,
    /// Whether the key goes with it, in its header.
    pub(super) keyed: bool,
}

/// Checks what the fields cannot say one by one.
pub(super) fn check(input: &Map<String, Value>, form: Form) -> Result<(), PlanError> {
    // What a secret will make of it is known when it is sent, and judged then.
    let known = |text: &str| !may_be_marked(text) && (form == Form::Literal || !is_template(text));
    let bad = |field: &str, why: String| Err(PlanError::field(field, why));
    if input.contains_key("json") && input.contains_key("body") {
        return bad("body", "stands beside `json`, and only one of them can be sent".to_owned());
    }
    if let Some(url) = input.get("url").and_then(Value::as_str).filter(|url| known(url))
        && let Err(why) = address(url)
    {
        return bad("url", why);
    }
    for (name, value) in input.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().filter(|value| known(value)).unwrap_or_default();
        if let Err(why) = header(name, value) {
            return bad("headers", why);
        }
    }
    if let Some(name) = input.get("key_header").and_then(Value::as_str).filter(|name| known(name))
        && let Err(why) = header(name, "")
    {
        return bad("key_header", why);
    }
    for (name, value) in input.get("query").and_then(Value::as_object).into_iter().flatten() {
        let items = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        if let Some(item) = items.iter().find(|item| item.is_object() || item.is_array() || item.is_null()) {
            let kind = codec::kind_of(item);
            return bad(
                "query",
                format!("`{name}` must be text, a number, true or false, or a list of them, is {kind}"),
            );
        }
    }
    match input.get("auth").and_then(Value::as_object) {
        None => Ok(()),
        Some(auth) => match auth.get("basic").and_then(Value::as_array).map(Vec::len) {
            Some(2) if auth.len() == 1 => Ok(()),
            _ => bad("auth", "must be {basic: [user, password]}".to_owned()),
        },
    }
}

impl Request {
    /// # Errors
    /// What it is made of is not there, or not what can be sent.
    pub(super) fn of(ctx: &ToolContext<'_>, input: Input<'_>) -> Result<Self, ToolError> {
        let secrets = &ctx.world.secrets;
        let reveal = |text: &str| secrets.reveal(text).map_err(ToolError::permanent);
        let method = input.text("method")?.to_owned();
        let given = with_query(input.text("url")?, input.0.get("query"));
        let url = address(&reveal(&given)?).map_err(|why| ToolError::permanent(format!("the address: {why}")))?;
        let mut headers = Vec::new();
        for (name, value) in input.0.get("headers").and_then(Value::as_object).into_iter().flatten() {
            let value = reveal(value.as_str().unwrap_or_default())?;
            headers.push(header(name, &value).map_err(ToolError::permanent)?);
        }
        let mut set = |name: &str, value: &str, instead: bool| -> Result<(), ToolError> {
            let (name, value) = header(name, value).map_err(ToolError::permanent)?;
            if instead || headers.iter().all(|(given, _)| *given != name) {
                headers.retain(|(given, _)| *given != name);
                headers.push((name, value));
            }
            Ok(())
        };
        if let Some([user, password]) = basic(input.0) {
            let pair = BASE64_STANDARD.encode(format!("{}:{}", reveal(user)?, reveal(password)?));
            set("authorization", &format!("Basic {pair}"), true)?;
        }
        let body = match (input.0.get("json"), input.0.get("body").and_then(Value::as_str)) {
            (Some(json), _) => {
                set("content-type", "application/json", false)?;
                Some(secrets.reveal_in(json).map_err(ToolError::permanent)?.to_string().into_bytes())
            }
            (None, Some(body)) => Some(reveal(body)?.into_bytes()),
            (None, None) => None,
        };
        let carries = ctx.attempt.effect == Effect::Keyed && matches!(method.as_str(), "POST" | "PATCH");
        let keyed = match input.0.get("key_header") {
            _ if !carries => false,
            Some(Value::Null) if input.0.contains_key("key") => false,
            Some(Value::Null) => {
                let why = "a keyed step whose `key_header` is null must say the `key` that its request carries";
                return Err(ToolError::permanent(why));
            }
            given => {
                set(given.and_then(Value::as_str).unwrap_or(KEY_HEADER), &key_of(ctx, input), true)?;
                true
            }
        };
        Ok(Self { method, url, shown: secrets.hide(&given), headers, body, keyed })
    }

    /// The same request for the address that it is sent on to. What is not for everybody goes to the same host only.
    ///
    /// # Errors
    /// The address cannot be one.
    pub(super) fn sent_on(&self, location: &str) -> Result<Self, String> {
        let url = joined(&self.url, location)?;
        let origin = |url: &Uri| {
            let port = url.port_u16().or(if url.scheme_str() == Some("https") { Some(443) } else { Some(80) });
            (url.scheme_str().map(str::to_owned), url.host().map(str::to_ascii_lowercase), port)
        };
        let same = origin(&url) == origin(&self.url);
        let may_go = |(name, _): &&(HeaderName, HeaderValue)| same || SHARED.contains(&name.as_str());
        let headers = self.headers.iter().filter(may_go).cloned().collect();
        let shown = format!("{} (sent on from {})", url, self.shown);
        Ok(Self { method: self.method.clone(), url, shown, headers, body: None, keyed: false })
    }
}

fn basic(input: &Map<String, Value>) -> Option<[&str; 2]> {
    let [user, password] = input.get("auth")?.get("basic")?.as_array()?.as_slice() else { return None };
    Some([user.as_str()?, password.as_str()?])
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let bad = |what: &str| format!("`{name}` {what}");
    let key: HeaderName = name.parse().map_err(|_| bad("is not the name of a header"))?;
    if matches!(key.as_str(), "host" | "content-length" | "transfer-encoding" | "connection") {
        return Err(bad("is set by the client itself"));
    }
    let value = HeaderValue::from_str(value).map_err(|_| bad("has a value that no header can have"))?;
    Ok((key, value))
}

/// An address that can be called as it stands.
fn address(url: &str) -> Result<Uri, String> {
    if url.contains('#') {
        return Err("has a fragment, which is not sent".to_owned());
    }
    let uri: Uri = url.parse().map_err(|error: ureq::http::uri::InvalidUri| format!("is not an address: {error}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http:// or https://".to_owned());
    }
    let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or("names no host")?;
    if authority.as_str().contains('@') {
        return Err("has a user in it; `auth` is for that".to_owned());
    }
    // The library takes a port that is not one for none.
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(format!("has a port `{}` that is not one of 1 to 65535", port.trim_start_matches(':')));
    }
    Ok(uri)
}

fn with_query(url: &str, query: Option<&Value>) -> String {
    let mut url = url.to_owned();
    for (name, value) in query.and_then(Value::as_object).into_iter().flatten() {
        for item in value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice) {
            let item = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            url.push(if url.contains('?') { '&' } else { '?' });
            let encode = |text| utf8_percent_encode(text, QUERY).to_string();
            url.push_str(&format!("{}={}", encode(name), encode(&item)));
        }
    }
    url
}

/// An address relative to another one, as far as servers use that: whole, from the host, from the root, from the
/// folder.
fn joined(base: &Uri, location: &str) -> Result<Uri, String> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or_default();
    let authority = base.authority().map_or("", ureq::http::uri::Authority::as_str);
    let whole = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    address(&whole).map_err(|why| format!("it is sent on to an address that {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn request(url: &str) -> Request {
        let header = |name: &'static str| (HeaderName::from_static(name), HeaderValue::from_static("x"));
        let headers = ["accept", "authorization", "x-token", "idempotency-key"].map(header).to_vec();
        let url: Uri = url.parse().unwrap();
        Request { method: "GET".into(), shown: url.to_string(), url, headers, body: None, keyed: true }
    }

    #[rstest]
    #[case("/b", "http://a.example/b", 4)]
    #[case("b?c=d", "http://a.example/x/b?c=d", 4)]
    #[case("http://a.example:80/b", "http://a.example:80/b", 4)]
    #[case("http://A.EXAMPLE/b", "http://A.EXAMPLE/b", 4)]
    #[case("https://a.example/b", "https://a.example/b", 1)]
    #[case("http://a.example:81/b", "http://a.example:81/b", 1)]
    #[case("//b.example/b#top", "http://b.example/b", 1)]
    #[case("http://a.example.b.example/", "http://a.example.b.example/", 1)]
    fn what_is_not_for_everybody_goes_to_the_same_host_only(
        #[case] location: &str,
        #[case] to: &str,
        #[case] headers: usize,
    ) {
        let next = request("http://a.example/x/y").sent_on(location).unwrap();
        assert_eq!((next.url.to_string().as_str(), next.headers.len()), (to, headers));
    }

    #[test]
    fn a_query_is_encoded_and_added() {
        let query = json!({ "q": "a b&ü", "n": 7, "many": ["x", true] });
        let url = with_query("http://a/?z=1", Some(&query));
        assert_eq!(url, "http://a/?z=1&many=x&many=true&n=7&q=a%20b%26%C3%BC");
        assert_eq!(with_query("http://a/", None), "http://a/");
    }

    #[rstest]
    #[case(json!({ "url": "ftp://a/" }), "must begin with http")]
    #[case(json!({ "url": "/a" }), "must begin with http")]
    #[case(json!({ "url": "http://a/#top" }), "a fragment")]
    #[case(json!({ "url": "http://me:pw@a/" }), "`auth` is for that")]
    #[case(json!({ "url": "http://a:99999/" }), "port `99999`")]
    #[case(json!({ "url": "http://a:/" }), "port ``")]
    #[case(json!({ "url": "http://a b/" }), "is not an address")]
    #[case(json!({ "headers": { "a b": "x" } }), "`a b` is not the name of a header")]
    #[case(json!({ "headers": { "a": "x\ny" } }), "`a` has a value that no header can have")]
    #[case(json!({ "headers": { "Content-Length": "1" } }), "is set by the client itself")]
    #[case(json!({ "key_header": "a b" }), "not the name of a header")]
    #[case(json!({ "json": 1, "body": "x" }), "stands beside `json`")]
    #[case(json!({ "query": { "a": {} } }), "`a` must be text")]
    #[case(json!({ "query": { "a": [null] } }), "`a` must be text")]
    #[case(json!({ "auth": { "basic": ["u"] } }), "must be {basic")]
    #[case(json!({ "auth": { "bearer": ["u", "p"] } }), "must be {basic")]
    fn a_bad_input_is_refused(#[case] input: Value, #[case] says: &str) {
        let Value::Object(input) = input else { unreachable!() };
        let why = check(&input, Form::Templated).unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }

    #[test]
    fn what_a_template_will_become_is_not_judged_before() {
        let input = json!({ "url": "{{ inputs.url }}", "headers": { "a": "{{ x }}\n" } });
        let Value::Object(input) = input else { unreachable!() };
        assert_eq!(check(&input, Form::Templated), Ok(()));
        assert!(check(&input, Form::Literal).is_err());
    }

    /// An address that began with a secret was refused as soon as it was rendered, as a mark is not a scheme.
    #[test]
    fn what_a_secret_will_become_is_not_judged_before() {
        let mark = crate::Secrets::default().mark("SERVER");
        let input = json!({ "url": format!("{mark}/tickets"), "headers": { "a": mark } });
        let Value::Object(input) = input else { unreachable!() };
        assert_eq!(check(&input, Form::Literal), Ok(()));
    }
}
