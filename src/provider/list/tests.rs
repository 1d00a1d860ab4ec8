use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::provider::Table;

fn sample(file: &str) -> Vec<u8> {
    std::fs::read(format!("{}/fixtures/list/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn built(name: &str) -> Arc<ListDefinition> {
    static TABLE: std::sync::LazyLock<Table> = std::sync::LazyLock::new(|| Table::builtin().unwrap());
    Arc::clone(TABLE.list(name).unwrap())
}

/// Lists that are given by their texts, each plain.
fn lists(texts: &[&str]) -> Lists {
    let plain = |text: &&str| {
        let definition = ListDefinition { without_special: false, ..(*built("cins")).clone() };
        (Arc::new(definition), Entries::read(&Format::Plain, text.as_bytes()))
    };
    Lists::build(texts.iter().map(plain).collect())
}

fn places(lists: &Lists, address: &str) -> Vec<usize> {
    let found: Vec<_> = lists.matches(ip(address)).collect();
    (0..lists.len())
        .filter(|place| found.iter().any(|list| Arc::ptr_eq(list, &lists.definitions[*place])))
        .collect()
}

#[test]
fn every_saved_list_is_read() {
    for (name, file, entries, bad) in [
        ("feodo", "feodo_ipblocklist.json", 1, 0),
        ("feodo", "feodo_empty.json", 0, 0),
        ("spamhaus-drop-v4", "spamhaus_drop_v4.ndjson", 2, 0),
        ("spamhaus-drop-v6", "spamhaus_drop_v6.ndjson", 1, 0),
        ("tor-exits", "tor_bulk_exit.txt", 3, 0),
        ("firehol-level1", "firehol_level1.netset", 11, 0),
        // Numbers of autonomous systems are another list, and none of these.
        ("spamhaus-drop-v4", "spamhaus_asndrop.ndjson", 0, 1),
    ] {
        let list = built(name);
        let read = Entries::read(&list.format, &sample(file));
        assert_eq!((read.len(), read.bad), (entries, bad), "{file}");
        assert_eq!(accept(&list, &read, None).is_ok(), bad == 0, "{file}");
    }
    let exits = Entries::read(&Format::ExitAddresses, &sample("tor_exit_addresses.txt"));
    assert_eq!((exits.len(), exits.bad), (1, 0));
}

#[test]
fn firehol_loses_its_bogons_and_nothing_else() {
    let list = built("firehol-level1");
    let text = [&sample("firehol_level1.netset")[..], b"1.10.16.0/20\n9.0.0.0/7\n"].concat();
    let lists = Lists::build(vec![(Arc::clone(&list), Entries::read(&list.format, &text))]);
    for (address, hit) in [
        ("10.1.2.3", false),
        ("100.64.0.1", false),
        ("198.51.100.7", false),
        ("203.0.113.9", false),
        ("240.0.0.1", false),
        ("1.10.16.1", true),
        ("1.10.32.0", false),
        // Half of the network is private.
        ("8.255.255.255", true),
        ("9.0.0.0", true),
        ("7.255.255.255", false),
        ("::ffff:1.10.16.1", true),
        ("2001:db8::7", false),
    ] {
        assert_eq!(lists.contains(ip(address)), hit, "{address}");
    }
}

#[test]
fn an_address_knows_all_its_lists() {
    let lists = lists(&[
        "198.51.100.0/24\n2001:db8::/32",
        "198.51.100.7 # comment\n198.51.100.7\n; all of it\n\n203.0.113.0-203.0.113.9\r\n",
        "0.0.0.0/0\n::/0",
        "198.51.100.255\n255.255.255.255\nffff::/16",
    ]);
    for (address, expected) in [
        ("198.51.100.0", vec![0, 2]),
        ("198.51.100.7", vec![0, 1, 2]),
        ("198.51.100.8", vec![0, 2]),
        ("198.51.100.255", vec![0, 2, 3]),
        ("198.51.101.0", vec![2]),
        ("203.0.113.9", vec![1, 2]),
        ("203.0.113.10", vec![2]),
        ("255.255.255.255", vec![2, 3]),
        ("0.0.0.0", vec![2]),
        ("2001:db8::7", vec![0, 2]),
        ("2001:db9::", vec![2]),
        ("ffff:ffff::", vec![2, 3]),
    ] {
        assert_eq!(places(&lists, address), expected, "{address}");
    }
    assert!(Lists::default().matches(ip("198.51.100.7")).next().is_none());
}

#[test]
fn lines_are_read_as_they_are_written() {
    let csv = Entries::read(
        &Format::Csv { column: 1 },
        b"# x\n1,\"198.51.100.7\",a\n2, 198.51.100.8 ,b\n3\n4,nonsense\n",
    );
    assert_eq!((csv.len(), csv.bad), (2, 1));
    assert_eq!(csv.first_bad, Some(BadEntry { line: 5, text: "nonsense".into() }));
    for good in [
        "198.51.100.7/32",
        "198.51.100.7/0",
        "198.51.100.77/24",
        "2001:db8::/128",
        "::ffff:198.51.100.0/120",
        "198.51.100.1-198.51.100.1",
    ] {
        assert_eq!(Entries::read(&Format::Plain, good.as_bytes()).len(), 1, "{good}");
    }
    for bad in [
        "198.51.100.7/33",
        "198.51.100.7/-1",
        "198.51.100.7/+1",
        "198.51.100.7/",
        "2001:db8::/129",
        "198.51.100",
        "198.51.100.9-198.51.100.1",
        "198.51.100.1-2001:db8::",
        "198.051.100.7",
        "::ffff:198.51.100.0/95x",
    ] {
        let read = Entries::read(&Format::Plain, bad.as_bytes());
        assert_eq!((read.len(), read.bad), (0, 1), "{bad}");
    }
    let json = Format::Json { field: None, list: Some("list".into()) };
    assert_eq!(Entries::read(&json, br#"{"name": "x", "list": ["198.51.100.7/32", 7]}"#).bad, 1);
}

/// A download that is no list, or not all of it, leaves the old one in force.
#[test]
fn broken_downloads_are_refused() {
    let (plain, drop, feodo) = (built("cins"), built("spamhaus-drop-v4"), built("feodo"));
    let addresses = |count: u32| {
        (0..count).map(|n| std::net::Ipv4Addr::from(0x0900_0000 + n).to_string() + "\n").collect::<String>()
    };
    let refused = |list: &ListDefinition, text: &str, before| {
        accept(list, &Entries::read(&list.format, text.as_bytes()), before).map_err(|why| why.to_string())
    };
    for (list, text, before, expected) in [
        (&plain, "<html>".to_owned(), None, "cins: the download is no list but a page or another document"),
        (
            &plain,
            " \n<!DOCTYPE html>".to_owned(),
            Some(5),
            "cins: the download is no list but a page or another document",
        ),
        (&plain, String::new(), None, "cins: the download holds no entry"),
        (&plain, "# nothing today\n".to_owned(), None, "cins: the download holds no entry"),
        (
            &plain,
            "not\na\nlist\n".to_owned(),
            None,
            "cins: 3 of 3 entries are no addresses, first `not` in line 1",
        ),
        (&plain, addresses(10), Some(1_000), "cins: the download holds 10 entries after 1000"),
        (
            &drop,
            "{\"cidr\": \"9.0.0.0/8\"}\n{\"type\": \"metadata\", \"records\": 2}\n".to_owned(),
            None,
            "spamhaus-drop-v4: the download holds 1 entries and says that they are 2",
        ),
        (
            &feodo,
            "{\"error\": 1}".to_owned(),
            None,
            "feodo: the download is no list but a page or another document",
        ),
        (
            &feodo,
            "[{\"ip_address\": \"9.0.0.1\"}, {\"ip_add".to_owned(),
            None,
            "feodo: the download is no list but a page or another document",
        ),
    ] {
        assert_eq!(refused(list, &text, before).unwrap_err(), expected);
    }
    assert!(refused(&plain, &addresses(500), Some(1_000)).is_ok());
    assert!(refused(&plain, &addresses(1), Some(99)).is_ok());
    assert!(refused(&plain, &format!("{}typo\n", addresses(100)), None).is_ok());
    assert!(refused(&feodo, "[]", Some(5)).is_ok());
}

#[test]
fn nobody_vouches_for_half_the_world() {
    let good = ListDefinition { known_good: true, ..ListDefinition::clone(&built("cins")) };
    let accepted = |list: &ListDefinition, text: &str| {
        accept(list, &Entries::read(&list.format, text.as_bytes()), None).map_err(|why| why.to_string())
    };
    for (text, entry) in [
        ("9.9.9.9\n0.0.0.0/0\n", "0.0.0.0 to 255.255.255.255"),
        ("128.0.0.0/3\n", "128.0.0.0 to 159.255.255.255"),
        ("1.0.0.0-223.255.255.255\n", "1.0.0.0 to 223.255.255.255"),
        ("2000::/3\n", "2000:: to 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ] {
        let why = accepted(&good, text).unwrap_err();
        assert!(
            why.starts_with(&format!("cins: it vouches for {entry}; /4 (IPv4) and /7 (IPv6) are ")),
            "{why}"
        );
        // FireHOL's own lists block 224.0.0.0/3.
        assert!(accepted(&built("cins"), text).is_ok());
    }
    assert!(accepted(&good, "224.0.0.0/4\nfc00::/7\n10.0.0.0/8\n").is_ok());
    // In pieces it is the same.
    for text in [
        (0..16).map(|n| std::net::Ipv4Addr::new(n * 16, 0, 0, 0).to_string() + "/4\n").collect::<String>(),
        (0..256).map(|n| std::net::Ipv6Addr::new(n << 8, 0, 0, 0, 0, 0, 0, 0).to_string() + "/8\n").collect(),
    ] {
        let why = accepted(&good, &text).unwrap_err();
        assert!(why.starts_with("cins: it vouches for far too many addresses in all; "), "{why}");
    }
}

#[test]
fn a_hit_is_the_lists_own_answer() {
    let drop = built("spamhaus-drop-v4").answer();
    assert_eq!((drop.verdict, drop.score, drop.found), (Verdict::Malicious, Some(100), true));
    let tor = built("tor-exits").answer();
    assert_eq!((tor.verdict, tor.score, tor.tags), (Verdict::Unknown, None, vec!["tor_exit".to_owned()]));
    let dns = built("misp-public-dns-v4").answer();
    assert_eq!((dns.verdict, dns.known_good), (Verdict::Benign, true));
}

fn arbitrary_network() -> impl Strategy<Value = (u32, u32)> {
    // Few bits, so that networks meet and nest.
    (0u32..64, 0u32..=32).prop_map(|(address, length)| ((address << 26) | (address & 3), length))
}

proptest! {
    /// The table says what asking each network in turn says.
    #[test]
    fn the_table_agrees_with_a_plain_search(
        networks in proptest::collection::vec(proptest::collection::vec(arbitrary_network(), 0..8), 0..6),
        asked in proptest::collection::vec(any::<u32>(), 0..40),
    ) {
        let texts: Vec<String> = networks
            .iter()
            .map(|list| list.iter().map(|(a, l)| std::net::Ipv4Addr::from(*a).to_string() + &format!("/{l}\n")).collect())
            .collect();
        let lists = lists(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let edges = networks.iter().flatten().flat_map(|(a, _)| [*a, a.wrapping_sub(1), a.wrapping_add(1)]);
        for address in asked.into_iter().chain(edges) {
            let holds = |(network, length): &(u32, u32)| *length == 0 || (network ^ address) >> (32 - length) == 0;
            let expected: BTreeSet<usize> =
                (0..networks.len()).filter(|place| networks[*place].iter().any(holds)).collect();
            let text = std::net::Ipv4Addr::from(address).to_string();
            prop_assert_eq!(places(&lists, &text).into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }

    #[test]
    fn reading_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[0-9a-f.:/#;,\\-\n ]{0,60}") {
        for format in [Format::Plain, Format::Csv { column: 1 }, Format::Json { field: None, list: None }, Format::JsonLines { field: "ip".into() }, Format::ExitAddresses] {
            let _ = Lists::build(vec![(built("cins"), Entries::read(&format, &bytes))]);
            let _ = Entries::read(&format, text.as_bytes());
        }
    }
}
