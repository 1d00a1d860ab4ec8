//! Single values: what a key takes, and how it is written in a file, a variable or a flag.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use toml::de::DeValue;

use crate::provider::Quota;

/// A value as it was written, before its key says what it must be.
#[derive(Clone)]
pub(super) enum Written {
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// From a file, where a number is no text.
    Text(String),
    /// From a variable or a flag, where everything is text, and commas part a list.
    Typed(String),
    List(Vec<Written>),
    /// A date, a table: of no key's kind.
    Other(&'static str),
}

impl Written {
    pub(super) fn from_file(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Boolean(flag) => Self::Bool(*flag),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Self::Other("a number beyond 64 bits"), Self::Integer),
            DeValue::Float(number) => number.as_str().parse().map_or(Self::Other("a number"), Self::Float),
            DeValue::Array(list) => {
                Self::List(list.iter().map(|value| Self::from_file(value.get_ref())).collect())
            }
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Table(_) => Self::Other("a table"),
        }
    }

    pub(super) fn from_value(value: &toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::Typed(text.clone()),
            toml::Value::Boolean(flag) => Self::Bool(*flag),
            toml::Value::Integer(number) => Self::Integer(*number),
            toml::Value::Float(number) => Self::Float(*number),
            toml::Value::Array(list) => Self::List(list.iter().map(Self::from_value).collect()),
            toml::Value::Datetime(_) => Self::Other("a date"),
            toml::Value::Table(_) => Self::Other("a table"),
        }
    }

    /// For messages; a value that may be long is cut.
    fn describe(&self) -> String {
        match self {
            Self::Bool(flag) => flag.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) | Self::Typed(text) => {
                format!("\"{}\"", text.chars().take(40).collect::<String>())
            }
            Self::List(_) => "a list".to_owned(),
            Self::Other(name) => (*name).to_owned(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Typed(text) => Some(text.trim()),
            Self::Bool(_) | Self::Integer(_) | Self::Float(_) | Self::List(_) | Self::Other(_) => None,
        }
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Typed(text) => text.trim().replace('_', "").parse().ok(),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => i32::try_from(*number).ok().map(f64::from),
            Self::Float(number) => Some(*number),
            Self::Typed(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            Self::Typed(text) => match text.trim() {
                "true" | "yes" | "1" => Some(true),
                "false" | "no" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn texts(&self) -> Option<Vec<String>> {
        match self {
            Self::List(list) => list.iter().map(|item| item.text().map(str::to_owned)).collect(),
            Self::Typed(text) => Some(
                text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect(),
            ),
            _ => None,
        }
    }
}

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Flag,
    /// A whole number within bounds, both included.
    Count(u64, u64),
    /// From 0 to 1.
    Share,
    /// A time within bounds in seconds, both included.
    Time(u64, u64),
    /// The same, or empty for none.
    OptionalTime,
    /// Bytes within bounds, both included.
    Size(u64, u64),
    /// Any text; empty for none.
    Text,
    /// The same, and never shown.
    Secret,
    /// One of these.
    Choice(&'static [&'static str]),
    Texts,
    /// Program and arguments: a list, in files alone, for commas mean nothing in it.
    Program,
    Networks,
    /// One rate or several.
    Rates,
    /// Quotas of days, weeks or months; an empty list for none.
    Quotas,
    /// An http or https URL; empty for none.
    Url,
}

/// A value of its key's kind.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Flag(bool),
    Count(u64),
    Share(f64),
    Time(Duration),
    None,
    Size(u64),
    Text(String),
    Secret(SecretString),
    Texts(Vec<String>),
    Networks(Vec<IpNet>),
    Rates(Vec<Quota>),
}

impl Value {
    /// Whether both are the same time.
    pub(super) fn is_same_time(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Time(one), Self::Time(other)) if one == other)
    }
}

impl Kind {
    const fn is_list(self) -> bool {
        matches!(self, Self::Texts | Self::Networks | Self::Rates | Self::Quotas)
    }

