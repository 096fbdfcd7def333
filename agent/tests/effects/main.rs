//! What becomes of a step by its class, its waits and what people say, with tools that do as they are told: each
//! failure of the outside world can be had at will here, and none needs a server. That it also holds for processes that
//! are killed is the lab's to show.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod classes;
mod lab;
mod people;
mod retrying;
