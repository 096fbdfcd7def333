//! The process between agent and program.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, close, dup2, getpgrp, pipe2};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use store::limits;

use super::group;
use super::wire::{GO, KILL, Order, Say, TERM};

/// Where a program says how far it is.
const CHECKPOINTS: i32 = 3;

/// Does what a keeper does: what is started as one calls this and nothing else, and then ends.
///
/// # Errors
/// It was not started by an agent, or could not be what it is to be; the agent hears nothing more from it.
pub fn keep() -> io::Result<()> {
    if getpgrp() != Pid::this() {
        return Err(io::Error::other("this is started by the agent itself, beside a program of a step"));
    }
    close_inherited();
    // The lowest number that is free, so this is where the program will find its end of the pipe.
    let mut three = OwnedFd::from(fs::File::open("/dev/null")?);
    if three.as_raw_fd() != CHECKPOINTS {
        return Err(io::Error::other("descriptor 3 cannot be had"));
    }
    let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut lines = BufReader::new(agent.try_clone()?).lines();
    let order = Order::from_line(&lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?)?;
    // They are meant for the program, or for the agent, which then lets go of its line.
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Held by this process and by all that come of it.
    let _lock = match group::take(&order.note) {
        Ok(lock) => lock,
        Err(error) => return say(&agent, &failed(&error)),
    };
    say(&agent, &Say::Ready)?;
    match lines.next() {
        Some(Ok(word)) if word == GO => {}
        _ => return Ok(()),
    }
    let (checkpoints, write) = pipe2(OFlag::O_CLOEXEC)?;
    dup2(&write, &mut three)?;
    let mut command = Command::new(&order.command[0]);
    command.args(&order.command[1..]).stdin(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return say(&agent, &failed(&error)),
    };
    drop((write, three));
    let input = child.stdin.take();
    std::thread::spawn(move || {
        // A program need not read what it is told.
        let _unread = input.map(|mut input| input.write_all(order.input.as_bytes()));
    });
    std::thread::spawn(move || obey(lines));
    let (ended, tell) = UnixStream::pair()?;
    let waiter = std::thread::spawn(move || {
        let status = child.wait();
        drop(tell);
        status
    });
    Checkpoints { agent: &agent, line: Vec::new(), too_long: false }.pass_on(&checkpoints.into(), &ended)?;
    let status = waiter.join().map_err(|_| io::Error::other("a thread panicked"))??;
    say(&agent, &how(status))?;
    end_all()
}

/// What a shell or a job left open is not for the program, and may keep somebody waiting.
fn close_inherited() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number >= CHECKPOINTS) {
        // The one that the folder was read by is closed already.
        let _closed = close(number);
    }
}

/// Does what the agent says, and ends all when it says so or is gone.
fn obey(lines: impl Iterator<Item = io::Result<String>>) {
    for line in lines.map_while(Result::ok) {
        match line.as_str() {
            TERM => drop(killpg(getpgrp(), Signal::SIGTERM)),
            KILL => break,
            _ => {}
        }
    }
    drop(end_all());
}

/// This process is one of them: nothing comes after it.
fn end_all() -> io::Result<()> {
    Ok(killpg(getpgrp(), Signal::SIGKILL)?)
}

fn say(mut agent: &UnixStream, what: &Say<'_>) -> io::Result<()> {
    agent.write_all(what.to_line().as_bytes())
}

fn failed(error: &io::Error) -> Say<'static> {
    // Without the number, which is said apart.
    let why = error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
    Say::Failed(error.raw_os_error().unwrap_or_default(), why)
}

fn how(status: ExitStatus) -> Say<'static> {
    match (status.code(), status.signal()) {
        (Some(code), _) => Say::Exit(code),
        (None, signal) => Say::Signal(signal.unwrap_or_default()),
    }
}

/// What the program says on descriptor 3, line by line.
struct Checkpoints<'a> {
    agent: &'a UnixStream,
    line: Vec<u8>,
    too_long: bool,
}

impl Checkpoints<'_> {
    /// Passes lines on until the program has ended and all that it has said is passed on. A descendant that holds the
    /// pipe is not waited for.
    fn pass_on(mut self, pipe: &fs::File, ended: &UnixStream) -> io::Result<()> {
        let (mut open, mut over) = (true, false);
        loop {
            let mut waits =
                [PollFd::new(pipe.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            let waits = if open { &mut waits[..] } else { &mut waits[1..] };
            let timeout = if over { PollTimeout::ZERO } else { PollTimeout::NONE };
            match poll(waits, timeout) {
                Err(nix::errno::Errno::EINTR) => continue,
                result => result?,
            };
            let said = open && waits[0].any() == Some(true);
            if said {
                let mut buffer = [0; 4096];
                let read = (&*pipe).read(&mut buffer)?;
                open = read > 0;
                self.take(&buffer[..read])?;
            } else if over || !open {
                return Ok(());
            }
            over |= waits.last().is_some_and(|ended| ended.any() == Some(true));
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line()?,
                _ if self.line.len() < limits::CHECKPOINT_BYTES => self.line.push(*byte),
                _ => self.too_long = true,
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.too_long) {
            true => say(self.agent, &Say::TooLong),
            false => say(self.agent, &Say::Checkpoint(&String::from_utf8_lossy(&line))),
        }
    }
}
