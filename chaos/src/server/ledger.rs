//! The ledger: a server that writes down what reached it, and is the truth about "once".
//!
//! A *request* is what somebody sent; an *effect* is what came of it, once for each idempotency key. A request without
//! a key is an effect each time. The address is the key of PUT and DELETE. Each first part of a path is a book of its
//! own, so that many agents can use one ledger:
//!
//! ```text
//! POST   /BOOK/anything       an effect; with the header Idempotency-Key once for each key: 201, later 200 with the
//!                             same answer; 422 for another body, 409 while the first one is in flight
//! PUT    /BOOK/anything       an effect where it changes what is there: 201 or 200
//! DELETE /BOOK/anything       an effect where something is there: 200 or 404
//! GET    /BOOK/anything       what PUT or POST left there: 200 or 404
//! GET    /BOOK/effects?key=K  the effects, all or those of one key
//! GET    /BOOK                everything: requests and effects
//! POST   /BOOK/faults         a list of faults for the next requests
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, Request, Server};
use crate::error::LabError;

/// The header that carries the key.
const KEY: &str = "idempotency-key";

/// How long a request may be under way until nobody waits for it any more.
const SETTLING: Duration = Duration::from_secs(5);

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes, and nothing was done.
    Lose,
    /// It was done, and the connection closes without an answer.
    Drop,
    /// It was done, and the connection closes in the middle of the answer.
    Midway,
    /// It was done, and the answer says 500.
    Error,
    /// It was done, and the answer comes later.
    Delay(Duration),
    /// It is in flight for so long, and done then.
    Hold(Duration),
    /// It is refused with 429 and these seconds as `Retry-After`.
    Busy(u32),
}

/// The faults as they are spelled, with what they do.
pub const FAULTS: [(&str, &str); 7] = [
    ("lose", "the connection closes, and nothing was done"),
    ("drop", "it was done, and the connection closes without an answer"),
    ("midway", "it was done, and the connection closes in the middle of the answer"),
    ("500", "it was done, and the answer is 500"),
    ("delay=MS", "it was done, and the answer comes so many milliseconds later"),
    ("hold=MS", "it is in flight for so long and done then; meanwhile its key answers 409"),
    ("429=S", "it is refused with 429 and `Retry-After: S`"),
];

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once('=').map_or((text, None), |(name, number)| (name, number.parse().ok()));
        let time = || number.map(|number: u32| Duration::from_millis(number.into()));
        let fault = match (name, text.contains('=')) {
            ("lose", false) => Some(Self::Lose),
            ("drop", false) => Some(Self::Drop),
            ("midway", false) => Some(Self::Midway),
            ("500", false) => Some(Self::Error),
            ("delay", true) => time().map(Self::Delay),
            ("hold", true) => time().map(Self::Hold),
            ("429", true) => number.map(Self::Busy),
            _ => None,
        };
        let known = FAULTS.map(|(name, _)| name).join(", ");
        fault.ok_or_else(|| format!("`{text}` is not a fault; there are {known}"))
    }
}

/// Something that happened in the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// `POST`, `PUT` or `DELETE`, with the path below the book.
    pub what: String,
    /// Its idempotency key, if it had one.
    pub key: Option<String>,
    /// What was sent.
    pub body: String,
}

/// What is known of one book.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// What was sent, as [`Effect`]s that may not have been one.
    pub requests: Vec<Effect>,
    /// What came of it.
    pub effects: Vec<Effect>,
    /// What stands at an address.
    things: BTreeMap<String, String>,
    /// By key: what was sent, and the answer, or none while it is in flight.
    answers: BTreeMap<String, (Effect, Option<Value>)>,
    faults: VecDeque<Fault>,
    /// How many requests are being answered.
    busy: usize,
}

impl Book {
    /// How many effects there are of this key; without one, how many there are in all.
    #[must_use]
    pub fn count(&self, key: Option<&str>) -> usize {
        self.effects.iter().filter(|effect| key.is_none() || effect.key.as_deref() == key).count()
    }

