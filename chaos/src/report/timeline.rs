//! A scenario's processes as bars, their journal as marks on them, and the kills as gaps between them, ready to be
//! drawn.

use std::collections::BTreeSet;

use super::model::{RunTimeline, TimelineEvent};
use super::phrase::duration;

/// The bars of one scenario.
pub(super) struct Timeline {
    /// In the order in which they began.
    pub(super) groups: Vec<Group>,
    /// How long all of it took.
    pub(super) span: String,
    /// How many bars stand below each other where it is drawn to scale.
    pub(super) lanes: usize,
}

/// Processes that ran at the same time; mostly it is one.
pub(super) struct Group {
    /// In the order in which they began.
    pub(super) bars: Vec<Bar>,
    /// What was journaled meanwhile, where nobody can say by which of them.
    pub(super) journal: Vec<Mark>,
}

/// One process.
pub(super) struct Bar {
    /// What it was and how it ended, in one line.
    pub(super) tip: String,
    /// What it was.
    pub(super) name: String,
    /// Whose task it worked on, where there are several.
    pub(super) task: Option<String>,
    /// How it ended.
    pub(super) ended: String,
    /// `ok`, `kill` or `bad`.
    pub(super) look: &'static str,
    /// What tore it off, where something did.
    pub(super) gap: Option<String>,
    /// What was journaled before the process began.
    pub(super) before: Vec<Mark>,
    /// What was journaled while it ran.
    pub(super) marks: Vec<Mark>,
    /// Where it begins, in per cent of the span.
    pub(super) left: f64,
    /// Its length, in per cent of the span.
    pub(super) width: f64,
    /// How many bars of its group are above it.
    pub(super) lane: usize,
}

/// One journal row.
pub(super) struct Mark {
    /// One letter for the style sheet.
    pub(super) look: &'static str,
    /// What is written on the mark.
    pub(super) text: String,
    /// What it means, in words.
    pub(super) words: String,
    /// When, counted from the beginning of the first process.
    pub(super) at: String,
    /// The same in per cent of the span.
    pub(super) left: f64,
}

/// The span of a scenario on the clock.
#[derive(Clone, Copy)]
struct Scale {
    origin: f64,
    begin: f64,
    length: f64,
}

impl Scale {
    fn of(runs: &[RunTimeline]) -> Self {
        let times = runs.iter().flat_map(|run| {
            let events = run.events.iter().map(|event| event.ts);
            events.chain([run.started_at, run.ended_at])
        });
        let (begin, end) =
            times.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), time| (low.min(time), high.max(time)));
        let origin = runs.iter().map(|run| run.started_at).fold(f64::INFINITY, f64::min);
        Self { origin, begin, length: (end - begin).max(f64::MIN_POSITIVE) }
    }

    fn percent(self, time: f64) -> f64 {
        ((time - self.begin) / self.length * 100.0).clamp(0.0, 100.0)
    }
}

impl Timeline {
    /// What there is to draw; `None` where no process was seen.
    pub(super) fn of(runs: &[RunTimeline]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let runs = &close_gaps(runs);
        let scale = Scale::of(runs);
        let several = runs.iter().map(task).collect::<BTreeSet<_>>().len() > 1;
        let mut groups: Vec<Group> = Vec::new();
        let mut free_at = f64::NEG_INFINITY;
        for run in runs {
            let mut bar = bar(run, scale);
            bar.task = task(run).filter(|_| several).map(str::to_owned);
            match groups.last_mut() {
                Some(group) if run.started_at < free_at => {
                    bar.lane = group.bars.len();
                    group.bars.push(bar);
                }
                _ => groups.push(Group { bars: vec![bar], journal: Vec::new() }),
            }
            free_at = free_at.max(run.ended_at);
        }
        groups.iter_mut().for_each(Group::share);
        let lanes = groups.iter().map(|group| group.bars.len()).max().unwrap_or(0);
        Some(Self { groups, span: duration(scale.length), lanes })
    }
}

/// The longest time, in seconds, that is drawn between two processes, and before the first one.
const LONGEST_GAP: f64 = 0.05;

