//! One provider, as read from its file and checked.

use std::{net::IpAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use reqwest::Url;

use super::{
    DefinitionError, Limits,
    request::{RequestTemplate, is_loopback_host},
};

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Embedded in the program.
    Builtin,
    /// A file of the user.
    File(PathBuf),
}

/// What a provider's answers are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Decides the record's status and verdict.
    Reputation,
    /// Adds ports, names, countries; its verdict is always unknown.
    Context,
}

/// Which families a provider answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// IPv4 addresses.
    pub ipv4: bool,
    /// IPv6 addresses.
    pub ipv6: bool,
}

impl Accepts {
    /// Whether the provider may be asked about this address.
    #[must_use]
    pub const fn accepts(self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(_) => self.ipv4,
            IpAddr::V6(_) => self.ipv6,
        }
    }
}

/// Whether a provider wants a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyUse {
    /// Nothing is asked without one.
    Required,
    /// Raises the quotas.
    Optional,
    /// Takes none.
    None,
}

/// Where a key goes in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// A header, marked sensitive; the prefix (`Bearer `) stands before the key.
    Header {
        /// Lower case.
        name: String,
        /// May be empty.
        prefix: String,
    },
    /// A parameter of the query: the URL must never be logged.
    Query {
        /// The parameter's name.
        name: String,
    },
}

/// How a provider is given its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRule {
    /// Whether one is wanted.
    pub usage: KeyUse,
    /// Variables to read it from, in this order: `SIFT_NAME_API_KEY`, then, for a built-in, the field's usual names.
    pub env: Vec<String>,
    /// Where it goes; `None` exactly when the provider takes none.
    pub place: Option<KeyPlace>,
}

/// How long answers stay fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// Of an address that the provider knows.
    pub found: Duration,
    /// Of an address that it does not.
    pub unknown: Duration,
}

/// Permissible Actions Protocol: the strictest marking of an address under which the provider may still be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pap {
    /// Nothing leaves the host: lists and local files.
    Red,
    /// A passive question to a third party.
    Amber,
    /// Something that the address's owner could notice.
    Green,
    /// Anything.
    Clear,
}

impl Pap {
    /// The word as it stands in a definition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Amber => "amber",
            Self::Green => "green",
            Self::Clear => "clear",
        }
    }
}

/// How a batch counts against the provider's quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Each address as one look-up.
    Each,
    /// The whole batch as one.
    Request,
}

/// What an address is that a batch's reply leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The provider does not know it: nothing else is said of unknown ones.
    NotFound,
    /// The provider names unknown ones, so this one was lost.
    Failure,
}

/// Asking about many addresses in one request.
#[derive(Debug, Clone)]
pub struct Bulk {
    /// Most addresses in one request.
    pub size: NonZeroU32,
    /// What a batch costs.
    pub counts: Counts,
    /// What silence means.
    pub missing: Missing,
    /// Takes the reply apart into `{ADDRESS: BODY}`.
    pub(super) split: String,
    pub(super) request: RequestTemplate,
}

/// One provider.
#[derive(Debug, Clone)]
pub struct Definition {
    /// `[a-z0-9-]`, the stem of its file.
    pub name: String,
    /// As people write it.
    pub title: String,
    /// Built in, or the user's file.
    pub origin: Origin,
    /// Reputation or context.
    pub role: Role,
    /// Address families.
    pub accepts: Accepts,
    /// The key.
    pub key: KeyRule,
    /// Concurrency, rates, quotas.
    pub limits: Limits,
    /// Freshness of answers.
    pub cache: Ages,
    /// PAP level.
    pub pap: Pap,
    /// What leaves the host, in words.
    pub sends: String,
    /// Terms that a user must know.
    pub licence: Option<String>,
    /// A fuller service of the same people: where its key is the same, it is asked and this one is not, unless named.
    pub yields_to: Option<String>,
    /// Source of the jq filter.
    pub filter: String,
    /// Changes whenever the same reply or the same question could give another answer: a hash over the request but for its
    /// host (which tells accounts apart), the role, the filter and the version of our own reading rules. Stable from run to
    /// run.
    pub version: u64,
    /// Whether the filter is the user's own text, not a built-in's.
    pub(super) foreign_filter: bool,
    /// Whether there is a base URL; without one it is a name that leads nowhere.
    pub(super) placed: bool,
    /// How many addresses can be asked about in one request.
    pub bulk: Option<Bulk>,
    pub(super) base_url: Url,
    /// The definition's own base URL, whatever `base_url` was moved to: the key's origin.
    pub(super) home: Url,
    pub(super) request: RequestTemplate,
}

impl Definition {
    /// Where the provider is asked.
    #[must_use]
    pub fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// Whether the provider can be asked at all: a service that everybody runs on their own (MISP) has no base URL
    /// until the configuration gives it one, or a definition that extends it does.
    #[must_use]
    pub const fn is_placed(&self) -> bool {
        self.placed
    }

    /// The host that requests go to.
    #[must_use]
    pub fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    /// Whether requests stay on this machine (127.0.0.0/8, `::1`, `localhost`).
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(&self.base_url)
    }

    /// The same provider, asked elsewhere.
    ///
    /// # Errors
    /// When the URL is no base URL, when it is plain HTTP and not on this machine, or when the provider takes a key,
    /// the host is neither this machine nor the definition's own origin, and `send_key_to` does not name it.
    pub fn with_base_url(&self, url: &str, send_key_to: &[String]) -> Result<Self, DefinitionError> {
        super::request::move_to(self, url, send_key_to)
    }

    /// How many requests it takes to ask about so many addresses, where nothing fails.
    #[must_use]
    pub fn requests_for(&self, addresses: u64) -> u64 {
        addresses.div_ceil(self.bulk.as_ref().map_or(1, |bulk| u64::from(bulk.size.get())))
    }

    pub(super) fn missing(&self) -> Missing {
        self.bulk.as_ref().map_or(Missing::Failure, |bulk| bulk.missing)
    }

    /// See [`Self::version`].
    pub(super) fn hash(&self) -> u64 {
        let mut hash = Fnv::default();
        let role = match self.role {
            Role::Reputation => "reputation",
            Role::Context => "context",
        };
        hash.add(&READING_RULES.to_le_bytes());
        for part in [role, &self.filter, self.base_url.path().trim_end_matches('/'), &self.request.text()] {
            hash.add(part.as_bytes());
        }
        if let Some(bulk) = &self.bulk {
            hash.add(bulk.split.as_bytes());
            hash.add(bulk.request.text().as_bytes());
        }
        hash.0
    }
}

/// Version of what this program makes of a filter's output. Raise it with every change that could read the same reply
/// differently.
const READING_RULES: u64 = 1;

/// FNV-1a, 64 bits: the same on every machine and in every version, unlike the standard library's hasher. It names
/// versions; nothing depends on its being hard to forge.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// The part's length goes in as well, so that two parts never read as one.
    fn add(&mut self, part: &[u8]) {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
