//! The table in docs/chaos.md that says which judge covers which words of the contract is whole and true.

use std::collections::BTreeSet;
use std::path::Path;

const CONTRACT: &str = include_str!("../../../docs/contract.md");
const CHAOS: &str = include_str!("../../../docs/chaos.md");

/// Where the table stands.
const HEADING: &str = "## What of the contract is judged";

/// The rows of the table: words of the contract, judges.
fn rows(document: &str) -> Vec<(String, String)> {
    let section = document.split_once(HEADING).expect("the section is there").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let cells = lines.skip(1).map(|line| line.trim_matches('|').splitn(3, '|').map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[0].to_owned(), cells[1].to_owned())).collect()
}

/// What must have a row: each property, and each row of the contract's own tables that begins with a name in code.
fn units(contract: &str) -> Vec<String> {
    let mut units = Vec::new();
    let mut own = true;
    for line in contract.lines() {
        match line {
            "<!-- end -->" => own = true,
            // What this workspace's agent adds is not the contract.
            _ if line.starts_with("<!-- generated") || line.ends_with("agent adds") => own = false,
            _ if line.starts_with("## ") => own = true,
            _ => {}
        }
        let property = line.split_once(". **").filter(|(number, _)| number.parse::<u32>().is_ok());
        if let Some((_, property)) = property {
            units.push(property.split("**").next().unwrap_or_default().to_owned());
        } else if let (true, Some(row)) = (own, line.strip_prefix("| `")) {
            units.push(row.split(['`', '=']).next().unwrap_or_default().to_owned());
        }
    }
    units
}

/// Every `.rs` file below the folder, as one text.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(&path).unwrap_or_default(),
    };
    entries.map(text).collect()
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn what_is_wrong(contract: &str, document: &str, sources: &str) -> Vec<String> {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (contract_text, rows) = (spaced(contract), rows(document));
    let mut wrong = Vec::new();
    for (words, judges) in &rows {
        if !contract_text.contains(&spaced(words)) {
            wrong.push(format!("the contract does not say: {words}"));
        }
        let names: BTreeSet<&str> = code(judges).collect();
        if names.is_empty() && !judges.starts_with("nobody") {
            wrong.push(format!("nobody is named for: {words}"));
        }
        let strangers = names.iter().filter(|name| !sources.contains(&format!("\"{name}\"")));
        wrong.extend(strangers.map(|name| format!("there is no judge {name}")));
    }
    let covered = |unit: &String| rows.iter().any(|(words, _)| words.trim_matches('`') == unit);
    wrong.extend(units(contract).iter().filter(|unit| !covered(unit)).map(|unit| format!("no row has: {unit}")));
    wrong
}

#[test]
fn every_part_of_the_contract_has_its_judge_or_is_said_to_have_none() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(what_is_wrong(CONTRACT, CHAOS, &sources), Vec::<String>::new());
}

#[test]
fn a_missing_row_a_judge_that_does_not_exist_and_words_that_nobody_said_are_found() {
    let contract = "1. **It is kept.** So.\n\n| `run TASK` | runs |\n";
    let table = |rows: &str| format!("{HEADING}\n\n| words | judge | where |\n| --- | --- | --- |\n{rows}\n## Next\n");
    let whole = table("| It is kept. | `kept` | here |\n| `run TASK` | nobody: hard | |");
    assert_eq!(what_is_wrong(contract, &whole, "\"kept\""), Vec::<String>::new());
    assert_eq!(what_is_wrong(contract, &whole, ""), ["there is no judge kept"]);
    let short = table("| It is kept. | `kept` | here |");
    assert_eq!(what_is_wrong(contract, &short, "\"kept\""), ["no row has: run TASK"]);
    let other = table("| It is kept. | | |\n| `run TASK` | nobody | |\n| It flies. | `kept` | |");
    let found = what_is_wrong(contract, &other, "\"kept\"");
    assert_eq!(found, ["nobody is named for: It is kept.", "the contract does not say: It flies."]);
}
