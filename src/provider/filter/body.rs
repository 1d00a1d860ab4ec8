//! A reply's body as a jq value, parsed by serde_json under bounds.
//!
//! serde_json refuses more than 128 levels; jaq's own parser would overflow the stack on 5 MB of `[`. A value takes
//! 16 bytes and an object some 200 more, so the number of values is bounded too: a body of 10 MB that holds nothing
//! but `{"a":1},` would otherwise become 300 MB.

use std::{fmt, net::IpAddr};

use jaq_json::{Map, Num, Val};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};

/// Most values in one body. The longest true reply known (AbuseIPDB's verbose form with 10,000 reports) has 90,000.
const MAX_VALUES: usize = 500_000;

/// What a body is.
#[derive(Debug)]
pub(super) enum Body {
    /// JSON, whole.
    Json(Val),
    /// Begins as JSON and ends too early.
    Cut,
    /// No byte but white space.
    Empty,
    /// HTML or anything else.
    Other,
    /// JSON with more values than are taken.
    TooMany,
}

/// The same without its value, as it goes over the wire from the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Json,
    Cut,
    Empty,
    Other,
    TooMany,
}

impl Body {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Json(_) => Kind::Json,
            Self::Cut => Kind::Cut,
            Self::Empty => Kind::Empty,
            Self::Other => Kind::Other,
            Self::TooMany => Kind::TooMany,
        }
    }

    /// The value, or null.
    pub(super) fn into_value(self) -> Val {
        match self {
            Self::Json(value) => value,
            _ => Val::Null,
        }
    }
}

/// The address that a text names, in whatever spelling.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Parses a body. Never fails: what is no JSON is told apart instead.
pub(super) fn parse(bytes: &[u8]) -> Body {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Body::Empty;
    }
    let mut left = MAX_VALUES;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed =
        Value { left: &mut left }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match parsed {
        Ok(value) => Body::Json(value),
        Err(_) if left == 0 => Body::TooMany,
        Err(error) if error.is_eof() => Body::Cut,
        Err(_) => Body::Other,
    }
}

struct Value<'a> {
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Val, D::Error> {
        *self.left = self.left.saturating_sub(1);
        if *self.left == 0 {
            return Err(D::Error::custom("too many values"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Val, E> {
        Ok(Val::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Val, E> {
        Ok(Val::Num(Num::from_integral(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Val, E> {
        Ok(Val::Num(Num::from_integral(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Val, E> {
        Ok(Val::Num(Num::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Val, E> {
        Ok(text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Val, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(Value { left: self.left })? {
            values.push(value);
        }
        Ok(values.into_iter().collect())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Val, A::Error> {
        let mut members = Map::default();
        while let Some(key) = access.next_key::<std::borrow::Cow<'_, str>>()? {
            members.insert(text(&key), access.next_value_seed(Value { left: self.left })?);
        }
        Ok(Val::obj(members))
    }
}

/// A jq string.
pub(super) fn text(value: &str) -> Val {
    Val::utf8_str(value.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_bodies_apart() {
        let deep = vec![b'['; 5_000_000];
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        let cases: [(&[u8], Kind); 12] = [
            (b"{\"a\":[1,2.5,-3,null,true,\"x\"]}", Kind::Json),
            (b"\xef\xbb\xbf{}", Kind::Json),
            (b"3", Kind::Json),
            (b"", Kind::Empty),
            (b" \r\n", Kind::Empty),
            (b"{\"data\":{\"ipAddress\":\"198.51.100.7\",\"abuseConf", Kind::Cut),
            (b"{\"a\":1} {\"b\":2}", Kind::Other),
            (b"<html>", Kind::Other),
            (b"{\"a\":\"\xff\"}", Kind::Other),
            (b"1e999", Kind::Other),
            (&deep, Kind::Other),
            (many.as_bytes(), Kind::TooMany),
        ];
        for (bytes, kind) in cases {
            assert_eq!(
                parse(bytes).kind(),
                kind,
                "{:?}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(60)])
            );
        }
    }
}
