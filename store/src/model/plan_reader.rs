//! A plan file, read step by step: its text lies in memory a step at a time.

use std::io::{self, BufRead as _, BufReader, Read};

use serde_json::{Map, Value};

use super::spot::Spot;
use super::strict::{kind_of, parse_at};
use super::{PlanError, PlannedStep};
use crate::limits;

/// Why a plan file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadPlanError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What is in it is not a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// The steps of a plan file, in order. What the whole plan must have is known to be there after the last one.
#[derive(Debug)]
pub struct PlanReader<R> {
    text: Text<R>,
    part: Part,
    goal: Option<String>,
    inputs: Option<Map<String, Value>>,
    labels: Option<Map<String, Value>>,
    /// How many steps have been read; none where no list of them has begun.
    steps: Option<u32>,
}

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Start,
    Field { first: bool },
    Step { first: bool },
    End,
}

impl<R: Read> PlanReader<R> {
    /// A plan file, at its beginning.
    pub fn new(input: R) -> Self {
        Self { text: Text::new(input), part: Part::Start, goal: None, inputs: None, labels: None, steps: None }
    }

    /// The next step; `None` where the plan has been read to its end, and is in order as far as its form goes.
    ///
    /// # Errors
    /// Names the step and the field at fault.
    pub fn next_step(&mut self) -> Result<Option<PlannedStep>, ReadPlanError> {
        loop {
            match self.part {
                Part::Start => self.start()?,
                Part::Field { first } => self.field(first)?,
                Part::Step { first } => {
                    if let Some(value) = self.text.element(b']', first)? {
                        self.part = Part::Step { first: false };
                        return self.step(value).map(Some);
                    }
                    self.part = Part::Field { first: false };
                }
                Part::End => return Ok(None),
            }
        }
    }

    /// What the plan is for; known after its last step.
    #[must_use]
    pub fn goal(&self) -> &str {
        self.goal.as_deref().unwrap_or_default()
    }

    /// The inputs that it declares; known after its last step.
    #[must_use]
    pub fn inputs(&self) -> Option<&Map<String, Value>> {
        self.inputs.as_ref()
    }

    /// The labels that it gives its tasks; known after its last step.
    #[must_use]
    pub fn labels(&self) -> Option<&Map<String, Value>> {
        self.labels.as_ref()
    }

    /// What it reads from.
    #[must_use]
    pub fn get_ref(&self) -> &R {
        self.text.input.get_ref()
    }

    fn start(&mut self) -> Result<(), ReadPlanError> {
        self.text.skip_mark()?;
        if self.text.peek()? == Some(b'{') {
            self.text.take();
            self.part = Part::Field { first: true };
            return Ok(());
        }
        let value = self.text.value()?;
        let why = format!("a plan is a JSON object, this is {}", kind_of(&value));
        Err(PlanError::whole(why).into())
    }

