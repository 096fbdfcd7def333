//! What must be true of bugs and catches.

use std::collections::BTreeSet;

use super::bug::{Bug, Catch};

/// Judges that no bug needs, and why they are there all the same.
const NEVER_ALONE: &[(&str, &str)] = &[
    ("resumes_not_restarts", "a committed step that starts again is out of order for journal_consistent too"),
    ("state_preserved", "an output that is lost or made anew shows in what is published, or in a clean run"),
    ("attempts_are_starts", "a wrong count shows in a clean run, or where the journal is replayed"),
    ("runs_clean", "it says that nothing can be judged, which no planted bug brings about"),
    ("declared_effects", "it is about what an agent tells of its tools, and the planted bugs leave that alone"),
    ("promise_kept", "it counts effects of the lab's own program, which no planted bug is played with"),
    ("intent_kept", "an attempt for another input is not sent: the machine has it in doubt, and the run ends with 6"),
    ("heard_once", "it is about the answers of people, which no planted bug is played with"),
    ("report_of_contract", "a report that is wrong differs from the committed results, for report_whole"),
    ("refused_changes_nothing", "who changes something beside another run breaks the journal"),
    ("contested", "who gets in beside another run breaks the journal"),
    ("neighbours_untouched", "a neighbour that was changed is out of order by its own journal"),
    ("nothing_changed", "what a finished task gets is out of order for journal_consistent"),
    ("given_up", "a task that does not end in time ends with another code"),
    ("seen_running", "a state without its event is also found in the folders that a kill can leave"),
    ("report_seen_whole", "a report that can be seen in part is left in part by some kill"),
    ("whole_or_nothing", "half a creation has a journal without its beginning"),
    ("hit", "it judges the lab's own kill"),
    ("frozen", "it judges the lab's own stop"),
    ("enough_hits", "it judges the lab's own kills"),
    ("repeatable", "it judges whether what fuzz has found comes again"),
];

/// Everything that is wrong, a line each.
pub(super) fn judge(judges: &[String], bugs: &[Bug], catches: &[Catch]) -> Vec<String> {
    let mut wrong: Vec<String> = bugs.iter().zip(catches).filter_map(|(bug, catch)| of_bug(bug, catch)).collect();
    let needed = needed(bugs, catches);
    for name in judges {
        let alone = needed.contains(name.as_str());
        match reason(name) {
            None if !alone => wrong.push(format!("{name}: no bug is caught by it alone, and no reason is given")),
            Some(reason) if alone => {
                wrong.push(format!("{name}: it is said that {reason}, but a bug is caught by it alone"));
            }
            _ => {}
        }
    }
    let unknown = NEVER_ALONE.iter().filter(|(name, _)| judges.iter().all(|judge| judge != name));
    wrong.extend(unknown.map(|(name, _)| format!("{name}: a reason is given, but there is no such property")));
    wrong
}

fn of_bug(bug: &Bug, catch: &Catch) -> Option<String> {
    let name = &bug.name;
    let found = catch.judges();
    match &bug.open {
        Some(_) if found.is_empty() => None,
        Some(_) => Some(format!("{name}: it is open, and yet caught by {found:?}: the table is stale")),
        None if found.is_empty() => Some(format!("{name}: it is not caught")),
        None if bug.caught_by.iter().any(|judge| found.contains(judge.as_str())) => None,
        None => Some(format!("{name}: it must be caught by {:?}, and is by {found:?}", bug.caught_by)),
    }
}

/// Why no bug is caught by this judge alone.
pub(super) fn reason(judge: &str) -> Option<&'static str> {
    NEVER_ALONE.iter().find(|(name, _)| *name == judge).map(|(_, reason)| *reason)
}

/// Judges without which some bug would go free.
pub(super) fn needed<'a>(bugs: &[Bug], catches: &'a [Catch]) -> BTreeSet<&'a str> {
    let closed = bugs.iter().zip(catches).filter(|(bug, _)| bug.open.is_none());
    closed.map(|(_, catch)| catch.judges()).filter(|found| found.len() == 1).flatten().collect()
}

/// The bugs whose description stands in a program.
pub(super) fn traces<'a>(program: &[u8], bugs: &'a [Bug]) -> Vec<&'a str> {
    let program = String::from_utf8_lossy(program);
    bugs.iter().filter(|bug| program.contains(&bug.about)).map(|bug| bug.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn bug(caught_by: &[&str], open: bool) -> Bug {
        Bug {
            name: "b".to_owned(),
            about: "does harm".to_owned(),
            plan: "report".to_owned(),
            methods: vec!["points".to_owned()],
            part: "1/1".to_owned(),
            caught_by: caught_by.iter().map(|&judge| judge.to_owned()).collect(),
            open: open.then(|| "power".to_owned()),
        }
    }

    fn catch(judges: &[&str]) -> Catch {
        let found: BTreeMap<String, usize> = judges.iter().map(|&judge| (judge.to_owned(), 1)).collect();
        if found.is_empty() { Catch::default() } else { Catch(BTreeMap::from([("points".to_owned(), found)])) }
    }

    /// What is said of one bug, by a lab whose judges are `x` and those that have a reason.
    fn said(bug: Bug, caught: &[&str]) -> Vec<String> {
        let judges: Vec<String> = NEVER_ALONE.iter().map(|(name, _)| *name).chain(["x"]).map(str::to_owned).collect();
        judge(&judges, &[bug], &[catch(caught)])
    }

    #[test]
    fn a_bug_that_is_caught_as_the_table_says_is_right() {
        assert!(said(bug(&["x"], false), &["x"]).is_empty());
    }

    #[test]
    fn a_bug_that_goes_free_is_found() {
        let wrong = said(bug(&["x"], false), &[]);
        assert!(wrong[0].contains("not caught"), "{wrong:?}");
        assert!(wrong[1].contains("no bug is caught by it alone"), "{wrong:?}");
    }

    #[test]
    fn a_bug_that_is_caught_by_another_judge_is_found() {
        assert!(said(bug(&["y"], false), &["x"])[0].contains("must be caught by"));
    }

    #[test]
    fn an_open_bug_that_is_caught_makes_the_table_stale() {
        assert!(said(bug(&[], true), &["x"])[0].contains("stale"));
        assert_eq!(said(bug(&[], true), &[]).len(), 1, "only the judge that nobody needs");
    }

    #[test]
    fn a_reason_must_be_true() {
        let (name, _) = NEVER_ALONE[0];
        let wrong = said(bug(&[name], false), &[name]);
        assert!(wrong.iter().any(|line| line.contains("it is said that")), "{wrong:?}");
        assert!(judge(&[], &[], &[])[0].contains("no such property"));
    }

    #[test]
    fn a_trace_is_found_where_there_is_one() {
        assert_eq!(traces(b"\0it does harm\0", &[bug(&[], false)]), ["b"]);
        assert!(traces(b"\0it does no harm\0", &[bug(&[], false)]).is_empty());
    }
}
