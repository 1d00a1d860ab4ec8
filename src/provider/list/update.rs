//! Whether a download may take the place of the list in force.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Entries, ListDefinition};

/// A share of unreadable entries from which on a download is not the list: 1 in 20.
const MAX_BAD_SHARE: usize = 20;
/// A list of at least this many entries does not shrink below half overnight; in a shorter one every entry counts a lot.
const STEADY_ENTRIES: usize = 100;
const MAX_SHRINK: usize = 2;
/// What a list may vouch for in one entry: as much as 224.0.0.0/4 (RFC 5771) and fc00::/7 (RFC 4193), the widest networks
/// with a purpose of their own. A wider one would silence a large part of all look-ups.
const WIDEST_V4: u32 = u32::MAX >> 4;
const WIDEST_V6: u128 = u128::MAX >> 7;
/// And in all of them: four times as much. IANA's special-purpose networks of IPv4 together are little more than half of it.
const MOST_IN_ALL: u32 = 4;

/// Why a download is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A page, or JSON of another shape.
    #[error("{list}: the download is no list but a page or another document")]
    Other {
        /// The list.
        list: String,
    },
    /// No entry, where the list is never empty.
    #[error("{list}: the download holds no entry")]
    Empty {
        /// The list.
        list: String,
    },
    /// Too much that is no address.
    #[error("{list}: {bad} of {all} entries are no addresses, first `{text}` in line {line}")]
    Bad {
        /// The list.
        list: String,
        /// How many.
        bad: usize,
        /// Of how many.
        all: usize,
        /// Counted from 1.
        line: usize,
        /// As written, shortened.
        text: String,
    },
    /// The list itself says how many entries it has.
    #[error("{list}: the download holds {now} entries and says that they are {promised}")]
    Cut {
        /// The list.
        list: String,
        /// In the download.
        now: usize,
        /// By its own words.
        promised: usize,
    },
    /// A known-good list that vouches for much of all there is: a mistake, or somebody's way to blind us.
    #[error(
        "{list}: it vouches for {what}; /4 (IPv4) and /7 (IPv6) are the widest entries that are taken, and four of them in all"
    )]
    Wide {
        /// The list.
        list: String,
        /// `FIRST to LAST` of an entry, or that it is all of them together.
        what: String,
    },
    /// Far fewer entries than before: a cut download, or a broken source.
    #[error("{list}: the download holds {now} entries after {before}")]
    Shrunk {
        /// The list.
        list: String,
        /// In the download.
        now: usize,
        /// In the list in force.
        before: usize,
    },
}

impl Refused {
    /// The same without the list's name, where that stands before it already.
    #[must_use]
    pub fn why(&self) -> String {
        let text = self.to_string();
        text.split_once(": ").map_or(text.clone(), |(_, why)| why.to_owned())
    }
}

/// Whether a download is taken; `before` is the number of entries in force, if there is a list in force.
///
/// # Errors
/// What speaks against it. The list in force then stays.
pub fn accept(list: &ListDefinition, entries: &Entries, before: Option<usize>) -> Result<(), Refused> {
    let name = || list.name.clone();
    if entries.is_other {
        return Err(Refused::Other { list: name() });
    }
    let (now, all) = (entries.len(), entries.len() + entries.bad);
    if let Some(first) = &entries.first_bad
        && entries.bad * MAX_BAD_SHARE > all
    {
        let (line, text) = (first.line, first.text.clone());
        return Err(Refused::Bad { list: name(), bad: entries.bad, all, line, text });
    }
    if now == 0 && !list.may_be_empty {
        return Err(Refused::Empty { list: name() });
    }
    if let Some(promised) = entries.promised.filter(|promised| *promised != all) {
        return Err(Refused::Cut { list: name(), now: all, promised });
    }
    if let Some(what) = list.known_good.then(|| too_wide(entries)).flatten() {
        return Err(Refused::Wide { list: name(), what });
    }
    match before {
        Some(before) if before >= STEADY_ENTRIES && now * MAX_SHRINK < before => {
            Err(Refused::Shrunk { list: name(), now, before })
        }
        _ => Ok(()),
    }
}

/// What nobody can vouch for: the first entry that is too wide, or all of them.
fn too_wide(entries: &Entries) -> Option<String> {
    let v4 = entries.v4.iter().find(|span| span.last - span.first > WIDEST_V4);
    let v6 = entries.v6.iter().find(|span| span.last - span.first > WIDEST_V6);
    let one =
        v4.map(|span| format!("{} to {}", Ipv4Addr::from(span.first), Ipv4Addr::from(span.last))).or_else(
            || v6.map(|span| format!("{} to {}", Ipv6Addr::from(span.first), Ipv6Addr::from(span.last))),
        );
    // Entries that overlap count twice, which a list of that size does not need.
    let in_all_v4: u64 = entries.v4.iter().map(|span| u64::from(span.last - span.first)).sum();
    let in_all_v6 = entries.v6.iter().fold(0_u128, |all, span| all.saturating_add(span.last - span.first));
    let is_much = in_all_v4 > u64::from(WIDEST_V4) * u64::from(MOST_IN_ALL)
        || in_all_v6 > WIDEST_V6 * u128::from(MOST_IN_ALL);
    one.or_else(|| is_much.then(|| "far too many addresses in all".to_owned()))
}
