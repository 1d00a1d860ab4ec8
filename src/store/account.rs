//! Whose answers, and whose quota.

use std::fmt;
use std::sync::Arc;

use crate::provider::Definition;

/// A provider as it is asked with one key. Answers belong to `provider` and `host` and are shared between keys; quota
/// belongs to the whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Account {
    /// The definition's name.
    pub provider: Arc<str>,
    /// The base URL's host, in lower case, or [`LOOPBACK`](Self::LOOPBACK).
    pub host: Arc<str>,
    /// Which key.
    pub key_id: KeyId,
}

impl Account {
    /// Stands for every loopback address, whatever its port: rehearsals share one account, and never the real one.
    pub const LOOPBACK: &'static str = "loopback";

    /// The account of a provider that is asked at `host` with `key`.
    #[must_use]
    pub fn new(provider: &str, host: &str, key: Option<&str>) -> Self {
        let host = host.to_ascii_lowercase();
        Self { provider: provider.into(), key_id: KeyId::of(provider, &host, key), host: host.into() }
    }

    /// The account of a provider as it is asked with `key`: where its base URL leads, or on this machine.
    #[must_use]
    pub fn of(definition: &Definition, key: Option<&str>) -> Self {
        if definition.is_loopback() {
            Self::on_loopback(&definition.name, key)
        } else {
            Self::new(&definition.name, definition.host(), key)
        }
    }

    /// The account of a provider that is asked on this machine.
    #[must_use]
    pub fn on_loopback(provider: &str, key: Option<&str>) -> Self {
        Self::new(provider, Self::LOOPBACK, key)
    }
}

/// Tells keys apart without giving one away: 16 hexadecimal digits of a one-way hash. Never the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(u64);

/// So that the same key gives another id in another program, or here in another sense.
const DOMAIN: &[u8] = b"sift key id 1";

impl KeyId {
    /// The id of a key at a provider; one without a key has an id too.
    #[must_use]
    pub fn of(provider: &str, host: &str, key: Option<&str>) -> Self {
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        let present: &[u8] = if key.is_some() { b"key" } else { b"none" };
        for part in
            [DOMAIN, provider.as_bytes(), host.as_bytes(), present, key.unwrap_or_default().as_bytes()]
        {
            // The part's length goes in as well, so that two parts never read as one.
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finish();
        Self(digest.as_ref().iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }

    /// As the engine keeps it.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// From what the engine kept.
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_tells_keys_hosts_and_providers_apart_and_stays_the_same() {
        let id = |provider, host, key| Account::new(provider, host, key).key_id;
        let one = id("abuseipdb", "api.abuseipdb.com", Some("secret"));
        assert_eq!(one, id("abuseipdb", "API.abuseipdb.com", Some("secret")));
        assert_eq!(one.to_string(), "39aa1490af8ba38e");
        for other in [
            id("abuseipdb", "api.abuseipdb.com", Some("secreT")),
            id("abuseipdb", "api.abuseipdb.com", None),
            id("abuseipdb", "api.abuseipdb.com", Some("")),
            id("abuseipdb", Account::LOOPBACK, Some("secret")),
            id("virustotal", "api.abuseipdb.com", Some("secret")),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn rehearsals_share_an_account_whatever_their_port_and_never_the_real_one() {
        let (table, _) = crate::provider::Table::load(None).unwrap();
        let real = table.get("abuseipdb").unwrap();
        let at = |url: &str| Account::of(&real.with_base_url(url, &[]).unwrap(), Some("secret"));
        assert_eq!(at("http://127.0.0.1:4711"), at("http://[::1]:80"));
        assert_ne!(at("http://127.0.0.1:4711"), Account::of(real, Some("secret")));
        assert_eq!(&*Account::of(real, None).host, "api.abuseipdb.com");
    }
}
