//! How the answers of several providers become one record: pure rules, each with a name that the record carries.
//!
//! **Who decides.** Providers of the role reputation decide `status`, `found`, `complete`, `score` and the verdict.
//! Those of the role context (Shodan, InternetDB, geography, a miss in a list) only add to `tags`, `country`, `asn`
//! and `as_org`. Where nobody but context providers was asked they decide `status`, `found` and `complete` among
//! themselves, and the verdict is unknown.
//!
//! **What the verdict is**, the first that holds, with the name it has in the record's `rule`:
//!
//! | rule | holds when | verdict |
//! |---|---|---|
//! | `only-context` | no reputation provider was asked | unknown |
//! | `conflict` | one vouches for the address (benign), another says malicious or suspicious | suspicious, and `conflict` is true |
//! | `worst-answer` | some answer is malicious or suspicious | the worst of them |
//! | `benign-withheld` | one vouches for it, but a provider that was asked has not answered | unknown |
//! | `vouched-for` | one vouches for it, and all have answered | benign |
//! | `nobody-knows` | no answer has anything to say | unknown |
//!
//! "Vouches" is an answer's own `benign` or `known_good`: a low score alone is neither. So a failure never reads as benign. With no answer at all there is no verdict, and no rule; `error` is then the
//! most useful failure to act on, by [`ErrorType::precedence`].

use std::sync::Arc;

use super::record::Status;
use crate::enrich::outcome::{ErrorBody, Outcome, Part};
use crate::provider::{Answer, ErrorType, Role, Verdict};

/// The rule that decided a verdict; the table is in the documentation of this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// No reputation provider was asked: unknown.
    OnlyContext,
    /// One vouches for the address and another accuses it: suspicious.
    Conflict,
    /// The worst of the answers.
    WorstAnswer,
    /// Benign, were it not for a provider that has not answered: unknown.
    BenignWithheld,
    /// Benign: one vouches for it, nobody accuses it, all have answered.
    VouchedFor,
    /// Nobody has anything to say: unknown.
    NobodyKnows,
}

impl Rule {
    /// All rules, in the order in which they are tried.
    pub const ALL: [Self; 6] = [
        Self::OnlyContext,
        Self::Conflict,
        Self::WorstAnswer,
        Self::BenignWithheld,
        Self::VouchedFor,
        Self::NobodyKnows,
    ];

    /// The name in the record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnlyContext => "only-context",
            Self::Conflict => "conflict",
            Self::WorstAnswer => "worst-answer",
            Self::BenignWithheld => "benign-withheld",
            Self::VouchedFor => "vouched-for",
            Self::NobodyKnows => "nobody-knows",
        }
    }
}

/// What the parts come to together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joint {
    pub(super) status: Status,
    pub(super) verdict: Option<Verdict>,
    pub(super) score: Option<u8>,
    pub(super) found: Option<bool>,
    pub(super) complete: bool,
    pub(super) conflict: bool,
    pub(super) rule: Option<Rule>,
    pub(super) tags: Vec<String>,
    pub(super) country: Option<String>,
    pub(super) asn: Option<u32>,
    pub(super) as_org: Option<String>,
    pub(super) error: Option<(Option<Arc<str>>, ErrorBody)>,
}

/// Joins the outcomes of one address. Pure; the order of `parts` does not matter.
pub(super) fn join(parts: &[Part]) -> Joint {
    let only_context = parts.iter().all(|part| part.role == Role::Context);
    let decides = |part: &&Part| only_context || part.role == Role::Reputation;
    let answers: Vec<&Answer> = parts.iter().filter(decides).filter_map(answer).collect();
    let complete = !parts.is_empty() && parts.iter().filter(decides).all(|part| answer(part).is_some());

    let mut joint = Joint {
        status: Status::Error,
        verdict: None,
        score: None,
        found: None,
        complete,
        conflict: false,
        rule: None,
        tags: sorted_once(
            parts.iter().filter_map(answer).flat_map(|answer| answer.tags.iter().cloned()).collect(),
        ),
        country: first_by_name(parts, |answer| answer.country.clone()),
        asn: first_by_name(parts, |answer| answer.asn),
        as_org: first_by_name(parts, |answer| answer.as_org.clone()),
        error: None,
    };
    if answers.is_empty() {
        joint.error = Some(joint_error(parts.iter().filter(decides)));
        return joint;
    }
    let (rule, verdict) = decide(&answers, complete, only_context);
    joint.status = Status::Ok;
    joint.rule = Some(rule);
    joint.verdict = Some(verdict);
    joint.conflict = rule == Rule::Conflict;
    joint.found = Some(answers.iter().any(|answer| answer.found));
    joint.score = if only_context { None } else { answers.iter().filter_map(|answer| answer.score).max() };
    joint
}

fn answer(part: &Part) -> Option<&Answer> {
    match &part.outcome {
        Outcome::Answered { answer, cache: _, fetched_at: _, attempts: _, latency: _, raw: _ } => {
            Some(answer)
        }
        Outcome::Failed { .. } => None,
    }
}

/// The table of the module's documentation.
fn decide(answers: &[&Answer], complete: bool, only_context: bool) -> (Rule, Verdict) {
    let says = |verdict: Verdict| answers.iter().any(|answer| answer.verdict == verdict);
    let accused = says(Verdict::Malicious) || says(Verdict::Suspicious);
    let vouched = says(Verdict::Benign) || answers.iter().any(|answer| answer.known_good);
    if only_context {
        (Rule::OnlyContext, Verdict::Unknown)
    } else if accused && vouched {
        (Rule::Conflict, Verdict::Suspicious)
    } else if says(Verdict::Malicious) {
        (Rule::WorstAnswer, Verdict::Malicious)
    } else if accused {
        (Rule::WorstAnswer, Verdict::Suspicious)
    } else if vouched && !complete {
        (Rule::BenignWithheld, Verdict::Unknown)
    } else if vouched {
        (Rule::VouchedFor, Verdict::Benign)
    } else {
        (Rule::NobodyKnows, Verdict::Unknown)
    }
}

/// The first value by name of the provider, from whatever role.
fn first_by_name<T>(parts: &[Part], value: impl Fn(&Answer) -> Option<T>) -> Option<T> {
    parts
        .iter()
        .filter_map(|part| Some((&part.provider, value(answer(part)?)?)))
        .min_by(|a, b| a.0.cmp(b.0))
        .map(|(_, value)| value)
}

/// The failure that helps most, of equal ones the first by name of the provider.
fn joint_error<'a>(parts: impl Iterator<Item = &'a Part>) -> (Option<Arc<str>>, ErrorBody) {
    parts
        .filter_map(|part| match &part.outcome {
            Outcome::Failed { error, attempts: _, latency: _ } => Some((&part.provider, error)),
            Outcome::Answered { .. } => None,
        })
        .min_by(|a, b| (a.1.error.precedence(), a.0).cmp(&(b.1.error.precedence(), b.0)))
        .map_or_else(nobody_asked, |(provider, error)| (Some(Arc::clone(provider)), error.clone()))
}

/// A record is never left without its reason, not even by a fault of ours.
fn nobody_asked() -> (Option<Arc<str>>, ErrorBody) {
    (None, ErrorBody::new(ErrorType::Internal, "no provider was asked about this address"))
}

/// Sorted, each word once.
pub(super) fn sorted_once(words: Vec<String>) -> Vec<String> {
    let mut sorted = words;
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

#[cfg(test)]
pub(super) mod tests;
