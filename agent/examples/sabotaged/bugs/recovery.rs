//! Bugs of the beginning of a run: recovery, the lock, the plan.

use store::model::{Event, StepState, StepStatus, TaskState};

use super::{BUG, Bug, EXHAUST, PAUSE, PlanKind, SECOND};
use crate::plant::{Cut, HONEST, Lock, Piece, Plant};
use crate::unit::Unit;

pub(super) static BUGS: &[Bug] = &[
    Bug {
        name: "no_recovery",
        about: "A step that is found running is simply started again.",
        caught_by: &["recovery_explicit", "journal_consistent"],
        plant: Plant { load: taken_for_pending, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_not_journaled",
        about: "A step that is found running is set back without a word in the journal.",
        caught_by: &["recovery_explicit", "journal_consistent"],
        plant: Plant { edit: silent_recovery, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_not_listed",
        about: "Recovery is journaled, but run_started does not list it.",
        caught_by: &["recovery_explicit"],
        plant: Plant { edit: list_nothing, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_of_all_tasks",
        about: "A run sets back the running steps of every task, not only of its own.",
        methods: &["neighbours"],
        caught_by: &["recovery_explicit", "neighbours_untouched"],
        plant: Plant { edit: recover_all, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_before_lock",
        about: "A run recovers first and asks for the lock then.",
        methods: &["race"],
        part: SECOND,
        caught_by: &["refused_changes_nothing"],
        plant: Plant { lock: Lock::AfterRecovery, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_in_two",
        about: "The recovery is one transaction, the run_started that tells of it another.",
        plan: PlanKind::Single,
        methods: &["nested"],
        caught_by: &["recovery_explicit"],
        plant: Plant { cut: RECOVERY_IN_TWO, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_in_two_at_once",
        about: "The recovery is one transaction and run_started another, with no crash point in between.",
        plan: PlanKind::Single,
        methods: EXHAUST,
        caught_by: &["recovery_explicit"],
        plant: Plant { cut: Cut { points: false, ..RECOVERY_IN_TWO }, ..HONEST },
        ..BUG
    },
    Bug {
        name: "recovery_after_run_started",
        about: "run_started comes before the recovery that it tells of.",
        caught_by: &["recovery_explicit", "journal_consistent"],
        plant: Plant { edit: announce_first, ..HONEST },
        ..BUG
    },
    Bug {
        name: "committed_step_recovered",
        about: "The last committed step is taken for interrupted too.",
        caught_by: &["resumes_not_restarts", "recovery_explicit"],
        plant: Plant { load: last_taken_for_running, ..HONEST },
        ..BUG
    },
    Bug {
        name: "done_steps_run_again",
        about: "A resumed task begins with its first step again.",
        caught_by: &["resumes_not_restarts"],
        plant: Plant { load: from_the_start, ..HONEST },
        ..BUG
    },
    Bug {
        name: "run_started_missing_on_resume",
        about: "A run that has nothing to recover does not announce itself.",
        caught_by: &["one_run_started"],
        plant: Plant { edit: no_announcement, ..HONEST },
        ..BUG
    },
    Bug {
        name: "run_started_twice",
        about: "A resumed run announces itself twice.",
        caught_by: &["one_run_started"],
        plant: Plant { edit: announce_twice, ..HONEST },
        ..BUG
    },
    Bug {
        name: "run_id_reused",
        about: "Every run has the same id.",
        caught_by: &["one_run_started"],
        plant: Plant { edit: |unit| "0123456789ab".clone_into(&mut unit.run), ..HONEST },
        ..BUG
    },
    Bug {
        name: "journal_pruned",
        about: "A recovering run throws away the announcements of earlier ones.",
        caught_by: &["journal_consistent"],
        plant: Plant { edit: prune, ..HONEST },
        ..BUG
    },
    Bug {
        name: "lock_of_all_tasks",
        about: "One lock keeps all tasks of a database apart, so that a neighbour at work blocks a run.",
        methods: &["neighbours"],
        caught_by: &["exit_code"],
        plant: Plant { lock: Lock::Shared, ..HONEST },
        ..BUG
    },
    Bug {
        name: "no_lock",
        about: "Nobody asks for the lock.",
        methods: &["race", "pause"],
        part: SECOND,
        caught_by: &["refused_changes_nothing", "exit_code"],
        plant: Plant { lock: Lock::Not, ..HONEST },
        ..BUG
    },
    Bug {
        name: "lock_let_go",
        about: "The lock is taken and let go at once, as when its file goes out of scope.",
        methods: &["race"],
        caught_by: &["refused_changes_nothing", "exit_code"],
        plant: Plant { lock: Lock::Dropped, ..HONEST },
        ..BUG
    },
    Bug {
        name: "read_before_lock",
        about: "The state is read first and the lock taken then.",
        methods: PAUSE,
        caught_by: &["resumes_not_restarts", "journal_consistent"],
        plant: Plant { lock: Lock::AfterLoad, ..HONEST },
        ..BUG
    },
    Bug {
        name: "fence_without_lock",
        about: "Instead of a lock, a second runner takes the task over and the first one fails at its next commit.",
        methods: &["race"],
        part: SECOND,
        caught_by: &["refused_changes_nothing", "exit_code"],
        plant: Plant { lock: Lock::FenceOnly, ..HONEST },
        ..BUG
    },
    Bug {
        name: "waits_for_lock",
        about: "A second runner waits for the lock instead of saying 3.",
        methods: &["race"],
        part: SECOND,
        caught_by: &["exit_code"],
        plant: Plant { lock: Lock::Waited, ..HONEST },
        ..BUG
    },
];

const RECOVERY_IN_TWO: Cut = Cut {
    transactions: &[&[Piece::Steps, Piece::Output, Piece::Status, Piece::Recoveries], &[Piece::Announcement]],
    points: true,
};

fn taken_for_pending(mut state: TaskState) -> TaskState {
    if state.current.status == StepStatus::Running {
        state.current.status = StepStatus::Pending;
    }
    state
}

fn from_the_start(state: TaskState) -> TaskState {
    if state.cursor == 0 || state.status.is_over() {
        return state;
    }
    TaskState { cursor: 0, current: StepState::default(), ..state }
}

fn last_taken_for_running(state: TaskState) -> TaskState {
    let interrupted = state.current.status == StepStatus::Running;
    if state.cursor == 0 || state.status.is_over() || interrupted {
        return state;
    }
    let current = StepState { status: StepStatus::Running, ..StepState::default() };
    TaskState { cursor: state.cursor - 1, current, ..state }
}

fn is_recovery(event: &Event) -> bool {
    matches!(event, Event::StepRecovered { .. })
}

fn is_announcement(event: &Event) -> bool {
    matches!(event, Event::RunStarted { .. })
}

fn list_nothing(unit: &mut Unit) {
    for event in &mut unit.events {
        if let Event::RunStarted { recovered, .. } = event {
            recovered.clear();
        }
    }
}

fn silent_recovery(unit: &mut Unit) {
    unit.events.retain(|event| !is_recovery(event));
    list_nothing(unit);
}

fn recover_all(unit: &mut Unit) {
    if unit.has(is_announcement) {
        unit.extra = &[
            "INSERT INTO events(ts, task_id, run_id, kind, step_idx, data)
             SELECT ?3, task_id, ?2, 'step_recovered', idx, '{}' FROM steps
             WHERE status = 'running' AND task_id <> ?1",
            "UPDATE steps SET status = 'pending' WHERE status = 'running' AND task_id <> ?1",
        ];
    }
}

fn prune(unit: &mut Unit) {
    if unit.has(is_recovery) {
        unit.extra = &["DELETE FROM events WHERE task_id = ?1 AND kind = 'run_started'"];
    }
}

fn announce_first(unit: &mut Unit) {
    unit.events.sort_by_key(|event| !is_announcement(event));
}

fn no_announcement(unit: &mut Unit) {
    if !unit.has(is_recovery) {
        unit.events.retain(|event| !is_announcement(event));
    }
}

fn announce_twice(unit: &mut Unit) {
    if unit.has(is_recovery) {
        let again: Vec<Event> = unit.events.iter().filter(|event| is_announcement(event)).cloned().collect();
        unit.events.extend(again);
    }
}
