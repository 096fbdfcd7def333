//! Templates and expressions: taken apart when a plan is checked, rendered when its step begins.
//!
//! The engine takes a name that leads nowhere for a value that is just not there: `steps.note.txet == 'x'` is false,
//! and a slip skips a step. So each lookup is wrapped in a filter that refuses such a value, unless the template itself
//! asks whether it is there, by `is defined` or `default`.

use minijinja::Value as Seen;
use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{Token, parse, tokenize};
use serde_json::Value;

use super::environment::{environment, syntax};
use super::names::{Names, Walk};
use super::value::{json, sentence};

/// A text of a plan, taken apart.
#[derive(Debug)]
pub(super) struct Template {
    /// The text, each lookup in it made strict.
    strict: String,
    /// Whether it is a single expression, which gives its value as it is.
    single: bool,
    /// The names in it.
    pub(super) names: Names,
}

impl Template {
    /// A text that may have braces in it.
    ///
    /// # Errors
    /// It is not a template, or it does what a plan may not do; one line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // White space around a single expression is not part of what it gives.
        let trimmed = text.trim();
        let is_one = trimmed.starts_with("{{") && trimmed.ends_with("}}");
        let mut this = Self::taken_apart(if is_one { trimmed } else { text })?;
        if is_one && !this.single {
            this = Self::taken_apart(text)?;
        }
        Ok(this)
    }

    /// An expression, with or without one pair of braces around it.
    ///
    /// # Errors
    /// As [`Self::parse`]; or it is more than one expression.
    pub(super) fn expression(text: &str) -> Result<Self, String> {
        let bare = text.trim();
        let inner = bare.strip_prefix("{{").and_then(|inner| inner.strip_suffix("}}")).unwrap_or(bare);
        let this = Self::taken_apart(&format!("{{{{ {inner} }}}}"))?;
        if this.single { Ok(this) } else { Err("it must be a single expression".to_owned()) }
    }

    fn taken_apart(text: &str) -> Result<Self, String> {
        if longest(text) > EXPRESSION_WORDS {
            return Err(format!("an expression of more than {EXPRESSION_WORDS} words and signs"));
        }
        let parsed = parse(text, "plan", syntax()).map_err(|error| format!("{}{}", sentence(&error), hint(text)))?;
        let Stmt::Template(template) = &parsed else { return Err("it is not a template".to_owned()) };
        let single = matches!(template.children.as_slice(), [Stmt::EmitExpr(_)]);
        let mut walk = Walk::new(text);
        walk.statements(&template.children)?;
        Ok(Self { strict: walk.strict(), single, names: walk.into_names() })
    }

    /// What it gives, with these names.
    ///
    /// # Errors
    /// One line.
    pub(super) fn render(&self, names: &Seen) -> Result<Value, String> {
        if !self.single {
            return environment()
                .render_named_str("plan", &self.strict, names)
                .map(Value::String)
                .map_err(|e| sentence(&e));
        }
        // What white space would be cut off stands outside of the value.
        let inner = &self.strict[2..self.strict.len() - 2];
        let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
        let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
        let value =
            environment().compile_expression_owned(inner.to_owned()).and_then(|expression| expression.eval(names));
        json(&value.map_err(|error| sentence(&error))?)
    }
}

/// Most words and signs of one expression. Each can lie a level deeper than those before, and what is too deep for the
/// stack ends the process.
const EXPRESSION_WORDS: usize = 500;

/// How many words and signs the longest expression has.
fn longest(text: &str) -> usize {
    let (mut longest, mut count) = (0, 0);
    // What cannot be taken apart is for the parser to say.
    for (token, _) in tokenize(text, false, syntax()).map_while(Result::ok) {
        count = if matches!(token, Token::VariableStart | Token::BlockStart) { 0 } else { count + 1 };
        longest = longest.max(count);
    }
    longest
}

