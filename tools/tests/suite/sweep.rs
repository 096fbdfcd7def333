//! Sweeping: the temporary files of dead attempts of one step, and nothing else.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tools::sweep_temporaries;

use crate::support::{folder, names};

#[test]
fn what_a_dead_process_left_is_removed() {
    let folder = folder();
    for name in [".t1-2.1.tmp", ".t1-2.4194304.tmp"] {
        fs::write(folder.path().join(name), "half").unwrap();
    }
    sweep_temporaries(folder.path(), "t1-2").unwrap();
    assert_eq!(names(folder.path()), Vec::<String>::new());
    sweep_temporaries(folder.path(), "t1-2").unwrap();
}

#[test]
fn what_a_living_process_holds_stays() {
    let folder = folder();
    let path = folder.path().join(".t1-2.77.tmp");
    let holder = File::create(&path).unwrap();
    holder.lock().unwrap();
    sweep_temporaries(folder.path(), "t1-2").unwrap();
    assert!(path.exists());
    holder.unlock().unwrap();
    sweep_temporaries(folder.path(), "t1-2").unwrap();
    assert!(!path.exists(), "its holder is gone");
}

#[test]
fn other_keys_and_other_files_stay() {
    let folder = folder();
    let others = [
        ".t1-2-0.7.tmp",
        ".t1-2..tmp",
        ".t1-2.7.tmp.bak",
        ".t1-2.77-0.7.tmp",
        ".t1-2.7x.tmp",
        ".t1-2.tmp",
        ".t1-20.7.tmp",
        ".t1-3.7.tmp",
        ".t11-2.7.tmp",
        "t1-2.7.tmp",
        "t1-2.md",
    ];
    for name in others {
        fs::write(folder.path().join(name), "theirs").unwrap();
    }
    sweep_temporaries(folder.path(), "t1-2").unwrap();
    assert_eq!(names(folder.path()), others);
}

/// Opening a named pipe would wait for a writer for ever, and a folder cannot be unlinked; neither is ours.
#[test]
fn what_is_no_regular_file_is_left_alone_and_stops_nothing() {
    let folder = folder();
    fs::create_dir(folder.path().join(".t1-2.1.tmp")).unwrap();
    mkfifo(&folder.path().join(".t1-2.2.tmp"), Mode::S_IRWXU).unwrap();
    symlink("/nowhere", folder.path().join(".t1-2.3.tmp")).unwrap();
    fs::write(folder.path().join(".t1-2.4.tmp"), "half").unwrap();
    sweep_temporaries(folder.path(), "t1-2").unwrap();
    assert_eq!(names(folder.path()), [".t1-2.1.tmp", ".t1-2.2.tmp", ".t1-2.3.tmp"]);
}

#[test]
fn where_there_is_no_folder_there_is_nothing_to_sweep() {
    let folder = folder();
    sweep_temporaries(&folder.path().join("none"), "t1-2").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    sweep_temporaries(&folder.path().join("file"), "t1-2").unwrap();
    assert!(sweep_temporaries(Path::new("/proc/self/mem/x"), "t1-2").is_ok());
}
