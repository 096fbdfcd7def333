//! A program, from the agent's side: started, watched, and known to be gone.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use store::{CrashScope, CrashSite, limits};

use super::group::end_former;
use super::kept::{Kept, stderr_path};
use super::wire::{GO, KILL, Order, Say, TERM};
use crate::error::ToolError;
use crate::tool::ToolContext;

/// How long it waits before it looks whether the process has been asked to stop.
const SLICE: u8 = 50;

/// How long what is left in a pipe may take to read, once the program has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// A program to be started.
pub(crate) struct Launch<'a> {
    /// The program, and what it is given.
    pub(crate) command: Vec<OsString>,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    /// All of its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub(crate) input: String,
    /// How long it may run.
    pub(crate) timeout: Duration,
    /// What it is started for, where that is not the step itself; names what is kept of it.
    pub(crate) part: &'static str,
    /// Passed when its keeper is ready and the program is not started.
    pub(crate) noted: Option<CrashSite>,
    /// Hears how far it is.
    pub(crate) keep: Option<&'a crate::attempt::Keep<'a>>,
}

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was not started: the number of the error and its text.
    NotStarted(i32, String),
    /// With this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended since it had not done so in time.
    TimedOut,
    /// It was ended since it printed too much.
    Flooded,
    /// Its keeper was killed, and it was ended with it.
    Lost,
}

/// What is known of a program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// What it printed.
    pub(crate) stdout: Vec<u8>,
    /// The end of what it said on standard error.
    pub(crate) stderr: String,
    /// Whether it was asked to stop.
    pub(crate) stopped: bool,
}

