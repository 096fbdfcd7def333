//! The loop: start the agent, stop it at its calls, ask the watch, let it go on.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::arch::{self, Regs};
use super::call::{Class, Done, Verb, Watch};
use super::record::{Pending, Recorder};
use crate::agent::live;
use crate::agent::process::Ended;
use crate::agent::stray::{GRACE, Stray};
use crate::error::LabError;

/// How long a thread may take to stand still; one that waits in the kernel for another thread of the agent cannot, and
/// need not: it does nothing either.
const FREEZE: Duration = Duration::from_millis(20);

/// What is about to be traced.
pub struct Start<'a> {
    /// The agent's command, started by [`super::become_traced`].
    pub command: Command,
    /// The same for people.
    pub given: &'a str,
    /// The files that keep what it prints.
    pub printed: [PathBuf; 2],
    /// How long it may take.
    pub deadline: Duration,
}

/// A process that was traced to its end.
pub struct Traced {
    /// How it ended.
    pub ended: Ended,
    /// What outlived it, and was ended.
    pub survivors: Vec<Stray>,
    /// The most threads and children that were there at the same time.
    pub threads: usize,
    /// How often one of them was stopped.
    pub stops: usize,
}

/// Runs the agent to its end and tells `watch` of every call that touches the recorder's folder.
///
/// # Errors
/// A system without such a tracer, an agent that cannot be started or traced, and what the watch itself fails with.
pub fn trace(begin: Start<'_>, recorder: &mut Recorder, watch: &mut (dyn Watch + Send)) -> Result<Traced, LabError> {
    // Only the thread that traces may ask, and its end kills the agent.
    std::thread::scope(|scope| {
        let tracer = scope.spawn(|| start(begin, recorder, watch));
        tracer.join().unwrap_or_else(|_| Err(LabError::Internal("the tracer panicked".to_owned())))
    })
}

fn failed(what: &'static str) -> impl Fn(Errno) -> LabError {
    move |errno| LabError::Internal(format!("the tracer cannot {what}: {errno}"))
}

fn start(begin: Start<'_>, recorder: &mut Recorder, watch: &mut (dyn Watch + Send)) -> Result<Traced, LabError> {
    let Start { mut command, given, printed, deadline } = begin;
    command.stdin(Stdio::piped());
    recorder.prints_to(printed);
    let started = live::spawn(&mut command);
    let (mut child, group) = started.map_err(|source| LabError::Spawn { command: given.to_owned(), source })?;
    let leader = group.id();
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP;
    ptrace::seize(leader, options).map_err(failed("take hold of the agent"))?;
    drop(child.stdin.take());
    let hung = AtomicBool::new(false);
    let mut tracer = Tracer {
        leader,
        recorder,
        watch,
        tasks: BTreeMap::from([(leader.as_raw(), None)]),
        stops: VecDeque::new(),
        threads: 1,
        count: 0,
        ended: None,
        over: None,
        survivors: Vec::new(),
    };
    let result = std::thread::scope(|scope| {
        let (over, is_over) = channel::<()>();
        let hung = &hung;
        scope.spawn(move || {
            if is_over.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
                hung.store(true, Ordering::SeqCst);
                let _ = killpg(leader, Signal::SIGKILL);
            }
        });
        let result = tracer.run();
        drop(over);
        result
    });
    if let Err(error) = result {
        tracer.kill();
        // Only to leave no dead process behind; the error is what is told.
        let _ = tracer.drain();
        return Err(error);
    }
    let ended = if hung.into_inner() { Ended::Hung } else { tracer.ended.unwrap_or(Ended::Hung) };
    Ok(Traced { ended, survivors: std::mem::take(&mut tracer.survivors), threads: tracer.threads, stops: tracer.count })
}

/// A call between its two stops.
struct Making {
    pending: Pending,
    /// The registers as they were at the entry, where the call was tampered with.
    before: Option<Regs>,
    /// What the call shall seem to return.
    forced: Option<i64>,
}

struct Tracer<'a> {
    leader: Pid,
    recorder: &'a mut Recorder,
    watch: &'a mut (dyn Watch + Send),
    /// Every thread that lives, with the call that it is making.
    tasks: BTreeMap<i32, Option<Making>>,
    /// Stops that came while the threads were made to stand still.
    stops: VecDeque<WaitStatus>,
    threads: usize,
    count: usize,
    ended: Option<Ended>,
    /// When the leader was seen to have ended before the others.
    over: Option<Instant>,
    survivors: Vec<Stray>,
}

