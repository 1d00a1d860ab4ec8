//! Holds the scanner to the full parse: for the fuzz target, its replay and the property test.

use super::{
    Options,
    batch::Batch,
    counts::Counts,
    event::{self, Event},
    json::{Walker, string_bytes},
    parser::{Parser, Reading},
    scan::{Needs, ScanOnce},
    window::widest,
};

/// Bytes behind a text, as the reader has them.
const ROOM: usize = 128;

/// What the scanner says other than the full parse of a line, and may not; `None` where they agree, or differ in one
/// of the ways that reading without `strict` allows:
///
/// - the line is damaged, but after the place where the scanner had all it needed;
/// - a key that is needed is given twice.
///
/// Of several lines, the first disagreement counts.
#[must_use]
pub fn disagreement(bytes: &[u8]) -> Option<String> {
    bytes.split(|&byte| byte == b'\n').find_map(|line| {
        let plain = Options { threads: 1, ..Options::default() };
        let since = Some(jiff::Timestamp::UNIX_EPOCH);
        [
            Options { context: false, ..plain.clone() },
            Options { event_types: vec!["alert".to_owned()], ..plain.clone() },
            Options { severity: Some(2), context: false, since, ..plain.clone() },
            plain,
        ]
        .iter()
        .find_map(|options| compare(line, options))
    })
}

fn compare(line: &[u8], options: &Options) -> Option<String> {
    let strict = Options { strict: true, ..options.clone() };
    let (quick, full) = (read(line, options), read(line, &strict));
    let (said, expected) = (describe(&quick), describe(&full));
    if said == expected {
        return None;
    }
    let needs = Needs::new(options.context, options.since.is_some(), options.severity.is_some());
    let is_explained = if full.counts.malformed > 0 {
        let text = [line, &[b'\n'; ROOM]].concat();
        widest(ScanOnce(&text, needs))
            .is_ok_and(|found| event::error_at(line).is_some_and(|at| at >= found.stopped))
    } else {
        repeats_key(line)
    };
    if is_explained { None } else { Some(format!("scanner: {said}\nfull parse: {expected}")) }
}

/// The line twice, after one of Suricata's: what the scanner has learnt of the last line must change nothing.
fn read(line: &[u8], options: &Options) -> Batch {
    let mut parser = Parser::new(options, Reading::Eve);
    let text = [USUAL, line, b"\n", line, &[b'\n'; ROOM + 1]].concat();
    parser.block(&text, text.len() - ROOM);
    parser.batch
}

/// A line with all keys that are needed, in Suricata's order.
const USUAL: &[u8] = b"{\"timestamp\":\"2025-01-31T08:02:11.402123+0000\",\"flow_id\":1284404258079872,\
    \"in_iface\":\"ens5f0\",\"event_type\":\"alert\",\"src_ip\":\"198.51.100.1\",\"src_port\":51717,\
    \"dest_ip\":\"198.51.100.2\",\"dest_port\":443,\"proto\":\"TCP\",\"alert\":{\"severity\":1,\"signature\":\"x\",\
    \"signature_id\":7}}\n";

/// All that a batch says but how it was found out.
fn describe(batch: &Batch) -> String {
    let counts = Counts { non_utf8: 0, ..batch.counts.clone() };
    let fresh: Vec<_> = batch.fresh.iter().map(|fresh| (fresh.ip, fresh.line)).collect();
    let signatures: Vec<_> = batch.signatures.iter().map(|raw| (batch.raw(*raw), raw.severity)).collect();
    format!(
        "{counts:?} {:?} {fresh:?} {:?} {:?} {signatures:?}",
        batch.malformed, batch.records, batch.protos
    )
}

/// Whether one of the keys that are needed is given twice in an object of the line, or inside `alert`.
fn repeats_key(line: &[u8]) -> bool {
    let mut walker = Walker::new(line);
    let mut repeats = false;
    while walker.peek().is_some() {
        let Ok(value) = walker.value() else { return false };
        repeats |= repeats_in(value, Event::KEYS);
    }
    repeats
}

