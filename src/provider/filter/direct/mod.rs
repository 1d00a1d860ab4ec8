//! The plain part of jq, without jaq.
//!
//! jaq hands every value of every step over in a boxed iterator, which makes an AbuseIPDB answer cost 30 microseconds:
//! more than all else that a look-up costs this process but the network. Most filters only look keys up, compare and
//! put an object together. Those are run here, on jaq's own values and by jaq's own arithmetic and order, straight from
//! the tree that jaq's own parser makes of the source; an AbuseIPDB answer costs 3 microseconds so.
//!
//! As with the two readers of an event, the fast one knows when it is out of its depth: a filter that uses anything
//! beyond the plain part is not translated at all ([`translate()`]), and a run that meets an error, or two values where one
//! is due, says so ([`Odd`]) and is made anew by jaq. So whatever this gives is what jaq would have given; a property
//! test holds the two together.
//!
//! Nothing here loops but over the values of one array or object, so a run's time is bounded by the filter's length and
//! the reply's.

mod translate;

use bytes::Bytes;
use jaq_core::{ValT as _, ops};
use jaq_json::{Map, Val};

pub(super) use translate::translate;

/// The run is left to jaq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Odd;

/// A translated filter, or a part of one: gives any number of values.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// `.`
    Here,
    Value(Constant),
    /// `$x`, counted from the innermost.
    Variable(usize),
    Path(Box<Node>, Vec<Step>),
    /// `f[key]`, where the key is none that stands there.
    At(Box<Node>, Box<Node>),
    /// `l | r`
    Pipe(Box<Node>, Box<Node>),
    /// `l as $x | r`
    Bind(Box<Node>, Box<Node>),
    /// `l, r`
    Both(Box<Node>, Box<Node>),
    /// `l // r`
    Otherwise(Box<Node>, Box<Node>),
    /// `l and r`; with `true`, `l or r`.
    Logic(bool, Box<Node>, Box<Node>),
    Math(ops::Math, Box<Node>, Box<Node>),
    Compare(ops::Cmp, Box<Node>, Box<Node>),
    If(Vec<(Node, Node)>, Option<Box<Node>>),
    List(Option<Box<Node>>),
    Object(Vec<(Node, Node)>),
    /// A string with parts to be filled in.
    Text(Vec<Node>),
    Empty,
    Not,
    Type,
    /// `strings`, `objects`, `values`, …: the value, if it is one of these.
    OnlyIf(fn(&Val) -> bool),
    Select(Box<Node>),
}

/// A value that stands in the filter. jaq's values are not for several threads, so they are made anew at every run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    Integer(isize),
    Text(Bytes),
}

impl Constant {
    fn value(&self) -> Val {
        match self {
            Self::Null => Val::Null,
            Self::Bool(value) => Val::Bool(*value),
            Self::Integer(value) => Val::from(*value),
            Self::Text(bytes) => Val::utf8_str(bytes.clone()),
        }
    }
}

/// A step of a path.
#[derive(Debug, Clone)]
pub(super) struct Step {
    part: StepPart,
    /// With `?`: what has no such part gives nothing.
    is_optional: bool,
}

#[derive(Debug, Clone)]
enum StepPart {
    /// `.key`, `.["key"]`
    Key(Bytes),
    /// `[0]`
    Place(isize),
    /// `[]`
    Each,
}

/// The variables in scope.
#[derive(Clone, Copy)]
struct Scope<'a> {
    innermost: Option<&'a (Val, Scope<'a>)>,
}

impl Scope<'_> {
    fn get(&self, depth: usize) -> Option<&Val> {
        let (value, outer) = self.innermost?;
        if depth == 0 { Some(value) } else { outer.get(depth - 1) }
    }
}

/// Takes the values as they come.
type Sink<'s> = &'s mut dyn FnMut(Val) -> Result<(), Odd>;

impl Node {
    /// The filter's one value; `Ok(None)` where it gives none.
    ///
    /// # Errors
    /// [`Odd`]: jaq is to run it.
    pub(super) fn run(&self, input: &Val) -> Result<Option<Val>, Odd> {
        self.one(input, Scope { innermost: None })
    }

