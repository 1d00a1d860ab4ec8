//! The room as a whole, on small texts.

use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use crate::input::InputError;

fn run(text: &[u8], options: &Options) -> Result<Extraction, ExtractError> {
    extract_reader(&Input::Stdin, io::Cursor::new(text.to_vec()), options, &AtomicBool::new(false))
}

fn ips(extraction: &Extraction) -> Vec<String> {
    extraction.indicators.iter().map(|ip| ip.to_string()).collect()
}

fn fixture() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/eve.json")).unwrap()
}

fn seen_json(extraction: &Extraction, ip: &str) -> String {
    let id = extraction.indicators.id(ip.parse().unwrap()).unwrap();
    let (text, mut bytes) =
        (serde_json::to_string(&extraction.indicators.seen(id).unwrap()).unwrap(), Vec::new());
    assert!(extraction.indicators.append_seen(id, &mut bytes));
    assert_eq!(String::from_utf8(bytes).unwrap(), text, "both ways say the same");
    text
}

const TWO: &str = concat!(
    r#"{"timestamp":"2025-01-31T09:14:40.007+0000","event_type":"alert","src_ip":"203.0.113.7","dest_ip":"10.20.0.15","#,
    r#""dest_port":22,"proto":"TCP","alert":{"signature_id":2001219,"signature":"ET SCAN SSH","severity":2}}"#,
    "\n",
    r#"{"timestamp":"2025-01-31T08:02:11.402123+0000","event_type":"flow","src_ip":"203.0.113.7","dest_ip":"10.20.0.15","#,
    r#""dest_port":2222,"proto":"UDP"}"#,
    "\n",
);

#[test]
fn what_was_seen_reads_as_the_record_says() {
    let found = run(TWO.as_bytes(), &Options::default()).unwrap();
    assert_eq!(
        seen_json(&found, "203.0.113.7"),
        concat!(
            r#"{"count":2,"first":"2025-01-31T08:02:11.402Z","last":"2025-01-31T09:14:40.007Z","fields":["src_ip"],"#,
            r#""severity":2,"signatures":[{"id":2001219,"name":"ET SCAN SSH","count":1}],"ports":[22,2222],"#,
            r#""protos":["TCP","UDP"],"peers":["10.20.0.15"]}"#
        )
    );
    let key = found.indicators.rank_key(0);
    assert!(key.in_alert && key.inbound && !key.outbound);
    assert_eq!((key.severity, key.count), (Some(2), 2));
    assert!(!found.indicators.rank_key(1).inbound, "the inside is not inbound to itself");
}

#[test]
fn home_net_tells_the_direction_of_public_addresses() {
    let line = br#"{"src_ip":"198.51.100.9","dest_ip":"203.0.113.7"}"#;
    let home_net = vec!["198.51.100.0/24".parse().unwrap()];
    let found = run(line, &Options { home_net, ..Options::default() }).unwrap();
    assert!(found.indicators.rank_key(1).outbound);
    let found = run(line, &Options::default()).unwrap();
    assert_eq!(found.indicators.rank_key(1), RankKey { count: 1, ..RankKey::default() });
}

