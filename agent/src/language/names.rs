//! What a template names, found in its syntax tree: so that what can be known is known before a plan is stored.

use std::collections::BTreeSet;
use std::ops::Range;

use minijinja::ErrorKind;
use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, Stmt};

use super::environment::{THERE, environment};

/// The names of a template that lead out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Earlier steps whose outputs it reads, each with the field that must be there, where one is named.
    pub(super) steps: BTreeSet<(StepName, Option<String>)>,
    /// Earlier steps of which it asks how they stand.
    pub(super) status: BTreeSet<String>,
    /// Inputs of the plan.
    pub(super) inputs: BTreeSet<String>,
    /// Secrets.
    pub(super) secrets: BTreeSet<String>,
    /// Whether it names the output of its own step.
    pub(super) output: bool,
}

/// How a step is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StepName {
    /// By its id.
    Id(String),
    /// By its index.
    Index(u32),
}

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => write!(f, "steps.{id}"),
            Self::Index(index) => write!(f, "steps[{index}]"),
        }
    }
}

/// What `task` has.
pub(super) const TASK: [&str; 3] = ["id", "goal", "created_at"];

/// The names that lead out of a template, for messages.
const GLOBALS: &str = "inputs, steps, status, task, key and null";

/// The functions that a template may call.
const FUNCTIONS: &str = "secret, range, dict and namespace";

/// A walk through a template.
pub(super) struct Walk<'t> {
    text: &'t str,
    names: Names,
    /// What the template itself gives a name.
    locals: BTreeSet<&'t str>,
    /// The lookups that must lead somewhere, by where they stand.
    lookups: Vec<Range<usize>>,
}

/// What an expression is part of.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// It is printed, or joined with what is printed.
    Printed,
    /// It is asked whether it is there.
    Asked,
    /// Something is looked up in it.
    Parent,
    /// Anything else.
    Used,
}

type Walked = Result<(), String>;

