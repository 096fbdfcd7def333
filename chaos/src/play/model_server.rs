//! A stand-in for a local model: it answers every request with the answer that it was told last, so that a test can
//! change the model's mind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::LabError;

/// Requests larger than this are not read to their end.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// How long a client may keep the server waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A model on a port of its own; gone when dropped.
pub struct ModelServer {
    address: SocketAddr,
    answer: Arc<Mutex<String>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts it with a first answer.
    ///
    /// # Errors
    /// No port, no thread.
    pub fn start(answer: &str) -> Result<Self, LabError> {
        let failed = |e: std::io::Error| LabError::Internal(format!("cannot serve a model: {e}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let answer = Arc::new(Mutex::new(answer.to_owned()));
        let over = Arc::new(AtomicBool::new(false));
        let (shared, stop) = (Arc::clone(&answer), Arc::clone(&over));
        let thread = std::thread::Builder::new().spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let answer = shared.lock().map(|a| a.clone()).unwrap_or_default();
                // A client that was killed in the middle is the point of the lab.
                let _ = serve(&stream, &answer);
            }
        });
        Ok(Self { address, answer, over, thread: Some(thread.map_err(failed)?) })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes its mind.
    pub fn answers(&self, answer: &str) {
        if let Ok(mut kept) = self.answer.lock() {
            answer.clone_into(&mut kept);
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread out of waiting for a client.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(stream: &TcpStream, answer: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.take(MAX_REQUEST_BYTES));
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let document = serde_json::json!({
        "model": "stand-in",
        "response": answer,
        "message": {"role": "assistant", "content": answer},
        "done": true,
    });
    let document = document.to_string();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{document}",
        document.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &ModelServer) -> String {
        let mut stream = TcpStream::connect(server.address).expect("connect");
        stream.write_all(b"POST /api/generate HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").expect("write");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("read");
        text
    }

    #[test]
    fn it_says_what_it_was_told_last() {
        let server = ModelServer::start("first").expect("server");
        assert!(ask(&server).contains("\"response\":\"first\""));
        server.answers("second");
        assert!(ask(&server).contains("\"response\":\"second\""));
    }
}