    fn field(&mut self, first: bool) -> Result<(), ReadPlanError> {
        let Some(name) = self.text.element(b'}', first)? else { return self.end() };
        let Value::String(name) = name else { return Err(self.text.expected("a name").into()) };
        self.text.expect(b':')?;
        let twice = match name.as_str() {
            "goal" => self.goal.is_some(),
            "inputs" => self.inputs.is_some(),
            "labels" => self.labels.is_some(),
            "steps" => self.steps.is_some(),
            _ => false,
        };
        if twice {
            return Err(PlanError::whole(self.text.spot().says(&format!("`{name}` is given twice"))).into());
        }
        self.part = Part::Field { first: false };
        match name.as_str() {
            "goal" => match self.text.value()? {
                Value::String(goal) => self.goal = Some(goal),
                other => return Err(wrong_kind("goal", "text", &other).into()),
            },
            "inputs" | "labels" => {
                let Value::Object(map) = self.text.value()? else {
                    return Err(PlanError::field(&name, "must be a map").into());
                };
                *(if name == "inputs" { &mut self.inputs } else { &mut self.labels }) = Some(map);
            }
            "steps" if self.text.peek()? == Some(b'[') => {
                self.text.take();
                self.steps = Some(0);
                self.part = Part::Step { first: true };
            }
            "steps" => return Err(wrong_kind("steps", "a list of steps", &self.text.value()?).into()),
            // A field that nothing reads is most likely a slip in the name of one that something would read.
            name => return Err(PlanError::field(name, "unknown field").into()),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ReadPlanError> {
        if self.text.peek()?.is_some() {
            return Err(self.text.expected("the end").into());
        }
        if self.goal.is_none() {
            return Err(PlanError::field("goal", "missing").into());
        }
        match self.steps {
            None => return Err(PlanError::field("steps", "missing").into()),
            Some(0) => return Err(PlanError::field("steps", "the plan has no steps").into()),
            Some(_) => {}
        }
        self.part = Part::End;
        Ok(())
    }

    fn step(&mut self, value: Value) -> Result<PlannedStep, ReadPlanError> {
        let index = self.steps.unwrap_or_default();
        if index as usize >= limits::PLAN_STEPS {
            let why = format!("more than {} steps, which are as many as are allowed", limits::PLAN_STEPS);
            return Err(PlanError::field("steps", why).into());
        }
        self.steps = Some(index + 1);
        Ok(planned_step(index, value)?)
    }
}

fn planned_step(index: u32, value: Value) -> Result<PlannedStep, PlanError> {
    let Value::Object(mut step) = value else {
        let kind = kind_of(&value);
        let why = format!("a step is a JSON object with `tool` and `input`, this is {kind}");
        return Err(PlanError::whole(why).in_step(index, ""));
    };
    let mut take = |field: &str| step.remove(field).ok_or_else(|| PlanError::field(field, "missing"));
    let tool = match take("tool") {
        Ok(Value::String(tool)) => tool,
        Ok(other) => return Err(wrong_kind("tool", "text", &other).in_step(index, "")),
        Err(error) => return Err(error.in_step(index, "")),
    };
    let input = match take("input") {
        Ok(Value::Object(input)) => input,
        Ok(other) => return Err(wrong_kind("input", "an object", &other).in_step(index, &tool)),
        Err(error) => return Err(error.in_step(index, &tool)),
    };
    if let Some(field) = step.keys().find(|field| !SETTINGS.contains(&field.as_str())) {
        let known = SETTINGS.map(|name| format!("`{name}`")).join(", ");
        let why = format!("unknown field; beside `tool` and `input` a step may have {known}");
        return Err(PlanError::field(field, why).in_step(index, &tool));
    }
    let settings = (!step.is_empty()).then_some(step);
    Ok(PlannedStep { settings, ..PlannedStep::new(tool, input) })
}

/// What a step may say beside its tool and its input. It is stored as it is, and means something to whoever runs the
/// plan.
const SETTINGS: [&str; 8] = ["id", "when", "effect", "timeout", "retry", "on_error", "until", "check"];

fn wrong_kind(field: &str, expected: &str, value: &Value) -> PlanError {
    PlanError::field(field, format!("must be {expected}, is {}", kind_of(value)))
}

/// No plan needs a longer number or word: a file of anything else is not read into memory.
const BARE_BYTES: usize = 4 << 10;

/// JSON text, taken apart at its outermost marks; what lies between them is for the parser.
#[derive(Debug)]
struct Text<R> {
    input: BufReader<R>,
    /// Where the next byte is.
    at: Spot,
    offset: u64,
    /// The text of the value that is being read.
    piece: Vec<u8>,
}

impl<R: Read> Text<R> {
    fn new(input: R) -> Self {
        let input = BufReader::with_capacity(64 << 10, input);
        Self { input, at: Spot::default(), offset: 0, piece: Vec::new() }
    }

    /// Some editors begin a file with a mark that it is UTF-8.
    fn skip_mark(&mut self) -> io::Result<()> {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.input.fill_buf()?.starts_with(MARK) {
            self.input.consume(MARK.len());
            self.offset += MARK.len() as u64;
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    /// Goes on behind the byte that was looked at last.
    fn take(&mut self) {
        if let Some(&byte) = self.input.buffer().first() {
            self.input.consume(1);
            self.offset += 1;
            self.at.pass(byte);
        }
    }

    /// The next byte that is not white space, which is left out.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        while let Some(byte) = self.byte()? {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(Some(byte));
            }
            self.take();
        }
        Ok(None)
    }

    fn spot(&self) -> Spot {
        self.at
    }

    fn expected(&self, what: &str) -> PlanError {
        PlanError::whole(self.at.says(&format!("not JSON: expected {what}")))
    }

    fn expect(&mut self, mark: u8) -> Result<(), ReadPlanError> {
        if self.peek()? != Some(mark) {
            return Err(self.expected(&format!("`{}`", char::from(mark))).into());
        }
        self.take();
        Ok(())
    }

    /// The next value of a list or the next name of an object; `None` at its end, the mark `close`.
    fn element(&mut self, close: u8, first: bool) -> Result<Option<Value>, ReadPlanError> {
        match self.peek()? {
            Some(byte) if byte == close => {
                self.take();
                return Ok(None);
            }
            Some(b',') if !first => self.take(),
            _ if first => {}
            _ => return Err(self.expected(&format!("`,` or `{}`", char::from(close))).into()),
        }
        self.value().map(Some)
    }

    /// A whole value. Where it ends is all that is found out here; whether it is one is for the parser to say.
    fn value(&mut self) -> Result<Value, ReadPlanError> {
        self.piece.clear();
        self.peek()?;
        let (start, offset) = (self.at, self.offset);
        let (mut depth, mut in_text, mut escaped) = (0_u32, false, false);
        while let Some(byte) = self.byte()? {
            let ends =
                !in_text && depth == 0 && matches!(byte, b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
            let too_long = !in_text && depth == 0 && self.piece.len() > BARE_BYTES;
            if ends || too_long {
                break;
            }
            self.piece.push(byte);
            self.take();
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                b'[' | b'{' if !in_text => depth += 1,
                b']' | b'}' if !in_text => depth -= 1,
                _ => {}
            }
            let whole = !in_text && depth == 0 && matches!(byte, b'"' | b']' | b'}');
            if whole {
                break;
            }
        }
        if self.piece.is_empty() && self.byte()?.is_some() {
            return Err(self.expected("a value").into());
        }
        let text = std::str::from_utf8(&self.piece).map_err(|error| {
            let offset = offset + error.valid_up_to() as u64;
            PlanError::whole(format!("not UTF-8: invalid byte at offset {offset}"))
        })?;
        Ok(parse_at(text, start).map_err(PlanError::whole)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Plan;
    use crate::model::codec::plan_from_json;
    use rstest::rstest;

    const PLAN: &str = r#"
        { "goal": "a, b] } \" \\", "steps": [
            {"tool": "echo", "input": {"value": [{"x": "]}"}, -1.5e3, null, true, "\u00e9\\"]}},
            {"input": {}, "tool": "none"} ] }
        "#;

    /// Gives a byte at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((byte, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *byte;
            self.0 = rest;
            Ok(1)
        }
    }

    fn slowly(text: &str) -> Result<Plan, String> {
        let mut reader = PlanReader::new(Slowly(text.as_bytes()));
        let mut steps = Vec::new();
        while let Some(step) = reader.next_step().map_err(|error| error.to_string())? {
            steps.push(step);
        }
        Ok(Plan { goal: reader.goal().to_owned(), steps })
    }

    #[test]
    fn a_plan_comes_out_as_a_parser_of_the_whole_would_have_it() {
        let whole: Value = serde_json::from_str(PLAN).unwrap();
        let plan = plan_from_json(PLAN).unwrap();
        assert_eq!(plan.goal, whole["goal"]);
        for (index, step) in plan.steps.iter().enumerate() {
            assert_eq!((&*step.tool, &Value::Object(step.input.clone())), {
                let step = &whole["steps"][index];
                (step["tool"].as_str().unwrap(), &step["input"])
            });
        }
        assert_eq!(slowly(PLAN), Ok(plan.clone()));
        let escaped = PLAN.replace("\"goal\"", r#""\u0067oal""#).replace("\"steps\":", "\"st\\u0065ps\"\n:");
        assert_eq!(plan_from_json(&escaped), Ok(plan.clone()), "a name may be written in more than one way");
        let turned = format!("{{\"steps\": {}, \"goal\": {}}}", whole["steps"], whole["goal"]);
        assert_eq!(plan_from_json(&turned), Ok(plan));
    }

    /// Cut anywhere, or with any one of its marks taken out or put in twice, a text is refused as the parser refuses
    /// it.
    #[test]
    fn whatever_is_not_json_is_refused() {
        let text = PLAN.trim();
        let mut broken: Vec<String> =
            (0..text.len()).filter(|&at| text.is_char_boundary(at)).map(|at| text[..at].to_owned()).collect();
        for (at, mark) in text.char_indices().filter(|(_, mark)| "{}[],:\"\\-".contains(*mark)) {
            let (before, after) = (&text[..at], &text[at + 1..]);
            broken.extend([
                format!("{before}{after}"),
                format!("{before}{mark}{mark}{after}"),
                format!("{before}x{after}"),
            ]);
        }
        let mut refused = 0;
        for text in broken {
            let parsed = serde_json::from_str::<Value>(&text);
            let read = plan_from_json(&text);
            assert!(parsed.is_ok() || read.is_err(), "{text}");
            assert_eq!(slowly(&text), read.map_err(|error| error.to_string()), "{text}");
            refused += usize::from(parsed.is_err());
        }
        assert!(refused > 200, "{refused}");
    }

    #[rstest]
    #[case("", "not JSON: EOF while parsing a value at line 1 column")]
    #[case("\n {\"goal\": trx}", "not JSON: expected ident at line 2 column 13")]
    #[case("{\"goal\" 1}", "not JSON: expected `:` at line 1 column 9")]
    #[case("{1: 2}", "not JSON: expected a name at line 1 column 3")]
    #[case("{\"goal\": \"g\" \"steps\": []}", "not JSON: expected `,` or `}` at line 1 column 14")]
    #[case("{\"goal\": \"g\",}", "not JSON: expected a value at line 1 column 14")]
    #[case("{\"goal\": ]", "not JSON: expected a value at line 1 column 10")]
    #[case("{\"goal\": \"g\",\n\"goal\": \"g\"}", "`goal` is given twice at line 2")]
    #[case("{\"steps\": [], \"steps\": []}", "`steps` is given twice at line 1")]
    #[case("{\"steps\": [\n  1 2]}", "step 0: a step is a JSON object")]
    #[case("{\"steps\": [\n {\"tool\":\"a\",\"input\":{\"x\":1,\n\"x\":2}}]}", "`x` is given twice at line 3 column")]
    #[case("{\"steps\": [{\"tool\":\"a\",\"input\":{}}", "not JSON: expected `,` or `]` at line 1 column 35")]
    #[case(
        "{\"goal\": \"g\", \"steps\": [{\"tool\":\"a\",\"input\":{}}]} x",
        "not JSON: expected the end at line 1 column 51"
    )]
    #[case(
        "{\"steps\": [{\"tool\":\"a\",\"input\":{\"x\":\n99999999999999999999}}]}",
        "beyond 64 bits at line 2 column 1"
    )]
    fn a_fault_is_named_with_its_place_in_the_whole_file(#[case] text: &str, #[case] says: &str) {
        let error = plan_from_json(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_file_of_anything_else_is_not_read_to_its_end() {
        let mut reader = PlanReader::new(io::repeat(0));
        assert!(reader.next_step().unwrap_err().to_string().contains("not JSON"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_named_with_their_offset() {
        let mut reader = PlanReader::new(&b"{\"goal\": \"ab\xff\"}"[..]);
        let error = reader.next_step().unwrap_err().to_string();
        assert_eq!(error, "not UTF-8: invalid byte at offset 12");
    }

    #[test]
    fn a_plan_of_too_many_steps_is_refused_at_the_first_that_is_too_many() {
        let step = r#"{"tool":"a","input":{}}"#;
        let text = format!("{{\"goal\":\"g\",\"steps\":[{step},{step},{step}]}}");
        let mut reader = PlanReader::new(text.as_bytes());
        assert!(reader.next_step().unwrap().is_some());
        reader.steps = Some(u32::try_from(limits::PLAN_STEPS).unwrap() - 1);
        assert!(reader.next_step().unwrap().is_some(), "the last one that is allowed");
        let error = reader.next_step().unwrap_err().to_string();
        assert!(error.contains("more than 1000000 steps"), "{error}");
    }
}
