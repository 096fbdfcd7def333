//! The sessions of the README, played as a reader would.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::lab::Lab;

/// The session of that name: its commands, and the whole as it stands there.
fn session(name: &str) -> (Vec<String>, String) {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let (_, rest) = readme.split_once(&format!("<!-- session: {name} -->\n```console\n")).expect("the session");
    let text = rest.split("```").next().unwrap();
    let command = |line: &str| line.strip_prefix("$ ").map(str::to_owned);
    (text.lines().filter_map(command).collect(), text.to_owned())
}

/// A transcript that was typed by hand is wrong after the next change of a message.
#[test]
fn the_session_with_tickets_is_what_a_reader_sees() {
    let (commands, expected) = session("tickets");
    let lab = Lab::new();
    // Another server may be listening where the README's does.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for name in ["server.py", "plan.yaml", "note.txt"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tickets").join(name);
        lab.write(&format!("fixtures/tickets/{name}"), fs::read_to_string(from).unwrap().replace("8765", &port));
    }
    let said = |command: &String| format!("echo '$ {}'\n{command}\n", command.replace('\'', r"'\''"));
    let script = format!("exec 2>&1\n{}kill $!\n", commands.iter().map(said).collect::<String>());
    let agent = Path::new(env!("CARGO_BIN_EXE_agent")).parent().unwrap();
    let path = format!("{}:{}", agent.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(lab.path("")).env("PATH", path).env("USER", "ada").stdin(Stdio::null());
    let output = shell.output().unwrap();
    let shown = |line: &str| if line.contains("Killed  ") { "Killed".to_owned() } else { line.to_owned() };
    let seen: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(shown).collect();
    assert_eq!(seen, expected.lines().collect::<Vec<_>>());
}
