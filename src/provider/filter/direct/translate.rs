//! From jaq's tree to ours, where it is plain.

use jaq_core::{
    load::{self, lex::StrPart, parse},
    path::{Opt, Part},
};
use jaq_json::Val;

use super::{Constant, Node, Step, StepPart};

type Term<'s> = parse::Term<&'s str>;
type Def<'s> = parse::Def<&'s str>;

/// Calls within calls: a filter's own definitions are put in where they are called, so each may double what is there.
const MAX_CALLS: usize = 8;
/// Levels of the tree, each of which costs stack at every run. The deepest built in has some 20.
const MAX_DEPTH: usize = 64;

/// The filter, if it is plain: no arguments, no recursion, no `try`, no assignment, no call but the plainest.
pub(in crate::provider::filter) fn translate(source: &str) -> Option<Node> {
    let term = load::parse(source, |parser| parser.term())?;
    Translator { definitions: Vec::new(), variables: Vec::new(), calls: 0, depth: 0 }.node(&term)
}

/// What is in scope.
#[derive(Clone)]
struct Translator<'t, 's> {
    definitions: Vec<&'t Def<'s>>,
    variables: Vec<&'s str>,
    calls: usize,
    depth: usize,
}

impl<'t, 's> Translator<'t, 's> {
    fn boxed(&self, term: &'t Term<'s>) -> Option<Box<Node>> {
        self.node(term).map(Box::new)
    }

    fn node(&self, term: &'t Term<'s>) -> Option<Node> {
        let deeper = Self { depth: self.depth + 1, ..self.clone() };
        if deeper.depth > MAX_DEPTH { None } else { deeper.plain(term) }
    }

    fn plain(&self, term: &'t Term<'s>) -> Option<Node> {
        use parse::Term as T;
        Some(match term {
            T::Id => Node::Here,
            T::Num(digits) => Node::Value(Constant::Integer(digits.parse().ok()?)),
            T::Str(None, parts) => self.text(parts)?,
            T::Arr(items) => Node::List(
                items.as_deref().map(|items| self.boxed(items)).map_or(Some(None), |n| n.map(Some))?,
            ),
            T::Obj(members) => Node::Object(
                members.iter().map(|(key, value)| self.member(key, value.as_ref())).collect::<Option<_>>()?,
            ),
            T::BinOp(left, op, right) => self.operation(left, op, right)?,
            T::IfThenElse(branches, otherwise) => Node::If(
                branches
                    .iter()
                    .map(|(condition, then)| Some((self.node(condition)?, self.node(then)?)))
                    .collect::<Option<_>>()?,
                match otherwise {
                    Some(otherwise) => Some(self.boxed(otherwise)?),
                    None => None,
                },
            ),
            T::Def(definitions, then) => {
                let mut inner = self.clone();
                inner.definitions.extend(definitions);
                inner.node(then)?
            }
            T::Call(name, arguments) => self.call(name, arguments)?,
            T::Var(name) => {
                Node::Variable(self.variables.iter().rev().position(|variable| variable == name)?)
            }
            T::Path(from, path) => {
                let from = self.boxed(from)?;
                if let [(Part::Index(key), Opt::Essential)] = path.0.as_slice()
                    && !matches!(key, T::Str(..) | T::Num(_))
                {
                    return Some(Node::At(from, self.boxed(key)?));
                }
                Node::Path(
                    from,
                    path.0.iter().map(|(part, opt)| self.step(part, *opt)).collect::<Option<_>>()?,
                )
            }
            _ => return None,
        })
    }

    fn text(&self, parts: &'t [StrPart<&'s str, Term<'s>>]) -> Option<Node> {
        let mut nodes = Vec::new();
        let mut plain = String::new();
        for part in parts {
            match part {
                StrPart::Str(text) => plain.push_str(text),
                StrPart::Char(symbol) => plain.push(*symbol),
                StrPart::Term(term) => {
                    nodes.push(constant(std::mem::take(&mut plain)));
                    nodes.push(self.node(term)?);
                }
            }
        }
        let rest = constant(plain);
        if nodes.is_empty() {
            return Some(rest);
        }
        nodes.push(rest);
        Some(Node::Text(nodes))
    }

