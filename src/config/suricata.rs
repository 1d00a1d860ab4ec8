//! HOME_NET out of suricata.yaml: the one setting that says which addresses are ours.
//!
//! Reads no YAML in general: only the scalars of `vars:` → `address-groups:`, as Suricata's own configuration lays them
//! out, and their grammar of networks: `[a, b]`, `!a`, `$GROUP`, ranges `a - b`, `any`. Whatever is beyond that is
//! refused with its reason rather than guessed at, for a network that is missed is one whose addresses are sent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};

/// Groups name groups, and lists hold lists; deeper than this a group names itself, or somebody plays a trick.
const MAX_DEPTH: usize = 16;

/// Taking a network out of another leaves at most 128 pieces; a list beyond this is no HOME_NET.
const MAX_NETWORKS: usize = 4_096;

/// Why no networks were found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HomeNetError {
    /// There is no such setting here; it may stand in a file that this one includes.
    #[error("there is no HOME_NET under vars: address-groups: (an included file may hold it)")]
    Missing,
    /// A group that names everything, or everything but something.
    #[error(
        "{group} is {value}, which is no list of networks; name yours with 'exclude' in the configuration"
    )]
    Everything {
        /// The group.
        group: String,
        /// Its value.
        value: String,
    },
    /// A group that is not there, or that names itself.
    #[error("the group ${group} is not there, or names itself")]
    Group {
        /// The group.
        group: String,
    },
    /// Something that cannot be read.
    #[error("{group} holds '{text}', which cannot be read as networks")]
    Unreadable {
        /// The group.
        group: String,
        /// The text, as far as it tells.
        text: String,
    },
    /// More networks than make sense.
    #[error("{group} comes to more than 4096 networks")]
    TooMany {
        /// The group.
        group: String,
    },
}

/// The networks of HOME_NET in the text of a suricata.yaml: sorted, joined where they touch, none within another.
///
/// # Errors
///
/// See [`HomeNetError`].
pub fn home_net(yaml: &str) -> Result<Vec<IpNet>, HomeNetError> {
    let groups = address_groups(yaml);
    if !groups.contains_key("HOME_NET") {
        return Err(HomeNetError::Missing);
    }
    networks("HOME_NET", &groups, 0)
}

/// Names and values under `vars:` → `address-groups:`, in YAML's block form.
fn address_groups(yaml: &str) -> BTreeMap<String, String> {
    let mut groups = BTreeMap::new();
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in yaml.lines() {
        let line = without_comment(line);
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if let Some((name, value)) = open.take() {
            let value = format!("{value} {text}");
            put(name, value, &mut groups, &mut open);
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        path.retain(|(at, _)| *at < indent);
        let Some((key, value)) = text.split_once(':') else { continue };
        let key = key.trim().trim_matches(['"', '\'']);
        let within = path.iter().map(|(_, key)| key.as_str()).eq(["vars", "address-groups"]);
        if within && !value.trim().is_empty() {
            put(key.to_owned(), value.trim().to_owned(), &mut groups, &mut open);
        } else {
            path.push((indent, key.to_owned()));
        }
    }
    groups
}

/// Keeps a value that is whole; one whose bracket or quote is still open goes on in the next line.
fn put(
    name: String,
    value: String,
    groups: &mut BTreeMap<String, String>,
    open: &mut Option<(String, String)>,
) {
    let count = |c: char| value.matches(c).count();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let is_open =
        count('[') > count(']') || quote.is_some_and(|quote| value.len() < 2 || !value.ends_with(quote));
    if is_open {
        *open = Some((name, value));
    } else {
        groups.insert(name, value.trim_matches(['"', '\'']).trim().to_owned());
    }
}

/// YAML's comment begins at a `#` at the start or after a blank; a value of ours never holds one.
fn without_comment(line: &str) -> &str {
    let at = line.match_indices('#').find(|(at, _)| *at == 0 || line[..*at].ends_with([' ', '\t']));
    at.map_or(line, |(at, _)| &line[..at])
}

fn networks(
    group: &str,
    groups: &BTreeMap<String, String>,
    depth: usize,
) -> Result<Vec<IpNet>, HomeNetError> {
    let missing = || HomeNetError::Group { group: group.to_owned() };
    let value = groups.get(group).filter(|_| depth < MAX_DEPTH).ok_or_else(missing)?;
    Reader { group, groups, depth }.list(value)
}

/// Reads one group's value.
struct Reader<'a> {
    group: &'a str,
    groups: &'a BTreeMap<String, String>,
    depth: usize,
}

