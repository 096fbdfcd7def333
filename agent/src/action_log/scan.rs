//! What a log has already. Whatever is not a line of ours is skipped: that is allowed, and it stays.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};

use memchr::memchr;
use memchr::memmem::Finder;
use serde::Deserialize;
use store::limits;
use store::model::{JournalEntry, TaskId};

use super::LogError;
use super::append::LogFile;

/// The events of one task that a log has.
#[derive(Default)]
pub(super) struct Seen {
    /// By run, which events: bit `seq % 512` of the chunk `seq / 512`. A log of a million lines takes some 200 KB.
    by_seq: BTreeMap<String, BTreeMap<i64, [u64; 8]>>,
    /// Lines that do not say which event they stand for, as other programs write them: how many by event and step.
    unnumbered: BTreeMap<(String, Option<u32>), u64>,
}

impl Seen {
    /// Whether the log has the line of this event. A line without a number stands for the first event that it fits.
    pub(super) fn take(&mut self, entry: &JournalEntry, event: &str) -> bool {
        let (chunk, word, bit) = place(entry.seq);
        let chunks = self.by_seq.get(entry.run.as_str());
        if chunks.and_then(|chunks| chunks.get(&chunk)).is_some_and(|words| words[word] & bit != 0) {
            return true;
        }
        match self.unnumbered.get_mut(&(event.to_owned(), entry.step)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn add(&mut self, line: &Found<'_>) {
        if let (Some(seq), Some(run)) = (line.seq, &line.run) {
            let (chunk, word, bit) = place(seq);
            if !self.by_seq.contains_key(run.as_ref()) {
                self.by_seq.insert(run.clone().into_owned(), BTreeMap::new());
            }
            if let Some(chunks) = self.by_seq.get_mut(run.as_ref()) {
                chunks.entry(chunk).or_default()[word] |= bit;
            }
        } else {
            *self.unnumbered.entry((line.event.clone().into_owned(), line.idx)).or_default() += 1;
        }
    }
}

fn place(seq: i64) -> (i64, usize, u64) {
    let within = seq.rem_euclid(512);
    (seq.div_euclid(512), (within / 64) as usize, 1 << (within % 64))
}

/// A line, as far as it matters here.
#[derive(Deserialize)]
struct Found<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    task: Cow<'a, str>,
    idx: Option<u32>,
    #[serde(borrow)]
    run: Option<Cow<'a, str>>,
    seq: Option<i64>,
}

/// Reads the log.
pub(super) fn scan(file: &LogFile, task: &TaskId) -> Result<Seen, LogError> {
    let mut seen = Seen::default();
    let may_be_ours = Needle::of(task);
    let lines = each_line(file.content()?, |line| {
        if may_be_ours.is_in(line)
            && let Some(found) = parse(line).filter(|found| found.task == task.as_str())
        {
            seen.add(&found);
        }
    });
    lines.map_err(LogError::io("read", file.path()))?;
    Ok(seen)
}

/// Tells most lines of others without reading them: a log that many tasks share is read by each of them at each start.
struct Needle(Finder<'static>);

impl Needle {
    fn of(task: &TaskId) -> Self {
        let name = serde_json::Value::from(task.as_str()).to_string();
        Self(Finder::new(name.as_bytes()).into_owned())
    }

    /// False where the line cannot name the task: it has neither its name nor an escape, with which any character can
    /// be written.
    fn is_in(&self, line: &[u8]) -> bool {
        self.0.find(line).is_some() || memchr(b'\\', line).is_some()
    }
}

/// A JSON object with an event and a task; `None` for everything else that may stand in such a file.
fn parse(line: &[u8]) -> Option<Found<'_>> {
    // A struct would also be read from a list, and bytes that are not UTF-8 might hide where nobody looks.
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    if line.len() > limits::LOG_LINE_BYTES || !text.starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// How much is read at once; a line that may be ours fits in.
const BLOCK: usize = 4 * limits::LOG_LINE_BYTES;

/// Lines of any bytes and any length, without their line breaks; much of one that is too long is left out.
fn each_line(mut input: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let (mut kept, mut too_long) = (0, false);
    loop {
        let read = match input.read(&mut block[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let filled = kept + read;
        if read == 0 {
            if filled > 0 && !too_long {
                take(&block[..filled]);
            }
            return Ok(());
        }
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &block[start..filled]) {
            if !std::mem::take(&mut too_long) {
                take(&block[start..start + length]);
            }
            start += length + 1;
        }
        too_long |= filled - start > limits::LOG_LINE_BYTES;
        kept = if too_long { 0 } else { filled - start };
        block.copy_within(start..start + kept, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use store::model::RunId;

    fn entry(seq: i64, run: &str, step: Option<u32>) -> JournalEntry {
        let (task, run) = (TaskId::new("t").unwrap(), RunId::from_stored(run));
        JournalEntry {
            seq,
            ts: store::model::Timestamp::default(),
            task,
            run,
            kind: String::new(),
            step,
            data: serde_json::Map::new(),
        }
    }

    fn seen(text: &[u8]) -> Seen {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, text).unwrap();
        scan(&LogFile::open(&path, &tools::Stop::default()).unwrap(), &TaskId::new("t").unwrap()).unwrap()
    }

    #[rstest]
    #[case(b"")]
    #[case(b"5\nnull\n\"text\"\ntrue\n[]\n")]
    #[case(br#"["step_done","t",1,"r",7]"#)]
    #[case(br#"{"event":"step_done","task":"other","idx":1,"run":"r","seq":7}"#)]
    #[case(br#"{"event":"step_done","task":"t","idx":"1","run":"r","seq":7}"#)]
    #[case(br#"{"event":"step_done","task":"t","idx":1,"run":"r","seq":7"#)]
    #[case(br#"{"event":"step_{"event":"step_done","task":"t","idx":1,"run":"r","seq":7}"#)]
    #[case(b"{\"event\":\"step_done\",\"task\":\"t\",\"idx\":1,\"run\":\"r\",\"seq\":7,\"x\":\"\xe6\x9d\"}\n")]
    #[case(br#"{"event":"step_done","task":"t","idx":1,"run":"q","seq":7}"#)]
    #[case(br#"{"event":"step_done","task":"t","idx":2}"#)]
    #[case(br#"{"event":"step_started","task":"t","idx":1}"#)]
    #[case(br#"{"task":"t"}"#)]
    fn what_is_no_line_of_the_event_does_not_stand_for_it(#[case] text: &[u8]) {
        assert!(!seen(text).take(&entry(7, "r", Some(1)), "step_done"));
    }

    #[rstest]
    #[case(br#"{"event":"step_done","task":"t","idx":1,"run":"r","seq":7}"#)]
    #[case(b"\xff\xfe\n5\n{\"event\":\"step_done\",\"task\":\"t\",\"idx\":1,\"run\":\"r\",\"seq\":7}\n{\"ev")]
    #[case(b"  {\"seq\":7,\"run\":\"r\",\"task\":\"t\",\"event\":\"step_done\",\"idx\":1}\r\n")]
    #[case(br#"{"event":"step_done","task":"\u0074","idx":1}"#)]
    fn a_line_of_the_event_stands_for_it(#[case] text: &[u8]) {
        assert!(seen(text).take(&entry(7, "r", Some(1)), "step_done"));
    }

    #[test]
    fn a_line_without_a_number_stands_for_one_event_only() {
        let mut seen = seen(b"{\"event\":\"step_started\",\"task\":\"t\",\"idx\":1}\n");
        assert!(seen.take(&entry(3, "r", Some(1)), "step_started"));
        assert!(!seen.take(&entry(4, "r", Some(1)), "step_started"));
    }

    #[test]
    fn every_number_is_told_from_its_neighbours() {
        for seq in [-513, -1, 0, 1, 63, 64, 511, 512, i64::from(u32::MAX), i64::MAX - 1] {
            let line = format!("{{\"event\":\"e\",\"task\":\"t\",\"run\":\"r\",\"seq\":{seq}}}\n");
            let mut seen = seen(line.as_bytes());
            assert!(seen.take(&entry(seq, "r", None), "e"), "{seq}");
            assert!(
                !seen.take(&entry(seq + 1, "r", None), "e") && !seen.take(&entry(seq - 1, "r", None), "e"),
                "{seq}"
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_in_little_memory() {
        let long = "x".repeat(3 << 20);
        let text = format!("{{\"event\":\"{long}\",\"task\":\"t\"}}\n{{\"event\":\"e\",\"task\":\"t\"}}\n");
        let mut lines = Vec::new();
        each_line(text.as_bytes(), |line| lines.push(line.len())).unwrap();
        assert_eq!(lines, [24], "the first line is left out");
        assert!(seen(text.as_bytes()).take(&entry(1, "r", None), "e"));
    }

    /// Wherever the blocks end, the lines are the same.
    #[test]
    fn lines_do_not_depend_on_how_much_comes_at_once() {
        struct Slowly<'a>(&'a [u8], usize);
        impl Read for Slowly<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let piece = self.0.len().min(self.1).min(buffer.len());
                buffer[..piece].copy_from_slice(&self.0[..piece]);
                self.0 = &self.0[piece..];
                Ok(piece)
            }
        }
        let limit = limits::LOG_LINE_BYTES;
        let lengths = [0, 1, limit - 1, limit, 2 * limit, 7, BLOCK, 3 * BLOCK, 0, 5];
        let mut text: Vec<u8> =
            lengths.iter().flat_map(|&length| [vec![b'x'; length], b"\n".to_vec()].concat()).collect();
        text.extend_from_slice(b"torn");
        for piece in [1, 1000, limit, limit + 1, BLOCK - 1, BLOCK] {
            let mut found = Vec::new();
            each_line(Slowly(&text, piece), |line| found.push(line.len())).unwrap();
            let short: Vec<_> = found.into_iter().filter(|&length| length <= limit).collect();
            assert_eq!(short, [0, 1, limit - 1, limit, 7, 0, 5, 4], "{piece} bytes at once");
        }
    }
}
