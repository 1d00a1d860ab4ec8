//! What a request asks about, as each provider's wire format puts it.

use std::borrow::Cow;
use std::net::IpAddr;

use super::http::{Request, decode, form_value};
use super::kind::Kind;

/// Most indicators in one request: GreyNoise's bulk form has the largest batch (10,000).
const LARGEST_BATCH: usize = 10_000;

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// Each indicator: an address, or the text that is none.
    pub asked: Vec<Result<IpAddr, String>>,
    /// Asked in a form whose answer holds many.
    pub bulk: bool,
    /// GreyNoise's short form.
    pub quick: bool,
}

impl Question {
    fn one(text: &str) -> Self {
        Self { asked: vec![address(text)], bulk: false, quick: false }
    }

    fn many<'a>(texts: impl Iterator<Item = Cow<'a, str>>) -> Self {
        let asked = texts.take(LARGEST_BATCH + 1).map(|text| address(&text)).collect();
        Self { asked, bulk: true, quick: false }
    }

    /// Whether the batch is larger than any provider takes.
    pub(super) fn is_too_large(&self, kind: Kind) -> bool {
        let most = match kind {
            Kind::Ipinfo => 1_000,
            Kind::Crowdsec => 100,
            _ => LARGEST_BATCH,
        };
        self.bulk && self.asked.len() > most
    }

    /// Reads a request to `path` (without the provider's name). `None`: the method or body is not that provider's.
    pub(super) fn read(kind: Kind, path: &str, request: &Request<'_>) -> Option<Self> {
        let post = request.method == "POST";
        let in_path = |prefix: &str| path.strip_prefix(prefix).map(|rest| decode(rest, false));
        let get =
            |question: Option<Self>| question.filter(|_| request.method == "GET" || request.method == "HEAD");
        match kind {
            Kind::AbuseIpdb => get(Some(Self::one(&request.parameter("ipAddress").unwrap_or_default()))),
            Kind::GreynoiseCommunity => get(in_path("/v3/community/").map(|ip| Self::one(&ip))),
            Kind::Greynoise => Self::greynoise(path, request),
            Kind::Virustotal => get(in_path("/api/v3/ip_addresses/").map(|ip| Self::one(&ip))),
            Kind::Shodan => get(in_path("/shodan/host/").map(|ip| Self::one(&ip))),
            Kind::InternetDb => get(in_path("/").map(|ip| Self::one(&ip))),
            Kind::Urlscan => get(Some(Self::urlscan(&request.parameter("q").unwrap_or_default()))),
            Kind::Otx => get(path.split('/').nth(5).map(|ip| Self::one(&decode(ip, false)))),
            Kind::Ipinfo if post => string_list(request.body, None),
            Kind::Ipinfo => get(in_path("/lite/").map(|ip| Self::one(&ip))),
            Kind::Threatfox if post => {
                let body: serde_json::Value = serde_json::from_slice(request.body).ok()?;
                Some(Self::one(body.get("search_term")?.as_str()?))
            }
            Kind::Urlhaus if post => {
                let form = std::str::from_utf8(request.body).ok()?;
                Some(Self::one(&form_value(form, "host").unwrap_or_default()))
            }
            Kind::Crowdsec => get(match request.parameter("ips") {
                Some(ips) => Some(Self::many(ips.split(',').map(Cow::Borrowed))),
                None => in_path("/v2/smoke/").map(|ip| Self::one(&ip)),
            }),
            Kind::Ipqualityscore => get(Some(match request.parameter("ip") {
                Some(ip) => Self::one(&ip),
                None => Self::one(&decode(path.rsplit('/').next().unwrap_or_default(), false)),
            })),
            Kind::Misp if post => string_list(request.body, Some("value")),
            Kind::Threatfox | Kind::Urlhaus | Kind::Misp => None,
            Kind::Custom => Some(Self::anywhere(path, request)),
        }
    }

    fn greynoise(path: &str, request: &Request<'_>) -> Option<Self> {
        let question = match path.strip_prefix("/v3/ip/") {
            Some(ip) if request.method == "GET" => Self::one(&decode(ip, false)),
            None if request.method == "POST" => string_list(request.body, Some("ips"))?,
            _ => return None,
        };
        Some(Self { quick: request.parameter("quick").as_deref() == Some("true"), ..question })
    }

    /// All addresses of an Elasticsearch query: `page.ip:"203.0.113.7" OR page.ip:"2001:db8::7"`.
    fn urlscan(query: &str) -> Self {
        let asked: Vec<_> = words(query).map(Ok).collect();
        if asked.is_empty() { Self::one(query) } else { Self { asked, bulk: false, quick: false } }
    }

    /// The first address in the path, the query or the body of a provider we know nothing of.
    fn anywhere(path: &str, request: &Request<'_>) -> Self {
        let first = |text: &str| words(&decode(text, true)).next();
        let body = || std::str::from_utf8(request.body).ok().and_then(first);
        match first(path).or_else(|| first(request.query)).or_else(body) {
            Some(ip) => Self { asked: vec![Ok(ip)], bulk: false, quick: false },
            None => Self::one(path),
        }
    }
}

