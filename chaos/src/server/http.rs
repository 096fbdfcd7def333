//! Just enough of HTTP to read a request whole and to answer it, or to answer it badly on purpose, which no server
//! library does.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::error::LabError;

/// A request whose head is larger is not read to its end.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// A request whose body is larger is not read to its end.
const MAX_BODY_BYTES: usize = 16 << 20;

/// So many header fields a request may have.
const MAX_FIELDS: usize = 64;

/// How long a client may keep the server waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request, read to its end.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without its query.
    pub(super) path: String,
    pub(super) query: String,
    /// Names in lower case.
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// A header field, by its name in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server on a port of its own; gone when dropped.
pub(super) struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves each client in a thread of its own; port 0 is any that is free.
    pub(super) fn start(
        port: u16,
        serve: impl Fn(&TcpStream, &Request) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, LabError> {
        let failed = |e: io::Error| LabError::Internal(format!("cannot serve on port {port}: {e}"));
        let listener = TcpListener::bind(("127.0.0.1", port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let over = Arc::new(AtomicBool::new(false));
        let (stop, serve) = (Arc::clone(&over), Arc::new(serve));
        let accept = move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let serve = Arc::clone(&serve);
                // A client that was killed in the middle is the point of the lab; so nothing is made of errors here.
                let _ = std::thread::Builder::new().spawn(move || {
                    let request = read(&stream)?;
                    request.map_or(Ok(()), |request| serve(&stream, &request))
                });
            }
        };
        let thread = std::thread::Builder::new().spawn(accept).map_err(failed)?;
        Ok(Self { address, over, thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread out of waiting for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a request; nothing where the client left before its end, or does not speak HTTP.
fn read(mut stream: &TcpStream) -> io::Result<Option<Request>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut bytes, mut part) = (Vec::new(), [0; 8 << 10]);
    loop {
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&part[..count]);
        match parse(&bytes) {
            Parsed::Whole(request) => return Ok(Some(request)),
            Parsed::Bad => return Ok(None),
            Parsed::More => {}
        }
    }
}

enum Parsed {
    Whole(Request),
    More,
    Bad,
}

fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let body = match head.parse(bytes) {
        Ok(httparse::Status::Complete(at)) => &bytes[at..],
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Parsed::More,
        _ => return Parsed::Bad,
    };
    let (path, query) = head.path.unwrap_or("/").split_once('?').unwrap_or((head.path.unwrap_or("/"), ""));
    let field = |field: &httparse::Header<'_>| {
        (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).trim().to_owned())
    };
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        fields: head.headers.iter().map(field).collect(),
        body: Vec::new(),
    };
    let length = match request.field("content-length").map_or(Ok(0), str::parse) {
        Ok(length) if length <= MAX_BODY_BYTES => length,
        _ => return Parsed::Bad,
    };
    match body.get(..length) {
        Some(body) => {
            request.body = body.to_vec();
            Parsed::Whole(request)
        }
        None => Parsed::More,
    }
}

/// An answer as it goes over the wire.
pub(super) fn answer(status: u16, fields: &[(&str, String)], body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    text +=
        &format!("Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    text.into_bytes()
}

/// Sends bytes, wherever they end.
pub(super) fn send(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)
}

/// Asks a server on this machine, and gives the status with the JSON that it answered; null for other answers.
pub(super) fn ask(method: &str, url: &str, fields: &[(&str, &str)], body: &[u8]) -> io::Result<(u16, Value)> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{url}: {why}"));
    let rest = url.strip_prefix("http://").ok_or_else(|| bad("must begin with http://"))?;
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let mut stream = TcpStream::connect(host)?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[text.as_bytes(), body].concat())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    match (head.parse(&bytes), head.code) {
        (Ok(httparse::Status::Complete(at)), Some(status)) => {
            let length = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
            let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse::<usize>().ok());
            match (length, bytes.len() - at) {
                (Some(length), found) if found < length => Err(bad("the answer was cut off")),
                _ => Ok((status, serde_json::from_slice(&bytes[at..]).unwrap_or(Value::Null))),
            }
        }
        _ => Err(bad("no answer")),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        404 => "Not Found",
        409 => "Conflict",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_whole_and_not_before() {
        let text = "POST /a/b?c=d HTTP/1.1\r\nContent-Length: 2\r\nIdempotency-Key:  k \r\n\r\n{}";
        for end in 0..text.len() {
            assert!(matches!(parse(&text.as_bytes()[..end]), Parsed::More), "{end}");
        }
        let Parsed::Whole(request) = parse(text.as_bytes()) else { panic!("it is whole") };
        assert_eq!((request.method.as_str(), request.path.as_str(), request.query.as_str()), ("POST", "/a/b", "c=d"));
        assert_eq!((request.field("idempotency-key"), request.body.as_slice()), (Some("k"), b"{}".as_slice()));
    }

    #[test]
    fn what_is_no_request_ends_the_conversation() {
        for text in ["\u{1}\u{2}\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n"] {
            assert!(matches!(parse(text.as_bytes()), Parsed::Bad), "{text}");
        }
    }
}