    /// Does what was asked; the answer.
    fn enter(&mut self, sent: Effect) -> (u16, Value) {
        let (method, path) = sent.what.split_once(' ').unwrap_or_default();
        let (path, body) = (path.to_owned(), sent.body.clone());
        match method {
            "PUT" => match self.things.insert(path, body) {
                Some(there) if there == sent.body => (200, json!({ "changed": false })),
                there => self.effect(sent, if there.is_some() { 200 } else { 201 }),
            },
            "DELETE" => match self.things.remove(&path) {
                Some(_) => self.effect(sent, 200),
                None => (404, json!({ "error": "nothing is there" })),
            },
            _ => match sent.key.clone() {
                Some(key) => {
                    let (status, answer) = self.effect(sent.clone(), 201);
                    self.answers.insert(key, (sent, Some(answer.clone())));
                    (status, answer)
                }
                None => self.effect(sent, 201),
            },
        }
    }

    fn effect(&mut self, sent: Effect, status: u16) -> (u16, Value) {
        if let Some(path) = sent.what.strip_prefix("POST ") {
            self.things.insert(path.to_owned(), sent.body.clone());
        }
        let answer = json!({ "id": self.effects.len() + 1, "key": sent.key });
        self.effects.push(sent);
        (status, answer)
    }

    /// The answer to a key that was used before.
    fn repeated(&self, sent: &Effect) -> Option<(u16, Value)> {
        let (first, answer) = self.answers.get(sent.key.as_ref()?)?;
        Some(match answer {
            _ if (&first.what, &first.body) != (&sent.what, &sent.body) => {
                (422, json!({ "error": "this key was used with another request" }))
            }
            None => (409, json!({ "error": "the first request of this key is in flight" })),
            Some(answer) => (200, answer.clone()),
        })
    }

    fn told(&self) -> Value {
        json!({ "requests": listed(&self.requests, None), "effects": listed(&self.effects, None) })
    }
}

fn listed(effects: &[Effect], key: Option<&str>) -> Vec<Value> {
    let wanted = effects.iter().filter(|effect| key.is_none() || effect.key.as_deref() == key);
    wanted.map(|effect| json!({ "what": effect.what, "key": effect.key, "body": effect.body })).collect()
}

/// The books, by name.
type Books = Arc<Mutex<BTreeMap<String, Book>>>;

/// A ledger that listens; gone when dropped.
pub struct Ledger {
    server: Server,
    books: Books,
}

/// Is told of every request: the book, what was sent, the status of the answer.
pub type Tell = dyn Fn(&str, &Effect, &str) + Send + Sync;

impl Ledger {
    /// Starts it; port 0 is any that is free.
    ///
    /// # Errors
    /// No port, no thread.
    pub fn start(port: u16, tell: Box<Tell>) -> Result<Self, LabError> {
        let books = Books::default();
        let shared = Arc::clone(&books);
        let server = Server::start(port, move |stream, request| serve(&shared, &tell, stream, request))?;
        Ok(Self { server, books })
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Lets the next requests of a book go wrong, one fault each.
    pub fn fail(&self, book: &str, faults: impl IntoIterator<Item = Fault>) {
        locked(&self.books).entry(book.to_owned()).or_default().faults.extend(faults);
    }

    /// The one that all scenarios of this process share, each with a book of its own.
    ///
    /// # Errors
    /// No port, no thread.
    pub fn shared() -> Result<&'static Self, LabError> {
        static LEDGER: OnceLock<Result<Ledger, String>> = OnceLock::new();
        let ledger = LEDGER.get_or_init(|| Self::start(0, Box::new(|_, _, _| {})).map_err(|error| error.to_string()));
        ledger.as_ref().map_err(|why| LabError::Internal(why.clone()))
    }

    /// Writes all that stands in one book into another.
    pub fn copy(&self, from: &str, to: &str) {
        let mut books = locked(&self.books);
        let book = books.get(from).cloned().unwrap_or_default();
        books.insert(to.to_owned(), Book { busy: 0, ..book });
    }

    /// Takes a book away.
    pub fn close(&self, name: &str) {
        locked(&self.books).remove(name);
    }