#[test]
fn filters_narrow_before_addresses_are_taken() {
    let all = |options: &Options| run(TWO.as_bytes(), options).unwrap().counts;
    let types = Options { event_types: vec!["flow".into(), "dns".into()], ..Options::default() };
    assert_eq!((all(&types).filtered, all(&types).with_ip, all(&types).events), (1, 1, 2));
    let severe = |n| Options { severity: Some(n), ..Options::default() };
    assert_eq!(all(&severe(2)).filtered, 1, "the flow has none");
    assert_eq!(all(&severe(1)).filtered, 2);
    let since = Options { since: Some("2025-01-31T09:00:00Z".parse().unwrap()), ..Options::default() };
    assert_eq!(all(&since).filtered, 1);
    let undated = run(br#"{"src_ip":"192.0.2.1"}"#, &since).unwrap();
    assert_eq!(undated.indicators.len(), 1, "in doubt it is looked at");
}

#[test]
fn lists_have_no_context_and_records_keep_theirs() {
    let list =
        run(b"# bad\n203.0.113[.]7 # x\n\n203.0.113.7\n198.51.100.0/24\n", &Options::default()).unwrap();
    assert_eq!(ips(&list), ["203.0.113.7"]);
    assert_eq!(list.indicators.seen(0), None);
    assert_eq!((list.counts.entries, list.counts.comments, list.counts.networks), (2, 1, 1));
    assert!(list.warnings.iter().any(|warning| matches!(warning, Warning::Networks { count: 1 })));

    let first = run(&fixture(), &Options::default()).unwrap();
    let record = |ip: &String| format!("{{\"ip\":\"{ip}\",\"seen\":{},\"v\":1}}", seen_json(&first, ip));
    let records: Vec<_> = ips(&first).iter().map(record).collect();
    let second = run(records.join("\n").as_bytes(), &Options::default()).unwrap();
    assert_eq!(ips(&first), ips(&second));
    for id in 0..u32::try_from(first.indicators.len()).unwrap() {
        assert_eq!(first.indicators.seen(id), second.indicators.seen(id));
        assert_eq!(first.indicators.rank_key(id).in_alert, second.indicators.rank_key(id).in_alert);
    }
}

#[test]
fn a_severe_signature_is_not_pushed_out_by_many_mild_ones() {
    let alert = |n: u8| {
        let severity = if n == 20 { 1 } else { 3 };
        let alert = format!("{{\"signature_id\":{n},\"signature\":\"S{n}\",\"severity\":{severity}}}");
        format!("{{\"event_type\":\"alert\",\"src_ip\":\"203.0.113.7\",\"alert\":{alert}}}\n")
    };
    let text: Vec<_> = (0..40).map(alert).collect();
    let text = text.concat();
    let found = run(text.as_bytes(), &Options::default()).unwrap();
    let names: Vec<_> =
        found.indicators.seen(0).unwrap().signatures.into_iter().map(|known| known.name).collect();
    assert_eq!(names, ["S0", "S1", "S2", "S3", "S20"]);
}

#[test]
fn too_much_that_cannot_be_read_fails_and_says_where() {
    let bad = |good: usize, bad: usize| {
        let text = "{\"src_ip\":\"192.0.2.1\"}\n".repeat(good) + &"x\n".repeat(bad);
        run(text.as_bytes(), &Options::default()).map(|found| found.counts.malformed)
    };
    assert_eq!(bad(1, 1).unwrap(), 1);
    assert_eq!(bad(1, 9).unwrap(), 9, "below the floor");
    assert_eq!(bad(10, 10).unwrap(), 10, "half is allowed");
    let error = bad(9, 10).unwrap_err().to_string();
    assert_eq!(
        error,
        "10 of 19 lines could not be read (53 %, at most 50 % are allowed); \
         the first: standard input lines 10, 11, 12, 13, 14"
    );
    assert!(bad(0, 1).is_err(), "nothing was read at all");
    assert_eq!(run(b"", &Options::default()).unwrap().indicators.len(), 0);
    assert_eq!(run(b"{\"src_ip\":\"192.0", &Options::default()).unwrap().counts.cut, 1);
}

#[test]
fn the_bound_on_addresses_is_exact() {
    let options = Options { max_unique: 2, ..Options::default() };
    assert_eq!(run(b"192.0.2.1\n192.0.2.2\n192.0.2.1\n", &options).unwrap().indicators.len(), 2);
    let error = run(b"192.0.2.1\n192.0.2.2\n192.0.2.3\n", &options).unwrap_err();
    assert_eq!(error.to_string(), "more than 2 unique addresses, in line 3 of standard input");
}

#[test]
fn a_line_over_the_cap_is_skipped_and_counted() {
    let long = format!(
        "{{\"src_ip\":\"192.0.2.1\",\"x\":\"{}\"}}\n{{\"src_ip\":\"192.0.2.2\"}}\n",
        "a".repeat(3_000_000)
    );
    let found = run(long.as_bytes(), &Options::default()).unwrap();
    assert_eq!(ips(&found), ["192.0.2.2"]);
    assert_eq!((found.counts.lines, found.counts.malformed, found.counts.too_long), (2, 1, 1));
}

#[test]
fn what_is_no_log_is_refused_by_name() {
    let fails = |text: &[u8]| run(text, &Options::default()).unwrap_err().to_string();
    assert_eq!(fails(b"PK\x03\x04"), "standard input is a zip archive, not text");
    assert_eq!(
        fails(b"[{\"src_ip\":\"192.0.2.1\"}]"),
        "standard input is one JSON array, not one event a line"
    );
    assert!(fails(b"{\n \"src_ip\": \"192.0.2.1\"\n}\n").contains("pretty-printed"));
    assert!(fails(b"lorem ipsum\n").contains("could not be read"));
    let folder = extract(&["/".parse().unwrap()], &Options::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(folder, ExtractError::Input(InputError::Directory { .. })));
    let none =
        extract(&["/no/such".parse().unwrap()], &Options::default(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(none.to_string(), "/no/such does not exist");
}

#[test]
fn utf16_and_compression_are_undone() {
    let expected = ips(&run(TWO.as_bytes(), &Options::default()).unwrap());
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(TWO.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert_eq!(ips(&run(&utf16, &Options::default()).unwrap()), expected);
    let zst = zstd::encode_all(TWO.as_bytes(), 1).unwrap();
    assert_eq!(ips(&run(&[zst.clone(), zst.clone()].concat(), &Options::default()).unwrap()), expected);
    let cut = run(&[zst.clone(), zst[..zst.len() - 4].to_vec()].concat(), &Options::default()).unwrap();
    assert_eq!((ips(&cut), cut.counts.damaged), (expected, 1));
    assert!(matches!(cut.warnings.first(), Some(Warning::Damaged { .. })));
}

#[test]
fn a_cancelled_run_stops() {
    let error =
        extract_reader(&Input::Stdin, io::Cursor::new(TWO), &Options::default(), &AtomicBool::new(true));
    assert!(matches!(error, Err(ExtractError::Cancelled)));
}

#[test]
fn the_fixture_is_what_the_readme_says() {
    let found = run(&fixture(), &Options::default()).unwrap();
    let global = found.indicators.iter().filter(|ip| Scope::of(*ip).is_global()).count();
    assert_eq!(global, 0, "documentation addresses only");
    assert_eq!((found.counts.malformed, found.counts.bad_ip, found.counts.no_ip_key), (1, 0, 2));
    for decoy in ["198.51.100.250", "198.51.100.251", "198.51.100.252", "198.51.100.253", "198.51.100.254"] {
        assert_eq!(found.indicators.id(decoy.parse().unwrap()), None, "{decoy}");
    }
}

/// Everything a run says, as text.
fn dump(extraction: &Extraction) -> String {
    let seen = ips(extraction).into_iter().map(|ip| format!("{ip} {}\n", seen_json(extraction, &ip)));
    format!("{:?}\n{:?}\n{}", extraction.counts, extraction.warnings, seen.collect::<String>())
}

#[test]
fn threads_change_nothing() {
    // Several pieces of a plain file, with lines over the cap and malformed ones; the addresses differ line by line.
    let mut text = Vec::new();
    let lines: Vec<_> = fixture().split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    for n in 0..6_000_u32 {
        let line = &lines[n as usize % lines.len()];
        let fresh = format!("203.0.113.{}", n % 256);
        text.extend_from_slice(&String::from_utf8_lossy(line).replace("203.0.113.7", &fresh).into_bytes());
        if n % 1500 == 0 {
            text.extend_from_slice(&vec![b'x'; 1_500_000]);
        }
        text.push(b'\n');
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    io::Write::write_all(&mut file, &text).unwrap();
    let from_file = |threads| {
        let options = Options { threads, ..Options::default() };
        let input = Input::File(file.path().to_owned());
        dump(&extract(&[input.clone(), input], &options, &AtomicBool::new(false)).unwrap())
    };
    let one = from_file(1);
    for threads in 2..5 {
        assert!(from_file(threads) == one, "{threads} threads");
    }
    let from_stream = |threads| {
        let options = Options { threads, ..Options::default() };
        dump(&run(&zstd::encode_all(&text[..], 1).unwrap(), &options).unwrap())
    };
    assert!(from_stream(1) == from_stream(2));

    let few = Options { max_unique: 20, threads: 2, ..Options::default() };
    let input = Input::File(file.path().to_owned());
    let error = |threads| {
        let options = Options { threads, ..few.clone() };
        extract(std::slice::from_ref(&input), &options, &AtomicBool::new(false)).unwrap_err().to_string()
    };
    assert_eq!(error(1), error(2));
    assert!(matches!(
        extract(std::slice::from_ref(&input), &few, &AtomicBool::new(true)),
        Err(ExtractError::Cancelled)
    ));
}

/// Gives its bytes in pieces of one size.
struct Chunked(io::Cursor<Vec<u8>>, usize);

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(self.1);
        self.0.read(&mut buffer[..size])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_chunking_gives_the_same(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..30),
        size in 1_usize..300,
    ) {
        let text = lines.join("\n");
        let whole = run(text.as_bytes(), &Options::default());
        let reader = Chunked(io::Cursor::new(text.into_bytes()), size);
        let pieces = extract_reader(&Input::Stdin, reader, &Options::default(), &AtomicBool::new(false));
        match (whole, pieces) {
            (Ok(whole), Ok(pieces)) => {
                prop_assert_eq!(ips(&whole), ips(&pieces));
                prop_assert_eq!(whole.counts, pieces.counts);
            }
            (whole, pieces) => {
                let text = |run: Result<Extraction, ExtractError>| run.err().map(|error| error.to_string());
                prop_assert_eq!(text(whole), text(pieces));
            }
        }
    }
}

const LINES: [&str; 9] = [
    "",
    "\r",
    "\0\0\0",
    "{\"src_ip\":\"192.0.2.1\",\"dest_ip\":\"2001:db8::1\"}",
    "{\"event_type\":\"alert\",\"src_ip\":\"192.0.2.2\",\"alert\":{\"severity\":1}}\r",
    "{\"src_ip\":\"192.0.2.3\"",
    "\0\0{\"src_ip\":\"192.0.2.4\"} {\"src_ip\":\"192.0.2.5\"}",
    "{\"src_ip\":null}",
    "192.0.2.6",
];
