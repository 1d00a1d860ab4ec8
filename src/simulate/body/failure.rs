//! Refusals in the providers' own words: keys, limits, malformed addresses, failures.

use super::Answer;
use crate::simulate::kind::Kind;

/// Why a provider does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulate) enum Failure<'a> {
    NoKey,
    WrongKey,
    /// The key is sound, the plan does not allow it.
    Plan,
    /// Refused by a limit of `count` per `window` (minute, hour, day), open again in so many seconds.
    Limit {
        count: u64,
        window: &'a str,
        seconds: u64,
    },
    /// Not in the provider's shape at all: method, body or batch size.
    Request,
    /// Any other status, asked for by a fault.
    Status(u16),
}

/// The provider's status and body for a failure.
pub(in crate::simulate) fn failure(kind: Kind, failure: Failure<'_>) -> Answer {
    let (status, text) = match failure {
        Failure::NoKey => no_key(kind),
        Failure::WrongKey | Failure::Status(401) => wrong_key(kind),
        Failure::Plan | Failure::Status(403) => plan(kind),
        Failure::Limit { count, window, seconds } => limited(kind, count, window, seconds),
        Failure::Request => (400, message(kind, 400, "Bad request")),
        Failure::Status(404) => return Answer { answers: true, ..not_found(kind) },
        Failure::Status(429) => limited(kind, 1, "minute", 60),
        Failure::Status(status) => (status, message(kind, status, crate::simulate::http::reason(status))),
    };
    Answer::refused(status, text)
}

fn not_found(kind: Kind) -> Answer {
    Answer::not_found(match kind {
        Kind::Shodan => "{\"error\":\"No information available for that IP.\"}".to_owned(),
        Kind::InternetDb => "{\"detail\":\"No information available\"}".to_owned(),
        Kind::Virustotal => {
            "{\"error\":{\"code\":\"NotFoundError\",\"message\":\"Resource not found.\"}}".to_owned()
        }
        _ => message(kind, 404, "Not Found"),
    })
}

fn no_key(kind: Kind) -> (u16, String) {
    match kind {
        Kind::Virustotal => (401, vt("AuthenticationRequiredError", "X-Apikey header is missing")),
        Kind::Urlscan => {
            (401, message(kind, 401, "No API key supplied. Send the key using the API-Key header"))
        }
        Kind::Threatfox | Kind::Urlhaus => (401, "{\"error\":\"Unauthorized\"}".to_owned()),
        _ => wrong_key(kind),
    }
}

fn wrong_key(kind: Kind) -> (u16, String) {
    let text = match kind {
        Kind::AbuseIpdb => {
            let why = "Authentication failed. Your API key is either missing, incorrect, or revoked. \
                       Note: The APIv2 key differs from the APIv1 key.";
            return (401, message(kind, 401, why));
        }
        Kind::Virustotal => return (401, vt("WrongCredentialsError", "Wrong API key")),
        Kind::Urlscan => return (400, message(kind, 400, "Invalid API key format")),
        Kind::Otx => return (403, "{\"detail\":\"Authentication required\"}".to_owned()),
        Kind::Ipinfo => {
            return (403, "{\"title\":\"Unknown token\",\"message\":\"Example text\"}".to_owned());
        }
        Kind::Threatfox | Kind::Urlhaus => {
            return (403, "{\"query_status\":\"unknown_auth_key\"}".to_owned());
        }
        Kind::Crowdsec => return (403, "{\"message\":\"Forbidden\"}".to_owned()),
        Kind::Ipqualityscore => {
            return (200, "{\"success\":false,\"message\":\"Invalid or unauthorized key.\"}".to_owned());
        }
        Kind::Misp => {
            let why = "Authentication failed. Please make sure you pass the API key of an API enabled user along in \
                       the Authorization header.";
            return (403, message(kind, 403, why));
        }
        _ => "Invalid API key",
    };
    (401, message(kind, 401, text))
}

fn plan(kind: Kind) -> (u16, String) {
    match kind {
        Kind::AbuseIpdb => (402, message(kind, 402, "The network prefix is larger than your plan allows.")),
        Kind::Virustotal => {
            (403, vt("ForbiddenError", "You are not authorized to perform the requested operation"))
        }
        Kind::Shodan => (403, message(kind, 403, "Requires membership or higher to access")),
        Kind::Misp => (405, message(kind, 405, "API searches are not allowed for this user role.")),
        _ => (403, message(kind, 403, "Your plan does not include this endpoint")),
    }
}