impl Reader<'_> {
    /// A list in brackets, or a single item: what is named, less what is named with `!`.
    fn list(&self, text: &str) -> Result<Vec<IpNet>, HomeNetError> {
        let whole = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = whole.unwrap_or(text);
        let (mut named, mut without) = (Vec::new(), Vec::new());
        for item in items(inner).ok_or_else(|| self.unreadable(text))? {
            match item.strip_prefix('!') {
                Some(item) => without.extend(self.item(item.trim())?),
                None => named.extend(self.item(item)?),
            }
        }
        if named.is_empty() {
            let value = format!("'{}'", text.chars().take(60).collect::<String>());
            return Err(HomeNetError::Everything { group: self.group.to_owned(), value });
        }
        let left = without
            .iter()
            .fold(named, |named, out| named.into_iter().flat_map(|n| subtract(n, *out)).collect());
        let left = IpNet::aggregate(&left);
        if left.len() > MAX_NETWORKS {
            return Err(HomeNetError::TooMany { group: self.group.to_owned() });
        }
        Ok(left)
    }

    fn item(&self, item: &str) -> Result<Vec<IpNet>, HomeNetError> {
        if item == "any" {
            return Err(HomeNetError::Everything { group: self.group.to_owned(), value: "any".to_owned() });
        }
        if let Some(group) = item.strip_prefix('$') {
            return networks(group, self.groups, self.depth + 1);
        }
        if item.starts_with('[') && item.ends_with(']') && self.depth < MAX_DEPTH {
            return Reader { depth: self.depth + 1, ..*self }.list(item);
        }
        if let Ok(ip) = item.parse::<IpAddr>() {
            return Ok(vec![ip.into()]);
        }
        if let Ok(network) = item.parse::<IpNet>() {
            return Ok(vec![network.trunc()]);
        }
        range(item).ok_or_else(|| self.unreadable(item))
    }

    fn unreadable(&self, text: &str) -> HomeNetError {
        HomeNetError::Unreadable { group: self.group.to_owned(), text: text.chars().take(60).collect() }
    }
}

/// `192.0.2.1 - 192.0.2.9`
fn range(item: &str) -> Option<Vec<IpNet>> {
    let (first, last) = item.split_once('-')?;
    match (first.trim().parse().ok()?, last.trim().parse().ok()?) {
        (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
            Some(Ipv4Subnets::new(first, last, 0).map(IpNet::V4).collect())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
            Some(Ipv6Subnets::new(first, last, 0).map(IpNet::V6).collect())
        }
        _ => None,
    }
}

/// The parts between commas that stand in no inner bracket; none if brackets do not match.
fn items(text: &str) -> Option<Vec<&str>> {
    let mut depth = 0_usize;
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(text.get(from..at)?.trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..)?.trim());
    parts.retain(|part| !part.is_empty());
    (depth == 0).then_some(parts)
}

/// What is left of a network without another: nothing, all of it, or the halves that do not hold it.
fn subtract(from: IpNet, out: IpNet) -> Vec<IpNet> {
    if out.contains(&from) {
        return Vec::new();
    }
    if !from.contains(&out) {
        return vec![from];
    }
    let halves = from.subnets(from.prefix_len() + 1);
    halves.map_or_else(|_| vec![from], |halves| halves.flat_map(|half| subtract(half, out)).collect())
}

#[cfg(test)]
mod tests;
