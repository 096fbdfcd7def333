//! What a log has already. Whatever is not a line of ours is skipped: it is no fault, and it stays.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

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
    let failed = LogError::io("read", file.path());
    let mut seen = Seen::default();
    let mut lines = Lines { input: BufReader::with_capacity(64 << 10, file.content()?), line: Vec::new() };
    while let Some(line) = lines.next().map_err(&failed)? {
        if let Some(found) = parse(line).filter(|found| found.task == task.as_str()) {
            seen.add(&found);
        }
    }
    Ok(seen)
}

/// A JSON object with an event and a task; `None` for everything else that may stand in such a file.
fn parse(line: &[u8]) -> Option<Found<'_>> {
    // A struct would also be read from a list, and bytes that are no UTF-8 might hide where nobody looks.
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    if line.len() > limits::LOG_LINE_BYTES || !text.starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Lines of any bytes and any length; of a line that is too long, only its beginning is kept.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut any = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some(&self.line));
            }
            any = true;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            let room = (limits::LOG_LINE_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(&self.line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use store::model::RunId;

    fn entry(seq: i64, run: &str, step: Option<u32>) -> JournalEntry {
        let (task, run) = (TaskId::new("t").unwrap(), RunId::from_stored(run));
        JournalEntry { seq, ts: 0.0, task, run, kind: String::new(), step, data: serde_json::Map::new() }
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
    fn a_line_without_end_is_skipped_in_little_memory() {
        let long = "x".repeat(3 << 20);
        let text = format!("{{\"event\":\"{long}\",\"task\":\"t\"}}\n{{\"event\":\"e\",\"task\":\"t\"}}\n");
        let mut lines = Lines { input: BufReader::new(text.as_bytes()), line: Vec::new() };
        assert_eq!(lines.next().unwrap().unwrap().len(), limits::LOG_LINE_BYTES + 1);
        assert!(lines.line.capacity() <= 4 * limits::LOG_LINE_BYTES);
        assert!(seen(text.as_bytes()).take(&entry(1, "r", None), "e"));
    }
}
