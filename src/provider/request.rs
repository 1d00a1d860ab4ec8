//! From a definition and an address to one request, without the address or the key ever becoming part of the syntax.

use std::{fmt, net::IpAddr};

use reqwest::{
    Method, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::{Definition, DefinitionError, KeyPlace, KeyUse, RequestError};

/// Stands for the address.
pub(super) const IP: &str = "{ip}";
/// Stands for all addresses of a batch: joined by commas in a path, a query or a form, a list in JSON.
pub(super) const IPS: &str = "{ips}";
/// Stands for `IPv4` or `IPv6`, as OTX wants it in its path.
pub(super) const FAMILY: &str = "{family}";

/// What a request carries beside its URL.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BodyTemplate {
    /// No body.
    Empty,
    /// A JSON value; placeholders stand inside its strings.
    Json(Value),
    /// A form; placeholders stand in its values.
    Form(Vec<(String, String)>),
}

/// The request of a definition, checked: placeholders stand only where they are encoded.
#[derive(Debug, Clone)]
pub(super) struct RequestTemplate {
    pub(super) method: Method,
    /// Begins with `/`, appended to the base URL's own path.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    /// Fixed values.
    pub(super) headers: HeaderMap,
    pub(super) body: BodyTemplate,
}

/// One request, ready to be sent. `Debug` shows neither the query nor the headers' values: both may hold the key.
#[derive(Clone)]
pub struct Prepared {
    /// GET or POST.
    pub method: Method,
    /// May hold the key in its query: never log it.
    pub url: Url,
    /// The key's header is marked sensitive.
    pub headers: HeaderMap,
    /// The body, with its content type among the headers.
    pub body: Option<Vec<u8>>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body_bytes", &self.body.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

impl Definition {
    /// The request that asks about `ip`.
    ///
    /// # Errors
    /// When the family is not accepted, a required key is missing, or the key cannot stand in a header.
    pub fn prepare(&self, ip: IpAddr, key: Option<&SecretString>) -> Result<Prepared, RequestError> {
        self.prepared(&self.request, &[ip], key)
    }

    /// The request that asks about all of `ips`, at most as many as [`Bulk::size`](super::Bulk::size) says.
    ///
    /// # Errors
    /// As [`Self::prepare`], and where the provider has no bulk form or the batch is empty or too large.
    pub fn prepare_bulk(&self, ips: &[IpAddr], key: Option<&SecretString>) -> Result<Prepared, RequestError> {
        let size = self.bulk.as_ref().map_or(0, |bulk| bulk.size.get());
        match &self.bulk {
            Some(bulk) if !ips.is_empty() && u32::try_from(ips.len()).is_ok_and(|len| len <= size) => {
                self.prepared(&bulk.request, ips, key)
            }
            _ => Err(RequestError::Batch { provider: self.name.clone(), len: ips.len(), size }),
        }
    }

    fn prepared(
        &self,
        request: &RequestTemplate,
        ips: &[IpAddr],
        key: Option<&SecretString>,
    ) -> Result<Prepared, RequestError> {
        let provider = || self.name.clone();
        if let Some(ip) = ips.iter().find(|ip| !self.accepts.accepts(**ip)) {
            return Err(RequestError::Family { provider: provider(), family: family(*ip) });
        }
        if !self.placed {
            let env = format!("SIFT_{}_BASE_URL", self.name.replace('-', "_").to_ascii_uppercase());
            return Err(RequestError::NoBaseUrl { provider: provider(), env });
        }
        let mut prepared = request.fill(&self.base_url, ips);
        match (&self.key.place, key) {
            (Some(_), None) if self.key.usage == KeyUse::Required => {
                let env = self.key.env.first().cloned().unwrap_or_default();
                return Err(RequestError::KeyMissing { provider: provider(), env });
            }
            (None, _) | (Some(_), None) => {}
            (Some(KeyPlace::Header { name, prefix }), Some(key)) => {
                let unfit = || RequestError::KeyUnfit { provider: provider() };
                let value = SecretString::from(format!("{prefix}{}", key.expose_secret()));
                let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| unfit())?;
                value.set_sensitive(true);
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
                prepared.headers.insert(name, value);
            }
            (Some(KeyPlace::Query { name }), Some(key)) => {
                prepared.url.query_pairs_mut().append_pair(name, key.expose_secret());
            }
        }
        Ok(prepared)
    }
}

/// What the placeholders stand for in one request.
struct Words {
    /// The first address, which is the only one of a request that is no batch.
    ip: String,
    all: Vec<String>,
    family: &'static str,
}

impl Words {
    fn new(ips: &[IpAddr]) -> Self {
        let all: Vec<String> = ips.iter().map(ToString::to_string).collect();
        let first = ips.first().copied();
        Self { ip: all.first().cloned().unwrap_or_default(), all, family: first.map_or("", family) }
    }

