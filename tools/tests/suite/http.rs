//! HTTP, with a server that answers as badly as one can.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Map, Value, json};
use store::Crash;
use tools::{
    Attempt, Effect, Form, Input, Outputs, Registry, Secrets, Stop, ToolContext, ToolError, World, check_input,
};

use crate::support::{folder, key, object, world};

/// What the client sent.
#[derive(Debug, Default)]
struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut request = Self::default();
        reader.read_line(&mut request.line).unwrap();
        request.line = request.line.trim_end().to_owned();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            request.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        request.body = String::from_utf8(body).unwrap();
        request
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// A server that gives each of these answers to one request, and then the requests.
fn serve(answers: impl IntoIterator<Item = String>) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.into_iter().collect();
    let server = thread::spawn(move || {
        let serve = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = Request::read(&stream);
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Both).unwrap();
            request
        };
        answers.into_iter().map(serve).collect()
    });
    (url, server)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn call_with(world: &World, attempt: Attempt<'_>, stop: &Stop, input: Value) -> Result<Map<String, Value>, ToolError> {
    let (key, outputs, crash, input) = (key(), Outputs::new(), Crash::off(), object(input));
    let ctx = ToolContext { key: &key, world, outputs: &outputs, crash: crash.scope(Some(2)), stop, attempt };
    let tools = Registry::builtin();
    let tool = tools.find("http").unwrap();
    assert_eq!(check_input(tool.as_ref(), &input, Form::Literal), Ok(()));
    let output = tool.call(&ctx, Input(&input))?;
    assert_eq!(tools::check_output(tool.spec(), &output), Ok(()));
    Ok(output)
}

/// A first attempt in the class that the method has by itself.
fn call(input: Value) -> Result<Map<String, Value>, ToolError> {
    let effect = Registry::builtin().find("http").unwrap().effect(&object(input.clone()));
    call_as(Attempt::first(effect), input)
}

fn call_as(attempt: Attempt<'_>, input: Value) -> Result<Map<String, Value>, ToolError> {
    call_with(&world(folder().path()), attempt, &Stop::default(), input)
}