impl Tracer<'_> {
    fn run(&mut self) -> Result<(), LabError> {
        while self.step()? {}
        Ok(())
    }

    /// Waits for all to be dead.
    fn drain(&mut self) -> Result<(), LabError> {
        while !self.tasks.is_empty() {
            match next_stop(None, WaitPidFlag::empty()) {
                Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => self.gone(status),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Handles one stop; `false` when nothing is left.
    fn step(&mut self) -> Result<bool, LabError> {
        let status = match self.stops.pop_front() {
            Some(status) => status,
            None => match self.next() {
                Err(Errno::ECHILD) => return Ok(false),
                Err(Errno::EINTR) => return Ok(true),
                other => other.map_err(failed("wait (a real-time signal, perhaps)"))?,
            },
        };
        self.count += 1;
        match status {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => self.gone(status),
            WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_SECCOMP) => self.call(pid, Self::entry)?,
            WaitStatus::PtraceSyscall(pid) => self.call(pid, Self::exit)?,
            WaitStatus::PtraceEvent(pid, ..) => self.resume(pid, None)?,
            WaitStatus::Stopped(pid, signal) => self.resume(pid, Some(signal))?,
            _ => {}
        }
        Ok(!self.tasks.is_empty())
    }

    /// Waits for the next stop. When the agent itself has ended, what is left of it has a short grace, and is ended
    /// then.
    fn next(&mut self) -> Result<WaitStatus, Errno> {
        while let (Some(over), true) = (self.over, self.survivors.is_empty()) {
            match next_stop(None, WaitPidFlag::WNOHANG) {
                // To sleep here would slow it down at each of its calls, beyond the grace.
                Ok(WaitStatus::StillAlive) if over.elapsed() < GRACE => std::thread::yield_now(),
                Ok(WaitStatus::StillAlive) => {
                    self.survivors = self.tasks.keys().copied().map(Stray::of).collect();
                    self.kill();
                }
                stop => return stop,
            }
        }
        next_stop(None, WaitPidFlag::empty())
    }

    fn known(&mut self, pid: Pid) {
        self.tasks.entry(pid.as_raw()).or_insert(None);
        self.threads = self.threads.max(self.tasks.len());
    }

    fn gone(&mut self, status: WaitStatus) {
        let (pid, ended) = match status {
            WaitStatus::Exited(pid, code) => (pid, Ended::Exited(code)),
            WaitStatus::Signaled(pid, signal, _) => (pid, Ended::Signaled(signal as i32)),
            _ => return,
        };
        self.tasks.remove(&pid.as_raw());
        if pid == self.leader {
            self.ended = Some(ended);
            self.over = Some(Instant::now());
        }
    }

    /// Kills the agent with all its threads and children.
    fn kill(&self) {
        let _ = killpg(self.leader, Signal::SIGKILL);
        for pid in self.tasks.keys() {
            // A child may have left the process group. Fails for what is dead.
            let _ = nix::sys::signal::kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }

    /// One of the two stops of a call.
    fn call(&mut self, pid: Pid, stop: fn(&mut Self, Pid) -> Result<Verb, LabError>) -> Result<(), LabError> {
        self.known(pid);
        if stop(self, pid)? == Verb::Kill {
            self.kill();
            return Ok(());
        }
        self.resume(pid, None)
    }

    /// Lets a thread go on: to the end of the call that it is making, or to the next one that is of interest.
    fn resume(&mut self, pid: Pid, signal: Option<Signal>) -> Result<(), LabError> {
        self.known(pid);
        let is_making = self.tasks.get(&pid.as_raw()).is_some_and(Option::is_some);
        match if is_making { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) } {
            // Killed meanwhile; its end comes next.
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(failed("let the agent go on")(errno)),
        }
    }

    fn entry(&mut self, pid: Pid) -> Result<Verb, LabError> {
        let Ok(regs) = Regs::of(pid) else { return Ok(Verb::Go) };
        let Some((name, shape)) = arch::shape(regs.number()) else { return Ok(Verb::Go) };
        let Some(pending) = self.recorder.entry(pid, name, shape, &regs.args()) else { return Ok(Verb::Go) };
        self.freeze(pid);
        let verb = self.watch.before(&pending.call)?;
        let mut args = regs.args();
        let mut making = Making { pending, before: None, forced: None };
        match verb {
            Verb::Fail(errno) => {
                // No descriptor, no folder and no path: refused without any effect.
                (args[0], args[1]) = (u64::MAX, 0);
                making.forced = Some(-i64::from(errno as i32));
            }
            Verb::Shorten(bytes) if making.pending.call.bytes > bytes => args[2] = bytes as u64,
            _ => {}
        }
        if args != regs.args() {
            regs.with_args(args).set(pid).map_err(failed("change a call"))?;
            making.before = Some(regs);
        }
        self.tasks.insert(pid.as_raw(), Some(making));
        Ok(verb)
    }

    fn exit(&mut self, pid: Pid) -> Result<Verb, LabError> {
        let Some(Some(making)) = self.tasks.insert(pid.as_raw(), None) else { return Ok(Verb::Go) };
        let Ok(regs) = Regs::of(pid) else { return Ok(Verb::Go) };
        let result = making.forced.unwrap_or(regs.result());
        if let Some(before) = making.before {
            // The kernel promises to keep the arguments, so they are put back.
            let regs = regs.with_args(before.args()).with_result(result);
            regs.set(pid).map_err(failed("change a result"))?;
        }
        let ops = self.recorder.exit(pid, &making.pending, result);
        if making.pending.call.class != Class::Say {
            self.freeze(pid);
        }
        self.watch.after(&making.pending.call, Done { result, ops })
    }

    /// Makes every other thread stand still. They go on when their stops are handled, which is after this one.
    fn freeze(&mut self, at_work: Pid) {
        let held: Vec<i32> = self.stops.iter().filter_map(WaitStatus::pid).map(Pid::as_raw).collect();
        for other in self.tasks.keys().map(|pid| Pid::from_raw(*pid)) {
            if other == at_work || held.contains(&other.as_raw()) || ptrace::interrupt(other).is_err() {
                continue;
            }
            let begin = Instant::now();
            while begin.elapsed() < FREEZE {
                match next_stop(Some(other), WaitPidFlag::WNOHANG) {
                    Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_micros(50)),
                    Ok(status) => {
                        self.stops.push_back(status);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }
}

fn next_stop(pid: Option<Pid>, more: WaitPidFlag) -> Result<WaitStatus, Errno> {
    // The lab has other children, which belong to other threads.
    waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD | more))
}