fn repeats_in(object: &[u8], keys: &[&str]) -> bool {
    let (mut seen, mut repeats) = (Vec::new(), false);
    let walked = Walker::new(object).object(|key, value| {
        let Some(key) = string_bytes(key) else { return };
        if keys.iter().any(|known| known.as_bytes() == &*key) {
            repeats |= seen.contains(&key) || (*key == *b"alert" && repeats_in(value, event::Alert::KEYS));
            seen.push(key);
        }
    });
    walked.is_ok() && repeats
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8]) {
        if let Some(text) = disagreement(bytes) {
            panic!("{}\n{text}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn replay() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzz/extract");
        let mut count = 0;
        for entry in folder.read_dir().unwrap() {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0);
        check(include_bytes!("../../fixtures/eve.json"));
    }

    #[test]
    fn no_object_is_missed_whatever_stands_before_it() {
        let start = "{\"event_type\":\"alert\",\"src_ip\":\"192.0.2.1\",\"dest_ip\":\"10.0.0.1\",\"x\":{\"y\":[{}]},\"z\":\"a{}\"";
        let second = "{\"event_type\":\"alert\",\"src_ip\":\"192.0.2.2\",\"dest_ip\":\"10.0.0.2\"}";
        // What looks like the end of the object, once or very often.
        let strings = ["", ",\"s\":\"} {} }1 }true\"", &format!(",\"s\":\"{}\"", "}1".repeat(40))];
        for between in [
            "",
            " ",
            "\t\r ",
            "17",
            " 17 ",
            "-1e5",
            " \"text\" ",
            "\",\"",
            "\":\"",
            "\"}\"",
            "[]",
            " [1,{\"a\":2}] ",
            "null",
            " true false",
            "{}",
            " {} 17 [] ",
        ] {
            // What is dropped around a line may stand behind it.
            for (string, tail) in
                strings.iter().flat_map(|string| ["", "\0", " \0\0\r"].map(|tail| (string, tail)))
            {
                let line = format!("{start}{string}}}{between}{second}{tail}");
                check(line.as_bytes());
                let options = Options { threads: 1, context: false, ..Options::default() };
                let found: Vec<_> =
                    read(line.as_bytes(), &options).fresh.iter().map(|fresh| fresh.ip.to_string()).collect();
                let expected =
                    ["198.51.100.1", "198.51.100.2", "192.0.2.1", "10.0.0.1", "192.0.2.2", "10.0.0.2"];
                assert_eq!(found, expected, "{line}");
            }
        }
        for string in &strings {
            check(format!("{start}{string}}}").as_bytes());
        }
    }

    /// Pieces that matter to the scanner, to be put together at random.
    const PIECES: [&str; 44] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"src_ip\"",
        "\"dest_ip\"",
        "\"event_type\"",
        "\"alert\"",
        "\"alert\":{\"severity\":1,\"signature\":\"x\\\"y\",\"signature_id\":7",
        "\"timestamp\":\"2025-01-31T08:02:11.402123+0000\"",
        "\"dest_port\":443",
        "\"proto\":\"TCP\"",
        "\"192.0.2.1\"",
        "\"2001:db8::1\"",
        "\"src_ip\":\"192.0.2.1\"",
        "\"dest_ip\":\"203.0.113.1\"",
        "\"event_type\":\"alert\"",
        "\"event_type\":\"flow\"",
        "\"severity\":2",
        " ",
        "\t",
        "\r",
        "\0",
        "1",
        "-0",
        "1.5e3",
        "01",
        "null",
        "true",
        "\"x\":{\"src_ip\":\"192.0.2.9\"}",
        "\"a\":\"b\"",
        "\\u0073",
        "\u{e9}",
        "}{",
        "} {",
        "} 17 {",
        "}\"a\"{",
        "}[]\t{",
        "}null {",
        "\"flow_id\":1284404258079872",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn pieces_in_any_order(pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..24)) {
            check(pieces.concat().as_bytes());
        }

        #[test]
        fn members_in_any_order(
            members in prop::collection::vec(prop::sample::select(PIECES[12..].to_vec()), 0..12),
            space in prop::sample::select(vec!["", " "]),
        ) {
            check(format!("{{{}}}", members.join(&format!(",{space}"))).as_bytes());
        }

        #[test]
        fn real_lines_with_a_byte_changed(
            at in 0_usize..62, place in 0.0..1.0, byte in prop::sample::select(b"{}[]\",:\\ \t\0a0\xff".to_vec()),
        ) {
            let text = include_bytes!("../../fixtures/eve.json");
            let mut line = text.split(|&byte| byte == b'\n').nth(at).unwrap().to_vec();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a line")]
            let place = (line.len() as f64 * place) as usize;
            line[place] = byte;
            check(&line);
            line.truncate(place);
            check(&line);
        }
    }
}