#[test]
fn a_request_goes_out_as_the_plan_says_and_the_answer_comes_back() {
    let json =
        answer("201 Created", "Content-Type: application/json; charset=utf-8\r\nX-A: 1\r\nX-A: 2\r\n", r#"{"id": 7}"#);
    let (url, server) = serve([json]);
    let output = call(json!({
        "method": "POST", "url": format!("{url}/tickets?z=1"), "query": { "q": "a b" },
        "headers": { "X-Team": "ops" }, "json": { "title": "ü" }, "auth": { "basic": ["me", "pw"] },
    }));
    let request = server.join().unwrap().remove(0);
    assert_eq!(request.line, "POST /tickets?z=1&q=a%20b HTTP/1.1");
    assert_eq!(request.header("x-team"), Some("ops"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("authorization"), Some("Basic bWU6cHc="));
    assert_eq!(request.header("idempotency-key"), None, "without a class that says so it would be a promise");
    assert_eq!(request.body, r#"{"title":"ü"}"#);
    let output = output.unwrap();
    assert_eq!((&output["status"], &output["json"]), (&json!(201), &json!({ "id": 7 })));
    assert_eq!(output["headers"]["x-a"], "1, 2");
}

#[rstest]
#[case("text/plain", "gr\u{fc}n", "text", json!("grün"))]
#[case("application/problem+json", "{\"a\": 1}", "json", json!({ "a": 1 }))]
#[case("application/json", "{half", "text", json!("{half"))]
#[case("application/octet-stream", "a\u{0}b", "bytes", json!(3))]
fn a_body_is_what_it_is(#[case] kind: &str, #[case] body: &str, #[case] name: &str, #[case] value: Value) {
    let (url, server) = serve([answer("200 OK", &format!("Content-Type: {kind}\r\nSet-Cookie: id=1\r\n"), body)]);
    let output = call(json!({ "method": "GET", "url": url })).unwrap();
    assert_eq!((output.get(name), output.len()), (Some(&value), 3), "{output:?}");
    assert!(!output["headers"].as_object().unwrap().contains_key("set-cookie"));
    server.join().unwrap();
}

const PURE: Effect = Effect::Pure;
const KEYED: Effect = Effect::Keyed;
const ONCE: Effect = Effect::Once;

#[rstest]
#[case("429 Too Many", "Retry-After: 3600\r\n", ONCE, "transient 3600")]
#[case("425 Too Early", "", ONCE, "transient")]
#[case("503 Unavailable", "Retry-After: 7\r\n", PURE, "transient 7")]
#[case("503 Unavailable", "Retry-After: 7\r\n", KEYED, "unknown 7")]
#[case("500 Oops", "", ONCE, "unknown")]
#[case("408 Timeout", "", ONCE, "unknown")]
#[case("408 Timeout", "", PURE, "transient")]
#[case("400 Bad", "", ONCE, "permanent")]
#[case("404 Not Found", "", PURE, "permanent")]
#[case("422 Other Body", "", KEYED, "permanent")]
#[case("409 Conflict", "Retry-After: 1\r\n", KEYED, "transient 1")]
#[case("409 Conflict", "", ONCE, "permanent")]
#[case("303 See Other", "Location: /x\r\n", ONCE, "unknown")]
#[case("307 Elsewhere", "Location: /x\r\n", ONCE, "permanent")]
fn a_status_says_what_is_known(
    #[case] status: &str,
    #[case] headers: &str,
    #[case] effect: Effect,
    #[case] means: &str,
) {
    let (url, server) = serve([answer(status, headers, "because\nof that")]);
    let error = call_as(Attempt::first(effect), json!({ "method": "POST", "url": url, "body": "x" })).unwrap_err();
    server.join().unwrap();
    let after = |after: &Option<Duration>| after.map_or(String::new(), |after| format!(" {}", after.as_secs()));
    let is = match &error {
        ToolError::Transient { after: rest, .. } => format!("transient{}", after(rest)),
        ToolError::Unknown { after: rest, .. } => format!("unknown{}", after(rest)),
        ToolError::Permanent(_) => "permanent".to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(is, means, "{error}");
    assert!(error.to_string().contains("because of that"), "{error}");
}

#[test]
fn a_date_says_when_to_come_back() {
    let ago = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
    let ahead = "Retry-After: Fri, 21 Oct 2988 07:28:00 GMT\r\n";
    for (header, is) in [(ago, Some(0)), (ahead, Some(30 * 86_400)), ("Retry-After: soon\r\n", None)] {
        let (url, server) = serve([answer("429 Later", header, "")]);
        let error = call(json!({ "method": "GET", "url": url })).unwrap_err();
        server.join().unwrap();
        let ToolError::Transient { after, .. } = error else { panic!("{error:?}") };
        assert_eq!(after.map(|after| after.as_secs()), is, "{header}");
    }
}

#[test]
fn a_status_that_was_expected_is_done_and_another_is_not() {
    let (url, server) = serve([answer("404 Not Found", "", ""), answer("200 OK", "", ""), answer("200 OK", "", "")]);
    let expect = |effect, method: &str| {
        call_as(Attempt::first(effect), json!({ "method": method, "url": url, "expect": [404] }))
    };
    assert_eq!(expect(PURE, "GET").unwrap()["status"], 404);
    assert!(matches!(expect(PURE, "GET"), Err(ToolError::Permanent(_))));
    assert!(matches!(expect(ONCE, "POST"), Err(ToolError::Unknown { .. })), "it may well have happened");
    server.join().unwrap();
}

#[test]
fn what_is_deleted_already_is_deleted_where_it_may_have_been_us() {
    let (url, server) = serve([answer("404 Not Found", "", ""), answer("410 Gone", "", "")]);
    let input = json!({ "method": "DELETE", "url": url });
    assert!(matches!(call(input.clone()), Err(ToolError::Permanent(_))), "nobody has deleted it");
    let again = Attempt { number: 2, repeated: true, ..Attempt::first(KEYED) };
    assert_eq!(call_as(again, input).unwrap()["status"], 410);
    server.join().unwrap();
}

#[test]
fn a_keyed_step_sends_its_key_and_the_same_each_time() {
    let ok = || answer("200 OK", "", "");
    let (url, server) = serve([ok(), ok(), ok(), ok()]);
    let input = |more: Value| {
        let mut input = object(json!({ "method": "POST", "url": url, "json": 1 }));
        input.extend(object(more));
        Value::Object(input)
    };
    let keyed = Attempt::first(KEYED);
    call_as(keyed, input(json!({}))).unwrap();
    call_as(Attempt { number: 2, ..keyed }, input(json!({}))).unwrap();
    call_as(keyed, input(json!({ "key": "order-17", "key_header": "X-Request-Id" }))).unwrap();
    call_as(keyed, input(json!({ "key": "order-17", "key_header": null }))).unwrap();
    let error = call_as(keyed, input(json!({ "key_header": null }))).unwrap_err();
    assert!(matches!(&error, ToolError::Permanent(why) if why.contains("`key`")), "{error:?}");
    let sent = server.join().unwrap();
    let keys: Vec<_> = sent.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys, [Some("t1-2"), Some("t1-2"), None, None]);
    assert_eq!(sent[2].header("x-request-id"), Some("order-17"));
}

/// A reply that was lost was taken for a request that was never sent, and the effect happened twice.
#[rstest]
#[case::closed("")]
#[case::closed_in_the_head("HTTP/1.1 200 OK\r\nContent-")]
#[case::closed_in_the_body("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")]
#[case::not_http("hello\r\n\r\n")]
fn an_answer_that_is_lost_leaves_the_outcome_unknown(#[case] answer: &str) {
    let (url, server) = serve([answer.to_owned(), answer.to_owned()]);
    let input = json!({ "method": "POST", "url": url, "body": "x" });
    let error = call_as(Attempt::first(ONCE), input.clone()).unwrap_err();
    assert!(matches!(error, ToolError::Unknown { .. }), "{error:?}");
    let error = call_as(Attempt::first(PURE), input).unwrap_err();
    assert!(matches!(error, ToolError::Transient { .. }), "{error:?}");
    server.join().unwrap();
}

#[test]
fn a_refused_connection_has_sent_nothing_whatever_the_class() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for url in [url.as_str(), "http://no-such-host.invalid/"] {
        let error = call(json!({ "method": "POST", "url": url, "body": "x" })).unwrap_err();
        assert!(matches!(error, ToolError::Transient { .. }), "{error:?}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for effect in [PURE, ONCE] {
        let attempt = Attempt { timeout: Some(Duration::from_millis(200)), ..Attempt::first(effect) };
        let begun = Instant::now();
        let error = call_as(attempt, json!({ "method": "POST", "url": url, "body": "x" })).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(error.to_string().contains("in time"), "{error}");
        assert_eq!(matches!(error, ToolError::Unknown { .. }), effect == ONCE, "{error:?}");
    }
}

#[test]
fn a_stop_is_heeded_and_what_was_sent_stays_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for (effect, stopped) in [(PURE, true), (ONCE, false)] {
        let stop = Stop::default();
        let flag = stop.flag();
        let timer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            flag.store(true, Ordering::Relaxed);
        });
        let input = json!({ "method": "POST", "url": url, "body": "x" });
        let error = call_with(&world(folder().path()), Attempt::first(effect), &stop, input).unwrap_err();
        assert_eq!(error == ToolError::Stopped, stopped, "{error:?}");
        assert_eq!(matches!(error, ToolError::Unknown { .. }), !stopped);
        timer.join().unwrap();
    }
}

