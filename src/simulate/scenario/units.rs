//! Durations as people write them in a scenario.

use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// Longest duration taken: a year of 366 days. Beyond it sums of instants could overflow.
const LONGEST: f64 = 366.0 * 86_400.0;

/// Reads `50ms`, `2s`, `1min`, `1.5h`, `1d`; a unit alone means one of it.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = if number.is_empty() { 1.0 } else { number.parse().ok()? };
    let seconds = match unit.trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hour" => 3600.0,
        "d" | "day" => 86_400.0,
        _ => return None,
    };
    let total = number * seconds;
    (total <= LONGEST).then(|| Duration::from_secs_f64(total))
}

/// A duration in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::simulate) struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration(&text).map(Self).ok_or_else(|| {
            de::Error::custom(format!("'{text}' is no duration; write 50ms, 2s, 1min, 8h or 1d"))
        })
    }
}

/// How long an answer takes: the same each time (`min == max`), or drawn evenly from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::simulate) struct Latency {
    pub min: Duration,
    pub max: Duration,
}

impl Latency {
    /// The latency for these random bits.
    pub(in crate::simulate) fn draw(self, bits: u64) -> Duration {
        let width = self.max.saturating_sub(self.min);
        // 32 bits of the draw are finer than the timer's millisecond for any range up to weeks.
        self.min + width.mul_f64(f64::from((bits >> 32) as u32) / f64::from(u32::MAX))
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Latency;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a duration or { min = …, max = … }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Latency, E> {
                let fixed = duration(text).ok_or_else(|| E::custom(format!("'{text}' is no duration")))?;
                Ok(Latency { min: fixed, max: fixed })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Latency, A::Error> {
                let (mut min, mut max) = (Duration::ZERO, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "min" => min = map.next_value::<Span>()?.0,
                        "max" => max = Some(map.next_value::<Span>()?.0),
                        other => return Err(de::Error::unknown_field(other, &["min", "max"])),
                    }
                }
                match max {
                    Some(max) if max >= min => Ok(Latency { min, max }),
                    _ => Err(de::Error::custom("a range of latencies needs a max that is not below its min")),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_written() {
        for (text, milliseconds) in [
            ("50ms", Some(50)),
            ("2s", Some(2000)),
            ("1min", Some(60_000)),
            ("minute", Some(60_000)),
            ("1.5 h", Some(5_400_000)),
            ("1d", Some(86_400_000)),
            ("", None),
            ("5", None),
            ("1.2.3s", None),
            ("9999d", None),
            ("-1s", None),
        ] {
            assert_eq!(duration(text), milliseconds.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn latency_stays_in_its_range() {
        let range = Latency { min: Duration::from_millis(20), max: Duration::from_millis(80) };
        assert_eq!(range.draw(0), range.min);
        assert_eq!(range.draw(u64::MAX), range.max);
        let fixed = Latency { min: Duration::from_millis(50), max: Duration::from_millis(50) };
        assert_eq!(fixed.draw(u64::MAX / 3), Duration::from_millis(50));
    }
}
