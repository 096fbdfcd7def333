//! Random plans with a one-line text form, such as `fetch=3,summarize<0,write<1,example=word_count`, so that a replay
//! command can carry one.

use std::fmt;
use std::str::FromStr;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::case::plan::PlanCase;
use crate::contract::is_of_contract;
use crate::error::LabError;

/// The text form of the plan that the lab was given.
const FIXED: &str = "the-plan";

/// A part of a random plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `fetch` of the document with this number.
    Fetch(usize),
    /// `summarize` of the output of this step.
    Summarize(usize),
    /// `write_artifact` of the output of this step.
    Write(usize),
    /// All steps of a tool's own example.
    Example { tool: String, steps: usize },
}

/// A plan drawn by lot, or the one that the lab was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomPlan(Option<Vec<Part>>);

impl RandomPlan {
    /// The plan that the lab was given, whatever it is.
    #[must_use]
    pub fn fixed() -> Self {
        Self(None)
    }

    /// The plan of one step.
    #[must_use]
    pub fn simplest() -> Self {
        Self(Some(vec![Part::Fetch(0)]))
    }

    /// Its length; `None` for the plan that the lab was given.
    #[must_use]
    pub fn steps(&self) -> Option<usize> {
        let parts = self.0.as_ref()?;
        Some(parts.iter().map(Part::steps).sum())
    }

    /// The tool of each step.
    #[must_use]
    pub fn tools(&self, given: &PlanCase, examples: &[PlanCase]) -> Vec<String> {
        // An example that is not there has no steps; building it tells.
        let case = self.build(given, examples);
        let steps = case.map(|case| case.steps).unwrap_or_default();
        steps.into_iter().map(|step| step.tool).collect()
    }

    /// Plans of the contract's tools, with whole examples of other tools mixed in.
    pub fn strategy(examples: &[PlanCase], max_steps: usize) -> impl Strategy<Value = Self> + use<> {
        let foreign = examples.iter().filter_map(|case| {
            let tool = case.example_of.clone().filter(|tool| !is_of_contract(tool))?;
            Some(Part::Example { tool, steps: case.steps.len() })
        });
        let examples: Vec<Part> = foreign.collect();
        // Kind 0 is the simplest, so that shrinking leads there.
        let draws = prop::collection::vec((0..4_usize, 0..8_usize), 1..=max_steps);
        draws.prop_map(move |draws| Self(Some(parts(&draws, &examples, max_steps))))
    }

    /// The plan as a case that can be played.
    ///
    /// # Errors
    /// An example of a tool that the agent does not have.
    pub fn build(&self, given: &PlanCase, examples: &[PlanCase]) -> Result<PlanCase, LabError> {
        let Some(parts) = &self.0 else {
            return Ok(given.clone());
        };
        let mut steps = Vec::new();
        let mut files = std::collections::BTreeMap::new();
        for part in parts {
            let (tool, input) = match part {
                Part::Fetch(number) => {
                    let path = format!("input/doc{number}.txt");
                    files.insert(path.clone(), document(*number).into_bytes());
                    ("fetch", json!({ "path": path }))
                }
                Part::Summarize(from) => ("summarize", json!({ "from": from })),
                Part::Write(from) => ("write_artifact", json!({ "from": from })),
                Part::Example { tool, .. } => {
                    let case = example(examples, tool)?;
                    let base = steps.len();
                    for spec in &case.steps {
                        let input = shifted(&spec.input, base);
                        steps.push(json!({ "tool": spec.tool, "input": input }));
                    }
                    files.extend(case.files.clone());
                    continue;
                }
            };
            steps.push(json!({ "tool": tool, "input": input }));
        }
        let plan = json!({ "goal": format!("a random plan: {self}"), "steps": steps });
        let mut case = PlanCase::parse("random", &plan.to_string())?;
        case.files = files;
        case.effects = given.effects.clone();
        Ok(case)
    }
}

impl Part {
    fn steps(&self) -> usize {
        match self {
            Self::Example { steps, .. } => *steps,
            _ => 1,
        }
    }
}