/// What people trip on who know other languages.
fn hint(text: &str) -> &'static str {
    if text.contains("{{.") || text.contains("{{ .") {
        return "; braces that are meant for another program stand between {% raw %} and {% endraw %}";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::super::value::seen;
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn names() -> Seen {
        seen(&json!({
            "inputs": { "n": 3, "list": [1, 2], "none": null, "flag": false, "text": "a b", "map": { "id": 7, "content-type": "x" },
                "big": u64::MAX, "half": 2.0 },
            "steps": { "note": { "text": "URGENT", "words": 1 }, "skipped": null },
            "task": { "id": "t", "goal": "g", "created_at": "2026-12-01T00:00:00Z" }, "key": "t-1", "null": null,
        }))
    }

    fn render(text: &str) -> Result<Value, String> {
        Template::parse(text)?.render(&names())
    }

    #[rstest]
    #[case("{{ inputs.n }}", json!(3))]
    #[case("  {{ inputs.n }}\n", json!(3))]
    #[case("{{- inputs.n -}}", json!(3))]
    #[case("{{ -1 }}", json!(-1))]
    #[case("{{ inputs.list }}", json!([1, 2]))]
    #[case("{{ inputs.map }}", json!({ "id": 7, "content-type": "x" }))]
    #[case("{{ inputs.none }}", json!(null))]
    #[case("{{ inputs.flag }}", json!(false))]
    #[case("{{ inputs.big }}", json!(u64::MAX))]
    #[case("{{ inputs.half }}", json!(2.0))]
    #[case("{{ inputs.map['content-type'] }}", json!("x"))]
    #[case("{{ inputs.list[-1] }}", json!(2))]
    #[case("{{ '}}' ~ '{{' }}", json!("}}{{"))]
    #[case("{{ steps.skipped == null }}", json!(true))]
    #[case("{{ (inputs.n + 1) * 2 }}", json!(8))]
    #[case("{{ {'a': [inputs.n, null]} }}", json!({ "a": [3, null] }))]
    #[case("{{ inputs.map.no | default('d') }}", json!("d"))]
    #[case("{{ inputs.map.no is defined }}", json!(false))]
    #[case("{{ 'no' in inputs.map }}", json!(false))]
    #[case("{{ 'id' in inputs.map }}", json!(true))]
    #[case("n={{ inputs.n }}", json!("n=3"))]
    #[case("{{ inputs.n }}{{ inputs.n }}", json!("33"))]
    #[case("{{ inputs.flag }}!", json!("false!"))]
    #[case("{{ inputs.list }} {{ inputs.map }}", json!("[1,2] {\"content-type\":\"x\",\"id\":7}"))]
    #[case("{{ inputs.text | upper }}\n\n", json!("A B"))]
    #[case("x {{ inputs.n }}\n\n", json!("x 3\n\n"))]
    #[case("{% if inputs.n > 2 %}more{% else %}less{% endif %}", json!("more"))]
    #[case("{% for x in inputs.list %}{{ loop.index }}:{{ x }} {% endfor %}", json!("1:1 2:2 "))]
    #[case("{% set x = inputs.n %}{{ x + 1 }}", json!("4"))]
    #[case("{% raw %}{{.Names}}{% endraw %}", json!("{{.Names}}"))]
    #[case("{{ inputs.map | json }}", json!("{\"content-type\":\"x\",\"id\":7}"))]
    #[case("{{ '<a & b>' | tojson }}", json!("\"<a & b>\""))]
    #[case("{{ inputs.text | urlencode }}", json!("a%20b"))]
    #[case("{{ inputs.list | map('string') | join('-') }}", json!("1-2"))]
    #[case("{{ inputs.n is divisibleby inputs.n }}", json!(true))]
    #[case("{{ inputs.text if inputs.n else 'b' }}", json!("a b"))]
    #[case("{{ task.id ~ key }}", json!("tt-1"))]
    #[case("ü{{ inputs.map['id'] }}ü", json!("ü7ü"))]
    fn a_template_gives(#[case] text: &str, #[case] gives: Value) {
        assert_eq!(render(text), Ok(gives));
    }

    /// A misspelt name was a silent null: a comparison with it was false, and the step was skipped.
    #[rstest]
    #[case("{{ inputs.map.typo }}", "`inputs.map.typo` is not there")]
    #[case("{{ inputs.map.typo == 'x' }}", "`inputs.map.typo` is not there")]
    #[case("{{ 'x' != inputs.map.typo }}", "`inputs.map.typo` is not there")]
    #[case("{{ inputs.map['typo'] < 3 }}", "`inputs.map[ typo ]` is not there")]
    #[case("{{ inputs.list[9] == 1 }}", "`inputs.list[9]` is not there")]
    #[case("{{ inputs.map.typo in ['x'] }}", "is not there")]
    #[case("{{ 'x' in [inputs.map.typo] }}", "is not there")]
    #[case("{{ inputs.map.typo is string }}", "is not there")]
    #[case("{{ inputs.map.typo | length }}", "is not there")]
    #[case("{{ 3 is eq inputs.map.typo }}", "is not there")]
    #[case("{{ [1] if inputs.map.typo else [] }}", "is not there")]
    #[case("{{ inputs.map.typo.deeper }}", "undefined")]
    #[case("{{ steps.skipped.text == 'x' }}", "`steps.skipped.text` is not there")]
    #[case("{{ inputs.text.length == 3 }}", "is not there")]
    #[case("{% if false %}{% set x = 1 %}{% endif %}{{ x == 1 }}", "`x` is not there")]
    #[case("{% for x in inputs.list %}{{ x.no }}{% endfor %}", "`x.no` is not there")]
    #[case("{{ 1 if false }}", "gives nothing")]
    #[case("a {{ inputs.none }}", "null cannot stand in a text")]
    #[case("a {{ inputs.map.no | default }}{{ 1 if false }}", "not there")]
    #[case("{{ 'a' * 2000000000 }}", "fuel")]
    #[case("{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}", "fuel")]
    #[case("{{ 1 / 0 }}", "")]
    fn a_name_that_leads_nowhere_is_an_error(#[case] text: &str, #[case] says: &str) {
        let error = render(text).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    #[rstest]
    #[case("{{ nope }}", "there is no name `nope`; there are inputs, steps")]
    #[case("{{ steps }}", "followed by a step")]
    #[case("{{ steps[inputs.n] }}", "followed by a step")]
    #[case("{{ steps[-1] }}", "no step -1")]
    #[case("{{ status['a'][0] ~ status }}", "followed by the id")]
    #[case("{{ task.now }}", "`task` has no `now`; it has id, goal, created_at")]
    #[case("{{ inputs.a | uper }}", "no filter `uper`")]
    #[case("{{ inputs.a | __there('x') }}", "no filter `__there`")]
    #[case("{{ inputs.a is strin }}", "no test `strin`")]
    #[case("{{ now() }}", "no function `now`")]
    #[case("{{ inputs.a.upper() }}", "`.upper()` is one; write `| upper`")]
    #[case("{{ inputs.a.startswith('x') }}", "write `is startingwith`")]
    #[case("{{ inputs.a.frobnicate() }}", "filters do that")]
    #[case("{{ inputs.headers.content-type }}", "the field of that name is ['content-type']")]
    #[case("{{.Names}}", "{% raw %}")]
    #[case("{{ inputs.a", "unexpected end")]
    #[case("{% include 'x' %}", "unknown statement")]
    #[case("{{ secret('A') | upper }}", "can only be printed")]
    #[case("{{ secret('A') == 'x' }}", "can only be printed")]
    #[case("{% if secret('A') %}{% endif %}", "can only be printed")]
    #[case("{% set x = secret('A') %}", "can only be printed")]
    #[case("{{ [secret('A')] }}", "can only be printed")]
    #[case("{{ secret(inputs.n) }}", "secret takes the name of a variable")]
    #[case("{{ secret('a b') }}", "secret takes the name of a variable")]
    #[case("{{ secret() }}", "secret takes the name of a variable")]
    fn what_a_plan_may_not_say_is_known_before_it_runs(#[case] text: &str, #[case] says: &str) {
        let error = Template::parse(text).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    /// A long row of lookups was taken apart, level by level, until the stack was full.
    #[test]
    fn what_is_too_deep_is_refused_and_what_is_not_is_rendered() {
        let deep = |part: &str, count: usize| format!("{{{{ {}inputs.n }}}}", part.repeat(count));
        for (part, words) in [("not ", 1), ("-", 1), ("inputs.n + ", 4), ("[1] and ", 4)] {
            Template::parse(&deep(part, 480 / words)).unwrap();
            let error = Template::parse(&deep(part, 50_000)).unwrap_err();
            assert!(error.contains("more than 500 words"), "{error}");
        }
        let chain = |count: usize| format!("{{{{ inputs{} }}}}", ".a".repeat(count));
        assert!(Template::parse(&chain(240)).unwrap().render(&names()).is_err());
        assert!(Template::parse(&chain(50_000)).is_err());
        assert!(Template::parse(&format!("{} {{{{ inputs.n }}}}", "long ".repeat(50_000))).is_ok());
    }

    #[test]
    fn the_names_of_a_template_are_found() {
        let names = Template::parse(
            "{{ steps.a.text ~ steps[1]['x'] ~ steps['b'].y.z ~ steps.c.d | default('') }}{{ status.e }}{{ inputs.f[0] }}{{ 'Bearer ' ~ secret('T') }}{{ inputs.g is defined }}",
        );
        let names = names.unwrap().names;
        let steps: Vec<_> =
            names.steps.iter().map(|(name, field)| format!("{name} {}", field.as_deref().unwrap_or("-"))).collect();
        assert_eq!(steps, ["steps.a text", "steps.b y", "steps.c -", "steps[1] x"]);
        assert_eq!(names.status.into_iter().collect::<Vec<_>>(), ["e"]);
        assert_eq!(names.inputs.into_iter().collect::<Vec<_>>(), ["f"]);
        assert_eq!(names.secrets.into_iter().collect::<Vec<_>>(), ["T"]);
    }

    #[test]
    fn an_expression_may_have_a_pair_of_braces() {
        for text in ["inputs.n > 2", "{{ inputs.n > 2 }}", " {{inputs.n > 2}} "] {
            assert_eq!(Template::expression(text).unwrap().render(&names()), Ok(json!(true)), "{text}");
        }
        for text in ["{{ 1 }} {{ 2 }}", "a }} {{ b", "", "{% if true %}{% endif %}"] {
            assert!(Template::expression(text).is_err(), "{text}");
        }
    }
}
