//! How single values look in the record. Times are RFC 3339 in UTC; names are shared, so they are no `String`.

use std::fmt;
use std::sync::Arc;

use jiff::{Timestamp, TimestampRound, Unit};
use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::record::{Entries, Entry};

/// Milliseconds, always three digits: `2025-01-31T09:15:02.118Z`.
pub(super) mod millis {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    pub(in crate::output) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{time:.3}"))
    }

    pub(in crate::output) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(from)
    }
}

/// Whole seconds, rounded up: who waits until then has waited long enough.
pub(super) mod seconds {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, round_up};

    #[expect(clippy::ref_option, reason = "the shape serde asks for")]
    pub(in crate::output) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(&format_args!("{:.0}", round_up(*time))),
            None => to.serialize_none(),
        }
    }

    pub(in crate::output) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Option::<Timestamp>::deserialize(from)
    }
}

/// A provider's name.
pub(super) mod name {
    use super::{Arc, Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the shape serde asks for")]
    pub(in crate::output) fn serialize<S: Serializer>(
        name: &Option<Arc<str>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match name {
            Some(name) => to.serialize_str(name),
            None => to.serialize_none(),
        }
    }

    pub(in crate::output) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Arc::from))
    }
}

/// The next whole second, or the time itself where it cannot be rounded (the last second jiff knows).
pub(super) fn round_up(time: Timestamp) -> Timestamp {
    time.round(TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Ceil)).unwrap_or(time)
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.len()))?;
        for (name, entry) in self.iter() {
            map.serialize_entry(name, entry)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of providers' entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, entry)) = map.next_entry::<String, Entry>()? {
                    entries.push((Arc::from(name), entry));
                }
                Ok(Entries::new(entries))
            }
        }

        from.deserialize_map(Object)
    }
}

impl JsonSchema for Entries {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Providers".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let entry = generator.subschema_for::<Entry>();
        schemars::json_schema!({ "type": "object", "additionalProperties": entry })
    }
}
