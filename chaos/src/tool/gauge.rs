//! What is played with a program: each play has a key of its own and counts what it left in the world.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Attempt, Called, Check, Program, Until};
use super::class::Class;
use crate::error::LabError;

/// The most system calls at which a program is killed; spread over all that it makes.
const CALLS: usize = 40;

/// Moments at which it is killed beside those, spread over the time of a clean call: what it sends to a server
/// changes no file.
const MOMENTS: u32 = 8;

/// Looks at the world.
pub struct Probe {
    /// A shell command that prints the outcomes, one a line.
    pub command: String,
}

/// What was played and what came of it.
#[derive(Debug)]
pub struct Play {
    /// Without this, the class is not earned.
    pub judges: Class,
    /// Its name.
    pub name: &'static str,
    /// What was done, for people.
    pub told: String,
    /// What was wrong, a line each.
    pub faults: Vec<String>,
}

impl Play {
    pub(super) fn json(&self) -> Value {
        json!({ "name": self.name, "told": self.told, "judges": self.judges.as_str(), "faults": self.faults })
    }
}

/// Plays with a program.
pub struct Gauge<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its check, if it has one.
    pub check: Option<&'a Program>,
    /// How to look at the world.
    pub probe: Option<&'a Probe>,
    /// What the keys begin with: no key may have been used before.
    pub prefix: String,
    keys: u32,
    /// Outcomes of one clean call.
    clean: usize,
    /// System calls at which it can be killed.
    places: usize,
    time: Duration,
}

impl<'a> Gauge<'a> {
    /// Calls the program once, without any harm.
    ///
    /// # Errors
    /// The program fails where nothing is done to it, so that nothing can be said of it; or the lab fails.
    pub fn new(
        program: &'a Program,
        check: Option<&'a Program>,
        probe: Option<&'a Probe>,
        prefix: String,
    ) -> Result<Self, LabError> {
        let mut gauge = Self { program, check, probe, prefix, keys: 0, clean: 0, places: 0, time: Duration::ZERO };
        let before = gauge.world()?;
        let attempt = gauge.attempt();
        let (called, places) = program.places(&attempt)?;
        called.output().map_err(|why| LabError::Unjudged(format!("a clean call of the tool: {why}")))?;
        gauge.clean = added(&before, &gauge.world()?).values().sum();
        gauge.places = places;
        Ok(gauge)
    }

    /// How many outcomes one clean call has; none where nobody looks.
    #[must_use]
    pub fn outcomes(&self) -> Option<usize> {
        self.probe.map(|_| self.clean)
    }

    /// Everything that can be played.
    ///
    /// # Errors
    /// The lab's own failures.
    pub fn play(&mut self) -> Result<Vec<Play>, LabError> {
        let mut plays = vec![self.twice()?, self.killed()?, self.at_once()?];
        if self.check.is_some() {
            plays.push(self.asked()?);
        }
        Ok(plays)
    }

    /// The same key twice, one after the other; the answer to the first call may have been lost.
    fn twice(&mut self) -> Result<Play, LabError> {
        let before = self.world()?;
        let attempt = self.attempt();
        let first = self.program.call(&attempt, Until::End)?;
        self.time = Duration::try_from_secs_f64(first.outcome.seconds()).unwrap_or_default();
        let second = self.program.call(&again(&attempt, &first), Until::End)?;
        let mut faults = Vec::new();
        for (which, called) in [("first", &first), ("second", &second)] {
            if let Err(why) = called.output() {
                faults.push(format!("the {which} call with key {}: {why}", attempt.key));
            }
        }
        faults.extend(self.compare(&before, &format!("two calls with key {}", attempt.key))?);
        Ok(Play {
            judges: Class::Keyed,
            name: "twice",
            told: "the same key, one call after the other".to_owned(),
            faults,
        })
    }

    /// Killed, and called again with the same key.
    fn killed(&mut self) -> Result<Play, LabError> {
        let (mut faults, mut at_calls, mut at_moments) = (Vec::new(), 0, 0);
        for until in self.kills() {
            let before = self.world()?;
            let attempt = self.attempt();
            let killed = self.program.call(&attempt, until)?;
            if !killed.was_killed() {
                // It was over sooner than the clean call, which two calls with one key are.
                continue;
            }
            *if killed.at.is_some() { &mut at_calls } else { &mut at_moments } += 1;
            let place = place(until, &killed);
            if let Err(why) = self.program.call(&again(&attempt, &killed), Until::End)?.output() {
                faults.push(format!("killed {place}, then called again with key {}: {why}", attempt.key));
            }
            let what = format!("killed {place}, then called again with key {}", attempt.key);
            faults.extend(self.compare(&before, &what)?);
        }
        if at_calls + at_moments == 0 {
            faults.push("no kill has hit, so nothing is known of it".to_owned());
        }
        let told = format!("{at_calls} kills at a system call and {at_moments} at a moment, each called again");
        Ok(Play { judges: Class::Keyed, name: "killed", told, faults })
    }

    /// Two processes at the same time, and a third that finds out.
    fn at_once(&mut self) -> Result<Play, LabError> {
        let mut faults = Vec::new();
        for _ in 0..MOMENTS {
            let before = self.world()?;
            let attempt = self.attempt();
            let both = self.program.two_at_once(&attempt)?;
            if both.iter().all(|called| called.output().is_err()) {
                let why = both.iter().map(|called| called.outcome.describe()).collect::<Vec<_>>().join("; ");
                faults.push(format!("both calls with key {} failed: {why}", attempt.key));
            }
            if let Err(why) = self.program.call(&again(&attempt, &both[0]), Until::End)?.output() {
                faults.push(format!("the call with key {} after two at once: {why}", attempt.key));
            }
            faults.extend(self.compare(&before, &format!("two at once and one more with key {}", attempt.key))?);
        }
        let told = format!("{MOMENTS} times two with one key at the same time, and one more");
        Ok(Play { judges: Class::Keyed, name: "at once", told, faults })
    }

