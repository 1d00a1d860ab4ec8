//! A filter compiled, and run on one reply.

use std::fmt::{self, Write as _};

use jaq_core::{
    Compiler, Ctx, Vars, compile,
    data::JustLut,
    load::{self, Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::Val;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{builtins, direct};
use crate::provider::{FilterError, nearest};

/// Longest filter. The longest built in has 2 KiB.
const MAX_SOURCE_BYTES: usize = 8 * 1024;
/// Most brackets open at once in a filter: nobody writes more, and each costs jaq's parser a level of its stack.
const MAX_OPEN_BRACKETS: usize = 64;
/// Stack for compiling. jaq's parser and compiler recurse; measured on jaq 3.1 without optimisation, the worst nesting
/// that one byte can buy (`-`) costs 10 KiB, so the longest filter costs 82 MiB. Only what is touched becomes memory.
pub(super) const COMPILE_STACK_BYTES: usize = 128 * 1024 * 1024;
/// Longest output, as JSON.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 * 1024;
/// Deepest output; an answer has two levels.
const MAX_OUTPUT_DEPTH: usize = 32;
/// Longest text of a jq error that is kept.
const MAX_ERROR_BYTES: usize = 160;

type Data = JustLut<Val>;

/// A compiled filter. Holds no values, so threads may share it.
pub(super) struct Engine {
    filter: jaq_core::Filter<Data>,
    /// The same without jaq, where it is plain.
    direct: Option<direct::Node>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// What came of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Exactly one output, within bounds.
    Output(Value),
    /// The filter raised an error; its text, shortened.
    Raised(String),
    /// None, or more than one output.
    NotOne,
    /// An output over the bounds of size or depth, or one that is no JSON (bytes, an object with odd keys).
    Unfit,
}

impl Engine {
    /// Compiles a filter, on a thread with room for whatever its nesting costs.
    ///
    /// # Errors
    /// When it is no jq, names what filters may not use, or is longer or deeper than anybody writes.
    pub(super) fn compile(source: &str) -> Result<Self, FilterError> {
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("filter-compiler".into())
                .stack_size(COMPILE_STACK_BYTES)
                .spawn_scoped(scope, || Self::compile_here(source))
                .map_err(|_| FilterError::Compiler)?
                .join()
                .unwrap_or(Err(FilterError::Compiler))
        })
    }

    /// The same on a thread that has [`COMPILE_STACK_BYTES`] already.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub(super) fn compile_here(source: &str) -> Result<Self, FilterError> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(FilterError::TooLong { len: source.len(), max: MAX_SOURCE_BYTES });
        }
        check_brackets(source)?;
        compile(source)
    }

    /// Whether the filter has no loops but over the values of an array or object.
    pub(super) const fn is_plain(&self) -> bool {
        self.direct.is_some()
    }

    /// Runs the filter. Bounded only as the filter is: a foreign one is run where it can be ended.
    pub(super) fn run(&self, input: Val) -> Outcome {
        match self.value(input) {
            Ok(value) => outcome(&value),
            Err(outcome) => outcome,
        }
    }

    /// The filter's one output as it is, or why there is none.
    pub(super) fn value(&self, input: Val) -> Result<Val, Outcome> {
        match self.direct.as_ref().map(|direct| direct.run(&input)) {
            Some(Ok(value)) => value.ok_or(Outcome::NotOne),
            Some(Err(direct::Odd)) | None => self.by_jaq(input),
        }
    }

    /// The same, by jaq alone.
    pub(super) fn by_jaq(&self, input: Val) -> Result<Val, Outcome> {
        let ctx = Ctx::<Data>::new(&self.filter.lut, Vars::new([]));
        let mut outputs = self.filter.id.run((ctx, input)).map(unwrap_valr);
        let first = match outputs.next() {
            None => return Err(Outcome::NotOne),
            Some(Err(error)) => return Err(Outcome::Raised(shorten(&error))),
            Some(Ok(value)) => value,
        };
        match outputs.next() {
            None => Ok(first),
            Some(Err(error)) => Err(Outcome::Raised(shorten(&error))),
            Some(Ok(_)) => Err(Outcome::NotOne),
        }
    }
}

/// An output as it goes on, within its bounds.
pub(super) fn outcome(value: &Val) -> Outcome {
    let mut left = MAX_OUTPUT_BYTES;
    to_json(value, &mut left, MAX_OUTPUT_DEPTH).map_or(Outcome::Unfit, Outcome::Output)
}

/// Brackets inside strings count as well; whoever has 64 of them open in a string can escape them.
fn check_brackets(source: &str) -> Result<(), FilterError> {
    let mut open = 0_usize;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_OPEN_BRACKETS {
            return Err(FilterError::TooDeep { max: MAX_OPEN_BRACKETS });
        }
    }
    Ok(())
}