impl<'t> Walk<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, names: Names::default(), locals: BTreeSet::new(), lookups: Vec::new() }
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    /// The text, with each lookup that must lead somewhere in a filter that sees to it.
    pub(super) fn strict(&self) -> String {
        let mut marks = Vec::new();
        for &Range { start, end } in &self.lookups {
            let path = self.text.get(start..end).unwrap_or_default().replace(['\\', '\'', '\n'], " ");
            // Of two that begin at one place the longer one is outside; of two that end there, the shorter ends first.
            marks.push((start, 1, usize::MAX - end, "(".to_owned()));
            marks.push((end, 0, usize::MAX - start, format!("|{THERE}('{path}'))")));
        }
        marks.sort();
        let (mut strict, mut at) = (String::with_capacity(self.text.len()), 0);
        for (place, _, _, mark) in marks {
            strict.push_str(self.text.get(at..place).unwrap_or_default());
            strict.push_str(&mark);
            at = place;
        }
        strict.push_str(self.text.get(at..).unwrap_or_default());
        strict
    }

    pub(super) fn statements(&mut self, statements: &[Stmt<'t>]) -> Walked {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'t>) -> Walked {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr, Place::Printed),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::ForLoop(each) => {
                self.expression(&each.iter, Place::Used)?;
                self.locals.insert("loop");
                self.target(&each.target)?;
                each.filter_expr.iter().try_for_each(|expr| self.expression(expr, Place::Used))?;
                self.statements(&each.body)?;
                self.statements(&each.else_body)
            }
            Stmt::IfCond(cond) => {
                self.expression(&cond.expr, Place::Used)?;
                self.statements(&cond.true_body)?;
                self.statements(&cond.false_body)
            }
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    self.expression(value, Place::Used)?;
                    self.target(target)?;
                }
                self.statements(&with.body)
            }
            Stmt::Set(set) => {
                self.expression(&set.expr, Place::Used)?;
                self.target(&set.target)
            }
            Stmt::SetBlock(set) => {
                set.filter.iter().try_for_each(|filter| self.expression(filter, Place::Used))?;
                self.statements(&set.body)?;
                self.target(&set.target)
            }
            Stmt::AutoEscape(escape) => self.statements(&escape.body),
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter, Place::Used)?;
                self.statements(&filter.body)
            }
            Stmt::Do(call) => self.function(&call.call, Place::Used),
        }
    }

    /// What gets a name here.
    fn target(&mut self, target: &Expr<'t>) -> Walked {
        match target {
            Expr::Var(var) => drop(self.locals.insert(var.id)),
            Expr::List(list) => list.items.iter().try_for_each(|item| self.target(item))?,
            Expr::Tuple(tuple) => tuple.items.iter().try_for_each(|item| self.target(item))?,
            // A field of a namespace.
            Expr::GetAttr(attr) => self.expression(&attr.expr, Place::Parent)?,
            _ => return Err(format!("`{}` cannot be given a value", self.words(target.span()))),
        }
        Ok(())
    }

    fn expression(&mut self, expr: &Expr<'t>, place: Place) -> Walked {
        match expr {
            Expr::Const(_) => Ok(()),
            Expr::Var(var) => self.global(var.id, expr, place),
            Expr::GetAttr(attr) => self.lookup(&attr.expr, expr, &Key::Name(attr.name.to_owned()), place),
            Expr::GetItem(item) => {
                let key = Key::of(&item.subscript_expr);
                if key == Key::Unknown {
                    self.expression(&item.subscript_expr, Place::Used)?;
                }
                self.lookup(&item.expr, expr, &key, place)
            }
            Expr::Slice(slice) => {
                self.expression(&slice.expr, Place::Parent)?;
                self.all([&slice.start, &slice.stop, &slice.step].into_iter().flatten())
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr, Place::Used),
            Expr::BinOp(binary) => {
                let joins = matches!(binary.op, BinOpKind::Concat | BinOpKind::Add) && place == Place::Printed;
                let place = if joins { Place::Printed } else { Place::Used };
                self.expression(&binary.left, place)?;
                self.expression(&binary.right, place).map_err(|why| self.perhaps_a_name(expr, why))
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr, Place::Used)?;
                self.all(compare.ops.iter().map(|op| &op.expr))
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr, Place::Used)?;
                self.all([&choice.true_expr].into_iter().chain(&choice.false_expr))
            }
            Expr::Filter(filter) => {
                self.known("filter", filter.name, |name| environment().empty_state().apply_filter(name, &[]).err())?;
                let place = if matches!(filter.name, "default" | "d") { Place::Asked } else { Place::Used };
                filter.expr.iter().try_for_each(|expr| self.expression(expr, place))?;
                self.arguments(&filter.args)
            }
            Expr::Test(test) => {
                self.known("test", test.name, |name| environment().empty_state().perform_test(name, &[]).err())?;
                let place = if matches!(test.name, "defined" | "undefined") { Place::Asked } else { Place::Used };
                self.expression(&test.expr, place)?;
                self.arguments(&test.args)
            }
            Expr::Call(call) => self.function(call, place),
            Expr::List(list) => self.all(&list.items),
            Expr::Tuple(tuple) => self.all(&tuple.items),
            Expr::Map(map) => self.all(map.keys.iter().chain(&map.values)),
        }
    }

    fn all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr<'t>>) -> Walked
    where
        't: 'e,
    {
        exprs.into_iter().try_for_each(|expr| self.expression(expr, Place::Used))
    }

    fn arguments(&mut self, args: &[CallArg<'t>]) -> Walked {
        args.iter().try_for_each(|arg| match arg {
            CallArg::Pos(expr) | CallArg::Kwarg(_, expr) | CallArg::PosSplat(expr) | CallArg::KwargSplat(expr) => {
                self.expression(expr, Place::Used)
            }
        })
    }

    /// A name that stands for itself.
    fn global(&mut self, name: &'t str, expr: &Expr<'t>, place: Place) -> Walked {
        if self.locals.contains(name) {
            // It has a value on some ways through the template, and not on others.
            self.must_be_there(expr, place);
            return Ok(());
        }
        match name {
            "key" | "null" | "inputs" | "task" => Ok(()),
            "output" => {
                self.names.output = true;
                Ok(())
            }
            "steps" => Err("`steps` is followed by a step: steps.note by its id, steps[0] by its index".to_owned()),
            "status" => Err("`status` is followed by the id of a step: status.note".to_owned()),
            _ => Err(format!("there is no name `{name}`; there are {GLOBALS}")),
        }
    }

    /// `expr` looks up `key` in `parent`.
    fn lookup(&mut self, parent: &Expr<'t>, expr: &Expr<'t>, key: &Key, place: Place) -> Walked {
        self.must_be_there(expr, place);
        match parent {
            Expr::Var(var) if !self.locals.contains(var.id) => match (var.id, key) {
                ("steps", Key::Unknown) => self.global("steps", parent, place),
                ("steps", key) => self.step(key, None),
                ("status", Key::Name(id)) => {
                    self.names.status.insert(id.clone());
                    Ok(())
                }
                ("status", _) => self.global("status", parent, place),
                ("inputs", Key::Name(name)) => {
                    if place != Place::Asked {
                        self.names.inputs.insert(name.clone());
                    }
                    Ok(())
                }
                ("task", Key::Name(name)) if !TASK.contains(&name.as_str()) => {
                    Err(format!("`task` has no `{name}`; it has {}", TASK.join(", ")))
                }
                (name, _) => self.global(name, parent, Place::Parent),
            },
            Expr::GetAttr(_) | Expr::GetItem(_) => {
                // A field of the output of a step.
                if let (Some(step), Key::Name(field), true) = (self.step_of(parent), key, place != Place::Asked) {
                    return self.step(&step, Some(field.clone()));
                }
                self.expression(parent, Place::Parent)
            }
            parent => self.expression(parent, Place::Parent),
        }
    }

    fn step_of(&self, expr: &Expr<'t>) -> Option<Key> {
        let (parent, key) = match expr {
            Expr::GetAttr(attr) => (&attr.expr, Key::Name(attr.name.to_owned())),
            Expr::GetItem(item) => (&item.expr, Key::of(&item.subscript_expr)),
            _ => return None,
        };
        let is_steps = matches!(parent, Expr::Var(var) if var.id == "steps" && !self.locals.contains("steps"));
        (is_steps && key != Key::Unknown).then_some(key)
    }

    fn step(&mut self, key: &Key, field: Option<String>) -> Walked {
        let name = match key {
            Key::Name(id) => StepName::Id(id.clone()),
            Key::Index(index) => {
                StepName::Index(u32::try_from(*index).map_err(|_| format!("there is no step {index}"))?)
            }
            Key::Unknown => return Err("which step it is must be said in the plan".to_owned()),
        };
        self.names.steps.insert((name, field));
        Ok(())
    }

    fn must_be_there(&mut self, expr: &Expr<'t>, place: Place) {
        if matches!(place, Place::Used | Place::Printed) {
            self.lookups.push(start_of(expr)..expr.span().end_offset as usize);
        }
    }

    fn known(&self, what: &str, name: &str, tried: impl Fn(&str) -> Option<minijinja::Error>) -> Walked {
        let unknown = [ErrorKind::UnknownFilter, ErrorKind::UnknownTest];
        match tried(name) {
            Some(error) if unknown.contains(&error.kind()) || name == THERE => {
                Err(format!("there is no {what} `{name}`"))
            }
            _ => Ok(()),
        }
    }

    fn function(&mut self, call: &Call<'t>, place: Place) -> Walked {
        match &call.expr {
            Expr::Var(var) if var.id == "secret" => {
                let [CallArg::Pos(Expr::Const(name))] = call.args.as_slice() else {
                    return Err("secret takes the name of a variable: secret('NAME')".to_owned());
                };
                let name = name.value.as_str().filter(|name| is_variable(name));
                let name = name.ok_or_else(|| "secret takes the name of a variable: secret('NAME')".to_owned())?;
                if place != Place::Printed {
                    return Err(format!("secret('{name}') can only be printed, or joined with `~`"));
                }
                self.names.secrets.insert(name.to_owned());
                Ok(())
            }
            Expr::Var(var) if matches!(var.id, "range" | "dict" | "namespace") => self.arguments(&call.args),
            Expr::Var(var) => Err(format!("there is no function `{}`; there are {FUNCTIONS}", var.id)),
            Expr::GetAttr(attr) if matches!(&attr.expr, Expr::Var(var) if var.id == "loop") => {
                self.arguments(&call.args)
            }
            Expr::GetAttr(attr) => {
                let name = attr.name;
                Err(format!("values have no methods, and `.{name}()` is one{}", method_hint(name)))
            }
            _ => Err("only functions can be called".to_owned()),
        }
    }

    /// `a-b` subtracts, and is the name of a field elsewhere.
    fn perhaps_a_name(&self, expr: &Expr<'t>, why: String) -> String {
        let Expr::BinOp(binary) = expr else { return why };
        match (&binary.op, &binary.left, &binary.right) {
            (BinOpKind::Sub, Expr::GetAttr(left), Expr::Var(right)) if why.starts_with("there is no name") => {
                let (left, right) = (left.name, right.id);
                format!("{why}; `{left}-{right}` subtracts, the field of that name is ['{left}-{right}']")
            }
            _ => why,
        }
    }

    fn words(&self, span: Span) -> &'t str {
        self.text.get(span.start_offset as usize..span.end_offset as usize).unwrap_or_default()
    }
}

