//! Bugs of the transactions: what stands together in one, and what is written when.

use store::model::{Event, TaskStatus};

use super::{BUG, Bug, EXHAUST, PlanKind};
use crate::plant::{Cut, HONEST, Hold, Piece, Plant};
use crate::unit::Unit;

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "created_in_two",
        about: "A task is stored in one transaction and its task_created in another.",
        plan: PlanKind::Single,
        methods: EXHAUST,
        caught_by: &["whole_or_nothing"],
        plant: Plant { created_in_two: true, ..HONEST },
        ..BUG
    },
    Bug {
        name: "output_in_second_transaction",
        about: "A step is committed as done, its output in a transaction of its own after that.",
        caught_by: &["state_preserved"],
        plant: Plant { cut: OUTPUT_IN_SECOND, ..HONEST },
        ..BUG
    },
    Bug {
        name: "output_in_two_at_once",
        about: "A step's status is one transaction and its output the next, with no crash point in between.",
        plan: PlanKind::Single,
        methods: EXHAUST,
        caught_by: &["state_preserved"],
        plant: Plant { cut: at_once(OUTPUT_IN_SECOND), ..HONEST },
        ..BUG
    },
    Bug {
        name: "task_never_running",
        about: "The task stays pending until it is done.",
        caught_by: &["journal_replay"],
        plant: Plant { edit: never_running, ..HONEST },
        ..BUG
    },
    Bug {
        name: "status_in_second_transaction",
        about: "The task's status is committed after the step's.",
        caught_by: &["journal_replay"],
        plant: Plant { cut: cut(&[&[Piece::Steps, Piece::Output, Piece::Journal], &[Piece::Status]]), ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_outside_transaction",
        about: "Events are written right after the transaction that they tell of.",
        caught_by: &["journal_replay"],
        plant: Plant { cut: JOURNAL_SECOND, ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_a_moment_late",
        about: "Events follow the transaction that they tell of, with no crash point in between.",
        plan: PlanKind::Single,
        methods: EXHAUST,
        caught_by: &["journal_replay"],
        plant: Plant { cut: at_once(JOURNAL_SECOND), ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_early",
        about: "Events are written before the transaction that they tell of.",
        caught_by: &["journal_replay"],
        plant: Plant { cut: JOURNAL_FIRST, ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_a_moment_early",
        about: "Events precede the transaction that they tell of, with no crash point in between.",
        plan: PlanKind::Single,
        methods: EXHAUST,
        caught_by: &["journal_replay"],
        plant: Plant { cut: at_once(JOURNAL_FIRST), ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_late",
        about: "Events are gathered and written with the next transaction.",
        caught_by: &["journal_replay"],
        plant: Plant { hold: Hold::Journal, ..HONEST },
        ..BUG
    },
    Bug {
        name: "output_read_before_commit",
        about: "A finished step is committed with the start of the next one, which reads its output before.",
        caught_by: &["recovery_explicit"],
        plant: Plant { hold: Hold::Finish, ..HONEST },
        ..BUG
    },
    Bug {
        name: "effect_before_running",
        about: "A step is marked as running only when its tool has returned.",
        caught_by: &["recovery_explicit"],
        plant: Plant { hold: Hold::Start, ..HONEST },
        ..BUG
    },
    Bug {
        name: "attempts_on_errors_only",
        about: "An attempt that crashed is not counted, only one that failed.",
        methods: &["points", "poison"],
        caught_by: &["attempts_are_starts", "given_up"],
        plant: Plant { edit: count_errors, ..HONEST },
        ..BUG
    },
    Bug {
        name: "attempt_number_stuck",
        about: "Every start is journaled as the first attempt.",
        caught_by: &["journal_consistent"],
        plant: Plant { edit: first_attempt, ..HONEST },
        ..BUG
    },
    Bug {
        name: "task_done_twice",
        about: "The end of the task is journaled twice.",
        caught_by: &["journal_consistent"],
        plant: Plant { edit: done_twice, ..HONEST },
        ..BUG
    },
    Bug {
        name: "outputs_pruned",
        about: "When the task is done, the outputs of all but its last step are thrown away.",
        caught_by: &["state_preserved"],
        plant: Plant { edit: prune, ..HONEST },
        ..BUG
    },
];

const OUTPUT_IN_SECOND: Cut = cut(&[&[Piece::Steps, Piece::Status, Piece::Journal], &[Piece::Output]]);
const JOURNAL_SECOND: Cut = cut(&[&[Piece::Steps, Piece::Output, Piece::Status], &[Piece::Journal]]);
const JOURNAL_FIRST: Cut = cut(&[&[Piece::Journal], &[Piece::Steps, Piece::Output, Piece::Status]]);

const fn at_once(cut: Cut) -> Cut {
    Cut { points: false, ..cut }
}

const fn cut(transactions: &'static [&'static [Piece]]) -> Cut {
    Cut { transactions, points: true }
}

/// Takes the attempt back at its start and counts it at its error.
fn count_errors(unit: &mut Unit) {
    let failed = unit.has(|event| matches!(event, Event::StepError { .. }));
    for change in &mut unit.steps {
        change.to.attempts = change.from.attempts + u32::from(failed);
    }
}

fn first_attempt(unit: &mut Unit) {
    for event in &mut unit.events {
        if let Event::StepStarted { attempt, .. } = event {
            *attempt = 1;
        }
    }
}

fn done_twice(unit: &mut Unit) {
    if unit.has(|event| matches!(event, Event::TaskDone)) {
        unit.events.push(Event::TaskDone);
    }
}

fn never_running(unit: &mut Unit) {
    unit.status = unit.status.filter(|status| *status != TaskStatus::Running.as_str());
}

fn prune(unit: &mut Unit) {
    if unit.has(|event| matches!(event, Event::TaskDone)) {
        unit.extra = &["UPDATE steps SET output = NULL
             WHERE task_id = ?1 AND idx < (SELECT max(idx) FROM steps WHERE task_id = ?1)"];
    }
}
