//! What agent and keeper say to each other: one line each, on a socket that is the keeper's standard input.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// The first line to the keeper: what to start. Environment and folder it has from the agent as its own.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    pub(super) command: Vec<OsString>,
    /// Where to note who it is; the lock too.
    pub(super) note: PathBuf,
    /// What the program reads on its standard input.
    pub(super) input: String,
}

/// To the keeper, after it has said that it is ready: start the program.
pub(super) const GO: &str = "go";
/// To the keeper: pass a SIGTERM on.
pub(super) const TERM: &str = "term";
/// To the keeper: end all of them at once. It does the same when the line closes.
pub(super) const KILL: &str = "kill";

/// From the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Say<'a> {
    /// It has noted who it is, and waits to be let go.
    Ready,
    /// The program could not be started: the number of the error, and its text.
    Failed(i32, String),
    /// The program has said this on descriptor 3.
    Checkpoint(&'a str),
    /// The program has said a line on descriptor 3 that is longer than a checkpoint may be.
    TooLong,
    /// The program has ended with this code.
    Exit(i32),
    /// The program was ended by this signal.
    Signal(i32),
}

impl Order {
    pub(super) fn to_line(&self) -> String {
        let words: Vec<Value> = self.command.iter().map(|word| text(word.as_bytes())).collect();
        let note = text(self.note.as_os_str().as_bytes());
        format!("{}\n", json!({ "command": words, "note": note, "input": self.input }))
    }

    pub(super) fn from_line(line: &str) -> io::Result<Self> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "not an order of the agent");
        let order: Map<String, Value> = serde_json::from_str(line).map_err(|_| bad())?;
        let words = order.get("command").and_then(Value::as_array).ok_or_else(bad)?;
        let command = words.iter().map(bytes).collect::<Option<Vec<_>>>().filter(|words| !words.is_empty());
        Ok(Self {
            command: command.ok_or_else(bad)?,
            note: order.get("note").and_then(bytes).ok_or_else(bad)?.into(),
            input: order.get("input").and_then(Value::as_str).ok_or_else(bad)?.to_owned(),
        })
    }
}

/// A name need not be UTF-8; each of its bytes is then a number.
fn text(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!(bytes), Value::from)
}

fn bytes(value: &Value) -> Option<OsString> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Array(bytes) => {
            let bytes = bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()));
            Some(OsString::from_vec(bytes.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

impl<'a> Say<'a> {
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Ready => "ready\n".to_owned(),
            Self::Failed(number, why) => format!("failed {number} {}\n", why.replace('\n', " ")),
            Self::Checkpoint(line) => format!("checkpoint {line}\n"),
            Self::TooLong => "long\n".to_owned(),
            Self::Exit(code) => format!("exit {code}\n"),
            Self::Signal(signal) => format!("signal {signal}\n"),
        }
    }

    pub(super) fn from_line(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "ready" => Self::Ready,
            "failed" => {
                let (number, why) = rest.split_once(' ')?;
                Self::Failed(number.parse().ok()?, why.to_owned())
            }
            "checkpoint" => Self::Checkpoint(rest),
            "long" => Self::TooLong,
            "exit" => Self::Exit(rest.parse().ok()?),
            "signal" => Self::Signal(rest.parse().ok()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let says = [
            Say::Ready,
            Say::Failed(2, "No such file".to_owned()),
            Say::Checkpoint(r#"{"checkpoint": 1}"#),
            Say::TooLong,
            Say::Exit(-1),
            Say::Signal(9),
        ];
        for say in says {
            let line = say.to_line();
            assert_eq!(Say::from_line(line.trim_end_matches('\n')).as_ref(), Some(&say));
        }
        for line in ["", "exit", "exit x", "failed 2", "hello"] {
            assert_eq!(Say::from_line(line), None, "{line}");
        }
    }

    #[test]
    fn an_order_may_have_names_that_are_not_utf_8() {
        let odd = OsString::from_vec(b"a\xff\n".to_vec());
        let order = Order { command: vec!["sh".into(), odd.clone()], note: odd.into(), input: "{\"a\":\n1}".into() };
        let line = order.to_line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Order::from_line(line.trim_end()).unwrap(), order);
        assert!(Order::from_line(r#"{"command":[],"note":"n","input":""}"#).is_err());
    }
}
