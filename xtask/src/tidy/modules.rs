//! Which file needs which: no loops, and no arrow where none may be. Of files that need each other in a loop none can
//! be read, tested or moved without the rest.
//!
//! An arrow leads from a file to the one that defines a name which it uses; what a `mod.rs` only hands on is looked for
//! where it comes from. Tests are left out: they may use whatever they test.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Import, Names, names};
use super::text::pieces;

/// Segments below the crate's root.
type Module = Vec<String>;

/// Files that must not need others: both by the beginning of their paths.
struct Barred {
    from: &'static str,
    to: &'static str,
    why: &'static str,
}

const BARRED: &[Barred] = &[
    Barred { from: "agent/src/engine", to: "agent/src/exit", why: "the loop knows no process" },
    Barred { from: "agent/src/engine", to: "agent/src/signals", why: "the loop knows no process" },
    Barred { from: "agent/src/engine", to: "agent/src/config", why: "the loop knows no process" },
    Barred { from: "agent/src/engine", to: "agent/src/action_log", why: "an observer does not steer" },
];

/// Files that need no others but these, and of libraries nothing but a derive: no clock, no randomness, not `std`.
const PURE: &[(&str, &[&str])] = &[("store/src/machine", &["store/src/machine", "store/src/model"])];
const DERIVE: &str = "thiserror";

/// The sources of one crate.
#[derive(Default)]
struct Crate {
    files: BTreeMap<Module, (String, Names)>,
}

/// For each file, the files that it needs, and for which names.
type Arrows = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

/// What is wrong with the workspace's files, given as path and text.
pub(super) fn check(texts: &[(String, String)]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for (path, text) in texts {
        if let Some((root, module)) = place(path) {
            crates.entry(root).or_default().files.insert(module, (path.clone(), names(&pieces(text).code)));
        }
    }
    let judged = crates.into_values().flat_map(|mut one| {
        one.drop_tests();
        let arrows = one.arrows();
        [one.circles(&arrows), one.barred(&arrows), one.not_pure()].concat()
    });
    judged.collect()
}

/// The crate's folder and the module that a file is.
fn place(path: &str) -> Option<(&str, Module)> {
    let (root, inside) = path.split_at(path.find("/src/")? + "/src/".len());
    let inside = inside.strip_suffix(".rs")?;
    let mut module: Module = inside.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&inside) {
        module.pop();
    }
    // A binary beside a library is another crate, of one file.
    (!inside.starts_with("bin/")).then_some((root, module))
}

impl Crate {
    fn drop_tests(&mut self) {
        let tests: Vec<Module> = self
            .files
            .iter()
            .flat_map(|(module, (_, names))| names.test_modules.iter().map(|name| child(module, name)))
            .collect();
        self.files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    }

    fn circles(&self, arrows: &Arrows) -> Vec<String> {
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            arrows.keys().map(|from| (from, reachable(arrows, from))).collect();
        let mut circles: BTreeSet<BTreeSet<&Module>> = BTreeSet::new();
        for (from, all) in &reach {
            if all.contains(from) {
                circles.insert(all.iter().copied().filter(|to| reach[to].contains(from)).collect());
            }
        }
        circles.iter().map(|circle| self.tell(circle, arrows)).collect()
    }

