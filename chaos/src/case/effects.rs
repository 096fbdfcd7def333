//! Which files of the working folder are judged: those that the contract names. What else an agent keeps there, such as
//! a log or the number of its process, is its own affair.

use std::path::{Component, Path};

use glob::Pattern;

/// The folder of artifacts.
const ARTIFACTS: &str = "artifacts";

/// The files that are effects.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    /// Files that the plan or a committed output names; not known before a clean run, and everything is judged then.
    named: Option<Vec<String>>,
    /// What the user will not have judged.
    pub ignored: Vec<Pattern>,
}

impl Effects {
    /// From now on only artifacts and what is named here are judged.
    pub fn learn(&mut self, named: impl IntoIterator<Item = String>) {
        let known = self.named.get_or_insert_default();
        known.extend(named.into_iter().map(|name| plain(&name)).filter(|name| !name.is_empty()));
        known.sort();
        known.dedup();
    }

    /// Whether a clean run has told.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.named.is_some()
    }

    /// Whether nobody shall look at this file.
    #[must_use]
    pub fn ignores(&self, name: &str) -> bool {
        self.ignored.iter().any(|pattern| pattern.matches(name))
    }

    /// Whether the file is an effect, or a draft of one.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let Some(named) = &self.named else { return true };
        Path::new(name).starts_with(ARTIFACTS) || named.iter().any(|one| one == name || is_draft(name, one))
    }
}

/// Whether `name` is a temporary file on its way to `result`.
fn is_draft(name: &str, result: &str) -> bool {
    let (name, result) = (Path::new(name), Path::new(result));
    let base = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let draft = base(name);
    let temporary = draft.starts_with('.') || draft.ends_with(".tmp");
    temporary && name.parent() == result.parent() && draft.contains(&base(result))
}

/// A relative path without `.` in it; nothing of what is not a path.
fn plain(name: &str) -> String {
    let parts = Path::new(name).components().filter(|part| *part != Component::CurDir);
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    if name.contains('\n') { String::new() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log, the number of a process and a cache in the working folder were taken for effects, which differ from those
    /// of a run without a crash.
    #[test]
    fn artifacts_and_what_is_named_are_effects_and_the_rest_is_the_agents_own() {
        let mut effects = Effects::default();
        assert!(effects.has("agent.log"), "nobody knows yet");
        effects.learn(["./ledger.txt".to_owned(), "out/sum.json".to_owned(), "one\ntwo".to_owned()]);
        for name in ["artifacts/t1-2.md", "artifacts/a/b", "ledger.txt", "out/sum.json", "out/.sum.json.7.tmp"] {
            assert!(effects.has(name), "{name}");
        }
        for name in ["agent.log", "agent.pid", "artifacts.log", "sum.json", ".sum.json.tmp", "one"] {
            assert!(!effects.has(name), "{name}");
        }
        effects.ignored.push(Pattern::new("artifacts/*.bak").expect("a pattern"));
        assert!(effects.ignores("artifacts/t1-2.bak") && !effects.ignores("artifacts/t1-2.md"));
    }
}
