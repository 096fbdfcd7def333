//! What may stand in which source file, and how long things get.

use std::collections::BTreeSet;

use super::text::Pieces;

/// Longest file and longest function, in lines.
const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;

/// A word that must not stand in files whose path starts with `below`, except in those that start with one of `except`.
struct Ban {
    word: &'static str,
    below: &'static str,
    except: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        word: "rusqlite",
        below: "store/src",
        except: &["store/src/sqlite"],
        why: "SQLite stays behind the Store trait",
    },
    Ban { word: "rusqlite", below: "chaos/src", except: &["chaos/src/look/reader"], why: "one reader of evidence" },
    Ban { word: "SystemTime", below: "store/src", except: &["store/src/clock.rs"], why: "time is a dependency" },
    Ban { word: "env::var", below: "store/src", except: &[], why: "libraries read no environment" },
    Ban { word: "env::var", below: "tools/src", except: &[], why: "libraries read no environment" },
    Ban {
        word: "env::var",
        below: "agent/src",
        except: &["agent/src/config.rs"],
        why: "one reader of the environment",
    },
    Ban {
        word: "Registry::builtin",
        below: "agent/src",
        except: &["agent/src/commands/parts.rs", "agent/src/inbox.rs", "agent/src/plan_file.rs"],
        why: "which tools there are is passed on",
    },
    Ban { word: "::stdout()", below: "store/src", except: &[], why: "libraries print nothing" },
    Ban { word: "::stderr()", below: "store/src", except: &[], why: "libraries print nothing" },
    Ban { word: "::stdout()", below: "tools/src", except: &[], why: "libraries print nothing" },
    Ban { word: "::stderr()", below: "tools/src", except: &[], why: "libraries print nothing" },
    Ban {
        word: "stdout().lock",
        below: "agent/src",
        except: &["agent/src/output.rs"],
        why: "results leave through one place",
    },
    Ban {
        word: "anstream::",
        below: "agent/src",
        except: &["agent/src/main.rs", "agent/src/commands/mod.rs", "agent/src/arm.rs"],
        why: "main prints errors, `say!` what was done",
    },
    Ban {
        word: "minijinja::",
        below: "agent/src",
        except: &["agent/src/language"],
        why: "the language of plans is one module",
    },
    Ban {
        word: "jsonschema::",
        below: "agent/src",
        except: &["agent/src/language"],
        why: "the language of plans is one module",
    },
    Ban { word: "#[allow(", below: "", except: &[], why: "#[expect] with a reason tells when it is stale" },
    Ban { word: "#[ignore", below: "", except: &[], why: "a skipped test looks like a passed one" },
];

/// Longest line of a comment, as rustfmt.toml has it for code.
const COMMENT_WIDTH: usize = 120;

pub(super) fn check(path: &str, text: &str, pieces: &Pieces) -> Vec<String> {
    let mut broken = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES {
        broken.push(format!("{path}: {lines} lines, at most {FILE_LINES}: there is a second idea in it"));
    }
    for (line, name, length) in functions(text) {
        if length > FUNCTION_LINES {
            broken.push(format!("{path}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}"));
        }
    }
    let commented: BTreeSet<usize> = pieces.comments.iter().map(|comment| comment.line).collect();
    for (number, line) in (1..).zip(text.lines()).filter(|(number, _)| commented.contains(number)) {
        if line.chars().count() > COMMENT_WIDTH {
            broken.push(format!("{path}:{number}: a comment is wrapped at {COMMENT_WIDTH} characters"));
        }
    }
    for ban in BANS {
        if !path.starts_with(ban.below) || ban.except.iter().any(|except| path.starts_with(except)) {
            continue;
        }
        // What holds below a folder holds for what it ships.
        let shipped = pieces.code.split_once("\n#[cfg(test)]\nmod tests").map_or(&*pieces.code, |(shipped, _)| shipped);
        let code = if ban.below.is_empty() { &pieces.code } else { shipped };
        for (number, _) in code.lines().enumerate().filter(|(_, line)| line.contains(ban.word)) {
            broken.push(format!("{path}:{}: `{}`: {}", number + 1, ban.word, ban.why));
        }
    }
    broken
}

/// Line, name and length of each function; rustfmt puts its end at its own indentation.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, after)) = code.split_once("fn ") else { continue };
        let is_item =
            before.split_whitespace().all(|word| word.starts_with("pub") || ["const", "async"].contains(&word));
        if !is_item || code.ends_with(';') || code.ends_with('}') {
            continue;
        }
        let indent = line.len() - code.len();
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[start..].iter().position(|line| *line == end).map_or(0, |length| length + 1);
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        found.push((start + 1, name, length));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::text::pieces;

    fn check(path: &str, text: &str) -> Vec<String> {
        super::check(path, text, &pieces(text))
    }

    #[test]
    fn what_is_banned_is_found_and_a_comment_or_a_literal_is_not() {
        assert_eq!(check("store/src/session.rs", "use rusqlite::Connection;").len(), 1);
        assert_eq!(check("tools/src/x.rs", "std::env::var(\"X\")").len(), 1);
        assert_eq!(check("agent/src/engine/x.rs", "Registry::builtin().find(name)").len(), 1);
        assert_eq!(check("tools/src/x.rs", "io::stdout().lock()").len(), 1);
        assert_eq!(check("agent/src/x.rs", "#[allow(dead_code)]").len(), 1);
        assert!(check("store/src/session.rs", "// no rusqlite here").is_empty());
        assert!(check("agent/src/x.rs", "f(\"#[allow(\")").is_empty());
        assert!(check("store/src/sqlite/x.rs", "use rusqlite::Connection;").is_empty());
        let in_tests = "x\n#[cfg(test)]\nmod tests { use rusqlite::Connection; }";
        assert!(check("store/src/session.rs", in_tests).is_empty());
    }

    #[test]
    fn a_comment_has_one_width() {
        let (fits, long) = (format!("// {}\n", "ü".repeat(117)), format!("x; // {}\n", "x".repeat(115)));
        assert!(check("xtask/a.rs", &fits).is_empty());
        assert_eq!(
            check("xtask/a.rs", &format!("{fits}{long}")),
            ["xtask/a.rs:2: a comment is wrapped at 120 characters"]
        );
    }

    #[test]
    fn what_is_too_long_is_found() {
        assert_eq!(check("a.rs", &"x\n".repeat(501)).len(), 1);
        let long = format!("impl A {{\n    pub(crate) fn f() {{\n{}    }}\n}}\n", "        x;\n".repeat(69));
        assert!(check("a.rs", &long)[0].contains("f has 71 lines"));
        let fits = format!("fn f() {{\n{}}}\n", "    x;\n".repeat(68));
        assert!(check("xtask/a.rs", &fits).is_empty());
    }
}