/// The addresses in a text, as far as they stand between characters that no address has.
fn words(text: &str) -> impl Iterator<Item = IpAddr> {
    text.split(|c: char| !(c.is_ascii_hexdigit() || c == '.' || c == ':'))
        .filter_map(|word| word.trim_matches(':').parse().ok().or_else(|| word.parse().ok()))
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| text.to_owned())
}

/// A JSON array of strings, or the one in this member (where a single string will do).
fn string_list(body: &[u8], member: Option<&str>) -> Option<Question> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let list = match member {
        Some(member) => body.get(member)?,
        None => &body,
    };
    match list {
        serde_json::Value::String(one) => Some(Question { bulk: true, ..Question::one(one) }),
        serde_json::Value::Array(many) => {
            let texts =
                many.iter().map(|it| it.as_str().map_or_else(|| it.to_string().into(), Cow::Borrowed));
            Some(Question::many(texts))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::http::{Parsed, parse};

    fn asked(kind: Kind, text: &str) -> Option<(Vec<String>, bool)> {
        let Parsed::Whole(request, _) = parse(text.as_bytes()) else { panic!("{text}") };
        let question = Question::read(kind, request.path, &request)?;
        let texts = question
            .asked
            .into_iter()
            .map(|it| it.map_or_else(|text| format!("?{text}"), |ip| ip.to_string()));
        Some((texts.collect(), question.bulk))
    }

    fn post(target: &str, body: &str) -> String {
        format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn get(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\n\r\n")
    }

    #[test]
    fn each_provider_is_asked_in_its_own_way() {
        for (kind, text, ips, bulk) in [
            (
                Kind::AbuseIpdb,
                get("/api/v2/check?maxAgeInDays=30&ipAddress=2001%3Adb8%3A%3A7"),
                &["2001:db8::7"][..],
                false,
            ),
            (Kind::AbuseIpdb, get("/api/v2/check"), &["?"], false),
            (Kind::GreynoiseCommunity, get("/v3/community/203.0.113.7"), &["203.0.113.7"], false),
            (Kind::Greynoise, post("/v3/ip", r#"{"ips":["203.0.113.7","x"]}"#), &["203.0.113.7", "?x"], true),
            (Kind::Virustotal, get("/api/v3/ip_addresses/2001:db8::7"), &["2001:db8::7"], false),
            (Kind::Shodan, get("/shodan/host/203.0.113.7?key=k"), &["203.0.113.7"], false),
            (Kind::InternetDb, get("/203.0.113.7"), &["203.0.113.7"], false),
            (
                Kind::Urlscan,
                get("/api/v1/search/?q=page.ip%3A%222001%3Adb8%3A%3A7%22+AND+date%3A%3Enow-30d"),
                &["2001:db8::7"],
                false,
            ),
            (Kind::Otx, get("/api/v1/indicators/IPv4/203.0.113.7/general"), &["203.0.113.7"], false),
            (Kind::Ipinfo, get("/lite/203.0.113.7"), &["203.0.113.7"], false),
            (Kind::Ipinfo, post("/batch/lite", r#"["203.0.113.7"]"#), &["203.0.113.7"], true),
            (
                Kind::Threatfox,
                post("/api/v1/", r#"{"query":"search_ioc","search_term":"203.0.113.7"}"#),
                &["203.0.113.7"],
                false,
            ),
            (Kind::Urlhaus, post("/v1/host/", "host=203.0.113.7"), &["203.0.113.7"], false),
            (
                Kind::Crowdsec,
                get("/v2/smoke?ips=203.0.113.7,203.0.113.8"),
                &["203.0.113.7", "203.0.113.8"],
                true,
            ),
            (Kind::Ipqualityscore, get("/api/json/ip?ip=203.0.113.7"), &["203.0.113.7"], false),
            (
                Kind::Misp,
                post("/attributes/restSearch", r#"{"value":"203.0.113.7"}"#),
                &["203.0.113.7"],
                true,
            ),
            (Kind::Custom, post("/check", r#"{"what":"203.0.113.7"}"#), &["203.0.113.7"], false),
            (Kind::Custom, get("/check/2001:db8::7/now"), &["2001:db8::7"], false),
        ] {
            let expected = Some((ips.iter().map(ToString::to_string).collect(), bulk));
            assert_eq!(asked(kind, &text), expected, "{text}");
        }
    }

    #[test]
    fn the_wrong_method_or_body_is_no_question() {
        assert_eq!(asked(Kind::Threatfox, &get("/api/v1/")), None);
        assert_eq!(asked(Kind::AbuseIpdb, &post("/api/v2/check", "")), None);
        assert_eq!(asked(Kind::Greynoise, &post("/v3/ip", "not json")), None);
    }
}
