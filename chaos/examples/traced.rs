//! What the tracer costs a process that changes nothing in its folder: `traced CHAOS COMMAND` prints the median time of
//! the command under the tracer, by that without it. For the bench.

use std::time::{Duration, Instant};

use chaos::agent::process::Launch;
use chaos::agent::target::Target;
use chaos::error::LabError;
use chaos::trace::{Call, Done, Recorder, Start, Verb, Watch, trace};

const ROUNDS: usize = 21;

struct Blind;

impl Watch for Blind {
    fn before(&mut self, _: &Call) -> Result<Verb, LabError> {
        Ok(Verb::Go)
    }

    fn after(&mut self, _: &Call, _: Done) -> Result<Verb, LabError> {
        Ok(Verb::Go)
    }
}

#[expect(clippy::print_stdout, reason = "a program of its own")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [lab, command] = words.as_slice() else { return Err("CHAOS and COMMAND are wanted".into()) };
    let (mut bare, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir()?;
        let world = dir.path().join("world");
        std::fs::create_dir(&world)?;
        let target = Target::new(command, dir.path(), Vec::new())?;
        let launch = Launch::new(&target, [], &world, &dir.path().join("p"));
        let begin = Instant::now();
        launch.command(&[])?.status()?;
        bare.push(begin.elapsed());
        let mut recorder = Recorder::new(&world)?;
        let start = Start {
            command: launch.command(&[lab, chaos::crash::LAUNCH])?,
            given: command,
            printed: launch.printed(),
            deadline: Duration::from_secs(20),
        };
        let begin = Instant::now();
        trace(start, &mut recorder, &mut Blind)?;
        traced.push(begin.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[ROUNDS / 2].as_secs_f64()
    };
    println!("{}", median(&mut traced) / median(&mut bare));
    Ok(())
}