    /// At most one value.
    fn one(&self, input: &Val, scope: Scope<'_>) -> Result<Option<Val>, Odd> {
        // The commonest ones without a sink.
        match self {
            Self::Here => return Ok(Some(input.clone())),
            Self::Value(value) => return Ok(Some(value.value())),
            Self::Path(from, steps) => {
                if let Self::Here = **from
                    && let Some(found) = member(input, steps)
                {
                    return found.map(|found| Some(found.clone()));
                }
            }
            _ => {}
        }
        let mut only = None;
        self.each(input, scope, &mut |value| match only.replace(value) {
            None => Ok(()),
            Some(_) => Err(Odd),
        })?;
        Ok(only)
    }

    fn each(&self, input: &Val, scope: Scope<'_>, sink: Sink<'_>) -> Result<(), Odd> {
        let mut give = |value: Option<Val>| value.map_or(Ok(()), &mut *sink);
        match self {
            Self::Here => sink(input.clone()),
            Self::Value(value) => sink(value.value()),
            Self::Variable(depth) => scope.get(*depth).cloned().ok_or(Odd).and_then(sink),
            Self::Path(from, steps) => match **from {
                Self::Here => walk(input, steps, sink),
                ref from => from.each(input, scope, &mut |value| walk(&value, steps, sink)),
            },
            Self::At(from, key) => match both(from, key, input, scope)? {
                Some((from, key)) => give(Some(from.index(&key).map_err(|_| Odd)?)),
                None => Ok(()),
            },
            Self::Pipe(left, right) => left.each(input, scope, &mut |value| right.each(&value, scope, sink)),
            Self::Bind(left, right) => left.each(input, scope, &mut |value| {
                right.each(input, Scope { innermost: Some(&(value, scope)) }, sink)
            }),
            Self::Both(left, right) => {
                left.each(input, scope, sink)?;
                right.each(input, scope, sink)
            }
            Self::Otherwise(left, right) => {
                let mut some = false;
                left.each(input, scope, &mut |value| {
                    if !holds(&value) {
                        return Ok(());
                    }
                    some = true;
                    sink(value)
                })?;
                if some { Ok(()) } else { right.each(input, scope, sink) }
            }
            Self::Logic(decides, left, right) => match left.one(input, scope)? {
                None => Ok(()),
                Some(left) if holds(&left) == *decides => sink(Val::Bool(*decides)),
                Some(_) => give(right.one(input, scope)?.map(|right| Val::Bool(holds(&right)))),
            },
            Self::Math(op, left, right) => match both(left, right, input, scope)? {
                Some((left, right)) => give(Some(op.run::<_, jaq_json::ValR>(left, right).map_err(|_| Odd)?)),
                None => Ok(()),
            },
            Self::Compare(op, left, right) => {
                let both = both(left, right, input, scope)?;
                give(both.map(|(left, right)| Val::Bool(op.run(&left, &right))))
            }
            Self::If(branches, otherwise) => {
                for (condition, then) in branches {
                    match condition.one(input, scope)? {
                        None => return Ok(()),
                        Some(value) if holds(&value) => return then.each(input, scope, sink),
                        Some(_) => {}
                    }
                }
                match otherwise {
                    Some(otherwise) => otherwise.each(input, scope, sink),
                    None => sink(input.clone()),
                }
            }
            Self::List(None) => sink(Val::from_iter([])),
            Self::List(Some(items)) => {
                let mut values = Vec::new();
                items.each(input, scope, &mut |value| {
                    values.push(value);
                    Ok(())
                })?;
                sink(values.into_iter().collect())
            }
            Self::Object(members) => give(object(members, input, scope)?),
            Self::Text(parts) => give(text(parts, input, scope)?),
            Self::Empty => Ok(()),
            Self::Not => sink(Val::Bool(!holds(input))),
            Self::Type => sink(Val::utf8_str(Bytes::from_static(super::builtins::kind(input).as_bytes()))),
            Self::OnlyIf(is) => give(is(input).then(|| input.clone())),
            Self::Select(condition) => match condition.one(input, scope)? {
                Some(value) if holds(&value) => sink(input.clone()),
                _ => Ok(()),
            },
        }
    }
}

