//! Reading notes.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rstest::rstest;
use serde_json::{Map, Value, json};
use store::Crash;
use tools::{Outputs, ToolError};

use crate::support::{call, folder, world};

fn fetch(path: &Path) -> Result<Map<String, Value>, ToolError> {
    call("fetch", &world(Path::new("/")), &Outputs::new(), json!({ "path": path }), &Crash::off())
}

fn says(result: Result<Map<String, Value>, ToolError>) -> String {
    match result {
        Err(ToolError::Step(why)) => why,
        other => panic!("{other:?} is not a step error"),
    }
}

#[rstest]
#[case::empty("", 0)]
#[case::ascii("one\ntwo\n", 8)]
#[case::many_scripts("Grüße aus 東京 🗼\r\n", 16)]
#[case::combining("e\u{301}", 2)]
#[case::byte_order_mark("\u{feff}text", 5)]
#[case::nul("a\0b", 3)]
fn a_text_comes_byte_for_byte_with_its_length_in_characters(#[case] text: &str, #[case] chars: u64) {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    fs::write(&path, text).unwrap();
    let output = fetch(&path).unwrap();
    assert_eq!(output["text"], text);
    assert_eq!(output["chars"], chars);
}

#[test]
fn the_digest_is_what_sha256sum_prints() {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "\u{feff}Grüße aus 東京 🗼\r\n").unwrap();
    let ours = fetch(&path).unwrap()["sha256"].as_str().unwrap().to_owned();
    // A digest that others have printed, for machines without the command.
    assert_eq!(fetch_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    if let Ok(output) = Command::new("sha256sum").arg(&path).output() {
        let theirs = String::from_utf8(output.stdout).unwrap();
        assert_eq!(Some(ours.as_str()), theirs.split_whitespace().next());
    }
}

fn fetch_text(text: &str) -> String {
    let folder = folder();
    fs::write(folder.path().join("n"), text).unwrap();
    fetch(&folder.path().join("n")).unwrap()["sha256"].as_str().unwrap().to_owned()
}

#[rstest]
#[case::lone_byte(b"abc\xffdef", 3)]
#[case::latin_1("Gr\u{fc}\u{df}e".chars().map(|c| c as u8).collect::<Vec<_>>(), 2)]
#[case::cut_short(b"ab\xe6\x9d", 2)]
#[case::surrogate(b"\xed\xa0\x80", 0)]
#[case::utf_16(b"\xff\xfea\0", 0)]
fn bytes_that_are_not_utf_8_are_named_with_their_offset(#[case] bytes: impl AsRef<[u8]>, #[case] offset: usize) {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    fs::write(&path, bytes).unwrap();
    let why = says(fetch(&path));
    assert!(why.contains("notes.txt") && why.ends_with(&format!("at offset {offset}")), "{why}");
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_hangs() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "x").unwrap();
    mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    for (name, why) in [
        ("none", "No such file or directory"),
        ("file/below", "Not a directory"),
        ("pipe", "it is a named pipe"),
        ("", "it is a folder"),
    ] {
        let said = says(fetch(&at(name)));
        assert!(said.contains(why) && said.contains(&*at(name).to_string_lossy()), "{said}");
    }
    assert!(says(fetch(Path::new(""))).contains("cannot read"));
    assert!(says(fetch(Path::new("nul\0byte"))).contains("cannot read"));
    assert!(says(fetch(Path::new("/dev/zero"))).contains("it is a device"), "it would never end");
}

#[test]
fn a_text_that_is_too_long_is_refused_unread() {
    let folder = folder();
    let path = folder.path().join("long.txt");
    // All of it is a hole, which would be read as zeros.
    let file = fs::File::create(&path).unwrap();
    file.set_len(store::limits::INPUT_FILE_BYTES + 1).unwrap();
    assert!(says(fetch(&path)).contains("has more than 268435456 bytes"));
}
