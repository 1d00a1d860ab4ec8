//! What a provider's filters make of one reply, wherever they run.
//!
//! A reply about one address goes through the filter. A batch's reply first goes through `split`, which takes it apart
//! into `{ADDRESS: BODY}`; each part then goes through the same filter, as if it had come alone, so that a provider's
//! rules stand in one place.

use std::{collections::HashMap, net::IpAddr};

use jaq_json::{Map, Val};
use serde::{Deserialize, Serialize};

use super::{
    body::{self, Body, Kind},
    engine::{self, Engine, Outcome},
    judge,
};
use crate::provider::FilterError;

/// A provider's filters as text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) filter: String,
    /// Takes a batch's reply apart.
    pub(super) split: Option<String>,
}

/// The same, compiled.
#[derive(Debug)]
pub(super) struct Program {
    filter: Engine,
    split: Option<Engine>,
    names_headers: bool,
}

/// What a reply is to be read for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) about: About,
    pub(super) status: u16,
    /// Lower-case names.
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum About {
    One(Option<IpAddr>),
    Many(Vec<IpAddr>),
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) found: Found,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Found {
    /// The filter was not asked: the body alone decides.
    Decided,
    /// The outcome for the one address, or of a batch's reply that is one failure for all.
    Whole(Outcome),
    /// One for each address of the batch, in order; `None` where the reply does not name it.
    Parts(Vec<Option<Outcome>>),
}

/// Watches over one run of a filter.
pub(super) trait Guard {
    fn over<T>(&self, run: impl FnOnce() -> T) -> T;
}

/// Nobody watches: the filter is ours.
pub(super) struct Trusted;

impl Guard for Trusted {
    fn over<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }
}

impl Program {
    /// Compiles with `compile`, which chooses the stack.
    ///
    /// # Errors
    /// The first filter that does not compile.
    pub(super) fn new(
        source: &Source,
        compile: impl Fn(&str) -> Result<Engine, FilterError>,
    ) -> Result<Self, FilterError> {
        let split = source.split.as_deref().map(&compile).transpose()?;
        let names_headers = [Some(&source.filter), source.split.as_ref()]
            .into_iter()
            .flatten()
            .any(|filter| filter.contains("headers"));
        Ok(Self { filter: compile(&source.filter)?, split, names_headers })
    }

    /// Whether one reply's time is bounded by its length.
    pub(super) fn is_plain(&self) -> bool {
        self.filter.is_plain()
    }

    /// Whether the filters name a reply's headers. One of ours that does not is read without: none walks over all that
    /// the input holds.
    pub(super) const fn names_headers(&self) -> bool {
        self.names_headers
    }

    pub(super) fn read(&self, guard: &impl Guard, ask: &Ask, bytes: &[u8]) -> Told {
        let body = body::parse(bytes);
        let kind = body.kind();
        if judge::is_decided(ask.status, kind) {
            return Told { kind, found: Found::Decided };
        }
        let found = match (&ask.about, &self.split) {
            (About::One(ip), _) => Found::Whole(self.filtered(guard, ask, *ip, body.into_value())),
            (About::Many(ips), Some(split)) => self.parts(guard, ask, ips, split, body),
            (About::Many(_), None) => Found::Whole(self.filtered(guard, ask, None, body.into_value())),
        };
        Told { kind, found }
    }

    fn filtered(&self, guard: &impl Guard, ask: &Ask, ip: Option<IpAddr>, body: Val) -> Outcome {
        let ip = ip.map_or(Val::Null, |ip| body::text(&ip.to_string()));
        let input = input(ask, ("ip", ip), body);
        guard.over(|| self.filter.run(input))
    }

    fn parts(&self, guard: &impl Guard, ask: &Ask, ips: &[IpAddr], split: &Engine, body: Body) -> Found {
        let asked: Val = ips.iter().map(|ip| body::text(&ip.to_string())).collect();
        let value = body.into_value();
        let whole = input(ask, ("ips", asked), value.clone());
        let parts = match guard.over(|| split.value(whole)) {
            Ok(Val::Obj(parts)) if !parts.contains_key(&body::text("error")) => by_address(&parts),
            // Passed over: whatever the filter itself, or else the common rule, makes of such a reply.
            Ok(Val::Null) => return Found::Whole(self.filtered(guard, ask, None, value)),
            Ok(other) => return Found::Whole(engine::outcome(&other)),
            Err(outcome) => return Found::Whole(outcome),
        };
        let read = |ip: &IpAddr| {
            parts.get(&ip.to_canonical()).map(|part| self.filtered(guard, ask, Some(*ip), part.clone()))
        };
        Found::Parts(ips.iter().map(read).collect())
    }
}

/// Parts by their address, however it was written; what names none is of nobody who asked.
fn by_address(parts: &Map) -> HashMap<IpAddr, Val> {
    let address = |key: &Val| match key {
        Val::TStr(bytes) => body::address(std::str::from_utf8(bytes).ok()?),
        _ => None,
    };
    parts.iter().filter_map(|(key, part)| Some((address(key)?, part.clone()))).collect()
}

fn input(ask: &Ask, about: (&str, Val), body: Val) -> Val {
    let headers: Map =
        ask.headers.iter().map(|(name, value)| (body::text(name), body::text(value))).collect();
    let mut members = Map::default();
    members.insert(body::text(about.0), about.1);
    members.insert(body::text("status"), Val::from(isize::try_from(ask.status).unwrap_or_default()));
    members.insert(body::text("headers"), Val::obj(headers));
    members.insert(body::text("body"), body);
    Val::obj(members)
}
