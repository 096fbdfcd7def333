//! The one place that knows registers and call numbers. A call is failed without changing its number, which no two
//! machines do alike: its first arguments are made senseless, so that the kernel refuses it without doing anything, and
//! the result is replaced on the way back.

#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod here {
    use nix::errno::Errno;
    use nix::libc;
    use nix::sys::ptrace;
    use nix::sys::ptrace::regset::NT_PRSTATUS;
    use nix::unistd::Pid;

    pub(in crate::trace) const SUPPORTED: bool = true;

    /// The registers of a stopped thread.
    #[derive(Clone, Copy)]
    pub(in crate::trace) struct Regs(libc::user_regs_struct);

    impl Regs {
        pub(in crate::trace) fn of(pid: Pid) -> Result<Self, Errno> {
            ptrace::getregset::<NT_PRSTATUS>(pid).map(Self)
        }

        pub(in crate::trace) fn set(self, pid: Pid) -> Result<(), Errno> {
            ptrace::setregset::<NT_PRSTATUS>(pid, self.0)
        }
    }

    #[cfg(target_arch = "x86_64")]
    impl Regs {
        pub(in crate::trace) fn number(&self) -> i64 {
            self.0.orig_rax as i64
        }

        pub(in crate::trace) fn args(&self) -> [u64; 6] {
            let r = &self.0;
            [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
        }

        pub(in crate::trace) fn with_args(mut self, args: [u64; 6]) -> Self {
            let r = &mut self.0;
            [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = args;
            self
        }

        pub(in crate::trace) fn result(&self) -> i64 {
            self.0.rax as i64
        }

        pub(in crate::trace) fn with_result(mut self, result: i64) -> Self {
            self.0.rax = result as u64;
            self
        }
    }

    #[cfg(target_arch = "aarch64")]
    impl Regs {
        pub(in crate::trace) fn number(&self) -> i64 {
            self.0.regs[8] as i64
        }

        pub(in crate::trace) fn args(&self) -> [u64; 6] {
            let r = &self.0.regs;
            [r[0], r[1], r[2], r[3], r[4], r[5]]
        }

        pub(in crate::trace) fn with_args(mut self, args: [u64; 6]) -> Self {
            self.0.regs[..6].copy_from_slice(&args);
            self
        }

        pub(in crate::trace) fn result(&self) -> i64 {
            self.0.regs[0] as i64
        }

        pub(in crate::trace) fn with_result(mut self, result: i64) -> Self {
            // The result lies where the first argument was.
            self.0.regs[0] = result as u64;
            self
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod here {
    pub(in crate::trace) const SUPPORTED: bool = false;
}

pub(super) use here::*;

/// How a call's arguments are to be read. Numbers are places of arguments, `None` for a folder means the working
/// folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Opens `path`; flags are an argument, or in memory, or fixed for `creat`.
    Open {
        dir: Option<usize>,
        path: usize,
        flags: Flags,
    },
    /// Writes one buffer to the file 0; the place in the file is an argument or its position.
    Write {
        at: Option<usize>,
    },
    /// Writes a list of buffers to the file 0.
    WriteList {
        at: Option<usize>,
    },
    /// Copies into this file; the place is behind a pointer, where it is given.
    CopyInto {
        file: usize,
        at: Option<usize>,
    },
    Ftruncate,
    Truncate,
    Fallocate,
    Link {
        old: (Option<usize>, usize),
        new: (Option<usize>, usize),
    },
    Symlink {
        target: usize,
        new: (Option<usize>, usize),
    },
    Rename {
        old: (Option<usize>, usize),
        new: (Option<usize>, usize),
    },
    /// Flags are argument 2 where there is a folder.
    Unlink {
        at: (Option<usize>, usize),
    },
    Rmdir,
    Mkdir {
        at: (Option<usize>, usize),
    },
    /// fsync and fdatasync: SQLite and the models make no difference.
    Sync,
    SyncAll,
    Msync,
    Mmap,
    /// A ring of calls that the tracer does not see.
    Ring,
}

/// Where an opening call has its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    /// In this argument.
    Arg(usize),
    /// In the first word behind this argument.
    Behind(usize),
    /// `creat` has none.
    Creat,
}

/// More numbers than any of the machines has.
const MOST_CALLS: i64 = 1024;

/// The calls that can touch a folder, by number; `None` for all others.
#[cfg(target_os = "linux")]
pub(super) fn shape(number: i64) -> Option<(&'static str, Shape)> {
    use nix::libc as c;
    let at = |dir: usize, path: usize| (Some(dir), path);
    Some(match number {
        c::SYS_openat => ("openat", Shape::Open { dir: Some(0), path: 1, flags: Flags::Arg(2) }),
        c::SYS_openat2 => ("openat2", Shape::Open { dir: Some(0), path: 1, flags: Flags::Behind(2) }),
        c::SYS_write => ("write", Shape::Write { at: None }),
        c::SYS_pwrite64 => ("pwrite64", Shape::Write { at: Some(3) }),
        c::SYS_writev => ("writev", Shape::WriteList { at: None }),
        c::SYS_pwritev => ("pwritev", Shape::WriteList { at: Some(3) }),
        c::SYS_pwritev2 => ("pwritev2", Shape::WriteList { at: Some(3) }),
        c::SYS_copy_file_range => ("copy_file_range", Shape::CopyInto { file: 2, at: Some(3) }),
        c::SYS_sendfile => ("sendfile", Shape::CopyInto { file: 0, at: None }),
        c::SYS_splice => ("splice", Shape::CopyInto { file: 2, at: Some(3) }),
        c::SYS_ftruncate => ("ftruncate", Shape::Ftruncate),
        c::SYS_truncate => ("truncate", Shape::Truncate),
        c::SYS_fallocate => ("fallocate", Shape::Fallocate),
        c::SYS_linkat => ("linkat", Shape::Link { old: at(0, 1), new: at(2, 3) }),
        c::SYS_symlinkat => ("symlinkat", Shape::Symlink { target: 0, new: at(1, 2) }),
        c::SYS_renameat => ("renameat", Shape::Rename { old: at(0, 1), new: at(2, 3) }),
        c::SYS_renameat2 => ("renameat2", Shape::Rename { old: at(0, 1), new: at(2, 3) }),
        c::SYS_unlinkat => ("unlinkat", Shape::Unlink { at: at(0, 1) }),
        c::SYS_mkdirat => ("mkdirat", Shape::Mkdir { at: at(0, 1) }),
        c::SYS_fsync => ("fsync", Shape::Sync),
        c::SYS_fdatasync => ("fdatasync", Shape::Sync),
        c::SYS_syncfs => ("syncfs", Shape::SyncAll),
        c::SYS_sync => ("sync", Shape::SyncAll),
        c::SYS_msync => ("msync", Shape::Msync),
        c::SYS_mmap => ("mmap", Shape::Mmap),
        c::SYS_io_uring_setup => ("io_uring_setup", Shape::Ring),
        _ => return old_shape(number),
    })
}

/// The numbers of all these calls.
pub(super) fn shapes() -> impl Iterator<Item = (i64, Shape)> {
    (0..MOST_CALLS).filter_map(|number| Some((number, shape(number)?.1)))
}

/// Calls that newer machines no longer have.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn old_shape(number: i64) -> Option<(&'static str, Shape)> {
    use nix::libc as c;
    Some(match number {
        c::SYS_open => ("open", Shape::Open { dir: None, path: 0, flags: Flags::Arg(1) }),
        c::SYS_creat => ("creat", Shape::Open { dir: None, path: 0, flags: Flags::Creat }),
        c::SYS_link => ("link", Shape::Link { old: (None, 0), new: (None, 1) }),
        c::SYS_symlink => ("symlink", Shape::Symlink { target: 0, new: (None, 1) }),
        c::SYS_rename => ("rename", Shape::Rename { old: (None, 0), new: (None, 1) }),
        c::SYS_unlink => ("unlink", Shape::Unlink { at: (None, 0) }),
        c::SYS_rmdir => ("rmdir", Shape::Rmdir),
        c::SYS_mkdir => ("mkdir", Shape::Mkdir { at: (None, 0) }),
        _ => return None,
    })
}

#[cfg(all(target_os = "linux", not(target_arch = "x86_64")))]
fn old_shape(_: i64) -> Option<(&'static str, Shape)> {
    None
}
