//! What people see.

use std::fmt::Write as _;

use super::bug::{Bug, Catch};
use super::judge;

/// Bug by method: which judges caught it, in how many scenarios.
pub(super) fn of_bugs(bugs: &[Bug], catches: &[Catch]) -> String {
    let mut rows = Vec::new();
    for (bug, catch) in bugs.iter().zip(catches) {
        let mut name = bug.name.as_str();
        if let Some(why) = &bug.open {
            rows.push([name.to_owned(), "(none)".to_owned(), format!("open: {why}")]);
            name = "";
        }
        for (method, judges) in &catch.0 {
            let found: Vec<String> = judges.iter().map(|(judge, count)| format!("{judge} {count}")).collect();
            rows.push([std::mem::take(&mut name).to_owned(), method.clone(), found.join(", ")]);
        }
    }
    table(["bug", "method", "caught by, in so many scenarios"], &rows)
}

/// Judge by bug: how many bugs it catches, and which ones nobody else does.
pub(super) fn of_judges(judges: &[String], bugs: &[Bug], catches: &[Catch]) -> String {
    let rows: Vec<[String; 3]> = judges
        .iter()
        .map(|name| {
            let caught = bugs.iter().zip(catches).filter(|(_, catch)| catch.judges().contains(name.as_str()));
            let caught: Vec<_> = caught.collect();
            let alone = caught.iter().filter(|(_, catch)| catch.judges().len() == 1);
            let alone: Vec<&str> = alone.map(|(bug, _)| bug.name.as_str()).collect();
            let alone = match judge::reason(name) {
                Some(reason) if alone.is_empty() => format!("(none: {reason})"),
                _ => alone.join(", "),
            };
            [name.clone(), caught.len().to_string(), alone]
        })
        .collect();
    table(["property", "bugs", "of them caught by it alone"], &rows)
}

fn table(head: [&str; 3], rows: &[[String; 3]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let (first, second) = (width(0), width(1));
    let mut text = format!("{:<first$} | {:<second$} | {}\n", head[0], head[1], head[2]);
    let _infallible = writeln!(text, "{:-<first$} | {:-<second$} | {:-<width$}", "", "", "", width = head[2].len());
    for [one, two, three] in rows {
        let _infallible = writeln!(text, "{one:<first$} | {two:<second$} | {three}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_stand_below_each_other() {
        let text = table(["a", "b", "c"], &[["long".to_owned(), "x".to_owned(), "y".to_owned()]]);
        assert_eq!(text, "a    | b | c\n---- | - | -\nlong | x | y\n");
    }
}
