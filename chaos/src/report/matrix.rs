//! Crash points against steps: one square for everything that began with a kill at that point of that step.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::model::{RunReport, ScenarioReport, VerdictKind};
use crate::schedule::CrashPoint;

/// What a square says. Ordered: the worst scenario decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Letter {
    /// Nothing can be killed there: the agent does not pass that point in that step.
    Unreachable,
    /// Killed, resumed, held.
    Held,
    /// Held after this kill alone; violated where a further kill came after it.
    Later,
    /// The kill was not reached, which is a failure.
    NotReached,
    /// A property was violated.
    Violated,
}

impl Letter {
    /// Every letter in the order of the legend.
    pub(super) const ALL: [Self; 5] = [Self::Held, Self::Violated, Self::Later, Self::NotReached, Self::Unreachable];

    /// What became of a scenario whose place in a matrix is its kill number `kill`, from 1. One that held without that
    /// kill could not be killed there by design: else it would have failed.
    fn of(scenario: &ScenarioReport, kill: usize) -> Self {
        let kills = scenario.timeline.iter().filter(|run| run.killed).count();
        match scenario.verdict {
            VerdictKind::Violated => Self::Violated,
            VerdictKind::NotReached => Self::NotReached,
            VerdictKind::Holds if kills >= kill => Self::Held,
            VerdictKind::Holds => Self::Unreachable,
        }
    }

    /// The letter itself.
    pub(super) fn char(self) -> char {
        match self {
            Self::Held => 'H',
            Self::Violated => 'V',
            Self::Later => 'v',
            Self::NotReached => 'N',
            Self::Unreachable => '·',
        }
    }

    /// What it stands for.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Violated => "violated",
            Self::Later => "violated after a further kill",
            Self::NotReached => "not reached",
            Self::Unreachable => "no such place, or unreachable by design",
        }
    }
}

/// One place of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Square {
    /// The worst of its scenarios.
    pub(super) letter: Letter,
    /// How many scenarios it stands for.
    pub(super) scenarios: usize,
    /// The place in [`RunReport::scenarios`] of the worst of them.
    pub(super) worst: Option<usize>,
}

impl Square {
    const EMPTY: Self = Self { letter: Letter::Unreachable, scenarios: 0, worst: None };

    pub(super) fn add(&mut self, letter: Letter, index: usize) {
        if self.scenarios == 0 || letter > self.letter {
            self.letter = letter;
            self.worst = Some(index);
        }
        self.scenarios += 1;
    }
}

/// Rows and columns with a name, and a square at each crossing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matrix {
    /// The plan that was played.
    pub(super) plan: String,
    /// The columns' names.
    pub(super) columns: Vec<String>,
    /// Each row's name, and a square for each column.
    pub(super) rows: Vec<(String, Vec<Square>)>,
}

impl Matrix {
    /// Each plan's crash points against its steps; plans without any are left out.
    pub(super) fn of_steps(report: &RunReport) -> Vec<Self> {
        let plans = report.plans.iter();
        plans.map(|plan| steps(report, plan)).filter(|matrix| !matrix.rows.is_empty()).collect()
    }

    /// Each plan's first kills against its second kills, of the method `nested`.
    pub(super) fn of_pairs(report: &RunReport) -> Vec<Self> {
        let plans = report.plans.iter();
        plans.map(|plan| pairs(report, plan)).filter(|matrix| !matrix.rows.is_empty()).collect()
    }

    fn new(plan: &str, columns: Vec<String>, rows: Rows) -> Self {
        let width = columns.len();
        let full = |row: BTreeMap<usize, Square>| {
            (0..width).map(|column| row.get(&column).copied().unwrap_or(Square::EMPTY)).collect()
        };
        let rows = rows.0.into_iter().map(|(name, row)| (name, full(row))).collect();
        Self { plan: plan.to_owned(), columns, rows }
    }
}

/// Rows in the order in which their names came up.
#[derive(Default)]
struct Rows(Vec<(String, BTreeMap<usize, Square>)>);