    /// `{key}`, `{$variable}` and `{(key): value}`; keys that are computed otherwise are left to jaq.
    fn member(&self, key: &'t Term<'s>, value: Option<&'t Term<'s>>) -> Option<(Node, Node)> {
        let name = match key {
            parse::Term::Var(name) if value.is_none() => {
                return Some((constant(name.strip_prefix('$')?.to_owned()), self.node(key)?));
            }
            parse::Term::Str(None, _) => self.node(key)?,
            _ if value.is_some() => self.node(key)?,
            _ => return None,
        };
        let value = if let Some(value) = value {
            self.node(value)?
        } else {
            let Node::Value(Constant::Text(key)) = &name else { return None };
            let step = Step { part: StepPart::Key(key.clone()), is_optional: false };
            Node::Path(Box::new(Node::Here), vec![step])
        };
        Some((name, value))
    }

    fn operation(
        &self,
        left: &'t Term<'s>,
        op: &parse::BinaryOp<&'s str>,
        right: &'t Term<'s>,
    ) -> Option<Node> {
        use parse::BinaryOp as B;
        if let B::Pipe(Some(pattern)) = op {
            let parse::Pattern::Var(name) = pattern else { return None };
            let mut inner = self.clone();
            inner.variables.push(name);
            return Some(Node::Bind(self.boxed(left)?, inner.boxed(right)?));
        }
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        Some(match op {
            B::Pipe(None) => Node::Pipe(left, right),
            B::Comma => Node::Both(left, right),
            B::Alt => Node::Otherwise(left, right),
            B::Or => Node::Logic(true, left, right),
            B::And => Node::Logic(false, left, right),
            B::Math(op) => Node::Math(*op, left, right),
            B::Cmp(op) => Node::Compare(*op, left, right),
            _ => return None,
        })
    }

    fn step(&self, part: &'t Part<Term<'s>>, opt: Opt) -> Option<Step> {
        let part = match part {
            Part::Index(key) => match self.node(key)? {
                Node::Value(Constant::Text(key)) => StepPart::Key(key),
                Node::Value(Constant::Integer(place)) => StepPart::Place(place),
                _ => return None,
            },
            Part::Range(None, None) => StepPart::Each,
            Part::Range(..) => return None,
        };
        Some(Step { part, is_optional: matches!(opt, Opt::Optional) })
    }

    fn call(&self, name: &'s str, arguments: &'t [Term<'s>]) -> Option<Node> {
        if let Some(at) = self.definitions.iter().rposition(|def| def.name == name) {
            let definition = self.definitions.get(at)?;
            if !definition.args.is_empty() || !arguments.is_empty() || self.calls >= MAX_CALLS {
                return None;
            }
            // What the definition sees: itself and what stood before it (one that calls itself comes to the bound). One that
            // names a variable bound outside of it is left to jaq.
            let inner = Self {
                definitions: self.definitions.get(..=at)?.to_vec(),
                variables: Vec::new(),
                calls: self.calls + 1,
                depth: self.depth,
            };
            return inner.node(&definition.body);
        }
        Some(match (name, arguments) {
            ("null", []) => Node::Value(Constant::Null),
            ("true", []) => Node::Value(Constant::Bool(true)),
            ("false", []) => Node::Value(Constant::Bool(false)),
            ("empty", []) => Node::Empty,
            ("not", []) => Node::Not,
            ("type", []) => Node::Type,
            ("values", []) => Node::OnlyIf(|value| !matches!(value, Val::Null)),
            ("nulls", []) => Node::OnlyIf(|value| matches!(value, Val::Null)),
            ("booleans", []) => Node::OnlyIf(|value| matches!(value, Val::Bool(_))),
            ("numbers", []) => Node::OnlyIf(|value| matches!(value, Val::Num(_))),
            ("strings", []) => Node::OnlyIf(|value| matches!(value, Val::TStr(_) | Val::BStr(_))),
            ("arrays", []) => Node::OnlyIf(|value| matches!(value, Val::Arr(_))),
            ("objects", []) => Node::OnlyIf(|value| matches!(value, Val::Obj(_))),
            ("select", [condition]) => Node::Select(self.boxed(condition)?),
            _ => return None,
        })
    }
}

fn constant(text: String) -> Node {
    Node::Value(Constant::Text(text.into()))
}