    /// Waits until no request of a book is under way any more, though not for ever.
    pub fn settle(&self, name: &str) {
        let begin = std::time::Instant::now();
        while self.book(name).busy > 0 && begin.elapsed() < SETTLING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What stands in a book now.
    #[must_use]
    pub fn book(&self, name: &str) -> Book {
        locked(&self.books).get(name).cloned().unwrap_or_default()
    }
}

fn locked(books: &Books) -> MutexGuard<'_, BTreeMap<String, Book>> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(books: &Books, tell: &Tell, stream: &TcpStream, request: &Request) -> io::Result<()> {
    let path = request.path.trim_start_matches('/');
    let (name, path) = path.split_once('/').unwrap_or((path, ""));
    let effect = Effect {
        what: format!("{} {path}", request.method),
        key: request.field(KEY).map(str::to_owned),
        body: String::from_utf8_lossy(&request.body).into_owned(),
    };
    match (request.method.as_str(), path) {
        ("POST", "faults") => {
            let (status, answer) = match faults(&effect.body) {
                Ok(faults) => {
                    locked(books).entry(name.to_owned()).or_default().faults.extend(faults);
                    (200, json!({}))
                }
                Err(why) => (422, json!({ "error": why })),
            };
            http::send(stream, &http::answer(status, &[], &answer))
        }
        ("GET", path) => {
            let book = locked(books).get(name).cloned().unwrap_or_default();
            let (status, answer) = looked_up(&book, path, &request.query);
            http::send(stream, &http::answer(status, &[], &answer))
        }
        _ => {
            locked(books).entry(name.to_owned()).or_default().busy += 1;
            let said = carry_out(books, name, &effect, stream);
            if let Some(book) = locked(books).get_mut(name) {
                book.busy = book.busy.saturating_sub(1);
            }
            let said = said?;
            tell(name, &effect, &said);
            Ok(())
        }
    }
}

fn faults(body: &str) -> Result<Vec<Fault>, String> {
    let names: Vec<String> = serde_json::from_str(body).map_err(|_| "send a JSON list of faults".to_owned())?;
    names.iter().map(|name| name.parse()).collect()
}

fn looked_up(book: &Book, path: &str, query: &str) -> (u16, Value) {
    match (path, book.things.get(path)) {
        ("", _) => (200, book.told()),
        ("effects", _) => {
            let effects = listed(&book.effects, query.strip_prefix("key="));
            (200, json!({ "count": effects.len(), "effects": effects }))
        }
        (_, Some(thing)) => (200, serde_json::from_str(thing).unwrap_or_else(|_| json!({ "text": thing }))),
        (_, None) => (404, json!({ "error": "nothing is there" })),
    }
}

/// Does a request for an effect, or what its fault makes of it; says what became of it.
fn carry_out(books: &Books, name: &str, effect: &Effect, stream: &TcpStream) -> io::Result<String> {
    let close = |said: &str| {
        // A client that has left already needs no end of its conversation.
        let _ = stream.shutdown(Shutdown::Both);
        Ok(said.to_owned())
    };
    let mut held = locked(books);
    let book = held.entry(name.to_owned()).or_default();
    book.requests.push(effect.clone());
    let fault = book.faults.pop_front();
    match fault {
        Some(Fault::Lose) => return close("lost"),
        Some(Fault::Busy(seconds)) => {
            let after = [("Retry-After", seconds.to_string())];
            http::send(stream, &http::answer(429, &after, &json!({ "error": "busy" })))?;
            return Ok("429".to_owned());
        }
        _ => {}
    }
    let (status, answer) = match (book.repeated(effect), fault) {
        (Some(repeated), _) => repeated,
        (None, Some(Fault::Hold(time))) => {
            if let Some(key) = &effect.key {
                book.answers.insert(key.clone(), (effect.clone(), None));
            }
            drop(held);
            std::thread::sleep(time);
            held = locked(books);
            held.entry(name.to_owned()).or_default().enter(effect.clone())
        }
        (None, _) => book.enter(effect.clone()),
    };
    drop(held);
    let whole = http::answer(status, &[], &answer);
    match fault {
        Some(Fault::Drop) => return close("done, no answer"),
        Some(Fault::Midway) => {
            http::send(stream, &whole[..whole.len() - 2])?;
            return close("done, half an answer");
        }
        Some(Fault::Error) => {
            http::send(stream, &http::answer(500, &[], &json!({ "error": "after it was done" })))?;
            return Ok("done, 500".to_owned());
        }
        Some(Fault::Delay(time)) => std::thread::sleep(time),
        _ => {}
    }
    http::send(stream, &whole)?;
    Ok(status.to_string())
}