/// Starts a program and waits for its end. What an earlier attempt left is ended before; when it returns, nothing of
/// this one runs any more, but for what has left its process group and outlived a regular end.
///
/// # Errors
/// Nothing was started, or what a checkpoint could not do.
pub(crate) fn run(ctx: &ToolContext<'_>, launch: &Launch<'_>) -> Result<Ended, ToolError> {
    let folder = &ctx.world.programs.folder;
    let failed = |error: io::Error| ToolError::step(format!("cannot use the folder {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let note = note(ctx);
    end_former(&note)?;
    if ctx.stop.asked() {
        return Err(ToolError::Stopped);
    }
    let stderr = stderr_path(folder, &ctx.key.file_stem(), ctx.attempt.number, launch.part);
    let kept = Kept::new(stderr, &ctx.world.secrets);
    let started = Watched::start(ctx, launch, kept)
        .map_err(|error| ToolError::transient(format!("cannot start a program: {error}")))?;
    let result = started.finish(ctx, launch, &note);
    // What has outlived a regular end is no one's business; a later attempt ends it.
    if !matches!(&result, Ok(Ended { end: End::Exit(_), .. })) {
        end_former(&note)?;
    } else {
        remove_if_free(&note);
    }
    result
}

/// Where it is noted what runs for a step.
pub(crate) fn note(ctx: &ToolContext<'_>) -> PathBuf {
    ctx.world.programs.folder.join(format!("{}.keeper", ctx.key.file_stem()))
}

fn remove_if_free(note: &Path) {
    if fs::File::open(note).is_ok_and(|file| file.try_lock().is_ok()) {
        // One that stays is removed by the next attempt, or says nothing.
        let _stays = fs::remove_file(note);
    }
}

/// What came of one look.
struct Looked {
    /// Whether there was something in the pipes.
    more: bool,
}

struct Watched<'a> {
    keeper: Child,
    line: UnixStream,
    /// What the keeper has said and is not a whole line yet.
    said: Vec<u8>,
    stdout: Vec<u8>,
    stderr: Kept<'a>,
    end: Option<End>,
    /// Whether the keeper has not hung up yet.
    open: bool,
    /// Whether the program was let go.
    let_go: bool,
    /// Whether the keeper has been told to end the program.
    ended: bool,
    stopped: bool,
}

impl<'a> Watched<'a> {
    fn start(ctx: &ToolContext<'_>, launch: &Launch<'_>, stderr: Kept<'a>) -> io::Result<Self> {
        let [program, arguments @ ..] = ctx.world.programs.keeper.as_slice() else {
            return Err(io::Error::other("this program has no keeper"));
        };
        let (line, its_end) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&launch.folder).process_group(0);
        command.stdin(OwnedFd::from(its_end)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let keeper = command.spawn()?;
        let note = std::path::absolute(note(ctx))?;
        let mut watched = Self {
            keeper,
            line,
            said: Vec::new(),
            stdout: Vec::new(),
            stderr,
            end: None,
            open: true,
            let_go: false,
            ended: false,
            stopped: false,
        };
        let order = Order { command: launch.command.clone(), note, input: launch.input.clone() };
        watched.tell(order.to_line().trim_end());
        Ok(watched)
    }

    fn finish(mut self, ctx: &ToolContext<'_>, launch: &Launch<'_>, note: &Path) -> Result<Ended, ToolError> {
        let result = self.watch(ctx, launch);
        if result.is_err() {
            self.tell(KILL);
        }
        let keeper = self.keeper.wait();
        let failed = |error: io::Error| ToolError::unknown(format!("cannot watch the program: {error}"));
        result?;
        keeper.map_err(failed)?;
        if self.end.is_none() && !self.let_go {
            self.end = Some(End::NotStarted(0, "its keeper has ended".to_owned()));
        }
        if self.end.is_none() {
            // It has not said how it ended: then its program is ended now, and may have done anything.
            end_former(note)?;
        }
        self.drain().map_err(failed)?;
        let stderr =
            self.stderr.finish().map_err(|error| ToolError::unknown(format!("cannot keep stderr: {error}")))?;
        let end = self.end.unwrap_or(End::Lost);
        Ok(Ended { end, stdout: self.stdout, stderr, stopped: self.stopped })
    }

    /// Until the keeper is gone.
    fn watch(&mut self, ctx: &ToolContext<'_>, launch: &Launch<'_>) -> Result<(), ToolError> {
        let deadline = Instant::now().checked_add(launch.timeout);
        let crash = ctx.crash;
        loop {
            if !self.stopped && ctx.stop.asked() {
                self.stopped = true;
                self.tell(TERM);
            }
            if !self.ended && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.give_up(End::TimedOut);
            }
            if !self.ended && self.stdout.len() > limits::PROGRAM_OUTPUT_BYTES {
                self.give_up(End::Flooded);
            }
            self.look(PollTimeout::from(SLICE)).map_err(watching)?;
            while let Some(at) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=at).collect();
                self.hear(&String::from_utf8_lossy(&line[..at]), crash, launch)?;
            }
            if !self.open {
                return Ok(());
            }
        }
    }

    /// Waits for something to read and reads it. What the keeper says is not waited for once it has hung up.
    fn look(&mut self, timeout: PollTimeout) -> io::Result<Looked> {
        let (stdout, stderr) = (&mut self.keeper.stdout, &mut self.keeper.stderr);
        let line = self.open.then(|| self.line.as_fd());
        let pipes = [line, stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)];
        let wait = |pipe| PollFd::new(pipe, PollFlags::POLLIN);
        let mut waits: Vec<_> = pipes.into_iter().flatten().map(wait).collect();
        match poll(&mut waits, timeout) {
            Err(nix::errno::Errno::EINTR) => return Ok(Looked { more: false }),
            result => result?,
        };
        let mut ready = waits.iter().map(|wait| wait.any() == Some(true)).collect::<Vec<_>>().into_iter();
        let line = self.open && ready.next() == Some(true);
        let out = stdout.is_some() && ready.next() == Some(true);
        let err = stderr.is_some() && ready.next() == Some(true);
        if out && !read(stdout.as_mut(), |bytes| take(&mut self.stdout, bytes))? {
            *stdout = None;
        }
        let mut kept = Ok(());
        if err && !read(stderr.as_mut(), |bytes| kept = self.stderr.take(bytes))? {
            *stderr = None;
        }
        kept?;
        if line {
            self.open = read(Some(&mut &self.line), |bytes| self.said.extend_from_slice(bytes))?;
        }
        Ok(Looked { more: out || err })
    }

    /// What is left in the pipes. Whoever still holds them is not waited for.
    fn drain(&mut self) -> io::Result<()> {
        let end = Instant::now() + DRAIN;
        while self.look(PollTimeout::ZERO)?.more && Instant::now() < end {}
        Ok(())
    }

    fn hear(&mut self, line: &str, crash: CrashScope<'_>, launch: &Launch<'_>) -> Result<(), ToolError> {
        match Say::from_line(line) {
            Some(Say::Ready) => {
                if let Some(site) = launch.noted {
                    crash.point(site);
                }
                if !self.stopped && !self.ended {
                    self.let_go = true;
                    self.tell(GO);
                }
            }
            Some(Say::Checkpoint(said)) => return self.checkpoint(said, launch),
            Some(Say::TooLong) => {
                let why =
                    format!("a line on descriptor 3 has more than {} bytes and is left out", limits::CHECKPOINT_BYTES);
                self.stderr.remark(&why).map_err(watching)?;
            }
            // What it was ended for stands.
            Some(_) if self.end.is_some() => {}
            Some(Say::Failed(number, why)) => self.end = Some(End::NotStarted(number, why)),
            Some(Say::Exit(code)) => self.end = Some(End::Exit(code)),
            Some(Say::Signal(signal)) => self.end = Some(End::Signal(signal)),
            None => {}
        }
        Ok(())
    }

    fn checkpoint(&mut self, said: &str, launch: &Launch<'_>) -> Result<(), ToolError> {
        let Some(keep) = launch.keep else { return Ok(()) };
        let value = store::model::codec::value_from_json(said);
        match value.as_ref().ok().and_then(|value| value.get("checkpoint")) {
            Some(checkpoint) => keep(checkpoint),
            None => {
                let why = format!("a line on descriptor 3 is not {{\"checkpoint\": …}} and is left out: {said:.80}");
                self.stderr.remark(&why).map_err(watching)
            }
        }
    }

    fn give_up(&mut self, end: End) {
        self.ended = true;
        self.end = self.end.take().or(Some(end));
        self.tell(KILL);
    }

    /// A keeper that is gone hears nothing, and that is noticed when it is listened to.
    fn tell(&mut self, what: &str) {
        let _gone = self.line.write_all(format!("{what}\n").as_bytes());
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn watching(error: io::Error) -> ToolError {
    ToolError::unknown(format!("cannot watch the program: {error}"))
}

/// More than is allowed is not kept, only noticed.
fn take(stdout: &mut Vec<u8>, bytes: &[u8]) {
    let room = (limits::PROGRAM_OUTPUT_BYTES + 1).saturating_sub(stdout.len());
    stdout.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// Reads once; false at the end.
fn read<R: Read>(from: Option<&mut R>, take: impl FnOnce(&[u8])) -> io::Result<bool> {
    let Some(from) = from else { return Ok(false) };
    let mut buffer = vec![0; CHUNK];
    match from.read(&mut buffer) {
        Ok(0) => Ok(false),
        Ok(read) => {
            take(&buffer[..read]);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}