    fn tell(&self, circle: &BTreeSet<&Module>, arrows: &Arrows) -> String {
        let mut lines = vec![format!("{} files need each other in a circle:", circle.len())];
        for from in circle {
            for (to, names) in arrows[*from].iter().filter(|(to, _)| circle.contains(to)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("{} needs {} of {}", self.file(from), names.join(", "), self.file(to)));
            }
        }
        lines.join("\n    ")
    }

    fn barred(&self, arrows: &Arrows) -> Vec<String> {
        let all = arrows.iter().flat_map(|(from, to)| to.keys().map(move |to| (self.file(from), self.file(to))));
        let broken = all.flat_map(|(from, to)| {
            let pure = PURE.iter().filter(move |(pure, may)| from.starts_with(pure) && !starts_with_one(to, may));
            let barred = BARRED.iter().filter(move |barred| from.starts_with(barred.from) && to.starts_with(barred.to));
            let whys = barred.map(|barred| barred.why).chain(pure.map(|_| "it is to stay pure"));
            whys.map(move |why| format!("{from} must not need {to}: {why}"))
        });
        broken.collect()
    }

    /// Libraries that a pure file names.
    fn not_pure(&self) -> Vec<String> {
        let pure = self.files.values().filter(|(path, _)| PURE.iter().any(|(pure, _)| path.starts_with(pure)));
        let broken = pure.flat_map(|(path, names)| {
            let used = used(names).into_iter().filter(|used| is_from_outside(used));
            used.map(move |used| format!("{path} must not name {}: it is to stay pure", used.join("::")))
        });
        broken.collect()
    }

    fn file(&self, module: &Module) -> &str {
        self.files.get(module).map_or("?", |(path, _)| path)
    }

    fn arrows(&self) -> Arrows {
        let needed = |(module, (_, names)): (&Module, &(String, Names))| {
            let mut needed: BTreeMap<Module, BTreeSet<String>> = BTreeMap::new();
            for path in used(names) {
                if let Some((target, name)) = self.resolve(module, &path, 0).filter(|(target, _)| target != module) {
                    needed.entry(target).or_default().insert(name);
                }
            }
            (module.clone(), needed)
        };
        self.files.iter().map(needed).collect()
    }

    /// The file that defines what `path` means in `module`, and its name; nothing for what comes from elsewhere, and
    /// for a module by itself, which nobody needs until something of it is named.
    fn resolve(&self, module: &Module, path: &[String], depth: u32) -> Option<(Module, String)> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.clone(), path),
            first if self.files.contains_key(&child(module, first)) => (module.clone(), path),
            _ => return None,
        };
        while let Some(first) = rest.first() {
            if first == "super" {
                at.pop()?;
            } else if self.files.contains_key(&child(&at, first)) {
                at.push(first.clone());
            } else {
                break;
            }
            rest = &rest[1..];
        }
        let name = rest.first()?;
        self.definer(&at, name, depth).map(|file| (file, name.clone()))
    }

    /// Follows what a file only hands on.
    fn definer(&self, module: &Module, name: &str, depth: u32) -> Option<Module> {
        const FAR: u32 = 8;
        let (_, names) = self.files.get(module)?;
        if names.defined.contains(name) || name == "*" || depth > FAR {
            return Some(module.clone());
        }
        let by_name = names.imports.iter().find(|import| import.name == name);
        if let Some(import) = by_name {
            // A name from outside the crate belongs to the file that hands it on.
            return Some(
                self.resolve(module, &import.path, depth + 1).map_or_else(|| module.clone(), |(file, _)| file),
            );
        }
        let globs = names.imports.iter().filter(|import| import.name == "*");
        let through_glob = globs.filter_map(|import| {
            let path = [&import.path[..import.path.len() - 1], &[name.to_owned()]].concat();
            let (file, _) = self.resolve(module, &path, depth + 1)?;
            self.files.get(&file).is_some_and(|(_, names)| names.defined.contains(name)).then_some(file)
        });
        Some(through_glob.into_iter().next().unwrap_or_else(|| module.clone()))
    }
}

/// Every path through which a file uses something, an imported module's name written out.
fn used(names: &Names) -> Vec<Module> {
    let is_used = |import: &Import| {
        !import.handed_on
            || names.words.contains(&import.name)
            || names.paths.iter().any(|path| path.first() == Some(&import.name))
    };
    let mut used: Vec<Module> =
        names.imports.iter().filter(|import| is_used(import)).map(|import| import.path.clone()).collect();
    for path in &names.paths {
        let import = names.imports.iter().find(|import| path.first() == Some(&import.name));
        used.push(import.map_or_else(|| path.clone(), |import| [&import.path, &path[1..]].concat()));
    }
    used
}

/// Whether a path begins with a library: with no type, and with nothing that the language itself has.
fn is_from_outside(path: &[String]) -> bool {
    const PRIMITIVE: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "char", "str", "bool"];
    path.first().is_some_and(|first| {
        !["crate", "self", "super", DERIVE].contains(&first.as_str())
            && !PRIMITIVE.contains(&first.as_str())
            && first.starts_with(|c: char| c.is_lowercase())
    })
}

fn starts_with_one(path: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| path.starts_with(beginning))
}

