//! `chaos ledger`

use clap::{Args, Subcommand};
use serde_json::json;

use super::parts::print;
use crate::error::LabError;
use crate::server::ledger::{FAULTS, Fault, Ledger, post};

const ABOUT: &str = "\
Serves a ledger on loopback, which writes down what reached it and keeps two things apart:
requests, and what came of them, once for each idempotency key. It outlives the agent that
talks to it, and its count is the truth about `once`.

The first part of a path is a book of its own: POST, PUT and DELETE below it are effects,
GET /BOOK tells everything, GET /BOOK/effects?key=K the effects of a key, and POST
/BOOK/faults takes a list of faults for the next requests. It prints its address, then a
line of JSON for each request.";

/// Arguments of `ledger`.
#[derive(Debug, Args)]
#[command(about = "Serve a ledger, which counts what reaches the world", long_about = ABOUT, after_help = faults())]
#[command(args_conflicts_with_subcommands = true)]
pub struct LedgerArgs {
    /// The port; any that is free if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// What goes wrong with the first requests, separated by commas, for the book BOOK: `BOOK:drop,500`
    #[arg(long, value_name = "BOOK:LIST", value_parser = for_a_book)]
    faults: Option<ForABook>,
    #[command(subcommand)]
    command: Option<LedgerCommand>,
}

/// What else a ledger is for.
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Have an effect in a ledger, as a program of the exec protocol: the body is read from standard input, the key
    /// from AGENT_IDEMPOTENCY_KEY
    Post {
        /// The address of the effect
        url: String,
        /// Send no key
        #[arg(long)]
        no_key: bool,
    },
}

/// Faults for the requests of one book.
#[derive(Clone, Debug)]
pub(super) struct ForABook {
    book: String,
    faults: Vec<Fault>,
}

fn for_a_book(text: &str) -> Result<ForABook, String> {
    let (book, faults) = text.split_once(':').ok_or_else(|| "write BOOK:FAULT, such as b:drop,500".to_owned())?;
    let faults = faults.split(',').map(str::parse).collect::<Result<_, _>>()?;
    Ok(ForABook { book: book.to_owned(), faults })
}

fn faults() -> String {
    let list = FAULTS.iter().map(|(name, about)| format!("  {name:<9} {about}\n"));
    format!("Faults:\n{}", list.collect::<String>())
}

/// Serves until it is stopped by a signal; the exit code.
///
/// # Errors
/// No port, and what else the lab fails with.
pub(super) fn serve(args: &LedgerArgs) -> Result<i32, LabError> {
    if let Some(LedgerCommand::Post { url, no_key }) = &args.command {
        return effect(url, *no_key);
    }
    let tell = |book: &str, effect: &crate::server::ledger::Effect, said: &str| {
        let line = json!({ "book": book, "what": effect.what, "key": effect.key, "answer": said });
        // Nobody may be there to read it; the book has it.
        let _ = print(&format!("{line}\n"));
    };
    let ledger = Ledger::start(args.port, Box::new(tell))?;
    if let Some(ForABook { book, faults }) = &args.faults {
        ledger.fail(book, faults.iter().copied());
    }
    print(&format!("{}\n", ledger.url()))?;
    loop {
        std::thread::park();
    }
}

fn effect(url: &str, no_key: bool) -> Result<i32, LabError> {
    let body = std::io::read_to_string(std::io::stdin());
    let body = body.map_err(|e| LabError::Internal(format!("cannot read standard input: {e}")))?;
    let key = std::env::var("AGENT_IDEMPOTENCY_KEY").ok().filter(|_| !no_key);
    let answer = post(url, key.as_deref(), &body)?;
    print(&format!("{answer}\n"))?;
    Ok(0)
}