/// jq's truth: all but `null` and `false`.
const fn holds(value: &Val) -> bool {
    !matches!(value, Val::Null | Val::Bool(false))
}

/// Both sides, each of which gives one value; `None` where one gives none. Both are always run: an error in either is
/// jaq's to tell.
fn both(left: &Node, right: &Node, input: &Val, scope: Scope<'_>) -> Result<Option<(Val, Val)>, Odd> {
    let (left, right) = (left.one(input, scope)?, right.one(input, scope)?);
    Ok(left.zip(right))
}

fn object(members: &[(Node, Node)], input: &Val, scope: Scope<'_>) -> Result<Option<Val>, Odd> {
    let mut object = Map::default();
    object.reserve(members.len());
    let mut is_whole = true;
    for (key, value) in members {
        match both(key, value, input, scope)? {
            Some((key, value)) => drop(object.insert(key, value)),
            None => is_whole = false,
        }
    }
    Ok(is_whole.then(|| Val::obj(object)))
}

/// Numbers, and what is put together of parts, are jaq's to write.
fn text(parts: &[Node], input: &Val, scope: Scope<'_>) -> Result<Option<Val>, Odd> {
    let mut whole = Vec::new();
    let mut is_whole = true;
    for part in parts {
        match part.one(input, scope)? {
            Some(Val::TStr(bytes)) => whole.extend_from_slice(&bytes),
            Some(_) => return Err(Odd),
            None => is_whole = false,
        }
    }
    Ok(is_whole.then(|| Val::utf8_str(whole)))
}

/// The member at the end of plain keys, without a copy of what is passed through. `None` where the steps are more than keys.
fn member<'v>(mut value: &'v Val, steps: &[Step]) -> Option<Result<&'v Val, Odd>> {
    for step in steps {
        let StepPart::Key(key) = &step.part else { return None };
        match value {
            Val::Obj(members) => value = find(members, key),
            Val::Null => {}
            _ if step.is_optional => return None,
            _ => return Some(Err(Odd)),
        }
    }
    Some(Ok(value))
}

/// The member, or null. Looking through a few is cheaper than to make a key that can be hashed.
fn find<'v>(members: &'v Map, key: &Bytes) -> &'v Val {
    const FEW: usize = 32;
    let found = if members.len() <= FEW {
        let is_it = |name: &Val| matches!(name, Val::TStr(name) if **name == *key);
        members.iter().find(|(name, _)| is_it(name)).map(|(_, member)| member)
    } else {
        members.get(&Val::utf8_str(key.clone()))
    };
    found.unwrap_or(&Val::Null)
}

/// Follows a path's steps from `value`.
fn walk(value: &Val, steps: &[Step], sink: Sink<'_>) -> Result<(), Odd> {
    let Some((step, rest)) = steps.split_first() else { return sink(value.clone()) };
    match (&step.part, value) {
        (StepPart::Key(key), Val::Obj(members)) => walk(find(members, key), rest, sink),
        (StepPart::Key(_) | StepPart::Place(_), Val::Null) => walk(&Val::Null, rest, sink),
        (StepPart::Place(place), _) => match value.clone().index(&Val::from(*place)) {
            Ok(part) => walk(&part, rest, sink),
            Err(_) if step.is_optional => Ok(()),
            Err(_) => Err(Odd),
        },
        (StepPart::Each, Val::Arr(values)) => values.iter().try_for_each(|part| walk(part, rest, sink)),
        (StepPart::Each, Val::Obj(members)) => members.values().try_for_each(|part| walk(part, rest, sink)),
        (StepPart::Key(_) | StepPart::Each, _) if step.is_optional => Ok(()),
        (StepPart::Key(_) | StepPart::Each, _) => Err(Odd),
    }
}

#[cfg(test)]
mod tests;