/// Where a lookup begins: the parser tells of each but the first in a row only where its own part does.
fn start_of(expr: &Expr<'_>) -> usize {
    let parent = match expr {
        Expr::GetAttr(attr) => &attr.expr,
        Expr::GetItem(item) => &item.expr,
        Expr::Slice(slice) => &slice.expr,
        Expr::Call(call) => &call.expr,
        _ => return expr.span().start_offset as usize,
    };
    match parent {
        Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_) => start_of(parent),
        _ => expr.span().start_offset as usize,
    }
}

/// What is looked up.
#[derive(Clone, Debug, PartialEq)]
enum Key {
    Name(String),
    Index(i64),
    Unknown,
}

impl Key {
    fn of(subscript: &Expr<'_>) -> Self {
        let Some(value) = subscript.as_const() else { return Self::Unknown };
        match (value.as_str(), value.as_i64()) {
            (Some(text), _) => Self::Name(text.to_owned()),
            (None, Some(index)) => Self::Index(index),
            (None, None) => Self::Unknown,
        }
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The way that Python's methods go here.
fn method_hint(name: &str) -> String {
    let instead = match name {
        "upper" | "lower" | "title" | "capitalize" | "replace" | "split" | "items" | "join" => format!("| {name}"),
        "strip" | "lstrip" | "rstrip" => "| trim".to_owned(),
        "startswith" => "is startingwith".to_owned(),
        "endswith" => "is endingwith".to_owned(),
        "get" => "| default".to_owned(),
        "keys" => "| list".to_owned(),
        "splitlines" => "| lines".to_owned(),
        "count" | "__len__" => "| length".to_owned(),
        "isdigit" | "isalpha" => "is".to_owned(),
        _ => return "; filters do that, as in `text | upper`".to_owned(),
    };
    format!("; write `{instead}`")
}
