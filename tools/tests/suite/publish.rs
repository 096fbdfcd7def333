//! Publishing: whole or not at all, once, and never something that is not ours.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{self, Command};

use nix::sys::stat::Mode;
use nix::unistd::{Uid, mkfifo};
use rstest::rstest;
use sha2::{Digest, Sha256};
use store::Crash;
use tools::{Publication, PublishError, Published, ToolError, make_folder, publish};

use crate::support::{SITES, folder, names, recording};

const CONTENT: &[u8] = b"one\ntwo\n";

fn file<'a>(folder: &'a Path, content: &'a [u8]) -> Publication<'a> {
    Publication { folder, name: "t1-2.md", key: "t1-2", content, older: &[] }
}

fn put(folder: &Path, content: &[u8]) -> Result<Published, PublishError> {
    publish(&file(folder, content), SITES, Crash::off().scope(Some(2)))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_new_file_has_its_content_and_leaves_nothing_beside_it() {
    let folder = folder();
    assert_eq!(put(folder.path(), CONTENT).unwrap(), Published::New);
    assert_eq!(fs::read(folder.path().join("t1-2.md")).unwrap(), CONTENT);
    assert_eq!(names(folder.path()), ["t1-2.md"]);
}

#[rstest]
#[case::something(CONTENT)]
#[case::nothing(b"")]
fn the_same_content_is_there_once(#[case] content: &[u8]) {
    let folder = folder();
    assert_eq!(put(folder.path(), content).unwrap(), Published::New);
    let before = fs::metadata(folder.path().join("t1-2.md")).unwrap().modified().unwrap();
    assert_eq!(put(folder.path(), content).unwrap(), Published::AlreadyThere);
    assert_eq!(fs::metadata(folder.path().join("t1-2.md")).unwrap().modified().unwrap(), before);
    assert_eq!(names(folder.path()), ["t1-2.md"]);
}

#[rstest]
#[case::other(b"other")]
#[case::other_of_the_same_length(b"one\ntwO\n")]
#[case::less(b"one\n")]
#[case::more(b"one\ntwo\nthree\n")]
#[case::nothing(b"")]
fn other_content_is_refused_by_both_digests_and_kept(#[case] there: &[u8]) {
    let folder = folder();
    put(folder.path(), there).unwrap();
    let error = put(folder.path(), CONTENT).unwrap_err();
    assert!(matches!(error, PublishError::Occupied { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&digest(there)) && text.contains(&digest(CONTENT)) && text.contains("t1-2.md"), "{text}");
    assert_eq!(fs::read(folder.path().join("t1-2.md")).unwrap(), there);
    assert_eq!(names(folder.path()), ["t1-2.md"]);
    assert!(matches!(ToolError::from(error), ToolError::Step(_)), "another attempt may find it mended");
}

/// What may stand under the final name without being a file that we wrote.
fn occupy(kind: &str, path: &Path) {
    match kind {
        "folder" => fs::create_dir(path).unwrap(),
        "dangling link" => symlink("/nowhere/at/all", path).unwrap(),
        "link to the same content" => {
            let other = path.with_file_name("elsewhere.md");
            fs::write(&other, CONTENT).unwrap();
            symlink(other, path).unwrap();
        }
        "named pipe" => mkfifo(path, Mode::S_IRWXU).unwrap(),
        other => unreachable!("{other}"),
    }
}

#[rstest]
#[case("folder", "a folder")]
#[case("dangling link", "a link or special file")]
#[case("link to the same content", "a link or special file")]
#[case("named pipe", "a link or special file")]
fn what_is_no_file_of_ours_is_named_and_left_alone(#[case] kind: &str, #[case] says: &str) {
    let folder = folder();
    let target = folder.path().join("t1-2.md");
    occupy(kind, &target);
    let before = names(folder.path());
    let error = put(folder.path(), CONTENT).unwrap_err();
    assert!(matches!(error, PublishError::Occupied { .. }), "{error:?}");
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(names(folder.path()), before, "no temporary file is left");
    assert!(fs::symlink_metadata(&target).is_ok(), "it is still there");
}

/// After a sync that failed, a second one may report pages as written that the kernel has dropped.
#[test]
fn a_sync_that_failed_stops_the_process_and_is_not_tried_again() {
    let source = std::io::Error::other("the disk is gone");
    let error = ToolError::from(PublishError::Sync { path: "artifacts".into(), source });
    let ToolError::Poison(why) = error else { panic!("{error:?}") };
    assert!(why.contains("artifacts") && why.contains("the disk is gone"), "{why}");
}

#[test]
fn the_stale_temporary_file_of_a_dead_namesake_is_replaced() {
    let folder = folder();
    let stale = folder.path().join(format!(".t1-2.{}.tmp", process::id()));
    fs::write(&stale, "half a rep").unwrap();
    assert_eq!(put(folder.path(), CONTENT).unwrap(), Published::New);
    assert_eq!(names(folder.path()), ["t1-2.md"]);
    assert_eq!(fs::read(folder.path().join("t1-2.md")).unwrap(), CONTENT);
}

/// Process ids are unique only within one container; two may share an artifacts folder.
#[test]
fn the_temporary_file_of_a_living_namesake_is_not_taken_from_it() {
    let folder = folder();
    let theirs = folder.path().join(format!(".t1-2.{}.tmp", process::id()));
    let holder = File::create(&theirs).unwrap();
    holder.lock().unwrap();
    assert_eq!(put(folder.path(), CONTENT).unwrap(), Published::New);
    assert!(theirs.exists());
    holder.unlock().unwrap();
    assert_eq!(put(folder.path(), CONTENT).unwrap(), Published::AlreadyThere);
    assert_eq!(names(folder.path()), ["t1-2.md"]);
}

/// Two agents, each process 1 of its container, shared an artifacts folder: what the first one linked by its temporary
/// name was the second one's file, half-written. The name gets what one's own descriptor holds, or the file is made
/// anew.
#[rstest]
#[case::swept(false)]
#[case::swept_and_made_anew(true)]
fn half_a_file_of_somebody_else_is_never_given_the_name(#[case] anew: bool) {
    let folder = folder();
    let temporary = folder.path().join(format!(".t1-2.{}.tmp", process::id()));
    let (theirs, holder) = (temporary.clone(), std::sync::Mutex::new(None));
    let crash = Crash::watching(move |point| {
        let mut holder = holder.lock().unwrap();
        if point.site == "test.written" && holder.is_none() {
            fs::remove_file(&theirs).unwrap();
            // Another process has it from now on, also in the second round.
            let file = File::create(if anew { &theirs } else { Path::new("/dev/null") }).unwrap();
            (&file).write_all(b"half a rep").unwrap();
            file.lock().unwrap();
            *holder = Some(file);
        }
    });
    assert_eq!(publish(&file(folder.path(), CONTENT), SITES, crash.scope(None)).unwrap(), Published::New);
    assert_eq!(fs::read(folder.path().join("t1-2.md")).unwrap(), CONTENT);
    if anew {
        assert_eq!(fs::read(&temporary).unwrap(), b"half a rep", "it is theirs");
    }
    assert_eq!(names(folder.path()).len(), if anew { 2 } else { 1 });
}

#[test]
fn a_name_that_somebody_takes_each_time_ends_in_an_error() {
    let folder = folder();
    let path = folder.path().to_owned();
    let crash = Crash::watching(move |_| {
        for name in names(&path) {
            fs::remove_file(path.join(name)).unwrap();
        }
    });
    let error = publish(&file(folder.path(), CONTENT), SITES, crash.scope(None)).unwrap_err().to_string();
    assert!(error.contains("removes the temporary file each time"), "{error}");
}

#[test]
fn nested_folders_are_made_and_may_exist_already() {
    let folder = folder();
    let deep = folder.path().join("a/b/c");
    make_folder(&deep).unwrap();
    make_folder(&deep).unwrap();
    assert_eq!(put(&deep.join("d"), CONTENT).unwrap(), Published::New);
    assert_eq!(names(&deep.join("d")), ["t1-2.md"]);
    make_folder(Path::new("/")).unwrap();
    make_folder(Path::new(".")).unwrap();
}

#[rstest]
#[case::file("file", "file")]
#[case::below_a_file("file/artifacts", "file")]
#[case::dangling_link("link", "link")]
fn a_folder_that_cannot_be_made_is_named(#[case] name: &str, #[case] at_fault: &str) {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    symlink("/nowhere/at/all", folder.path().join("link")).unwrap();
    let error = put(&folder.path().join(name), CONTENT).unwrap_err();
    let PublishError::Io { op, path, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*op, path), ("make the folder", &folder.path().join(at_fault)));
    assert_eq!(names(folder.path()), ["file", "link"]);
}

/// A task that an earlier agent had published the report of could not be finished: its file lacks the last line break.
#[test]
fn what_an_earlier_program_wrote_counts_as_published() {
    let folder = folder();
    fs::write(folder.path().join("t1-2.md"), "one\ntwo").unwrap();
    put(folder.path(), CONTENT).unwrap_err();
    let older = Publication { older: &[b"one\ntwo"], ..file(folder.path(), CONTENT) };
    assert_eq!(publish(&older, SITES, Crash::off().scope(None)).unwrap(), Published::AlreadyThere);
    assert_eq!(fs::read(folder.path().join("t1-2.md")).unwrap(), b"one\ntwo");
}

#[test]
fn points_are_passed_in_the_order_of_the_stages() {
    let folder = folder();
    let (crash, seen) = recording();
    for _ in 0..2 {
        publish(&file(folder.path(), CONTENT), SITES, crash.scope(None)).unwrap();
    }
    let first = ["test.written", "test.linked", "test.published"];
    let second = ["test.written", "test.deduplicated", "test.published"];
    assert_eq!(*seen.lock().unwrap(), [first, second].concat());
}

/// At every point, the name leads to nothing or to the whole file, and the temporary file lies where a sweep looks.
#[test]
fn at_every_point_the_name_is_absent_or_complete() {
    let folder = folder();
    let path = folder.path().to_owned();
    let crash = Crash::watching(move |point| {
        let complete = fs::read(path.join("t1-2.md")).ok().map(|found| found == CONTENT);
        let expected = if point.site == "test.written" { None } else { Some(true) };
        assert_eq!(complete, expected, "{point}");
        let temporary = path.join(format!(".t1-2.{}.tmp", process::id()));
        assert_eq!(temporary.exists(), point.site != "test.published", "{point}");
    });
    publish(&file(folder.path(), CONTENT), SITES, crash.scope(None)).unwrap();
}

/// Runs one test of this binary again in a child of its own, after `setup` in a shell. True in that child.
fn in_child(test: &str, setup: &str, user: Option<u32>) -> bool {
    use std::os::unix::process::CommandExt as _;
    const MARK: &str = "TOOLS_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    // A copy that every user may execute: the build folder may lie in somebody's home.
    let place = folder();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = place.path().join("suite");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut child = Command::new("sh");
    child.args(["-c", &format!("{setup}; exec \"$0\" --exact \"$1\" --nocapture")]).arg(program);
    child.arg(test).env(MARK, "1").env("TMPDIR", place.path()).current_dir(place.path());
    if let Some(user) = user {
        child.uid(user).gid(user);
    }
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn a_write_that_fails_leaves_no_temporary_file() {
    let limit = "trap '' XFSZ; ulimit -f 8";
    if !in_child("publish::a_write_that_fails_leaves_no_temporary_file", limit, None) {
        return;
    }
    let folder = folder();
    let error = put(folder.path(), &vec![b'x'; 1 << 20]).unwrap_err();
    assert!(matches!(error, PublishError::Io { op: "write", .. }), "{error:?}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
    assert_eq!(put(folder.path(), CONTENT).unwrap(), Published::New, "a smaller file still fits");
}

#[test]
fn a_read_only_folder_is_named_and_left_empty() {
    const NOBODY: u32 = 65_534;
    // Permissions do not bind root, so root steps down for this.
    let user = Uid::effective().is_root().then_some(NOBODY);
    if !in_child("publish::a_read_only_folder_is_named_and_left_empty", "true", user) {
        return;
    }
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = put(folder.path(), CONTENT).unwrap_err();
    assert!(matches!(error, PublishError::Io { op: "create", .. }), "{error:?}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
    let error = put(&folder.path().join("below"), CONTENT).unwrap_err();
    assert!(matches!(error, PublishError::Io { op: "make the folder", .. }), "{error:?}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}
