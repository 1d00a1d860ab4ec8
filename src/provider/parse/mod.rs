//! From a definition's TOML to a checked [`Definition`], with all faults at once, each with its line.

mod fields;
mod list;
mod section;

use std::time::Duration;

use reqwest::Url;
use toml::de::DeTable;

use self::section::{Reader, Section};
use super::{
    Accepts, Ages, Bulk, Counts, Definition, DefinitionError, Dialect, KeyPlace, KeyRule, KeyUse, Limits,
    ListDefinition, Missing, Origin, Pap, Quota, Role, filter, nearest,
    request::{IP, IPS, RequestTemplate, parse_base_url},
};

/// Names that built-ins also read their keys from: what the services' own clients use.
const USUAL_ENV: &[(&str, &str)] = &[
    ("abuseipdb", "ABUSEIPDB_API_KEY"),
    ("crowdsec", "CROWDSEC_API_KEY"),
    ("greynoise", "GREYNOISE_API_KEY"),
    ("greynoise-community", "GREYNOISE_API_KEY"),
    ("ipinfo", "IPINFO_TOKEN"),
    ("ipqualityscore", "IPQS_API_KEY"),
    ("otx", "OTX_API_KEY"),
    ("shodan", "SHODAN_API_KEY"),
    ("threatfox", "ABUSECH_AUTH_KEY"),
    ("urlhaus", "ABUSECH_AUTH_KEY"),
    ("urlscan", "URLSCAN_API_KEY"),
    ("virustotal", "VT_API_KEY"),
];

/// Freshness where a definition does not say: a day, and six hours for what was not known, since reports come in
/// soonest about new addresses.
const DEFAULT_AGES: Ages =
    Ages { found: Duration::from_secs(24 * 3600), unknown: Duration::from_secs(6 * 3600) };

const ROOT: [&str; 14] = [
    "extends",
    "yields_to",
    "title",
    "role",
    "accepts",
    "sends",
    "pap",
    "licence",
    "key",
    "request",
    "bulk",
    "limits",
    "cache",
    "answer",
];

/// What a definition file holds.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// Something that is asked over HTTP.
    Service(Box<Definition>),
    /// Something that is downloaded and answers here.
    List(Box<ListDefinition>),
}

/// Reads one definition; `builtins` are the names and texts that it may extend.
///
/// # Errors
/// All its faults.
pub(super) fn definition(
    name: &str,
    text: &str,
    origin: Origin,
    builtins: &[(&str, &str)],
) -> Result<Entry, Vec<DefinitionError>> {
    let file = match &origin {
        Origin::Builtin => format!("built-in {name}"),
        Origin::File(path) => path.display().to_string(),
    };
    let reader = Reader::new(file, text);
    check_name(&reader, name);
    let read = match reader.table() {
        None => None,
        Some(table) => extend(&reader, &table, name, origin, builtins),
    };
    match (read, reader.into_faults()) {
        (Some(entry), faults) if faults.is_empty() => Ok(entry),
        (_, faults) => Err(faults),
    }
}

/// Reads the table, on top of the built-in that it extends if it does.
fn extend(
    reader: &Reader<'_>,
    table: &DeTable<'_>,
    name: &str,
    origin: Origin,
    builtins: &[(&str, &str)],
) -> Option<Entry> {
    let alone = reader.root(table, None);
    if alone.has("list") {
        return list::list(&alone, name, origin).map(|list| Entry::List(Box::new(list)));
    }
    let service = |definition| Entry::Service(Box::new(definition));
    alone.only(&ROOT);
    if !alone.has("extends") {
        return read(reader, &alone, name, origin).map(service);
    }
    let of = alone.text("extends")?;
    let Some((_, text)) = builtins.iter().find(|(builtin, _)| *builtin == of) else {
        let near = nearest(of, builtins.iter().map(|(builtin, _)| *builtin));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        alone.fault("extends", &format!("must name a built-in provider, and `{of}` is none{hint}"));
        return None;
    };
    let base_reader = Reader::new(format!("built-in {of}"), text);
    let base_table = base_reader.table()?;
    let root = reader.root(table, Some(base_reader.root(&base_table, None)));
    let definition = read(reader, &root, name, origin);
    reader.take_over(&base_reader);
    definition.map(service)
}

fn check_name(reader: &Reader<'_>, name: &str) {
    let fits = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    // 40: names are columns of tables and parts of variables.
    if name.is_empty() || name.len() > 40 || !fits || name.starts_with('-') || name.ends_with('-') {
        reader.fault_at(
            None,
            "the file's name",
            "must be a-z, 0-9 and - alone, at most 40 of them, and end in .toml",
        );
    }
}