    /// Reads a value, or says why it is none: `must be ..., not ...`.
    pub(super) fn read(self, written: &Written) -> Result<Value, String> {
        // The configuration writes an empty list like this, so a variable may as well.
        let written = match written {
            Written::Typed(text) if self.is_list() && text.trim() == "[]" => &Written::List(Vec::new()),
            other => other,
        };
        let refuse = |what: String| format!("must be {what}, not {}", written.describe());
        match self {
            Self::Flag => written.bool().map(Value::Flag).ok_or_else(|| refuse("true or false".to_owned())),
            Self::Count(least, most) => written
                .integer()
                .and_then(|number| u64::try_from(number).ok())
                .filter(|number| (least..=most).contains(number))
                .map(Value::Count)
                .ok_or_else(|| refuse(format!("a whole number from {least} to {most}"))),
            Self::Share => written
                .float()
                .filter(|share| (0.0..=1.0).contains(share))
                .map(Value::Share)
                .ok_or_else(|| refuse("a share from 0 to 1".to_owned())),
            Self::Time(least, most) => {
                let bounds = || {
                    format!(
                        "a time from {least} s to {}, as in \"10s\", \"2m\", \"12h\" or \"7d\"",
                        show_time(Duration::from_secs(most))
                    )
                };
                let time = written.text().and_then(parse_time).ok_or_else(|| refuse(bounds()))?;
                let fits = time >= Duration::from_secs(least) && time <= Duration::from_secs(most);
                // A lower bound of 1 s would refuse "500ms", which is a sensible time-out on loopback.
                let positive = least == 0 || time >= Duration::from_millis(1);
                if fits || (least <= 1 && positive && time <= Duration::from_secs(most)) {
                    Ok(Value::Time(time))
                } else {
                    Err(refuse(bounds()))
                }
            }
            Self::OptionalTime if written.text() == Some("") => Ok(Value::None),
            Self::OptionalTime => Self::Time(1, 366 * 86_400).read(written),
            Self::Size(least, most) => {
                size(written).filter(|size| (least..=most).contains(size)).map(Value::Size).ok_or_else(|| {
                    refuse(format!(
                        "a size from {} to {}, as in \"64KiB\" or \"1MiB\"",
                        show_size(least),
                        show_size(most)
                    ))
                })
            }
            Self::Text => written.text().map(text_value).ok_or_else(|| refuse("a text".to_owned())),
            Self::Secret => match written.text() {
                Some("") => Ok(Value::None),
                Some(url) if is_http(url) => Ok(Value::Secret(url.to_owned().into())),
                // What stands there may hold a password, so the message does not repeat it.
                Some(_) | None => Err("must be a URL that begins with http:// or https://".to_owned()),
            },
            Self::Choice(words) => written
                .text()
                .filter(|word| words.contains(word))
                .map(|word| Value::Text(word.to_owned()))
                .ok_or_else(|| choice_refused(words, written, &refuse)),
            Self::Texts => {
                written.texts().map(Value::Texts).ok_or_else(|| refuse("a list of texts".to_owned()))
            }
            Self::Program => match written {
                Written::List(list) if !list.is_empty() => {
                    written.texts().map(Value::Texts).ok_or_else(|| refuse("a list of texts".to_owned()))
                }
                _ => Err(refuse(
                    "a list of the program and its arguments, as in [\"pass\", \"show\", \"soc/key\"]"
                        .to_owned(),
                )),
            },
            Self::Networks => networks(written).map(Value::Networks),
            Self::Rates => rates(written).map(Value::Rates),
            Self::Quotas => quotas(written).map(Value::Rates),
            Self::Url => match written.text() {
                Some("") => Ok(Value::None),
                Some(url) if is_http(url) => Ok(Value::Text(url.to_owned())),
                _ => Err(refuse("a URL that begins with http:// or https://".to_owned())),
            },
        }
    }
}

fn choice_refused(words: &[&str], written: &Written, refuse: &impl Fn(String) -> String) -> String {
    let nearest = written.text().and_then(|word| crate::provider::nearest(word, words.iter().copied()));
    let all = refuse(format!("one of {}", words.join(", ")));
    nearest.map_or_else(|| all.clone(), |nearest| format!("{all}; did you mean '{nearest}'?"))
}

