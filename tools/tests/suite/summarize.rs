//! Asking a local model, played by a thread that answers as badly as a server can.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Map, Value, json};
use store::Crash;
use tools::{Engine, Ollama, ToolError, World};

use crate::support::{call, folder, from_0, outputs, world};

/// What the client sent.
#[derive(Debug)]
struct Request {
    line: String,
    body: Value,
}

fn read_request(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        match header.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { line: line.trim_end().to_owned(), body: serde_json::from_slice(&body).unwrap() }
}

/// A server for one connection; its address.
fn serve<T: Send + 'static>(answer: impl FnOnce(TcpStream) -> T + Send + 'static) -> (String, thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (url, thread::spawn(move || answer(listener.accept().unwrap().0)))
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}").unwrap();
}

fn world_of(url: &str, timeout: Duration) -> World {
    let server = Ollama { address: url.parse().unwrap(), model: "llama3.2".to_owned(), timeout };
    World { engine: Engine::Ollama(server), ..world(folder().path()) }
}

fn ask(url: &str, timeout: Duration) -> Result<Map<String, Value>, ToolError> {
    call("summarize", &world_of(url, timeout), &outputs(json!({ "text": "Notizen 報告" })), from_0(), &Crash::off())
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

/// The message of a failed attempt, which names the server.
fn failure(url: &str, timeout: Duration) -> String {
    match ask(url, timeout) {
        Err(ToolError::Step(why)) => {
            assert!(why.starts_with(&format!("ollama at {url}/api/generate: ")), "{why}");
            why
        }
        other => panic!("{other:?} is not a step error"),
    }
}

#[test]
fn the_stub_names_itself() {
    let stub = world(folder().path());
    let output = call("summarize", &stub, &outputs(json!({ "text": "a\n\n b \nc\nd" })), from_0(), &Crash::off());
    assert_eq!(Value::Object(output.unwrap()), json!({ "engine": "stub", "summary": "a\nb\nc" }));
}

#[rstest]
#[case("")]
#[case("/")]
fn the_model_is_asked_once_and_its_answer_is_trimmed(#[case] tail: &str) {
    let (url, server) = serve(|mut stream| {
        let request = read_request(&stream);
        reply(
            &mut stream,
            "200 OK",
            "",
            r#"{"response": "  kurz 報 \n", "done": true, "done_reason": "stop", "context": [1, 2]}"#,
        );
        request
    });
    let output = ask(&format!("{url}{tail}"), LONG).unwrap();
    assert_eq!(Value::Object(output), json!({ "engine": "ollama", "summary": "kurz 報" }));
    let request = server.join().unwrap();
    assert_eq!(request.line, "POST /api/generate HTTP/1.1");
    assert_eq!(request.body["model"], "llama3.2");
    assert_eq!(request.body["stream"], false);
    assert!(request.body["prompt"].as_str().unwrap().ends_with("Notizen 報告"), "{request:?}");
}

/// Half an answer, cut at the model's limit of tokens, was published as the report.
#[rstest]
#[case::server_error("500 Internal Server Error", "", "out of\nmemory", "HTTP status 500: out of memory")]
#[case::no_such_model("404 Not Found", "", r#"{"error":"model not found"}"#, r#"HTTP status 404: {"error":"model"#)]
#[case::redirect("302 Found", "Location: http://127.0.0.1:9/\r\n", "", "302")]
#[case::not_json("200 OK", "", "<html>", "the reply cannot be read: not JSON")]
#[case::empty("200 OK", "", "", "the reply cannot be read: not JSON")]
#[case::missing_field("200 OK", "", r#"{"answer":"x"}"#, "the reply has no text `response`")]
#[case::wrong_kind("200 OK", "", r#"{"response":7}"#, "the reply has no text `response`")]
#[case::a_list("200 OK", "", "[]", "the reply has no text `response`")]
#[case::nothing_said("200 OK", "", r#"{"response":" \n","done":true}"#, "the answer is empty")]
#[case::not_done("200 OK", "", r#"{"response":"half","done":false}"#, "the answer is not finished")]
#[case::cut("200 OK", "", r#"{"response":"half","done":true,"done_reason":"length"}"#, "`done_reason` is \"length\"")]
#[case::only_loaded("200 OK", "", r#"{"response":"x","done":true,"done_reason":"load"}"#, "not whole")]
#[case::beyond_64_bits("200 OK", "", r#"{"response":"x","n":99999999999999999999}"#, "beyond 64 bits")]
#[case::streamed("200 OK", "", "{\"response\":\"a\"}\n{\"response\":\"b\"}", "the reply cannot be read: not JSON")]
fn an_answer_that_is_not_a_summary_is_told_apart(
    #[case] status: &'static str,
    #[case] headers: &'static str,
    #[case] body: &'static str,
    #[case] says: &str,
) {
    let (url, server) = serve(move |mut stream| {
        read_request(&stream);
        reply(&mut stream, status, headers, body);
    });
    let why = failure(&url, LONG);
    assert!(why.contains(says), "{why}");
    assert!(!why.contains('\n'), "{why}");
    server.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_told_at_once() {
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let start = Instant::now();
    let why = failure(&url, LONG);
    assert!(why.to_lowercase().contains("connection refused"), "{why}");
    assert!(start.elapsed() < LONG / 4);
}

#[test]
fn a_server_that_hangs_up_is_told() {
    let (url, server) = serve(|stream| drop(read_request(&stream)));
    failure(&url, LONG);
    server.join().unwrap();
}

#[test]
fn an_answer_that_breaks_off_is_told() {
    let (url, server) = serve(|mut stream| {
        read_request(&stream);
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{{\"response\":\"half").unwrap();
    });
    failure(&url, LONG);
    server.join().unwrap();
}

#[test]
fn a_server_that_never_answers_is_waited_for_up_to_the_limit() {
    let (url, server) = serve(|stream| {
        read_request(&stream);
        // Returns once the client has given up and closed.
        let _closed = (&stream).read(&mut [0]);
    });
    let start = Instant::now();
    let why = failure(&url, SHORT);
    assert!(why.ends_with("no answer within 0.2 s"), "{why}");
    assert!(start.elapsed() >= SHORT && start.elapsed() < LONG / 4);
    server.join().unwrap();
}

/// A limit between two bytes would let this go on for ever; the limit is for the whole request.
#[test]
fn an_answer_that_drips_is_waited_for_up_to_the_limit() {
    let (url, server) = serve(|mut stream| {
        read_request(&stream);
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n").unwrap();
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let start = Instant::now();
    let why = failure(&url, SHORT);
    assert!(why.ends_with("no answer within 0.2 s"), "{why}");
    assert!(start.elapsed() < LONG / 4);
    server.join().unwrap();
}

#[test]
fn an_answer_without_end_does_not_fill_the_memory() {
    let (url, server) = serve(|mut stream| {
        read_request(&stream);
        write!(stream, "HTTP/1.1 200 OK\r\n\r\n{{\"response\":\"").unwrap();
        let block = vec![b'x'; 1 << 16];
        let mut sent = 0_usize;
        while stream.write_all(&block).is_ok() {
            sent += block.len();
            assert!(sent < 1 << 30, "the client reads on and on");
        }
    });
    let why = failure(&url, LONG);
    assert!(why.to_lowercase().contains("large") || why.contains("limit"), "{why}");
    server.join().unwrap();
}
