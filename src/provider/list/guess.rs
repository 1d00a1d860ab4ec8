//! What a list that somebody adds is written in, by looking at it.

use serde_json::Value;

use super::{Entries, Format};

/// Members that hold the address in lists met in the field, the most telling first.
const FIELDS: [&str; 10] =
    ["cidr", "ip_address", "ip", "address", "network", "prefix", "ip_prefix", "ioc", "indicator", "value"];
/// Members that hold the array: MISP warninglists, and what cloud providers publish.
const MEMBERS: [&str; 5] = ["list", "prefixes", "data", "items", "results"];
/// Columns that are tried.
const COLUMNS: usize = 10;

impl Format {
    /// The form in which most of the text reads as addresses; `None` where there is none.
    #[must_use]
    pub fn guess(bytes: &[u8]) -> Option<Self> {
        let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        let candidates = if matches!(start.first(), Some(b'[' | b'{')) {
            json(start)
        } else {
            let csv = (0..COLUMNS).map(|column| Self::Csv { column });
            [Self::Plain, Self::ExitAddresses].into_iter().chain(csv).collect()
        };
        let sound = |format: &Self| {
            let entries = Entries::read(format, bytes);
            (!entries.is_other && entries.len() > entries.bad).then_some(entries.len())
        };
        // Of equal ones the first: a plain list is a list of one column, too.
        let mut best: Option<(usize, Self)> = None;
        for format in candidates {
            if let Some(len) = sound(&format).filter(|len| best.as_ref().is_none_or(|(most, _)| len > most)) {
                best = Some((len, format));
            }
        }
        best.map(|(_, format)| format)
    }
}

fn json(bytes: &[u8]) -> Vec<Format> {
    let fields = || FIELDS.into_iter().map(str::to_owned);
    let of = |list: Option<&str>| {
        let list = list.map(str::to_owned);
        std::iter::once(None)
            .chain(fields().map(Some))
            .map(move |field| Format::Json { field, list: list.clone() })
            .collect::<Vec<_>>()
    };
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(_)) => of(None),
        Ok(Value::Object(members)) => {
            let mut formats: Vec<Format> = MEMBERS
                .into_iter()
                .filter(|name| members.contains_key(*name))
                .flat_map(|name| of(Some(name)))
                .collect();
            formats.extend(fields().map(|field| Format::JsonLines { field }));
            formats
        }
        _ => fields().map(|field| Format::JsonLines { field }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_have_is_told_apart() {
        let json = |field: Option<&str>, list: Option<&str>| Format::Json {
            field: field.map(str::to_owned),
            list: list.map(str::to_owned),
        };
        for (text, expected) in [
            ("# ours\n198.51.100.7\n203.0.113.0/24 ; lab\n", Some(Format::Plain)),
            ("first,ip\n1,198.51.100.7\n2,203.0.113.9\n3,2001:db8::1\n", Some(Format::Csv { column: 1 })),
            ("[\"198.51.100.7\", \"2001:db8::/32\"]", Some(json(None, None))),
            ("[{\"ip_address\": \"198.51.100.7\"}]", Some(json(Some("ip_address"), None))),
            ("{\"list\": [\"198.51.100.7\"], \"name\": \"x\"}", Some(json(None, Some("list")))),
            (
                "{\"prefixes\": [{\"ip_prefix\": \"198.51.100.0/24\"}]}",
                Some(json(Some("ip_prefix"), Some("prefixes"))),
            ),
            (
                "{\"cidr\":\"198.51.100.0/24\"}\n{\"cidr\":\"203.0.113.0/24\"}\n",
                Some(Format::JsonLines { field: "cidr".into() }),
            ),
            ("ExitNode A\nExitAddress 198.51.100.7 2026-01-15 10:00:00\n", Some(Format::ExitAddresses)),
            ("198.51.100.7-198.51.100.20\n", Some(Format::Plain)),
            ("<html>198.51.100.7</html>", None),
            ("nothing here\n", None),
            ("", None),
        ] {
            assert_eq!(Format::guess(text.as_bytes()), expected, "{text}");
        }
    }
}
