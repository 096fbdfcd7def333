//! HTTP that can be given up: whatever it waits for, it looks whether the process has been asked to stop.
//!
//! A read that waits for minutes would keep a process from ending, and a second thread that interrupts it would be one
//! more thing to reason about in every trace of a run. So the socket waits in short slices.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, RustlsConnector, Transport,
};
use ureq::{Agent, Error};

use crate::stop::Stop;

/// How long it waits before it looks.
const SLICE: Duration = Duration::from_millis(50);

/// How long it waits for a connection before it looks. A try that is given up begins anew, so this is longer than any
/// round trip, and than the second after which a lost packet is sent again.
const CONNECT_SLICE: Duration = Duration::from_secs(2);

/// Whether anything of a request has been sent. What goes to and fro before, such as what TLS needs, does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire(Arc<AtomicBool>);

impl Wire {
    pub(crate) fn was_used(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A client that gives up as soon as `stop` is asked, with an error of kind
/// [`io::ErrorKind::ConnectionAborted`]: who reads a body to its end tries again after one that says "interrupted".
pub(crate) fn agent(config: Config, stop: &Stop, wire: &Wire) -> Agent {
    let connector = Stoppable { stop: stop.clone() }.chain(RustlsConnector::default()).chain(Watching(wire.clone()));
    Agent::with_parts(config, connector, DefaultResolver::default())
}

#[derive(Debug)]
struct Watching(Wire);

impl<In: Transport> Connector<In> for Watching {
    type Out = Watched<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Watched<In>>, Error> {
        Ok(chained.map(|inner| Watched { inner, wire: self.0.clone() }))
    }
}

/// A connection that says when it is used.
#[derive(Debug)]
struct Watched<T> {
    inner: T,
    wire: Wire,
}

impl<T: Transport> Transport for Watched<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.wire.0.store(true, Ordering::Relaxed);
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

#[derive(Debug)]
struct Stoppable {
    stop: Stop,
}

impl Connector<()> for Stoppable {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _chained: Option<()>) -> Result<Option<Connection>, Error> {
        let wait = Wait::new(&self.stop, details.timeout);
        let mut last = Error::HostNotFound;
        for address in &details.addrs {
            match connect(*address, &wait) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    let (input, output) = (details.config.input_buffer_size(), details.config.output_buffer_size());
                    let buffers = LazyBuffers::new(input, output);
                    return Ok(Some(Connection { stream, buffers, stop: self.stop.clone() }));
                }
                Err(error @ Error::Timeout(_)) => return Err(error),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn connect(address: SocketAddr, wait: &Wait<'_>) -> Result<TcpStream, Error> {
    loop {
        match TcpStream::connect_timeout(&address, wait.slice(CONNECT_SLICE)) {
            Ok(stream) => return Ok(stream),
            Err(error) => wait.go_on(error)?,
        }
    }
}

/// One wait: how long it may last, and whether it is to be given up.
struct Wait<'a> {
    stop: &'a Stop,
    end: Option<Instant>,
    timeout: NextTimeout,
}

impl<'a> Wait<'a> {
    fn new(stop: &'a Stop, timeout: NextTimeout) -> Self {
        let end = timeout.not_zero().and_then(|after| Instant::now().checked_add(*after));
        Self { stop, end, timeout }
    }

    /// How long to wait now; never zero, which sockets take for no limit.
    fn slice(&self, longest: Duration) -> Duration {
        let left = self.end.map_or(longest, |end| end.saturating_duration_since(Instant::now()));
        left.clamp(Duration::from_millis(1), longest)
    }

    /// Whether an error is only the end of a slice.
    fn go_on(&self, error: io::Error) -> Result<(), Error> {
        use io::ErrorKind::{ConnectionAborted, Interrupted, TimedOut, WouldBlock};
        if !matches!(error.kind(), Interrupted | TimedOut | WouldBlock) {
            return Err(error.into());
        }
        if self.stop.asked() {
            return Err(io::Error::new(ConnectionAborted, "given up, the process has been asked to stop").into());
        }
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return Err(Error::Timeout(self.timeout.reason));
        }
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    buffers: LazyBuffers,
    stop: Stop,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let wait = Wait::new(&self.stop, timeout);
        let mut rest = &self.buffers.output()[..amount];
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(wait.slice(SLICE)))?;
            match self.stream.write(rest) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(written) => rest = &rest[written..],
                Err(error) => wait.go_on(error)?,
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let wait = Wait::new(&self.stop, timeout);
        loop {
            self.stream.set_read_timeout(Some(wait.slice(SLICE)))?;
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(read) => {
                    self.buffers.input_appended(read);
                    return Ok(read > 0);
                }
                Err(error) => wait.go_on(error)?,
            }
        }
    }

    /// A connection serves one request.
    fn is_open(&mut self) -> bool {
        false
    }
}