fn child(module: &Module, name: &str) -> Module {
    let mut child = module.clone();
    child.push(name.to_owned());
    child
}

fn reachable<'a>(arrows: &'a Arrows, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(arrows.get(module).into_iter().flat_map(BTreeMap::keys).filter(|next| found.insert(*next)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(files: &[(&str, &str)]) -> Vec<String> {
        let texts: Vec<(String, String)> =
            files.iter().map(|(path, text)| (format!("m/src/{path}"), (*text).to_owned())).collect();
        check(&texts)
    }

    #[test]
    fn two_files_that_need_each_other_are_found() {
        let broken = judged(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; struct A;"),
            ("b.rs", "fn f() { super::a::A }"),
        ]);
        assert_eq!(
            broken,
            [
                "2 files need each other in a circle:\n    m/src/a.rs needs B of m/src/b.rs\n    m/src/b.rs needs A of m/src/a.rs"
            ]
        );
    }

    #[test]
    fn a_loop_of_three_through_imported_modules_is_found() {
        let broken = judged(&[
            ("main.rs", "mod a; mod b; mod c; fn main() { a::f() }"),
            ("a.rs", "use crate::b; pub fn f() { b::g() }"),
            ("b.rs", "use crate::c::*; pub fn g() { h() }"),
            ("c.rs", "use crate::{a, b}; pub fn h() { a::f() }"),
        ]);
        assert!(broken.len() == 1 && broken[0].starts_with("3 files"), "{broken:?}");
    }

    /// A `mod.rs` names each of its files, and each of them names the others through it.
    #[test]
    fn what_a_file_hands_on_leads_to_where_it_is_defined() {
        let parts = [("lib.rs", "mod m;"), ("m/mod.rs", "mod a; mod b; pub use a::A; pub(crate) use b::B;")];
        let fine = [("m/a.rs", "use super::B; struct A;"), ("m/b.rs", "struct B;")];
        assert!(judged(&[parts, fine].concat()).is_empty());
        let loops = [("m/a.rs", "use super::B; struct A;"), ("m/b.rs", "use crate::m::A; struct B;")];
        assert_eq!(judged(&[parts, loops].concat()).len(), 1);
    }

    #[test]
    fn a_parent_that_uses_its_child_which_uses_the_parent_is_found() {
        let child = ("m/a.rs", "use super::Shape; pub fn f(x: Shape) {}");
        assert!(judged(&[("m/mod.rs", "mod a; pub use a::f; pub struct Shape;"), child]).is_empty());
        assert_eq!(judged(&[("m/mod.rs", "mod a; pub struct Shape; fn g() { a::f(Shape) }"), child]).len(), 1);
    }

    #[test]
    fn an_arrow_that_is_barred_is_found_however_it_is_written() {
        for import in ["use crate::exit::Exit;", "use crate::{exit::Exit};", "fn f() -> super::super::exit::Exit {}"] {
            let texts = [("agent/src/engine/run.rs", import), ("agent/src/exit.rs", "enum Exit {}")];
            let broken = check(&texts.map(|(path, text)| (path.to_owned(), text.to_owned())));
            assert_eq!(broken.len(), 1, "{import}: {broken:?}");
        }
    }

    #[test]
    fn the_machine_names_the_model_and_nothing_else() {
        let judge = |text: &str| {
            let texts = [
                ("store/src/machine/x.rs", text),
                ("store/src/model.rs", "struct Event;"),
                ("store/src/a.rs", "fn f() {}"),
            ];
            check(&texts.map(|(path, text)| (path.to_owned(), text.to_owned())))
        };
        assert!(judge("use crate::model::Event; fn f() { u32::from(1); Event::A; Vec::new() }").is_empty());
        for bad in ["use std::fs;", "fn f() { rand::random() }", "fn f() { crate::a::f() }", "use serde_json as a;"] {
            assert_eq!(judge(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn tests_may_use_what_they_test() {
        let a = ("a.rs", "struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }");
        assert!(judged(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", "use crate::a::A; struct B;")]).is_empty());
        let root = ("lib.rs", "mod a; mod b; #[cfg(test)] mod testing;");
        let testing = ("testing.rs", "use crate::a::A; struct T;");
        assert!(judged(&[root, testing, ("a.rs", "use crate::testing::T; struct A;")]).is_empty());
    }
}