#[test]
fn secrets_are_sent_and_never_told_nor_carried_to_another_host() {
    let secrets = Secrets::new(|name| (name == "TOKEN").then(|| "hunter22".to_owned()));
    let world = World { secrets: secrets.clone(), ..world(folder().path()) };
    let (other, other_server) = serve([answer("200 OK", "", "there")]);
    let elsewhere = answer("302 Found", &format!("Location: {other}/b\r\n"), "");
    let here = answer("302 Found", "Location: /a?x=1\r\n", "");
    let echo = answer("400 Bad", "", "you said hunter22");
    let (url, server) = serve([here, elsewhere, echo]);
    let input = json!({ "method": "GET", "url": format!("{url}/?t={}", secrets.mark("TOKEN")), "headers": {
        "authorization": format!("Bearer {}", secrets.mark("TOKEN")), "accept": "text/plain",
    }});
    let output = call_with(&world, Attempt::first(PURE), &Stop::default(), input.clone()).unwrap();
    assert_eq!(output["text"], "there");
    let error = call_with(&world, Attempt::first(PURE), &Stop::default(), input).unwrap_err().to_string();
    assert!(
        error.contains("?t=***TOKEN***") && error.contains("said ***TOKEN***") && !error.contains("hunter22"),
        "{error}"
    );
    let sent = server.join().unwrap();
    assert_eq!(sent[0].line, "GET /?t=hunter22 HTTP/1.1");
    assert_eq!(sent[1].header("authorization"), Some("Bearer hunter22"), "the same host");
    let elsewhere = other_server.join().unwrap().remove(0);
    assert_eq!((elsewhere.line.as_str(), elsewhere.header("accept")), ("GET /b HTTP/1.1", Some("text/plain")));
    assert_eq!(elsewhere.header("authorization"), None);
}

