//! What an agent under test talks to over HTTP: a stand-in for a model, and the ledger that counts what reached the
//! world. They listen on loopback, in the lab's process, and outlive every agent.

mod http;
pub mod ledger;
pub mod model;