    fn fill(&self, template: &str, encode: impl Fn(&str) -> String) -> String {
        let mut text = template.replace(IP, &encode(&self.ip)).replace(FAMILY, self.family);
        if text.contains(IPS) {
            text = text.replace(IPS, &self.all.iter().map(|ip| encode(ip)).collect::<Vec<_>>().join(","));
        }
        text
    }

    fn plain(&self, template: &str) -> String {
        self.fill(template, str::to_owned)
    }

    /// Replaces inside strings only, so that whatever the addresses' text is, the result is JSON of the same shape; a
    /// string that is nothing but the batch becomes its list.
    fn json(&self, template: &Value) -> Value {
        match template {
            Value::String(text) if text == IPS => {
                self.all.iter().map(|ip| Value::from(ip.as_str())).collect()
            }
            Value::String(text) => Value::String(self.plain(text)),
            Value::Array(values) => values.iter().map(|value| self.json(value)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), self.json(value))).collect()
            }
            other => other.clone(),
        }
    }
}

impl RequestTemplate {
    /// All of it as text, for the definition's version.
    pub(super) fn text(&self) -> String {
        let Self { method, path, query, headers, body } = self;
        format!("{method} {path} {query:?} {headers:?} {body:?}")
    }

    fn fill(&self, base: &Url, ips: &[IpAddr]) -> Prepared {
        let words = Words::new(ips);
        let mut url = base.clone();
        let path = words.fill(&self.path, encode_segment);
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        if !self.query.is_empty() {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in &self.query {
                pairs.append_pair(name, &words.plain(value));
            }
        }
        let mut headers = self.headers.clone();
        let body = match &self.body {
            BodyTemplate::Empty => None,
            BodyTemplate::Json(value) => {
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
                Some(words.json(value).to_string().into_bytes())
            }
            BodyTemplate::Form(pairs) => {
                let form = HeaderValue::from_static("application/x-www-form-urlencoded");
                headers.entry(CONTENT_TYPE).or_insert(form);
                Some(encode_form(pairs.iter().map(|(name, value)| (name.as_str(), words.plain(value)))))
            }
        };
        Prepared { method: self.method.clone(), url, headers, body }
    }
}

/// `application/x-www-form-urlencoded`, borrowed from the query's encoder.
fn encode_form<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> Vec<u8> {
    // The URL is a constant and parses; an empty body stands in for a panic.
    let Ok(mut url) = Url::parse("http://form.invalid/") else { return Vec::new() };
    for (name, value) in pairs {
        url.query_pairs_mut().append_pair(name, &value);
    }
    url.query().unwrap_or_default().as_bytes().to_vec()
}

const fn family(ip: IpAddr) -> &'static str {
    match ip {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// Percent-encodes all but RFC 3986's unreserved characters and `:`, which may stand in a path as it is and is sent
/// so by the providers' own clients (`/ip_addresses/2001:db8::7`).
pub(super) fn encode_segment(text: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

pub(super) fn is_loopback_host(url: &Url) -> bool {
    // `Url::host` is typed by a crate that is not a dependency of ours; its text is as good.
    url.host_str().is_some_and(|host| {
        host == "localhost"
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Checks a base URL: absolute, http(s), a host, no user, query or fragment, https unless loopback.
pub(super) fn parse_base_url(text: &str) -> Result<Url, String> {
    if text.contains(['{', '}']) {
        return Err("must not hold a placeholder: only paths, queries and bodies may".into());
    }
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if url.host_str().is_none_or(str::is_empty) || url.cannot_be_a_base() {
        return Err("has no host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or a password; keys have their own place".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not hold a query or a fragment".into());
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback_host(&url) => Ok(url),
        "http" => {
            Err("must be https; plain http is for this machine (127.0.0.1, ::1, localhost) alone".into())
        }
        other => Err(format!("must be https, not {other}")),
    }
}

pub(super) fn move_to(
    from: &Definition,
    url: &str,
    send_key_to: &[String],
) -> Result<Definition, DefinitionError> {
    let fault = |why: String| DefinitionError::BaseUrl { provider: from.name.clone(), why };
    let base_url = parse_base_url(url).map_err(fault)?;
    let host = base_url.host_str().unwrap_or_default();
    let takes_key = from.key.usage != KeyUse::None;
    // Where nobody has placed it yet, the first place is its own.
    let own = !from.placed || base_url.origin() == from.home.origin();
    let named = send_key_to.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
    if takes_key && !own && !named && !is_loopback_host(&base_url) {
        return Err(fault(format!(
            "would send the key to {host}, which the definition does not name; if that is meant, add send_key_to = [\"{host}\"]"
        )));
    }
    let home = if from.placed { from.home.clone() } else { base_url.clone() };
    let mut moved = Definition { base_url, home, placed: true, ..from.clone() };
    moved.version = moved.hash();
    Ok(moved)
}

#[cfg(test)]
mod tests;
