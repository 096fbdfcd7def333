//! A process stops for the tracer at the calls that it wants to see, and at no others: a filter of the kernel, which a
//! process puts on itself before it becomes the agent and passes on to its children. Without a tracer such a call
//! answers ENOSYS.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Cmp, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule,
};

use super::arch::{self, Flags, Shape};
use crate::error::LabError;

/// Waits until its standard input is closed, which says that it is traced, and becomes the agent.
///
/// # Errors
/// A system without such a filter, and a program that cannot be started.
pub fn become_traced(words: &[String]) -> Result<(), LabError> {
    let failed = |why: String| LabError::Internal(format!("cannot become the agent: {why}"));
    let (program, args) = words.split_first().ok_or_else(|| failed("there is no command".to_owned()))?;
    let _ = std::io::stdin().read(&mut [0]).map_err(|e| failed(e.to_string()))?;
    let program_of = filter().map_err(|e| failed(e.to_string()))?;
    seccompiler::apply_filter(&program_of).map_err(|e| failed(e.to_string()))?;
    let why = Command::new(program).args(args).stdin(Stdio::null()).exec();
    Err(failed(format!("{program}: {why}")))
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = BTreeMap::new();
    for (number, shape) in arch::shapes() {
        rules.insert(number, wanted(shape)?);
    }
    let here = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), here)?.try_into()
}

/// The arguments with which a call is of interest; all of them where there is no rule.
fn wanted(shape: Shape) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let has = |arg: usize, bits: i32| {
        let bits = bits as u64;
        Condition::new(arg as u8, Len::Dword, Cmp::MaskedEq(bits), bits)
    };
    Ok(match shape {
        Shape::Open { flags: Flags::Arg(arg), .. } => {
            vec![Rule::new(vec![has(arg, libc::O_CREAT)?])?, Rule::new(vec![has(arg, libc::O_TRUNC)?])?]
        }
        Shape::Mmap => vec![Rule::new(vec![has(2, libc::PROT_WRITE)?, has(3, libc::MAP_SHARED)?])?],
        _ => Vec::new(),
    })
}
