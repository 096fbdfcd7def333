//! Which names a source file has and which it takes from others, as far as its own text tells.

use std::collections::BTreeSet;

/// A path in a `use`, by segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name under which the file has it.
    pub(super) name: String,
    /// Whether others get it from this file (`pub use`).
    pub(super) handed_on: bool,
}

/// What a file says, without its tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) imports: Vec<Import>,
    /// Paths in the code itself, of two segments or more: `util::run`, `crate::exit::Exit::Usage`.
    pub(super) paths: Vec<Vec<String>>,
    /// Every other word of the code.
    pub(super) words: BTreeSet<String>,
    pub(super) defined: BTreeSet<String>,
    /// Modules in files of their own that are compiled for tests alone.
    pub(super) test_modules: BTreeSet<String>,
}

const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

const DEFINES: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules"];

/// Reads code that holds no comments and no literals.
pub(super) fn names(code: &str) -> Names {
    let tokens = tokens(code);
    let mut names = Names::default();
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        let rest = &tokens[at..];
        if rest.starts_with(&TEST) {
            let item = &rest[TEST.len()..];
            let length = item_length(item);
            if let [.., "mod", name, ";"] = item[..length] {
                names.test_modules.insert(name.to_owned());
            }
            at += TEST.len() + length;
        } else if token == "use" && rest.get(1).is_some_and(|&next| next != "<") {
            let tree = rest[1..].split(|&token| token == ";").next().unwrap_or_default();
            let handed_on = at > 0 && ["pub", ")"].contains(&tokens[at - 1]);
            expand(&[], tree, handed_on, &mut names.imports);
            at += tree.len() + 1;
        } else if rest.get(1) == Some(&"::") && is_word(token) {
            let path: Vec<String> = path(rest).map(str::to_owned).collect();
            at += 2 * path.len() - 1;
            names.paths.push(path);
        } else {
            if DEFINES.contains(&token) {
                let name = rest[1..].iter().find(|&&next| next != "!" && next != "mut");
                names.defined.extend(name.filter(|name| is_word(name)).map(|&name| name.to_owned()));
                at += usize::from(name.is_some_and(|name| is_word(name)));
            } else if is_word(token) {
                names.words.insert(token.to_owned());
            }
            at += 1;
        }
    }
    names
}

/// Words, `::`, and every other sign by itself.
fn tokens(code: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = if rest.starts_with("::") { 2 } else { word.max(first.len_utf8()) };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words that `::` joins from here on.
fn path<'a>(tokens: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    tokens.chunks(2).scan(true, |goes_on, pair| {
        let word = pair.first().filter(|word| *goes_on && is_word(word))?;
        *goes_on = pair.get(1) == Some(&"::");
        Some(*word)
    })
}

/// To the `;` or the closing bracket that ends an item.
fn item_length(tokens: &[&str]) -> usize {
    let mut depth = 0_u32;
    for (at, &token) in tokens.iter().enumerate() {
        match token {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && [";", "}"].contains(&token) {
            return at + 1;
        }
    }
    tokens.len()
}

/// The leaves of a tree: `a::{b, c::d as e}` has two.
fn expand(before: &[String], tree: &[&str], handed_on: bool, found: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let head = tree.iter().position(|&token| token == "{").unwrap_or(tree.len());
    let alias = tree[..head].iter().position(|&token| token == "as");
    let words = tree[..alias.unwrap_or(head)].iter().filter(|&&token| is_word(token) || token == "*");
    path.extend(words.map(|&word| word.to_owned()));
    if head < tree.len() {
        for leaf in leaves(&tree[head + 1..]) {
            expand(&path, leaf, handed_on, found);
        }
        return;
    }
    // `a::{self}` is `a`; `self::a` is not.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last() else { return };
    let name = alias.and_then(|at| tree.get(at + 1)).map_or_else(|| last.clone(), |&alias| alias.to_owned());
    found.push(Import { path, name, handed_on });
}

/// What the commas of a group divide, up to the bracket that ends it.
fn leaves<'a>(group: &'a [&'a str]) -> Vec<&'a [&'a str]> {
    let (mut leaves, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, &token) in group.iter().enumerate() {
        match token {
            "{" => depth += 1,
            "}" if depth > 0 => depth -= 1,
            "," | "}" if depth == 0 => {
                leaves.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    leaves.retain(|leaf| !leaf.is_empty());
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(code: &str) -> Vec<(String, String, bool)> {
        let imports = names(code).imports.into_iter();
        imports.map(|import| (import.path.join("::"), import.name, import.handed_on)).collect()
    }

    fn row(path: &str, name: &str, handed_on: bool) -> (String, String, bool) {
        (path.to_owned(), name.to_owned(), handed_on)
    }

    #[test]
    fn each_leaf_of_a_use_is_an_import() {
        assert_eq!(
            imported("use crate::a::{self, b::{C, D as E}, f};\npub(crate) use self::g::*; pub use h::I;"),
            [
                row("crate::a", "a", false),
                row("crate::a::b::C", "C", false),
                row("crate::a::b::D", "E", false),
                row("crate::a::f", "f", false),
                row("self::g::*", "*", true),
                row("h::I", "I", true),
            ]
        );
    }

    #[test]
    fn paths_and_definitions_are_found_and_tests_are_not() {
        let names = names(
            "mod list; #[cfg(test)] mod sample; fn f(x: super::X) { list::print::<u8>(1); g::H }\n\
             #[cfg(test)]\nmod tests { use crate::bad::Bad; fn g() { bad::b() } }\nstatic mut S: u8 = x;",
        );
        assert_eq!(names.paths, [vec!["super", "X"], vec!["list", "print"], vec!["g", "H"]]);
        assert!(names.imports.is_empty());
        assert_eq!(names.defined, ["S", "f", "list"].map(str::to_owned).into());
        assert_eq!(names.test_modules, ["sample"].map(str::to_owned).into());
        assert!(names.words.contains("x") && !names.words.contains("bad"));
    }
}
