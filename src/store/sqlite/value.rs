//! How our types stand in columns: addresses as 4 or 16 bytes, moments as microseconds since 1970, windows as seconds.

use std::net::IpAddr;

use jiff::Timestamp;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::provider::Window;
use crate::store::KeyId;

/// An address: 4 or 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct Ip(pub(super) IpAddr);

impl ToSql for Ip {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            IpAddr::V4(ip) => ip.octets().to_vec().into(),
            IpAddr::V6(ip) => ip.octets().to_vec().into(),
        })
    }
}

impl FromSql for Ip {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        if let Ok(four) = <[u8; 4]>::try_from(bytes) {
            return Ok(Self(four.into()));
        }
        let wrong = FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: bytes.len() };
        <[u8; 16]>::try_from(bytes).map(|sixteen| Self(sixteen.into())).map_err(|_size| wrong)
    }
}

/// A moment: microseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_microsecond().into())
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let micros = value.as_i64()?;
        // jiff does not take the last microseconds of its own range back.
        let end = if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Ok(Self(Timestamp::from_microsecond(micros).unwrap_or(end)))
    }
}

/// A window: its length in seconds.
pub(super) struct Wide(pub(super) Window);

impl ToSql for Wide {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.length().as_secs().cast_signed().into())
    }
}

impl FromSql for Wide {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let seconds = value.as_i64()?;
        Window::ALL
            .into_iter()
            .find(|window| window.length().as_secs().cast_signed() == seconds)
            .map(Self)
            .ok_or(FromSqlError::OutOfRange(seconds))
    }
}

/// A key's id, in SQLite's signed integer.
pub(super) const fn key_bits(id: KeyId) -> i64 {
    id.bits().cast_signed()
}

/// A key's id, from SQLite's signed integer.
pub(super) const fn key_id(bits: i64) -> KeyId {
    KeyId::from_bits(bits.cast_unsigned())
}

/// A count as SQLite keeps it; none of ours comes near the bound.
pub(super) fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A count from a column; a negative one, which nobody writes, is 0.
pub(super) fn uncount(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}