/// The same processes without the time in which nothing happened: a run that is resumed from its tape was recorded long
/// before, and would be a bar of no width at the far left.
fn close_gaps(runs: &[RunTimeline]) -> Vec<RunTimeline> {
    let mut closed: Vec<RunTimeline> = runs.to_vec();
    let (mut cut, mut free_at) = (0.0, f64::NEG_INFINITY);
    for run in &mut closed {
        if free_at.is_finite() {
            cut += (run.started_at - cut - free_at - LONGEST_GAP).max(0.0);
        }
        run.started_at -= cut;
        run.ended_at -= cut;
        let earliest = run.started_at - LONGEST_GAP;
        run.events.iter_mut().for_each(|event| event.ts = (event.ts - cut).max(earliest));
        free_at = free_at.max(run.ended_at);
    }
    closed
}

impl Group {
    /// A journal is read when all of them have ended, so that its rows came with the last one, whoever wrote them.
    fn share(&mut self) {
        if self.bars.len() > 1 {
            for bar in &mut self.bars {
                self.journal.append(&mut bar.before);
                self.journal.append(&mut bar.marks);
            }
        }
    }
}

/// `run 2 of t1 (+37ms)` works on `t1`.
fn task(run: &RunTimeline) -> Option<&str> {
    let (_, rest) = run.run.split_once(" of ")?;
    Some(rest.split_once(" (").map_or(rest, |(task, _)| task))
}

impl Bar {
    /// Everything that was journaled, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = &Mark> {
        self.before.iter().chain(&self.marks)
    }
}

fn bar(run: &RunTimeline, scale: Scale) -> Bar {
    let look = match run.ended.as_str() {
        _ if run.killed => "kill",
        "hung" => "bad",
        _ => "ok",
    };
    let early = run.events.iter().take_while(|event| event.ts < run.started_at).count();
    let (before, during) = run.events.split_at(early);
    let marks = |events: &[TimelineEvent]| events.iter().map(|event| mark(event, scale)).collect();
    let left = scale.percent(run.started_at);
    Bar {
        tip: format!("{}: {} after {}", run.run, run.ended, duration(run.ended_at - run.started_at)),
        name: run.run.clone(),
        task: None,
        ended: run.ended.clone(),
        look,
        gap: run.killed.then(|| gap(&run.ended)),
        before: marks(before),
        marks: marks(during),
        left,
        width: scale.percent(run.ended_at) - left,
        lane: 0,
    }
}

/// `signal 9 (SIGKILL)` is `SIGKILL`; what has no such name stays as it is.
fn gap(ended: &str) -> String {
    let name = ended.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    name.unwrap_or(ended).to_owned()
}

fn mark(event: &TimelineEvent, scale: Scale) -> Mark {
    let step = event.step.map_or(String::new(), |step| step.to_string());
    let (look, text, words) = match event.kind.as_str() {
        "task_created" => ("c", "+".to_owned(), "task created".to_owned()),
        "run_started" => ("r", "▸".to_owned(), "run started".to_owned()),
        "step_started" => ("s", format!("{step}…"), format!("step {step} started")),
        "step_finished" => ("f", format!("{step}✓"), format!("step {step} finished")),
        "step_recovered" => ("b", format!("{step}↺"), format!("step {step} recovered")),
        "step_error" => ("e", format!("{step}!"), format!("step {step} error")),
        "task_done" => ("d", "done".to_owned(), "task done".to_owned()),
        "task_failed" => ("e", "failed".to_owned(), "task failed".to_owned()),
        other if step.is_empty() => ("o", other.to_owned(), other.to_owned()),
        other => ("o", format!("{other} {step}"), format!("{other}, step {step}")),
    };
    Mark { look, text, words, at: duration(event.ts - scale.origin), left: scale.percent(event.ts) }
}

#[cfg(test)]
mod tests {
    use super::super::model::RunReport;
    use super::super::sample;
    use super::*;

    fn of(report: &RunReport, id: &str) -> Timeline {
        let scenario = report.scenarios.iter().find(|scenario| scenario.id == id).expect("a scenario");
        Timeline::of(&scenario.timeline).expect("a timeline")
    }