impl Rows {
    fn square(&mut self, name: &str, column: usize) -> &mut Square {
        let place = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), BTreeMap::new()));
            self.0.len() - 1
        });
        self.0[place].1.entry(column).or_insert(Square::EMPTY)
    }
}

/// Controls are left out: they make the agent unsafe, which says nothing of it.
fn of_plan<'a>(report: &'a RunReport, plan: &'a str) -> impl Iterator<Item = (usize, &'a ScenarioReport)> {
    let all = report.scenarios.iter().enumerate();
    all.filter(move |(_, scenario)| scenario.plan == plan && scenario.method != "control")
}

fn steps(report: &RunReport, plan: &str) -> Matrix {
    let cells = || of_plan(report, plan).filter_map(|(i, scenario)| Some((i, scenario, scenario.cell()?)));
    let of_run = usize::from(cells().any(|(_, _, cell)| cell.step.is_none()));
    let last = cells().filter_map(|(_, _, cell)| cell.step).max();
    let mut columns: Vec<String> = (of_run == 1).then(|| "run".to_owned()).into_iter().collect();
    columns.extend(last.into_iter().flat_map(|last| 0..=last).map(|step| step.to_string()));
    let mut rows = Rows::default();
    for (index, scenario, cell) in cells() {
        let column = cell.step.map_or(0, |step| step + of_run);
        let letter = match Letter::of(scenario, 1) {
            Letter::Violated if scenario.schedule.contains(", ") => Letter::Later,
            letter => letter,
        };
        rows.square(&row_name(&cell), column).add(letter, index);
    }
    Matrix::new(plan, columns, rows)
}

fn row_name(cell: &CrashPoint) -> String {
    match cell.hit {
        1 => cell.site.clone(),
        hit => format!("{}#{hit}", cell.site),
    }
}

fn pairs(report: &RunReport, plan: &str) -> Matrix {
    let nested = of_plan(report, plan).filter(|(_, scenario)| scenario.method == "nested");
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Rows::default();
    for (index, scenario) in nested {
        let Some((first, second)) = scenario.schedule.split_once(", ") else { continue };
        let column = columns.iter().position(|known| known == second).unwrap_or_else(|| {
            columns.push(second.to_owned());
            columns.len() - 1
        });
        rows.square(first, column).add(Letter::of(scenario, 2), index);
    }
    Matrix::new(plan, columns, rows)
}

/// The letters that a reader of these matrices must know: the four that every run may have, and [`Letter::Later`] where
/// it occurs.
pub(super) fn legend(matrices: &[Matrix]) -> Vec<Letter> {
    let mut squares = matrices.iter().flat_map(|matrix| &matrix.rows).flat_map(|(_, squares)| squares);
    let later = squares.any(|square| square.letter == Letter::Later);
    Letter::ALL.into_iter().filter(|&letter| letter != Letter::Later || later).collect()
}

