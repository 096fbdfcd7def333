//! Reads the memory of a stopped thread.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// The longest path that is read, in bytes.
const MAX_PATH: usize = 4096;

/// A page: a read that crosses into one that is not there fails as a whole.
const PAGE: usize = 4096;

/// `len` bytes at `address`.
pub(super) fn bytes(pid: Pid, address: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; len];
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    let remote = [RemoteIoVec { base, len }];
    let got = process_vm_readv(pid, &mut [IoSliceMut::new(&mut buffer)], &remote)?;
    if got < len {
        return Err(Errno::EFAULT);
    }
    Ok(buffer)
}

/// The text at `address` up to its zero byte.
pub(super) fn text(pid: Pid, address: u64) -> Result<String, Errno> {
    let mut read = Vec::new();
    while read.len() < MAX_PATH {
        let at = address + read.len() as u64;
        let len = PAGE - (at as usize % PAGE);
        let part = bytes(pid, at, len)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            read.extend(&part[..end]);
            return Ok(String::from_utf8_lossy(&read).into_owned());
        }
        read.extend(part);
    }
    Err(Errno::ENAMETOOLONG)
}

/// The first word at `address`.
pub(super) fn word(pid: Pid, address: u64) -> Result<u64, Errno> {
    let bytes = bytes(pid, address, 8)?;
    let mut word = [0; 8];
    word.copy_from_slice(&bytes);
    Ok(u64::from_ne_bytes(word))
}

/// The content of a list of buffers, at most `len` bytes of it.
pub(super) fn list(pid: Pid, address: u64, count: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let mut all = Vec::new();
    for i in 0..count {
        let (base, size) = (word(pid, address + 16 * i)?, word(pid, address + 16 * i + 8)?);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(len - all.len());
        all.extend(bytes(pid, base, size)?);
        if all.len() == len {
            break;
        }
    }
    Ok(all)
}

/// The bytes that a list of buffers has.
pub(super) fn list_len(pid: Pid, address: u64, count: u64) -> Result<usize, Errno> {
    let mut sum = 0;
    for i in 0..count {
        sum += word(pid, address + 16 * i + 8)?;
    }
    usize::try_from(sum).map_err(|_| Errno::EFAULT)
}
