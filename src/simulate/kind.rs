//! The providers whose wire formats the server speaks: names, paths, where the key goes.

/// A built-in provider, or one that the scenario defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AbuseIpdb,
    GreynoiseCommunity,
    Greynoise,
    Virustotal,
    Shodan,
    InternetDb,
    Urlscan,
    Otx,
    Ipinfo,
    Threatfox,
    Urlhaus,
    Crowdsec,
    Ipqualityscore,
    Misp,
    Custom,
}

/// Where a provider looks for the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPlace {
    None,
    /// A header, or failing that a query parameter (empty: none).
    Header(&'static str, &'static str),
    Query(&'static str),
    /// `Authorization: Bearer`, or the query parameter `token`.
    Bearer,
}

impl Kind {
    /// All built-in ones with their names, in the order their paths are tried.
    pub(super) const BUILTIN: [(Self, &'static str); 14] = [
        (Self::AbuseIpdb, "abuseipdb"),
        (Self::GreynoiseCommunity, "greynoise-community"),
        (Self::Greynoise, "greynoise"),
        (Self::Virustotal, "virustotal"),
        (Self::Shodan, "shodan"),
        (Self::Urlscan, "urlscan"),
        (Self::Otx, "otx"),
        (Self::Ipinfo, "ipinfo"),
        (Self::Threatfox, "threatfox"),
        (Self::Urlhaus, "urlhaus"),
        (Self::Crowdsec, "crowdsec"),
        (Self::Ipqualityscore, "ipqualityscore"),
        (Self::Misp, "misp"),
        // Last: its path is a bare address.
        (Self::InternetDb, "internetdb"),
    ];

    /// The built-in provider of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::BUILTIN.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Where its key goes.
    pub(super) fn key_place(self) -> KeyPlace {
        match self {
            Self::AbuseIpdb => KeyPlace::Header("key", "key"),
            Self::GreynoiseCommunity | Self::Greynoise => KeyPlace::Header("key", ""),
            Self::Virustotal => KeyPlace::Header("x-apikey", ""),
            Self::Shodan => KeyPlace::Query("key"),
            Self::Urlscan => KeyPlace::Header("api-key", ""),
            Self::Otx => KeyPlace::Header("x-otx-api-key", ""),
            Self::Ipinfo => KeyPlace::Bearer,
            Self::Threatfox | Self::Urlhaus => KeyPlace::Header("auth-key", ""),
            Self::Crowdsec => KeyPlace::Header("x-api-key", ""),
            Self::Ipqualityscore => KeyPlace::Header("ipqs-key", ""),
            Self::Misp => KeyPlace::Header("authorization", ""),
            Self::InternetDb | Self::Custom => KeyPlace::None,
        }
    }

    /// Whether it refuses a request without a key.
    pub(super) fn requires_key(self) -> bool {
        self.takes_a_key() && !matches!(self, Self::GreynoiseCommunity | Self::Urlscan | Self::Otx)
    }

    /// Whether it reads a key at all.
    pub(super) fn takes_a_key(self) -> bool {
        self.key_place() != KeyPlace::None
    }

    /// Whether a request path (without the provider's name) is one of this provider's.
    pub(super) fn owns(self, path: &str) -> bool {
        match self {
            Self::AbuseIpdb => path == "/api/v2/check",
            Self::GreynoiseCommunity => path.starts_with("/v3/community/"),
            Self::Greynoise => path == "/v3/ip" || path.starts_with("/v3/ip/"),
            Self::Virustotal => path.starts_with("/api/v3/ip_addresses/"),
            Self::Shodan => path.starts_with("/shodan/host/"),
            Self::Urlscan => path.trim_end_matches('/') == "/api/v1/search",
            Self::Otx => path.starts_with("/api/v1/indicators/"),
            Self::Ipinfo => path.starts_with("/lite/") || path == "/batch/lite",
            Self::Threatfox => path.trim_end_matches('/') == "/api/v1",
            Self::Urlhaus => path.trim_end_matches('/') == "/v1/host",
            Self::Crowdsec => path == "/v2/smoke" || path.starts_with("/v2/smoke/"),
            Self::Ipqualityscore => path.starts_with("/api/json/ip"),
            Self::Misp => path == "/attributes/restSearch",
            Self::InternetDb => {
                path.len() > 1 && path.bytes().skip(1).all(|b| b.is_ascii_hexdigit() || b".:%".contains(&b))
            }
            Self::Custom => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_belongs_to_one_provider() {
        for (path, name) in [
            ("/api/v2/check", "abuseipdb"),
            ("/v3/community/203.0.113.7", "greynoise-community"),
            ("/v3/ip/203.0.113.7", "greynoise"),
            ("/v3/ip", "greynoise"),
            ("/api/v3/ip_addresses/2001:db8::7", "virustotal"),
            ("/shodan/host/203.0.113.7", "shodan"),
            ("/203.0.113.7", "internetdb"),
            ("/2001%3Adb8%3A%3A7", "internetdb"),
            ("/api/v1/search/", "urlscan"),
            ("/api/v1/indicators/IPv4/203.0.113.7/general", "otx"),
            ("/lite/203.0.113.7", "ipinfo"),
            ("/batch/lite", "ipinfo"),
            ("/api/v1/", "threatfox"),
            ("/v1/host/", "urlhaus"),
            ("/v2/smoke/203.0.113.7", "crowdsec"),
            ("/v2/smoke", "crowdsec"),
            ("/api/json/ip", "ipqualityscore"),
            ("/attributes/restSearch", "misp"),
        ] {
            let owners: Vec<&str> =
                Kind::BUILTIN.iter().filter(|(kind, _)| kind.owns(path)).map(|(_, name)| *name).collect();
            assert_eq!(owners, [name], "{path}");
        }
        assert!(!Kind::BUILTIN.iter().any(|(kind, _)| kind.owns("/") || kind.owns("/robots.txt")));
    }
}