/// Matrices side by side in plain text, as many as fit into `width` characters, with the names of the points once on
/// the left. `paint` puts a letter down.
pub(super) fn side_by_side(matrices: &[Matrix], width: usize, paint: impl Fn(Letter) -> String) -> String {
    let names = matrices.iter().flat_map(|matrix| &matrix.rows).map(|(name, _)| name.chars().count());
    let left = names.max().unwrap_or(0);
    let mut text = String::new();
    let mut rest = matrices;
    while !rest.is_empty() {
        let mut used = left;
        let fits = rest.iter().take_while(|matrix| {
            used += 3 + needed(matrix);
            used <= width
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        block(&mut text, now, left, &paint);
        rest = later;
        if !rest.is_empty() {
            text.push('\n');
        }
    }
    text
}

fn needed(matrix: &Matrix) -> usize {
    squares(matrix).max(matrix.plan.chars().count())
}

fn squares(matrix: &Matrix) -> usize {
    let columns = matrix.columns.iter().map(|name| name.chars().count() + 1);
    columns.sum::<usize>().saturating_sub(1)
}

fn block(text: &mut String, matrices: &[Matrix], left: usize, paint: &impl Fn(Letter) -> String) {
    let mut line = " ".repeat(left);
    for matrix in matrices {
        let _ = write!(line, "   {:<width$}", matrix.plan, width = needed(matrix));
    }
    let _ = writeln!(text, "{}", line.trim_end());
    line = " ".repeat(left);
    for matrix in matrices {
        let _ = write!(line, "   {:<width$}", matrix.columns.join(" "), width = needed(matrix));
    }
    let _ = writeln!(text, "{}", line.trim_end());
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in matrices.iter().flat_map(|matrix| &matrix.rows) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let _ = write!(text, "{name:<left$}");
        for (i, matrix) in matrices.iter().enumerate() {
            text.push_str("   ");
            row(text, matrix, name, paint);
            if i + 1 < matrices.len() {
                text.push_str(&" ".repeat(needed(matrix) - squares(matrix)));
            }
        }
        text.push('\n');
    }
}

fn row(text: &mut String, matrix: &Matrix, name: &str, paint: &impl Fn(Letter) -> String) {
    let row = matrix.rows.iter().find(|(known, _)| known == name);
    for (column, title) in matrix.columns.iter().enumerate() {
        let letter = row.map_or(Letter::Unreachable, |(_, squares)| squares[column].letter);
        let gap = title.chars().count() - usize::from(column == 0);
        text.push_str(&" ".repeat(gap));
        text.push_str(&paint(letter));
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn plain(report: &RunReport, width: usize) -> String {
        side_by_side(&Matrix::of_steps(report), width, |letter| letter.char().to_string())
    }

    #[test]
    fn the_matrix_shows_each_letter_in_its_place() {
        let text = plain(&sample::red(), 100);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
        assert!(line("before_effect").ends_with("· H H H     · H H"), "{text}");
        assert!(line("after_effect").ends_with("· H H V     · H H"), "{text}");
        assert!(line("after_commit").ends_with("· H N H     · H H"), "{text}");
        assert!(line("run.started").ends_with("H · · ·     · · ·"), "{text}");
    }

    #[test]
    fn the_worst_scenario_decides_a_square() {
        let mut square = Square::EMPTY;
        for (index, letter) in [Letter::Held, Letter::Violated, Letter::NotReached].into_iter().enumerate() {
            square.add(letter, index);
        }
        assert_eq!(square, Square { letter: Letter::Violated, scenarios: 3, worst: Some(1) });
    }

    #[test]
    fn what_only_a_second_kill_shows_is_told_from_what_one_kill_shows() {
        let mut report = sample::red();
        let alone = report.scenarios.iter_mut().find(|it| it.id == "points/report/after_effect:2").expect("it");
        alone.verdict = VerdictKind::Holds;
        let text = plain(&report, 100);
        let line = text.lines().find(|line| line.starts_with("after_effect")).expect("a row");
        assert!(line.ends_with("· H H v     · H H"), "{text}");
        assert!(legend(&Matrix::of_steps(&report)).contains(&Letter::Later));
        assert!(!legend(&Matrix::of_steps(&sample::red())).contains(&Letter::Later));
    }

    #[test]
    fn matrices_that_do_not_fit_side_by_side_stand_below_each_other() {
        let wide = plain(&sample::green(), 100);
        let narrow = plain(&sample::green(), 30);
        let heads = |text: &str| text.lines().filter(|line| line.contains("run 0 1")).count();
        assert_eq!((heads(&wide), heads(&narrow)), (1, 2), "{narrow}");
    }

    #[test]
    fn a_second_kill_behind_its_commit_is_unreachable_in_the_pairs() {
        let pairs = Matrix::of_pairs(&sample::red());
        let [report] = &pairs[..] else { panic!("{pairs:?}") };
        assert_eq!(report.columns, ["before_effect:2", "before_effect:0"]);
        let letters: Vec<_> = report.rows[0].1.iter().map(|square| square.letter).collect();
        assert_eq!(letters, [Letter::Violated, Letter::Unreachable]);
    }

    #[test]
    fn controls_are_no_squares() {
        let mut report = sample::green();
        report.scenarios.retain(|scenario| scenario.method == "control");
        assert!(!report.scenarios.is_empty() && Matrix::of_steps(&report).is_empty());
    }
}
