//! Results on standard output.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure, printable};

/// Standard output as the kernel has it. The standard library takes a descriptor that cannot be written for one that
/// nobody reads, and says that all is well.
struct Descriptor;

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(nix::unistd::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Buffered standard output. A reader that closes the pipe has seen enough: that is not an error.
pub(crate) struct Output {
    out: BufWriter<Descriptor>,
    closed: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { out: BufWriter::new(Descriptor), closed: false }
    }

    /// True where nobody reads any more, so that further work is in vain.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let result = writeln!(self.out, "{line}");
        self.settle(result)
    }

    /// A value as compact JSON on a line of its own.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let result = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
        let result = result.and_then(|()| self.out.write_all(b"\n"));
        self.settle(result)
    }

    /// A value as JSON that people can read.
    pub(crate) fn pretty(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let result = serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from);
        let result = result.and_then(|()| self.out.write_all(b"\n"));
        self.settle(result)
    }

    /// Must be called at the end: what cannot be written then is an error, not a short result with exit code 0.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let result = self.out.flush();
        self.settle(result)
    }

    fn settle(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::new(Exit::Io, format!("cannot write to standard output: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}

/// A table without borders, for people.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(head.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