fn text_value(text: &str) -> Value {
    if text.is_empty() { Value::None } else { Value::Text(text.to_owned()) }
}

fn is_http(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn networks(written: &Written) -> Result<Vec<IpNet>, String> {
    let texts =
        written.texts().ok_or_else(|| format!("must be a list of networks, not {}", written.describe()))?;
    texts.iter().map(|text| parse_network(text)).collect()
}

/// A network, or a single address. Bits beyond the prefix are a slip worth telling: `192.0.2.5/24` may mean either.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    if let Ok(ip) = text.parse::<std::net::IpAddr>() {
        return Ok(IpNet::from(ip));
    }
    let network =
        IpNet::from_str(text).map_err(|_| format!("holds '{text}', which is no address and no network"))?;
    if network.trunc() == network {
        Ok(network)
    } else {
        Err(format!(
            "holds '{text}', whose address has bits beyond the prefix; did you mean {}?",
            network.trunc()
        ))
    }
}

fn rates(written: &Written) -> Result<Vec<Quota>, String> {
    let rates = each_rate(written)?;
    if rates.is_empty() { Err("must name at least one rate".to_owned()) } else { Ok(rates) }
}

fn quotas(written: &Written) -> Result<Vec<Quota>, String> {
    let quotas = if written.text() == Some("") { Vec::new() } else { each_rate(written)? };
    match quotas.iter().find(|quota| quota.window.is_paced()) {
        Some(short) => {
            Err(format!("holds {short}, which is a rate: a quota is by the day, the week or the month"))
        }
        None => Ok(quotas),
    }
}

fn each_rate(written: &Written) -> Result<Vec<Quota>, String> {
    let texts = match written {
        Written::Text(text) | Written::Typed(text) => {
            text.split(',').map(|rate| rate.trim().to_owned()).collect()
        }
        other => other
            .texts()
            .ok_or_else(|| format!("must be a rate as in \"4/min\", not {}", other.describe()))?,
    };
    texts.iter().map(|text| text.parse::<Quota>().map_err(|e| format!("holds a fault: {e}"))).collect()
}

/// `10s`, `2m`, `1h30m`, `12h`, `7d`, `500ms`: numbers with units, added up. A day has 24 hours.
pub(super) fn parse_time(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let number: u32 = number.parse().ok()?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit.trim() {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" | "min" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            "d" => Duration::from_secs(86_400),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(number)?)?;
        rest = after;
    }
    Some(total)
}

/// The shortest way to write a time that [`parse_time`] reads back.
pub(super) fn show_time(time: Duration) -> String {
    let mut millis = time.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if millis >= length {
            let _ = write!(text, "{}{unit}", millis / length);
            millis %= length;
        }
    }
    text
}

const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

fn size(written: &Written) -> Option<u64> {
    if let Some(number) = written.integer() {
        return u64::try_from(number).ok();
    }
    let text = written.text()?;
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (_, bytes) = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
    number.trim().replace('_', "").parse::<u64>().ok()?.checked_mul(*bytes)
}

pub(super) fn show_size(bytes: u64) -> String {
    let binary = SIZE_UNITS.iter().take(3).find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    binary.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

impl Value {
    /// As it would stand in a file; a secret is masked.
    pub(super) fn show(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Count(number) => number.to_string(),
            Self::Share(share) => share.to_string(),
            Self::Time(time) => quoted(&show_time(*time)),
            Self::None => quoted(""),
            Self::Size(size) => quoted(&show_size(*size)),
            Self::Text(text) => quoted(text),
            Self::Secret(secret) => quoted(if secret.expose_secret().is_empty() { "" } else { "********" }),
            Self::Texts(texts) => list(texts.iter().map(|text| quoted(text))),
            Self::Networks(networks) => list(networks.iter().map(|network| quoted(&network.to_string()))),
            Self::Rates(rates) => list(rates.iter().map(|rate| quoted(&rate.to_string()))),
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
