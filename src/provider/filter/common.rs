//! The common HTTP rule: what a reply means that the provider's filter passes over.
//!
//! | reply | is |
//! |---|---|
//! | 2xx, cut JSON or empty | `invalid_response`, may be asked again |
//! | 2xx, HTML, other text, or JSON that the filter does not know | `invalid_response` |
//! | 3xx | `invalid_response`; redirects are never followed, since a key goes to one origin alone |
//! | 401 | `unauthorized`, and the lane closes |
//! | 402, 403 | `forbidden`, this look-up alone |
//! | 404 | `invalid_response`: a wrong base URL or a proxy says 404 as well, so only a filter can read "never seen" |
//! | 408, 425, 5xx | `server_error`, may be asked again |
//! | 429 | `rate_limited`, may be asked again once the lane's hold-off is over |
//! | other 4xx | `invalid_request` |
//! | 1xx, and what is no status | `invalid_response` |

use reqwest::{Url, header::HeaderMap};

use super::body::Kind;
use crate::provider::{ErrorType, Failure, Reach};

pub(super) fn rule(status: u16, headers: &HeaderMap, kind: Kind) -> Failure {
    let lookup = |error, message: String, retry| Failure { error, reach: Reach::Lookup, message, retry };
    match status {
        200..=299 => unread(status, kind),
        300..=399 => lookup(ErrorType::InvalidResponse, redirect(status, headers), false),
        401 => Failure {
            error: ErrorType::Unauthorized,
            reach: Reach::Lane,
            message: "the provider does not accept the API key".into(),
            retry: false,
        },
        402 | 403 => lookup(ErrorType::Forbidden, format!("{status}: the key does not cover this"), false),
        404 => lookup(
            ErrorType::InvalidResponse,
            "404, and not in the provider's own words: the base URL may be wrong, or a proxy answered".into(),
            false,
        ),
        408 | 425 | 500..=599 => {
            lookup(ErrorType::ServerError, format!("the provider answered {status}"), true)
        }
        429 => lookup(ErrorType::RateLimited, "429: the provider asks to slow down".into(), true),
        400..=499 => lookup(
            ErrorType::InvalidRequest,
            format!("{status}: the provider does not take the question"),
            false,
        ),
        _ => lookup(ErrorType::InvalidResponse, format!("{status} is no status of an answer"), false),
    }
}

/// A success without an answer in it.
fn unread(status: u16, kind: Kind) -> Failure {
    let (message, retry) = match kind {
        Kind::Cut => ("the JSON ends too early", true),
        Kind::Empty => ("the body is empty", status == 200),
        Kind::Other => ("the body is no JSON: a proxy or a sign-in page may have answered", false),
        Kind::TooMany => ("the JSON holds more values than any true answer", false),
        Kind::Json => ("the JSON is not in the provider's known form", false),
    };
    Failure {
        error: ErrorType::InvalidResponse,
        reach: Reach::Lookup,
        message: format!("{status}, but {message}"),
        retry,
    }
}

/// Names the host alone: a redirect's URL may repeat the key of the query.
fn redirect(status: u16, headers: &HeaderMap) -> String {
    let target = headers.get("location").and_then(|value| value.to_str().ok());
    let host =
        target.and_then(|target| Url::parse(target).ok()).and_then(|url| url.host_str().map(str::to_owned));
    match (host, target) {
        (Some(host), _) => format!("{status}: redirects to {host}, which is not followed"),
        (None, Some(_)) => format!("{status}: redirects within its host, which is not followed"),
        (None, None) => format!("{status}: a redirect without a target"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Every status there is, as runs of equal meaning.
    #[test]
    fn every_status_has_its_meaning() {
        let mut table = String::new();
        let mut from = 100;
        let say = |status| {
            let failure = rule(status, &HeaderMap::new(), Kind::Json);
            format!("{} {:?}{}", failure.error, failure.reach, if failure.retry { " retry" } else { "" })
        };
        for status in 100..=999 {
            if status == 999 || say(status + 1) != say(from) {
                writeln!(table, "{from}-{status} {}", say(from)).unwrap();
                from = status + 1;
            }
        }
        insta::assert_snapshot!(table, @r"
        100-399 invalid_response Lookup
        400-400 invalid_request Lookup
        401-401 unauthorized Lane
        402-403 forbidden Lookup
        404-404 invalid_response Lookup
        405-407 invalid_request Lookup
        408-408 server_error Lookup retry
        409-424 invalid_request Lookup
        425-425 server_error Lookup retry
        426-428 invalid_request Lookup
        429-429 rate_limited Lookup retry
        430-499 invalid_request Lookup
        500-599 server_error Lookup retry
        600-999 invalid_response Lookup
        ");
    }

    #[test]
    fn a_redirect_names_its_host_alone() {
        let mut headers = HeaderMap::new();
        headers.insert("location", "https://login.example.net/x?key=0123456789".parse().unwrap());
        let message = rule(302, &headers, Kind::Other).message;
        assert_eq!(message, "302: redirects to login.example.net, which is not followed");
    }
}