#[test]
fn a_request_is_not_sent_on_for_ever() {
    let (url, server) = serve(vec![answer("302 Found", "Location: /\r\n", ""); 6]);
    let error = call(json!({ "method": "GET", "url": url })).unwrap_err();
    assert!(matches!(&error, ToolError::Permanent(why) if why.contains("more than 5 times")), "{error:?}");
    server.join().unwrap();
}

#[test]
fn a_server_that_sends_without_end_does_not_fill_the_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            Request::read(&stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
        }
    });
    for (method, effect) in [("GET", PURE), ("POST", ONCE)] {
        let error = call_as(Attempt::first(effect), json!({ "method": method, "url": url })).unwrap_err();
        assert!(error.to_string().contains("more than 16777216 bytes"), "{error}");
        assert_eq!(matches!(error, ToolError::Permanent(_)), effect == PURE, "{error:?}");
    }
    server.join().unwrap();
}

/// What is not what it says it is hears nothing.
#[test]
fn a_server_without_a_certificate_that_holds_is_told_nothing() {
    let python = "import ssl, socket, sys\n\
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
        context.load_cert_chain(sys.argv[1])\n\
        server = socket.create_server(('127.0.0.1', 0))\n\
        print(server.getsockname()[1], flush=True)\n\
        raw, _ = server.accept()\n\
        try:\n\
        \x20   print('heard', context.wrap_socket(raw, server_side=True).recv(9), flush=True)\n\
        except (ssl.SSLError, OSError) as error:\n\
        \x20   print('refused', flush=True)\n";
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/self_signed.pem");
    let mut server = std::process::Command::new("python3")
        .args(["-c", python, certificate])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = said.next().unwrap().unwrap();
    let input = json!({ "method": "POST", "url": format!("https://localhost:{port}/"), "body": "x" });
    let error = call(input).unwrap_err();
    assert!(matches!(&error, ToolError::Transient { why, .. } if why.contains("certificate")), "{error:?}");
    assert_eq!(said.next().unwrap().unwrap(), "refused");
    server.wait().unwrap();
}