    impl Timeline {
        fn bars(&self) -> impl Iterator<Item = &Bar> {
            self.groups.iter().flat_map(|group| &group.bars)
        }
    }

    #[test]
    fn a_kill_is_a_gap_and_events_stay_in_order() {
        let line = of(&sample::red(), "nested/report/after_effect:2, before_effect:2");
        let gaps: Vec<_> = line.bars().map(|bar| bar.gap.as_deref()).collect();
        assert_eq!(gaps, [Some("SIGKILL"), Some("SIGKILL"), None]);
        let last: Vec<_> = line.bars().last().expect("a bar").events().map(|mark| mark.text.as_str()).collect();
        assert_eq!(last, ["2↺", "▸", "2…", "2✓", "done"]);
    }

    #[test]
    fn what_was_journaled_before_the_process_stands_before_its_bar() {
        let line = of(&sample::green(), "points/report/after_effect:2");
        let first = line.bars().next().expect("a bar");
        assert_eq!(first.before.iter().map(|mark| mark.at.as_str()).collect::<Vec<_>>(), ["-1.0 ms"]);
        assert_eq!(first.marks.len(), 2);
        assert!(first.left > 9.0 && first.left < 11.0, "1 of 10 ms: {}", first.left);
    }

    #[test]
    fn processes_at_the_same_time_form_a_group_of_lanes() {
        let race = of(&sample::green(), "race/report/none");
        assert_eq!((race.groups.len(), race.lanes), (1, 3));
        assert_eq!(race.bars().map(|bar| bar.lane).collect::<Vec<_>>(), [0, 1, 2]);
        // Nobody saw which of them journaled it.
        assert_eq!((race.groups[0].journal.len(), race.bars().flat_map(Bar::events).count()), (5, 0));
        let alone = of(&sample::green(), "points/report/after_effect:2");
        assert_eq!((alone.groups.len(), alone.lanes), (2, 1));
    }

    #[test]
    fn bars_name_their_task_only_where_there_are_several() {
        let mut report = sample::green();
        let runs = &mut report.scenarios.iter_mut().find(|it| it.method == "points").expect("a scenario").timeline;
        assert!(Timeline::of(runs).expect("a timeline").bars().all(|bar| bar.task.is_none()));
        "run 1 of t2 (+3ms)".clone_into(&mut runs[1].run);
        let line = Timeline::of(runs).expect("a timeline");
        assert_eq!(line.bars().map(|bar| bar.task.as_deref()).collect::<Vec<_>>(), [Some("t1"), Some("t2")]);
    }

    /// A run on tape was recorded when the lab began, its resume played a minute later: both bars had no width.
    #[test]
    fn the_time_between_a_tape_and_its_resume_is_not_drawn() {
        let mut report = sample::green();
        let runs = &mut report.scenarios.iter_mut().find(|it| it.method == "points").expect("a scenario").timeline;
        let whole =
            |runs: &[RunTimeline]| Timeline::of(runs).expect("a timeline").bars().map(|bar| bar.width).sum::<f64>();
        let before = whole(runs);
        runs[1].started_at += 60.0;
        runs[1].ended_at += 60.0;
        runs[1].events.iter_mut().for_each(|event| event.ts += 60.0);
        assert!(whole(runs) > before / 8.0, "{} of {before}", whole(runs));
        let last = Timeline::of(runs).expect("a timeline");
        assert!(last.bars().last().expect("a bar").marks.len() >= 3, "its events are still its own");
    }

    #[test]
    fn a_clock_that_stands_still_gives_no_impossible_place() {
        let mut report = sample::green();
        for run in &mut report.scenarios[0].timeline {
            (run.started_at, run.ended_at) = (1.0, 1.0);
            run.events.iter_mut().for_each(|event| event.ts = 1.0);
        }
        let line = Timeline::of(&report.scenarios[0].timeline).expect("a timeline");
        assert!(line.bars().all(|bar| bar.left.is_finite() && bar.width >= 0.0));
    }
}