fn parts(draws: &[(usize, usize)], examples: &[Part], max_steps: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut texts, mut summaries) = (Vec::new(), Vec::new());
    let mut next = 0;
    let pick = |list: &[usize], lot: usize| list.get(lot % list.len().max(1)).copied();
    for &(kind, lot) in draws {
        let example = examples.get(lot % examples.len().max(1));
        let part = match (kind, pick(&texts, lot), pick(&summaries, lot), example) {
            (3, _, _, Some(part)) if next + part.steps() <= max_steps => part.clone(),
            (1, Some(text), _, _) => Part::Summarize(text),
            (2 | 3, _, Some(summary), _) => Part::Write(summary),
            (2 | 3, Some(text), None, _) => Part::Summarize(text),
            _ => Part::Fetch(lot),
        };
        match part {
            Part::Fetch(_) => texts.push(next),
            Part::Summarize(_) => summaries.push(next),
            _ => {}
        }
        next += part.steps();
        if next > max_steps {
            break;
        }
        parts.push(part);
    }
    parts
}

fn document(number: usize) -> String {
    let line = |n: usize| format!("Document {number}, line {n}: äöü €\n\n");
    (0..=number).map(line).collect()
}

fn example<'a>(examples: &'a [PlanCase], tool: &str) -> Result<&'a PlanCase, LabError> {
    let found = examples.iter().find(|case| case.example_of.as_deref() == Some(tool));
    found.ok_or_else(|| LabError::Usage(format!("the agent has no tool `{tool}` with an example")))
}

/// The input with every `from` moved by `base` steps.
fn shifted(input: &Value, base: usize) -> Value {
    let mut input = input.clone();
    let Some(from) = input.get_mut("from") else {
        return input;
    };
    let shift = |value: &mut Value| {
        if let Some(step) = value.as_u64() {
            *value = json!(step + base as u64);
        }
    };
    match from {
        Value::Array(list) => list.iter_mut().for_each(shift),
        one => shift(one),
    }
    input
}

impl fmt::Display for RandomPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parts) = &self.0 else {
            return f.write_str(FIXED);
        };
        for (i, part) in parts.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match part {
                Part::Fetch(number) => write!(f, "fetch={number}")?,
                Part::Summarize(from) => write!(f, "summarize<{from}")?,
                Part::Write(from) => write!(f, "write<{from}")?,
                Part::Example { tool, steps } => write!(f, "example={tool}*{steps}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for RandomPlan {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        if text == FIXED {
            return Ok(Self(None));
        }
        let parts: Option<Vec<Part>> = text.split(',').map(part).collect();
        let bad = || LabError::Usage(format!("`{text}` is not a random plan such as `fetch=1,summarize<0`"));
        parts.map(|parts| Self(Some(parts))).ok_or_else(bad)
    }
}

fn part(text: &str) -> Option<Part> {
    if let Some(number) = text.strip_prefix("fetch=") {
        return number.parse().ok().map(Part::Fetch);
    }
    if let Some(from) = text.strip_prefix("summarize<") {
        return from.parse().ok().map(Part::Summarize);
    }
    if let Some(from) = text.strip_prefix("write<") {
        return from.parse().ok().map(Part::Write);
    }
    let (tool, steps) = text.strip_prefix("example=")?.split_once('*')?;
    let steps = steps.parse().ok()?;
    Some(Part::Example { tool: tool.to_owned(), steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn a_random_plan_comes_back_from_its_text(plan in RandomPlan::strategy(&[], 8)) {
            prop_assert_eq!(plan.to_string().parse::<RandomPlan>().expect("read"), plan);
        }

        #[test]
        fn a_random_plan_has_one_to_eight_steps_and_reads_backwards_only(
            plan in RandomPlan::strategy(&[], 8),
        ) {
            let case = plan.build(&PlanCase::report(), &[]).expect("a plan");
            prop_assert!((1..=8).contains(&case.steps.len()));
            prop_assert_eq!(Some(case.steps.len()), plan.steps());
            for idx in 0..case.steps.len() {
                prop_assert!(case.reads(idx).iter().all(|&from| from < idx));
            }
        }
    }

    #[test]
    fn nonsense_is_no_plan() {
        for text in ["", "fetch", "fetch=x", "nap=1", "example=a"] {
            assert!(text.parse::<RandomPlan>().is_err(), "{text}");
        }
        let part: RandomPlan = "example=rocket*2".parse().expect("read");
        assert!(part.build(&PlanCase::report(), &[]).is_err());
    }
}
