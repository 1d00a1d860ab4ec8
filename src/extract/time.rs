//! Reads the timestamps of eve.json.

use jiff::Timestamp;

/// Milliseconds since 1970, rounded down, of `2025-01-31T08:02:11.402123+0000` and its kin: any fraction, a zone as
/// `Z`, `+00:00` or `+0000`. Other forms go through jiff; `None` where that gives up too.
pub(super) fn parse_ms(text: &[u8]) -> Option<i64> {
    fast(text).or_else(|| {
        let time: Timestamp = std::str::from_utf8(text).ok()?.parse().ok()?;
        Some(time.as_millisecond())
    })
}

/// Reads timestamps that follow each other closely: the minute of the last one is remembered.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// `2025-01-31T08:02`, and when it began.
    minute: [u8; 16],
    minute_ms: i64,
}

impl Clock {
    /// As [`parse_ms`].
    #[inline]
    pub(super) fn parse_ms(&mut self, text: &[u8]) -> Option<i64> {
        if let Some((minute, rest)) = text.split_first_chunk::<16>()
            && *minute == self.minute
            && let [b':', s1 @ b'0'..=b'5', s2 @ b'0'..=b'9', b'.', f1, f2, f3, f4, f5, f6, zone @ ..] = rest
            && zone == b"+0000"
            && [f1, f2, f3, f4, f5, f6].into_iter().all(u8::is_ascii_digit)
        {
            let digit = |byte: &u8| i64::from(byte - b'0');
            let seconds = digit(s1) * 10 + digit(s2);
            return Some(self.minute_ms + seconds * 1000 + digit(f1) * 100 + digit(f2) * 10 + digit(f3));
        }
        let Some(ms) = fast(text) else { return parse_ms(text) };
        if text.len() == 31
            && text.ends_with(b"+0000")
            && let Some(minute) = text.first_chunk()
        {
            (self.minute, self.minute_ms) = (*minute, ms - ms.rem_euclid(60_000));
        }
        Some(ms)
    }
}

/// The other way, clamped to the years that jiff knows.
pub(super) fn from_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn fast(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', i1, i2, b':', s1, s2, rest @ ..] =
        text
    else {
        return None;
    };
    let (year, month, day) = (two(*y1, *y2)? * 100 + two(*y3, *y4)?, two(*m1, *m2)?, two(*d1, *d2)?);
    let (hour, minute, second) = (two(*h1, *h2)?, two(*i1, *i2)?, two(*s1, *s2)?);
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (millis, rest) = fraction(rest)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds - offset_seconds(rest)?) * 1000 + millis)
}

fn two(tens: u8, ones: u8) -> Option<i64> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

/// Milliseconds of `.402123`, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = text else { return Some((0, text)) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // jiff reads no more than nanoseconds either.
    if !(1..=9).contains(&digits) {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(digits)?;
    let millis = (0..3).fold(0, |sum, i| sum * 10 + digits.get(i).map_or(0, |digit| i64::from(digit - b'0')));
    Some((millis, rest))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match zone {
        b"+0000" | b"Z" => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (*sign, two(*h1, *h2)?, two(*m1, *m2)?),
        _ => return None,
    };
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        b'+' if hours < 24 && minutes < 60 => Some(seconds),
        b'-' if hours < 24 && minutes < 60 => Some(-seconds),
        _ => None,
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Howard Hinnant's days_from_civil (chrono-Compatible Low-Level Date Algorithms), for the years 0 to 9999.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day counted from 1970: civil_from_days of the same source.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_the_field() {
        let expected = "2025-01-31T08:02:11.402Z".parse::<Timestamp>().unwrap().as_millisecond();
        for text in [
            "2025-01-31T08:02:11.402123+0000",
            "2025-01-31T08:02:11.402Z",
            "2025-01-31T09:02:11.402999+01:00",
            "2025-01-31T03:32:11.402-0430",
        ] {
            assert_eq!(parse_ms(text.as_bytes()), Some(expected), "{text}");
            assert_eq!(fast(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "2025-02-30T00:00:00Z", "2025-01-31T08:02:11", "2025-01-31T24:00:00Z"] {
            assert_eq!(parse_ms(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_jiff(seconds in -62_000_000_000_i64..253_000_000_000, nanos in 0_i32..1_000_000_000) {
            let time = Timestamp::new(seconds, if seconds < 0 { 0 } else { nanos }).unwrap();
            let text = time.to_string();
            prop_assert_eq!(fast(text.as_bytes()), Some(time.as_millisecond()), "{}", text);
        }

        #[test]
        fn a_clock_remembers_nothing_wrong(texts in prop::collection::vec(
            "2025-01-3[01]T0[89]:0[12]:[0-6][0-9]\\.[0-9]{5}[0-9a]\\+0[01]00|2025-01-31T08:02:1[0-9]\\.402(123)?(Z|\\+0000)", 0..12)
        ) {
            let mut clock = Clock::default();
            for text in &texts {
                prop_assert_eq!(clock.parse_ms(text.as_bytes()), parse_ms(text.as_bytes()), "{}", text);
            }
        }
    }
}
