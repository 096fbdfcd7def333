//! A stand-in for a local model: it answers every request with the answer that it was told last, so that a test can
//! change the model's mind.

use std::sync::{Arc, Mutex};

use super::http::{self, Server};
use crate::error::LabError;

/// A model on a port of its own; gone when dropped.
pub struct ModelServer {
    server: Server,
    answer: Arc<Mutex<String>>,
}

impl ModelServer {
    /// Starts it with a first answer.
    ///
    /// # Errors
    /// No port, no thread.
    pub fn start(answer: &str) -> Result<Self, LabError> {
        let answer = Arc::new(Mutex::new(answer.to_owned()));
        let shared = Arc::clone(&answer);
        let server = Server::start(0, move |stream, _| {
            let answer = shared.lock().map(|answer| answer.clone()).unwrap_or_default();
            let document = serde_json::json!({
                "model": "stand-in",
                "response": answer,
                "message": {"role": "assistant", "content": answer},
                "done": true,
            });
            http::send(stream, &http::answer(200, &[], &document))
        })?;
        Ok(Self { server, answer })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Changes its mind.
    pub fn answers(&self, answer: &str) {
        if let Ok(mut kept) = self.answer.lock() {
            answer.clone_into(&mut kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_it_was_told_last() {
        let server = ModelServer::start("first").expect("server");
        let ask = || http::ask("POST", &format!("{}/api/generate", server.url()), &[], b"{}").expect("an answer");
        assert_eq!(ask().1["response"], "first");
        server.answers("second");
        assert_eq!(ask().1["response"], "second");
    }
}