    /// Killed, then asked; what the answer permits is done.
    fn asked(&mut self) -> Result<Play, LabError> {
        let (mut faults, mut answers) = (Vec::new(), BTreeMap::<&str, usize>::new());
        for until in [Until::Moment(Duration::ZERO), Until::End].into_iter().chain(self.kills()) {
            let before = self.world()?;
            let attempt = self.attempt();
            let called = self.program.call(&attempt, until)?;
            let place = place(until, &called);
            let answer = match self.ask(&again(&attempt, &called))? {
                Ok(answer) => answer,
                Err(why) => {
                    faults.push(format!("{place}, then asked: {why}"));
                    continue;
                }
            };
            let found: usize = added(&before, &self.world()?).values().sum();
            let (word, right) = match answer {
                Check::Happened => ("happened", found == self.clean),
                Check::Absent => ("absent", found == 0),
                // A person would be asked.
                Check::Unknown => ("unknown", true),
            };
            *answers.entry(word).or_default() += 1;
            if !right {
                faults.push(format!("{place}, then asked: it says `{word}`, the probe sees {found} outcomes"));
            }
            if answer == Check::Absent {
                if let Err(why) = self.program.call(&again(&attempt, &called), Until::End)?.output() {
                    faults.push(format!("{place}, said to be absent, then called again: {why}"));
                }
                faults.extend(self.compare(&before, &format!("{place}, said to be absent, then called again"))?);
            }
        }
        if !answers.contains_key("happened") || !answers.contains_key("absent") {
            faults.push("it never says `happened` after a whole call, or never `absent` after none".to_owned());
        }
        let told = answers.iter().map(|(word, count)| format!("{count} times `{word}`")).collect::<Vec<_>>().join(", ");
        Ok(Play { judges: Class::Verifiable, name: "asked", told, faults })
    }

    fn ask(&self, attempt: &Attempt) -> Result<Result<Check, String>, LabError> {
        let Some(check) = self.check else { return Ok(Ok(Check::Unknown)) };
        let output = match check.call(attempt, Until::End)?.output() {
            Ok(output) => output,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match output.get("effect").and_then(Value::as_str) {
            Some("happened") => Ok(Check::Happened),
            Some("absent") => Ok(Check::Absent),
            Some("unknown") => Ok(Check::Unknown),
            _ => Err("its check answers neither `happened` nor `absent` nor `unknown`".to_owned()),
        })
    }

    /// Where to kill: from the first instruction to the last.
    fn kills(&self) -> Vec<Until> {
        let step = self.places.div_ceil(CALLS).max(1);
        let calls = (0..self.places).step_by(step).map(Until::Call);
        let moments = (0..MOMENTS).map(|number| Until::Moment(self.time * number / MOMENTS));
        moments.chain(calls).collect()
    }

    fn attempt(&mut self) -> Attempt {
        self.keys += 1;
        Attempt { key: format!("{}-{}", self.prefix, self.keys), number: 1, checkpoint: Value::Null }
    }

    /// The outcomes in the world, each with how often it is there.
    fn world(&self) -> Result<BTreeMap<String, usize>, LabError> {
        let Some(probe) = self.probe else { return Ok(BTreeMap::new()) };
        let shell = Command::new("sh")
            .args(["-c", &probe.command])
            .current_dir(self.program.dir())
            .stdin(Stdio::null())
            .output();
        let output = shell.map_err(|e| LabError::Internal(format!("cannot start a shell for the probe: {e}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim_end().lines().last().unwrap_or_default();
            return Err(LabError::Usage(format!("the probe ended with {}: {said}", output.status)));
        }
        let mut outcomes = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            *outcomes.entry(line.to_owned()).or_default() += 1;
        }
        Ok(outcomes)
    }

    /// What is wrong with what was left since `before`.
    fn compare(&self, before: &BTreeMap<String, usize>, what: &str) -> Result<Option<String>, LabError> {
        let added = added(before, &self.world()?);
        let found: usize = added.values().sum();
        if found == self.clean {
            return Ok(None);
        }
        let seen = added.keys().next_back().map_or(String::new(), |line| format!(", such as `{line}`"));
        Ok(Some(format!("{what}: {found} outcomes instead of {}{seen}", self.clean)))
    }
}

fn again(first: &Attempt, called: &Called) -> Attempt {
    Attempt { key: first.key.clone(), number: first.number + 1, checkpoint: called.checkpoint.clone() }
}

fn added(before: &BTreeMap<String, usize>, after: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let more = |(line, &count): (&String, &usize)| {
        let more = count.saturating_sub(before.get(line).copied().unwrap_or_default());
        (more > 0).then(|| (line.clone(), more))
    };
    after.iter().filter_map(more).collect()
}

fn place(until: Until, called: &Called) -> String {
    match (until, called.at) {
        (Until::Call(index), Some(name)) => format!("after call {index} ({name})"),
        (Until::Moment(time), _) => format!("after {} ms", time.as_millis()),
        _ => "after its end".to_owned(),
    }
}