fn limited(kind: Kind, count: u64, window: &str, seconds: u64) -> (u16, String) {
    let text = match kind {
        Kind::AbuseIpdb => {
            let long = if window == "day" { "Daily" } else { "Short-term" };
            let what = format!(
                "{long} rate limit of {count} requests exceeded for this endpoint. See headers for additional details."
            );
            message(kind, 429, &what)
        }
        Kind::GreynoiseCommunity => format!(
            "{{\"plan\":\"unauthenticated\",\"rate-limit\":\"{count}-lookups/{window}\",\"plan_url\":\
             \"https://greynoise.io/pricing\",\"message\":\"You have hit your rate limit of {count} requests per {window}.\"}}"
        ),
        Kind::Virustotal => vt("QuotaExceededError", "Quota exceeded"),
        Kind::Shodan => message(
            kind,
            429,
            "Request rate limit reached (1 request/ second). Please wait a second before trying again and slow down \
             your API calls.",
        ),
        Kind::InternetDb => {
            "{\"error\":\"Rate limit exceeded. Contact sales@shodan.io if you need a higher rate limit.\"}"
                .to_owned()
        }
        Kind::Urlscan => {
            let what = format!(
                "Rate limit for 'search' exceeded, limit is {count} per {window}. Reset in {seconds} seconds."
            );
            message(kind, 429, &what)
        }
        Kind::Otx => {
            format!("{{\"detail\":\"Request was throttled. Expected available in {seconds} seconds.\"}}")
        }
        Kind::Ipinfo => "{\"title\":\"Rate limit exceeded\",\"message\":\"Example text\"}".to_owned(),
        Kind::Threatfox | Kind::Urlhaus => "Too Many Requests".to_owned(),
        Kind::Crowdsec => {
            let text = if window == "day" { "Limit Exceeded" } else { "Too Many Requests" };
            format!("{{\"message\":\"{text}\"}}")
        }
        // It tells of its limits in the body of a 200 alone.
        Kind::Ipqualityscore => {
            let what = format!("You have exceeded your request quota of {count} per {window}.");
            return (200, format!("{{\"success\":false,\"message\":\"{what}\",\"request_id\":\"EXAMPLE\"}}"));
        }
        Kind::Greynoise | Kind::Misp | Kind::Custom => message(kind, 429, "Rate limit exceeded."),
    };
    (429, text)
}

/// What a provider says to an indicator that is no address.
pub(super) fn malformed(kind: Kind, text: &str) -> Answer {
    let (status, body) = match kind {
        Kind::AbuseIpdb => (
            422,
            "{\"errors\":[{\"detail\":\"The ip address must be a valid IPv4 or IPv6 address (e.g. 192.0.2.1 or 2001:db8::1).\",\
             \"status\":422,\"source\":{\"parameter\":\"ipAddress\"}}]}"
                .to_owned(),
        ),
        Kind::GreynoiseCommunity | Kind::Greynoise => {
            let ip = serde_json::Value::from(text);
            (400, format!("{{\"message\":\"Request is not a valid routable IPv4 address\",\"ip\":{ip}}}"))
        }
        Kind::Virustotal => (400, vt("InvalidArgumentError", "Invalid IP address")),
        Kind::Shodan => (400, message(kind, 400, "Invalid IP")),
        Kind::InternetDb => (
            422,
            "{\"detail\":[{\"loc\":[\"path\",\"ip\"],\"msg\":\"value is not a valid IPv4 or IPv6 address\",\
             \"type\":\"value_error.ipvanyaddress\"}]}"
                .to_owned(),
        ),
        Kind::Urlscan => (
            400,
            "{\"message\":\"Search query could not be parsed\",\"description\":\"The query string is not valid.\",\
             \"status\":400,\"errors\":[{\"title\":\"Invalid query\",\"detail\":\"Unescaped reserved character\",\"status\":400}]}"
                .to_owned(),
        ),
        Kind::Ipinfo => (
            404,
            "{\"status\":404,\"error\":{\"title\":\"Wrong ip\",\"message\":\"Please provide a valid IP address\"}}".to_owned(),
        ),
        Kind::Threatfox => (
            200,
            "{\"query_status\":\"illegal_search_term\",\"data\":\"Please provide a valid search term\"}".to_owned(),
        ),
        Kind::Urlhaus => (200, "{\"query_status\":\"invalid_host\"}".to_owned()),
        Kind::Ipqualityscore => (
            200,
            "{\"success\":false,\"message\":\"Invalid IPv4 address, IPv6 address or hostname.\",\"request_id\":\"EXAMPLE\"}"
                .to_owned(),
        ),
        _ => (400, message(kind, 400, "Invalid IP address")),
    };
    Answer::refused(status, body)
}

/// A body with one sentence in it, in the provider's usual shape. `text` needs no escaping.
fn message(kind: Kind, status: u16, text: &str) -> String {
    match kind {
        Kind::AbuseIpdb => format!("{{\"errors\":[{{\"detail\":\"{text}\",\"status\":{status}}}]}}"),
        Kind::Virustotal => vt(if status >= 500 { "TransientError" } else { "BadRequestError" }, text),
        Kind::Shodan => format!("{{\"error\":\"{text}\"}}"),
        Kind::InternetDb | Kind::Otx => format!("{{\"detail\":\"{text}\"}}"),
        Kind::Urlscan => format!("{{\"message\":\"{text}\",\"status\":{status}}}"),
        Kind::Misp => {
            format!("{{\"name\":\"{text}\",\"message\":\"{text}\",\"url\":\"/attributes/restSearch\"}}")
        }
        _ => format!("{{\"message\":\"{text}\"}}"),
    }
}

fn vt(code: &str, text: &str) -> String {
    format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"{text}\"}}}}")
}
