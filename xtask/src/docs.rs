//! Tables in the documents that are made from the code, so that they cannot drift from it.
//!
//! A block stands between `<!-- generated: NAME -->` and `<!-- end -->`. `cargo xtask docs` rewrites the blocks,
//! `cargo xtask test` fails where one differs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::util;

/// Rewrites every block.
pub(crate) fn write() -> Result<()> {
    for (path, _, new) in rewritten()? {
        fs::write(util::root().join(&path), new).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Fails where a block is not what the code says.
pub(crate) fn check() -> Result<()> {
    for (path, old, new) in rewritten()? {
        if old != new {
            let line = old.lines().zip(new.lines()).position(|(old, new)| old != new).unwrap_or_default() + 1;
            bail!("{path}:{line} differs from the code; `cargo xtask docs` rewrites it");
        }
    }
    Ok(())
}

/// Each document with a block: path, text now, text as it should be.
fn rewritten() -> Result<Vec<(String, String, String)>> {
    let [agent, chaos] = util::binaries(["agent", "chaos"])?;
    let blocks = blocks(&agent, &chaos)?;
    let mut documents = Vec::new();
    for path in util::files(".md")? {
        let path = path.to_string_lossy().into_owned();
        let old = fs::read_to_string(util::root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        let new = fill(&old, &blocks).with_context(|| format!("in {path}"))?;
        documents.push((path, old, new));
    }
    Ok(documents)
}

/// A mark is a line of its own; a text that speaks of marks is left alone.
fn fill(text: &str, blocks: &BTreeMap<&str, String>) -> Result<String> {
    const OPEN: &str = "\n<!-- generated: ";
    const CLOSE: &str = "\n<!-- end -->";
    let (mut new, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(OPEN) {
        let (head, tail) = rest.split_at(start);
        let (name, tail) = tail[OPEN.len()..].split_once(" -->").context("a generated block is not opened rightly")?;
        let (_, tail) = tail.split_once(CLOSE).with_context(|| format!("block {name} has no end"))?;
        let block = blocks.get(name).with_context(|| format!("there is no block {name}"))?;
        new.push_str(&format!("{head}{OPEN}{name} -->\n{}{CLOSE}", block.trim_end()));
        rest = tail;
    }
    new.push_str(rest);
    Ok(new)
}

fn blocks(agent: &Path, chaos: &Path) -> Result<BTreeMap<&'static str, String>> {
    let help = util::read(Command::new(agent).arg("--help"))?;
    let inventory: Value = serde_json::from_str(&util::read(Command::new(agent).args(["tools", "--json"]))?)?;
    let lab = util::read(Command::new(chaos).arg("--help"))?;
    Ok(BTreeMap::from([
        ("chaos-methods", table("| method | what it does |", &section(&lab, "Methods:"))),
        ("chaos-properties", table("| property | what it says |", &section(&lab, "Properties:"))),
        ("chaos-exit-codes", table("| code | meaning |", &section(&lab, "Exit codes:"))),
        ("demo", demo(agent)?),
        ("exit-codes", table("| code | meaning |", &section(&help, "Exit codes:"))),
        ("environment", table("| variable | meaning |", &section(&help, "Environment:"))),
        ("tools", tools(&inventory)),
        ("crash-points", crash_points(&inventory)),
    ]))
}

/// The first act of the demo and the end of the second, with what differs from run to run made the same.
fn demo(agent: &Path) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let shown = util::read(Command::new(agent).args(["demo", "--dir"]).arg(folder.path()))?;
    let parts = || {
        let (first, rest) = shown.split_once("\nIts journal")?;
        let (_, second) = rest.split_once("\n== ")?;
        let (title, second) = second.split_once('\n')?;
        let (end, _) = second.get(second.rfind("$ agent run")?..)?.split_once("\n\n")?;
        Some(format!("{}\n…\n\n== {title}\n…\n{end}", first.trim_end()))
    };
    let shown = parts().context("the demo no longer shows what the README quotes")?;
    let folder = fs::canonicalize(folder.path())?;
    Ok(format!("```text\n{}\n```", shown.replace(&*folder.to_string_lossy(), "/tmp/agent-demo-x7Qk2N")))
}

/// The two columns of a section of the help text. A line without a second column goes on with the one before.
pub(crate) fn section(help: &str, title: &str) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in help.lines().skip_while(|line| *line != title).skip(1).take_while(|line| !line.trim().is_empty()) {
        match (line.trim().split_once("  "), rows.last_mut()) {
            (Some((name, meaning)), _) => rows.push((format!("`{}`", name.trim()), meaning.trim().to_owned())),
            (None, Some((_, meaning))) => *meaning = format!("{meaning} {}", line.trim()),
            (None, None) => {}
        }
    }
    rows
}

fn table(head: &str, rows: &[(String, String)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(name, meaning)| format!("| {name} | {meaning} |")).collect();
    format!("{head}\n| --- | --- |\n{}", rows.join("\n"))
}

fn tools(inventory: &Value) -> String {
    let rows = items(&inventory["tools"]).iter().map(|tool| {
        let fields = |schema: &Value| items(&schema["required"]).iter().map(code).collect::<Vec<_>>().join(", ");
        format!(
            "| {} | {} | {} | {} | {} |",
            code(&tool["name"]),
            text(&tool["effect"]),
            fields(&tool["input_schema"]),
            fields(&tool["output_schema"]),
            text(&tool["about"])
        )
    });
    let rows: Vec<String> = rows.collect();
    format!("| tool | effect | input | output | what it does |\n| --- | --- | --- | --- | --- |\n{}", rows.join("\n"))
}

fn crash_points(inventory: &Value) -> String {
    let named = |list: &str, key: &str, value: &str| {
        let mut sites: Vec<String> = Vec::new();
        for site in items(&inventory[list]).iter().filter(|site| site[key] == value) {
            let site = code(&site["site"]);
            if !sites.contains(&site) {
                sites.push(site);
            }
        }
        sites.join(", ")
    };
    let mut rows = vec![
        ("every step".to_owned(), named("crash_points", "scope", "step")),
        ("a run, outside its steps".to_owned(), named("crash_points", "scope", "run")),
    ];
    for needs in ["an action log", "a report"] {
        rows.push((format!("with {needs}"), named("further_crash_points", "needs", needs)));
    }
    for tool in items(&inventory["tools"]) {
        let points: Vec<String> = items(&tool["crash_points"]).iter().map(code).collect();
        if !points.is_empty() {
            rows.push((code(&tool["name"]), points.join(", ")));
        }
    }
    table("| where | crash points |", &rows)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn code(value: &Value) -> String {
    format!("`{}`", text(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_two_columns_and_wrapped_lines() {
        let help = "Codes:\n  0  all is\n  well\n  1  not\n\nMore:\n  2  no";
        let rows = [("`0`", "all is well"), ("`1`", "not")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(section(help, "Codes:"), rows);
    }

    #[test]
    fn a_block_is_replaced_and_the_rest_is_kept() {
        let blocks = BTreeMap::from([("x", "new".to_owned())]);
        let old = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb";
        assert_eq!(fill(old, &blocks).unwrap(), "a\n<!-- generated: x -->\nnew\n<!-- end -->\nb");
        assert!(fill("a\n<!-- generated: y -->\n<!-- end -->", &blocks).is_err());
        assert!(fill("a\n<!-- generated: x -->", &blocks).is_err());
        assert_eq!(fill("a `<!-- generated: z -->`", &blocks).unwrap(), "a `<!-- generated: z -->`");
    }
}