fn read(reader: &Reader<'_>, root: &Section<'_, '_>, name: &str, origin: Origin) -> Option<Definition> {
    let own = origin != Origin::Builtin;
    // Whoever writes filters of their own, for one or for many, writes foreign code.
    let foreign_filter = own && (root.has_own("answer") || root.has_own("bulk"));
    let title = root.text("title").map(str::to_owned);
    let role = root.word("role", &[("reputation", Role::Reputation), ("context", Role::Context)]);
    let accepts = accepts(root);
    let pap_words = [Pap::Red, Pap::Amber, Pap::Green, Pap::Clear].map(|pap| (pap.as_str(), pap));
    let pap = if root.has("pap") { root.word("pap", &pap_words) } else { Some(Pap::Amber) };
    let key = key(root, name, &origin);
    let request = root.table("request").and_then(|section| request(&section, key.as_ref()));
    let limits = limits(root);
    let cache = cache(root);
    let filter =
        root.table("answer").and_then(|section| answer(reader, &section, own && root.has_own("answer")));
    // Everything has been looked at by now, so that all faults are known.
    let (base_url, placed, request) = request?;
    let bulk = bulk(reader, root, own && root.has_own("bulk"), &request);
    let mut definition = Definition {
        name: name.to_owned(),
        title: title?,
        origin,
        role: role?,
        accepts: accepts?,
        key: key?,
        limits: limits?,
        cache: cache?,
        pap: pap?,
        sends: root.optional("sends").map_or_else(|| "the address".to_owned(), str::to_owned),
        licence: root.optional("licence").map(str::to_owned),
        yields_to: root.optional("yields_to").map(str::to_owned),
        filter: filter?,
        foreign_filter,
        placed,
        bulk: bulk?,
        version: 0,
        home: base_url.clone(),
        base_url,
        request,
    };
    definition.version = definition.hash();
    Some(definition)
}

fn accepts(root: &Section<'_, '_>) -> Option<Accepts> {
    let families = root.texts("accepts")?;
    let mut accepts = Accepts { ipv4: false, ipv6: false };
    for family in &families {
        match *family {
            "ipv4" => accepts.ipv4 = true,
            "ipv6" => accepts.ipv6 = true,
            _ => {
                root.fault("accepts", "holds ipv4, ipv6, or both");
                return None;
            }
        }
    }
    if families.is_empty() {
        root.fault("accepts", "holds ipv4, ipv6, or both");
        return None;
    }
    Some(accepts)
}

fn key(root: &Section<'_, '_>, name: &str, origin: &Origin) -> Option<KeyRule> {
    if !root.has("key") {
        return Some(KeyRule { usage: KeyUse::None, env: Vec::new(), place: None });
    }
    let section = root.table("key")?;
    section.only(&["use", "header", "prefix", "query"]);
    let usage = section.word("use", &[("required", KeyUse::Required), ("optional", KeyUse::Optional)])?;
    let place = match (section.has("header"), section.has("query")) {
        (true, false) => KeyPlace::Header {
            name: fields::header_name(&section, "header")?,
            prefix: section.verbatim("prefix").unwrap_or_default().to_owned(),
        },
        (false, true) => KeyPlace::Query { name: section.text("query")?.to_owned() },
        _ => {
            section.missing("header", "a key goes either into a `header` or into the `query`");
            return None;
        }
    };
    if let KeyPlace::Header { prefix, .. } = &place
        && !prefix.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    {
        section.fault("prefix", "must be plain text");
    }
    let mut env = vec![format!("SIFT_{}_API_KEY", name.replace('-', "_").to_ascii_uppercase())];
    // A file of the user never reads a key that was set for something else.
    if *origin == Origin::Builtin {
        env.extend(
            USUAL_ENV.iter().filter(|(provider, _)| *provider == name).map(|(_, env)| (*env).to_owned()),
        );
    }
    Some(KeyRule { usage, env, place: Some(place) })
}

fn request(section: &Section<'_, '_>, key: Option<&KeyRule>) -> Option<(Url, bool, RequestTemplate)> {
    section.only(&["instance", "method", "base_url", "path", "query", "headers", "body", "form"]);
    let placed = section.has("base_url") || !section.flag("instance");
    // A name that no resolver knows (RFC 2606), where the user has to say which instance is meant.
    let base_url = if placed { section.text("base_url") } else { Some("https://instance.invalid") };
    let base_url =
        base_url.and_then(|text| parse_base_url(text).map_err(|why| section.fault("base_url", &why)).ok());
    let method = fields::method(section);
    let path = fields::path(section, IP);
    let query = fields::pairs(section, "query", IP);
    let headers = fields::headers(section, key);
    let body = fields::body(section, IP);
    let template =
        RequestTemplate { method: method?, path: path?, query: query?, headers: headers?, body: body? };
    fields::check_address(section, &template, IP);
    if let Some(KeyRule { place: Some(KeyPlace::Query { name }), .. }) = key
        && template.query.iter().any(|(other, _)| other == name)
    {
        section.fault("query", "has the parameter that the key goes into");
    }
    Some((base_url?, placed, template))
}