/// Sends a request to a ledger: how a program without an HTTP client has its effect.
///
/// # Errors
/// There is no answer, or its status is not a success.
pub fn post(url: &str, key: Option<&str>, body: &str) -> Result<Value, LabError> {
    let fields: Vec<(&str, &str)> = key.map(|key| (KEY, key)).into_iter().collect();
    match http::ask("POST", url, &fields, body.as_bytes()) {
        Ok((200..=299, answer)) => Ok(answer),
        Ok((status, answer)) => Err(LabError::Internal(format!("the ledger answered {status}: {answer}"))),
        Err(error) => Err(LabError::Internal(format!("the ledger: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::start(0, Box::new(|_, _, _| {})).expect("a ledger")
    }

    fn send(ledger: &Ledger, method: &str, path: &str, key: Option<&str>, body: &str) -> io::Result<(u16, Value)> {
        let fields: Vec<(&str, &str)> = key.map(|key| (KEY, key)).into_iter().collect();
        http::ask(method, &format!("{}/{path}", ledger.url()), &fields, body.as_bytes())
    }

    fn status(ledger: &Ledger, method: &str, path: &str, key: Option<&str>, body: &str) -> u16 {
        send(ledger, method, path, key, body).expect("an answer").0
    }

    #[test]
    fn an_effect_is_there_once_for_each_key_and_each_time_without_one() {
        let ledger = ledger();
        let (first, answer) = send(&ledger, "POST", "b/mail", Some("k"), "{}").expect("an answer");
        assert_eq!(send(&ledger, "POST", "b/mail", Some("k"), "{}").expect("an answer"), (200, answer));
        assert_eq!(first, 201);
        assert_eq!(status(&ledger, "POST", "b/mail", Some("k"), "{ }"), 422, "another body under this key");
        for _ in 0..2 {
            assert_eq!(status(&ledger, "POST", "b/mail", None, "{}"), 201);
        }
        let book = ledger.book("b");
        assert_eq!((book.requests.len(), book.count(None), book.count(Some("k"))), (5, 3, 1));
        assert_eq!(ledger.book("c").count(None), 0, "each book is its own");
    }

    #[test]
    fn the_address_is_the_key_of_put_and_delete() {
        let ledger = ledger();
        let all = [("PUT", "1", 201), ("PUT", "1", 200), ("PUT", "2", 200), ("DELETE", "", 200), ("DELETE", "", 404)];
        for (method, body, expected) in all {
            assert_eq!(status(&ledger, method, "b/x", None, body), expected, "{method} {body}");
        }
        assert_eq!(ledger.book("b").count(None), 3);
    }

    #[test]
    fn what_goes_wrong_goes_wrong_before_or_after_the_effect() {
        let ledger = ledger();
        for (fault, answered, effects) in [
            (Fault::Lose, None, 0),
            (Fault::Drop, None, 1),
            (Fault::Midway, None, 1),
            (Fault::Error, Some(500), 1),
            (Fault::Busy(7), Some(429), 0),
            (Fault::Delay(Duration::from_millis(1)), Some(201), 1),
        ] {
            let book = format!("{fault:?}");
            ledger.fail(&book, [fault]);
            let answer = send(&ledger, "POST", &format!("{book}/x"), Some("k"), "{}");
            assert_eq!(answer.ok().map(|(status, _)| status), answered, "{fault:?}");
            assert_eq!(ledger.book(&book).count(None), effects, "{fault:?}");
            assert!(status(&ledger, "POST", &format!("{book}/x"), Some("k"), "{}") < 300, "{fault:?}");
            assert_eq!(ledger.book(&book).count(None), 1, "{fault:?}");
        }
    }

    #[test]
    fn a_key_in_flight_answers_conflict_and_is_done_once() {
        let ledger = ledger();
        ledger.fail("b", [Fault::Hold(Duration::from_millis(200))]);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| status(&ledger, "POST", "b/x", Some("k"), "{}"));
            while ledger.book("b").requests.is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(status(&ledger, "POST", "b/x", Some("k"), "{}"), 409);
            assert_eq!(first.join().expect("an answer"), 201);
        });
        assert_eq!(ledger.book("b").count(None), 1);
    }

    #[test]
    fn a_fault_is_spelled_as_the_table_has_it() {
        for (name, _) in FAULTS {
            let text = name.replace("MS", "5").replace("=S", "=5");
            assert!(text.parse::<Fault>().is_ok(), "{text}");
        }
        for text in ["", "drops", "delay", "delay=x", "drop=1", "500=1"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
