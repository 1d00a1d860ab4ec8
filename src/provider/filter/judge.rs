//! From a filter's outcome to a reading.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{answer, body::Kind, common, engine::Outcome};
use crate::provider::{Answer, ErrorType, Failure, Missing, Reach, Reading, Reply, Role, Thresholds};

/// What a filter may call a failure. The other words are ours: a provider cannot cancel a run.
const FILTER_ERRORS: [ErrorType; 7] = [
    ErrorType::RateLimited,
    ErrorType::QuotaExhausted,
    ErrorType::ServerError,
    ErrorType::Unauthorized,
    ErrorType::Forbidden,
    ErrorType::InvalidRequest,
    ErrorType::InvalidResponse,
];

/// Longest message of a filter that is kept.
const MAX_MESSAGE_CHARS: usize = 200;

/// The rules of one lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) role: Role,
    pub(super) thresholds: Thresholds,
}

/// Whether a reply is a failure whatever its filter would say, so that the filter is not even asked: a success whose
/// JSON was cut, or holds too much.
pub(super) const fn is_decided(status: u16, kind: Kind) -> bool {
    matches!(kind, Kind::Cut | Kind::TooMany) && matches!(status, 200..=299)
}

/// What such a reply means.
pub(super) fn decided(reply: &Reply, kind: Kind) -> Reading {
    Reading::Failure(common::rule(reply.status, &reply.headers, kind))
}

/// A batch's reply that was not taken apart can be a failure alone: one answer is not the answer for all.
pub(super) fn of_batch(reading: Reading) -> Reading {
    match reading {
        Reading::Failure(_) => reading,
        Reading::Answer(_) => Reading::Failure(Failure {
            error: ErrorType::InvalidResponse,
            reach: Reach::Lookup,
            message: "the batch's reply could not be taken apart".into(),
            retry: false,
        }),
    }
}

/// An address of a batch that its reply does not name.
pub(super) fn left_out(missing: Missing) -> Reading {
    match missing {
        Missing::NotFound => Reading::Answer(Box::new(Answer::not_found())),
        Missing::Failure => Reading::Failure(Failure {
            error: ErrorType::InvalidResponse,
            reach: Reach::Lookup,
            message: "the batch's reply leaves the address out".into(),
            retry: true,
        }),
    }
}

/// What the filter's outcome means for `asked`, where it is known which address that is.
pub(super) fn reading(
    rules: Rules,
    reply: &Reply,
    kind: Kind,
    outcome: Outcome,
    asked: Option<IpAddr>,
) -> Reading {
    let fault = |message: String, reach| {
        Reading::Failure(Failure { error: ErrorType::InvalidResponse, reach, message, retry: false })
    };
    match outcome {
        Outcome::Output(Value::Null) => Reading::Failure(common::rule(reply.status, &reply.headers, kind)),
        Outcome::Output(Value::Object(output)) if output.contains_key("error") => {
            failure(&output).map_or_else(|why| fault(why, Reach::Lookup), Reading::Failure)
        }
        Outcome::Output(Value::Object(_)) if !may_answer(reply.status, kind) => {
            fault(format!("{}, and no JSON that could hold an answer", reply.status), Reach::Lookup)
        }
        Outcome::Output(Value::Object(output)) => match answer::check(rules, &output, asked) {
            Ok(answer) => Reading::Answer(Box::new(answer)),
            Err(answer::Fault { why, reach }) => fault(why, reach),
        },
        Outcome::Output(_) => fault("the filter's output is neither an object nor null".into(), Reach::Lane),
        // A filter that stumbles over an error page leaves it to the common rule, so that a 503 stays a 503.
        Outcome::Raised(_) if !(200..=299).contains(&reply.status) => {
            Reading::Failure(common::rule(reply.status, &reply.headers, kind))
        }
        Outcome::Raised(_) if kind != Kind::Json => {
            Reading::Failure(common::rule(reply.status, &reply.headers, kind))
        }
        Outcome::Raised(why) => {
            fault(clean(&format!("the filter cannot read the reply: {why}")), Reach::Lookup)
        }
        Outcome::NotOne => fault("the filter gave no output, or more than one".into(), Reach::Lookup),
        Outcome::Unfit => {
            fault("the filter's output is over 64 KiB, too deep, or no JSON".into(), Reach::Lookup)
        }
    }
}

/// An answer stands in a success with JSON, in a 204, or in a 404 with JSON ("never seen"). Anything else would let a
/// failure read as clean.
const fn may_answer(status: u16, kind: Kind) -> bool {
    match status {
        204 => matches!(kind, Kind::Empty | Kind::Json),
        200..=299 | 404 => matches!(kind, Kind::Json),
        _ => false,
    }
}

fn failure(output: &Map<String, Value>) -> Result<Failure, String> {
    if let Some(key) =
        output.keys().find(|key| !["error", "message", "lane", "retry"].contains(&key.as_str()))
    {
        return Err(clean(&format!("the filter's failure has an unknown key `{key}`")));
    }
    let word = output.get("error").and_then(Value::as_str).unwrap_or_default();
    let error = ErrorType::from_word(word)
        .filter(|error| FILTER_ERRORS.contains(error))
        .ok_or_else(|| clean(&format!("the filter names an unknown error `{word}`")))?;
    let flag = |key: &str, default: bool| match output.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(value)) => Ok(*value),
        Some(_) => Err(format!("the filter's `{key}` is neither true nor false")),
    };
    // A refused key and a used-up quota concern every look-up; waiting and a second try help only with these two.
    let lane = flag("lane", matches!(error, ErrorType::Unauthorized | ErrorType::QuotaExhausted))?;
    let retry = flag("retry", matches!(error, ErrorType::RateLimited | ErrorType::ServerError))?;
    let message = match output.get("message") {
        Some(Value::String(text)) if !text.trim().is_empty() => clean(text),
        _ => default_message(error).to_owned(),
    };
    Ok(Failure { error, reach: if lane { Reach::Lane } else { Reach::Lookup }, message, retry })
}

const fn default_message(error: ErrorType) -> &'static str {
    match error {
        ErrorType::RateLimited => "the provider asks to slow down",
        ErrorType::QuotaExhausted => "the provider says that the quota is used up",
        ErrorType::ServerError => "the provider failed",
        ErrorType::Unauthorized => "the provider does not accept the API key",
        ErrorType::Forbidden => "the key does not cover this",
        ErrorType::InvalidRequest => "the provider does not take the question",
        _ => "the provider's reply is no answer",
    }
}

/// One line for a person: no control characters, at most 200 characters.
fn clean(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|symbol| !symbol.is_control())
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