/// The outer `None` is a fault, the inner one a provider without a bulk form.
#[expect(clippy::option_option, reason = "a fault and an absence are two things")]
fn bulk(
    reader: &Reader<'_>,
    root: &Section<'_, '_>,
    own: bool,
    one: &RequestTemplate,
) -> Option<Option<Bulk>> {
    if !root.has("bulk") {
        return Some(None);
    }
    let section = root.table("bulk")?;
    section.only(&["size", "counts", "missing", "split", "method", "path", "query", "body", "form"]);
    // 10,000 is the largest that any known provider takes (GreyNoise).
    let size = section.number("size", 2, 10_000);
    let counts = section.word("counts", &[("each", Counts::Each), ("request", Counts::Request)]);
    let missing = section.word("missing", &[("not-found", Missing::NotFound), ("failure", Missing::Failure)]);
    let method = fields::method(&section);
    let path = fields::path(&section, IPS);
    let query = fields::pairs(&section, "query", IPS);
    let body = fields::body(&section, IPS);
    let split = section.text("split")?;
    if own
        && section.has_own("split")
        && let Err(fault) = filter::check(split)
    {
        reader.filter_fault(&section, "split", fault);
    }
    let headers = one.headers.clone();
    let request = RequestTemplate { method: method?, path: path?, query: query?, headers, body: body? };
    fields::check_address(&section, &request, IPS);
    Some(Some(Bulk { size: size?, counts: counts?, missing: missing?, split: split.to_owned(), request }))
}

fn limits(root: &Section<'_, '_>) -> Option<Limits> {
    let standing =
        Limits { concurrency: None, rates: Vec::new(), quotas: Vec::new(), dialect: Dialect::None };
    if !root.has("limits") {
        return Some(standing);
    }
    let section = root.table("limits")?;
    section.only(&["concurrency", "rates", "quotas", "headers"]);
    // 256 in flight is more than any provider grants; the run's own bound stands beside it.
    let concurrency =
        if section.has("concurrency") { Some(section.number("concurrency", 1, 256)?) } else { None };
    let words = Dialect::ALL.map(|dialect| (dialect.as_str(), dialect));
    let dialect = if section.has("headers") { section.word("headers", &words)? } else { Dialect::None };
    let paced = "takes windows up to an hour; longer ones are `quotas`";
    let rates = quotas(&section, "rates", |quota| quota.window.is_paced(), paced)?;
    let counted = "takes day, week and month; shorter windows are `rates`";
    let quotas = quotas(&section, "quotas", |quota| !quota.window.is_paced(), counted)?;
    Some(Limits { concurrency, rates, quotas, dialect })
}

fn quotas(
    section: &Section<'_, '_>,
    key: &str,
    fits: impl Fn(&Quota) -> bool,
    why: &str,
) -> Option<Vec<Quota>> {
    if !section.has(key) {
        return Some(Vec::new());
    }
    let mut quotas = Vec::new();
    for text in section.texts(key)? {
        match text.parse::<Quota>() {
            Ok(quota) if fits(&quota) => quotas.push(quota),
            Ok(_) => section.fault(key, why),
            Err(error) => section.fault(key, &format!("is wrong: {error}")),
        }
    }
    Some(quotas)
}

fn cache(root: &Section<'_, '_>) -> Option<Ages> {
    if !root.has("cache") {
        return Some(DEFAULT_AGES);
    }
    let section = root.table("cache")?;
    section.only(&["found", "unknown"]);
    let age =
        |key: &str, standing| if section.has(key) { fields::age(&section, key) } else { Some(standing) };
    let (found, unknown) = (age("found", DEFAULT_AGES.found), age("unknown", DEFAULT_AGES.unknown));
    Some(Ages { found: found?, unknown: unknown? })
}

fn answer(reader: &Reader<'_>, section: &Section<'_, '_>, own: bool) -> Option<String> {
    section.only(&["filter"]);
    let source = section.text("filter")?;
    // Built-in filters are compiled by a test, and at the start of a run that uses them.
    if own
        && section.has_own("filter")
        && let Err(fault) = filter::check(source)
    {
        reader.filter_fault(section, "filter", fault);
    }
    Some(source.to_owned())
}

#[cfg(test)]
mod tests;