fn compile(source: &str) -> Result<Engine, FilterError> {
    let arena = Arena::default();
    let modules = Loader::new(builtins::definitions())
        .load(&arena, File { code: source, path: () })
        .map_err(|errors| load_error(&errors))?;
    load::import(&modules, |_| Err(String::new())).map_err(|_| FilterError::Import)?;
    Compiler::default()
        .with_funs(builtins::functions::<Data>())
        .compile(modules)
        .map(|filter| Engine { filter, direct: direct::translate(source) })
        .map_err(|errors| compile_error(&errors))
}

fn load_error(errors: &load::Errors<&str, ()>) -> FilterError {
    let Some((file, error)) = errors.first() else { return FilterError::Compiler };
    let (expected, found) = match error {
        load::Error::Io(_) => return FilterError::Import,
        load::Error::Lex(errors) => match errors.first() {
            Some((expected, found)) => (expected.as_str().to_owned(), *found),
            None => return FilterError::Compiler,
        },
        load::Error::Parse(errors) => match errors.first() {
            Some((expected, found)) => (expected.as_str().to_owned(), *found),
            None => return FilterError::Compiler,
        },
    };
    let shown = found.lines().next().unwrap_or_default().chars().take(40).collect::<String>();
    let found_text = if shown.is_empty() { "the end".to_owned() } else { format!("`{shown}`") };
    FilterError::Syntax { line: line_of(file.code, found), expected, found: found_text }
}

fn compile_error(errors: &compile::Errors<&str, ()>) -> FilterError {
    let Some((file, errors)) = errors.first() else { return FilterError::Compiler };
    let Some((name, kind)) = errors.first() else { return FilterError::Compiler };
    let allowed = match kind {
        compile::Undefined::Filter(arguments) => match nearest(name, builtins::ALLOWED.iter().copied()) {
            Some(near) if near == *name => format!("not with {arguments} argument(s)"),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("filters may use {}", builtins::ALLOWED.join(", ")),
        },
        _ => "only names that the filter itself defines are there".to_owned(),
    };
    FilterError::Undefined {
        line: line_of(file.code, name),
        what: kind.as_str(),
        name: (*name).to_owned(),
        allowed,
    }
}

/// The line of a part of the filter, counted from 1.
fn line_of(whole: &str, part: &str) -> usize {
    // Parts point into the whole, except the empty one that stands for its end in some errors.
    let start =
        (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize).filter(|start| *start <= whole.len());
    let start = start.unwrap_or(whole.len());
    memchr::memchr_iter(b'\n', &whole.as_bytes()[..start]).count() + 1
}

/// A jq error may hold the whole value that it stumbled over: written only as far as it is kept.
fn shorten(error: &impl fmt::Display) -> String {
    struct Short(String);
    impl fmt::Write for Short {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            for symbol in part.chars() {
                if self.0.len() >= MAX_ERROR_BYTES {
                    return Err(fmt::Error);
                }
                self.0.push(symbol);
            }
            Ok(())
        }
    }
    let mut short = Short(String::new());
    // An error here only says that the rest was left out.
    let _ = write!(short, "{error}");
    short.0
}

/// The value as JSON, as long as the bytes and levels last.
fn to_json(value: &Val, left: &mut usize, levels: usize) -> Option<Value> {
    let mut spend = |bytes: usize| left.checked_sub(bytes).map(|rest| *left = rest);
    match value {
        Val::Null => spend(4).map(|()| Value::Null),
        Val::Bool(value) => spend(5).map(|()| Value::Bool(*value)),
        Val::Num(number) => {
            spend(8)?;
            if let Some(integer) = number.as_isize() {
                return Some(Value::from(integer));
            }
            // Not a number and the infinities have no JSON; jq writes null for them.
            Some(number.to_string().parse::<f64>().map_or(Value::Null, Value::from))
        }
        Val::TStr(bytes) => {
            spend(bytes.len() + 2)?;
            Some(Value::String(String::from_utf8_lossy(bytes).into_owned()))
        }
        Val::BStr(_) => None,
        Val::Arr(values) => {
            let levels = levels.checked_sub(1)?;
            spend(2)?;
            values
                .iter()
                .map(|value| {
                    *left = left.checked_sub(1)?;
                    to_json(value, left, levels)
                })
                .collect()
        }
        Val::Obj(members) => {
            let levels = levels.checked_sub(1)?;
            spend(2)?;
            members
                .iter()
                .map(|(key, value)| {
                    *left = left.checked_sub(2)?;
                    let Value::String(key) = to_json(key, left, levels)? else { return None };
                    Some((key, to_json(value, left, levels)?))
                })
                .collect::<Option<serde_json::Map<_, _>>>()
                .map(Value::Object)
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
