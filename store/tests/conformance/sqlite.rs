//! The embedded backend, for the suite.

use std::path::PathBuf;

use fixtures::Sandbox;
use store::sqlite::SqliteStore;
use store::{Crash, Store};

use crate::support::Backend;

/// A fresh database file.
pub(crate) struct Sqlite {
    sandbox: Sandbox,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self { sandbox: Sandbox::new() }
    }

    fn path(&self) -> PathBuf {
        self.sandbox.file("state.db")
    }
}

impl Backend for Sqlite {
    fn connect(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open_or_create(&self.path(), Crash::off()).unwrap())
    }
}
