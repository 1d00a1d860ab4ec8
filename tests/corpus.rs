//! Every file of the corpus gives exactly what its `expected.json` says.
//!
//! The corpus lies outside the repository (parts of it have no licence): `SIFT_CORPUS` names its folder, else
//! `../shared/corpus` is tried. Where there is none the tests say so and pass.

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::format_collect, reason = "a test may")]

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use serde_json::Value;
use sift::{
    extract::{ExtractError, Extraction, Options, extract, extract_reader},
    input::Input,
};

/// The folder of the corpus, if there is one.
fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let folder = std::env::var_os("SIFT_CORPUS").map_or(default, PathBuf::from);
    if folder.join("README.md").exists() {
        return Some(folder);
    }
    println!("no corpus in {}: skipped (set SIFT_CORPUS)", folder.display());
    None
}

/// The files of a folder that have an `expected.json` beside them.
fn files(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut files = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let beside = PathBuf::from(format!("{}.expected.json", path.display()));
        if let Ok(text) = std::fs::read_to_string(beside) {
            files.push((path, serde_json::from_str(&text).unwrap()));
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!files.is_empty());
    files
}

fn run(paths: &[PathBuf], options: &Options) -> Result<Extraction, ExtractError> {
    let inputs: Vec<_> = paths.iter().cloned().map(Input::File).collect();
    extract(&inputs, options, &AtomicBool::new(false))
}

fn sorted_ips(extraction: &Extraction) -> Vec<String> {
    let mut ips: Vec<_> = extraction.indicators.iter().map(|ip| ip.to_string()).collect();
    ips.sort_unstable();
    ips
}

/// Compares counts and addresses; `expected` is in the form of the corpus README.
fn check(name: &str, paths: &[PathBuf], options: &Options, expected: &Value) {
    let all = run(paths, options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let counts = &all.counts;
    let lines = [
        ("bytes", counts.bytes),
        ("lines", counts.lines),
        ("blank", counts.blank),
        ("invalid", counts.malformed),
        ("non_utf8", counts.non_utf8),
        ("not_object", counts.not_object),
        ("events", counts.events),
        ("alerts", counts.alerts),
        ("with_ip", counts.with_ip),
        ("no_ip_key", counts.no_ip_key),
        ("bad_ip", counts.bad_ip),
    ];
    for (key, count) in lines {
        assert_eq!(Some(count), expected[key].as_u64(), "{name}: {key}");
    }
    assert_eq!(counts.unterminated > 0, expected["unterminated"] == true, "{name}: unterminated");
    assert_eq!(counts.damaged > 0, expected["stream_error"] == true, "{name}: stream_error");
    let first = counts.first_malformed.first().map(|place| place.line);
    assert_eq!(first, expected["first_invalid"].as_u64(), "{name}: first_invalid");
    check_ips(name, &sorted_ips(&all), expected, "ips");
    if options.context {
        check_default(name, paths, &all);
    }

    let alerts = Options { event_types: vec!["alert".to_owned()], ..options.clone() };
    let alerts = run(paths, &alerts).unwrap_or_else(|error| panic!("{name}: {error}"));
    check_ips(name, &sorted_ips(&alerts), expected, "alert_ips");
}

/// Reads by default, without `strict`: nothing is missing, and what is there beyond is of lines damaged further on.
fn check_default(name: &str, paths: &[PathBuf], strict: &Extraction) {
    for threads in [1, 2] {
        let options = Options { threads, ..Options::default() };
        let quick = run(paths, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kept = strict.counts.malformed - quick.counts.malformed;
        assert_eq!(quick.counts.events, strict.counts.events + kept, "{name}: events");
        assert_eq!(quick.counts.lines, strict.counts.lines, "{name}: lines");
        let (quick, strict) = (sorted_ips(&quick), sorted_ips(strict));
        // Its third line repeats a key after the scanner has all it needs, which reading without `strict` may miss.
        let may_miss = |ip: &str| name.ends_with("duplicate-keys.json") && ip == "192.0.2.33";
        for ip in strict.iter().filter(|ip| !may_miss(ip)) {
            assert!(quick.binary_search(ip).is_ok(), "{name}: {ip} is missing");
        }
        assert!(quick.len() == strict.len() || kept > 0, "{name}: more than there is");
    }
}

/// The list where it is given, else its digest.
fn check_ips(name: &str, ips: &[String], expected: &Value, key: &str) {
    assert_eq!(Some(ips.len() as u64), expected[format!("{key}_count")].as_u64(), "{name}: {key}_count");
    if let Some(list) = expected[key].as_array() {
        let list: Vec<_> = list.iter().map(|ip| ip.as_str().unwrap()).collect();
        assert_eq!(ips, list, "{name}: {key}");
    }
    assert_eq!(sha256(ips.join("\n").as_bytes()), expected[format!("{key}_sha256")], "{name}: {key}_sha256");
}

/// ring comes with rustls, which knows SHA-256 as part of its cipher suites.
fn sha256(bytes: &[u8]) -> String {
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let hash = suite.tls13().unwrap().common.hash_provider.hash(bytes);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn both() -> [Options; 2] {
    let quiet = Options { context: false, ..Options::default() };
    [Options { strict: true, ..Options::default() }, Options { strict: true, ..quiet }]
}

#[test]
fn published_and_made_logs() {
    let Some(folder) = corpus() else { return };
    for (path, expected) in files(&folder) {
        // The one large file, 124 MB, is read with context alone.
        let ways = if expected["bytes"].as_u64() > Some(50_000_000) { 1 } else { 2 };
        for options in both().iter().take(ways) {
            check(&path.display().to_string(), std::slice::from_ref(&path), options, &expected);
        }
    }
}

#[test]
fn a_rotated_log_as_a_whole_and_in_parts() {
    let Some(folder) = corpus().map(|folder| folder.join("rotated")) else { return };
    let mut paths = Vec::new();
    for (path, expected) in files(&folder) {
        check(&path.display().to_string(), std::slice::from_ref(&path), &both()[0], &expected);
        paths.push(path);
    }
    let whole = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    check("rotated", &paths, &both()[0], &serde_json::from_str(&whole).unwrap());
}

#[test]
fn odd_shapes() {
    let Some(folder) = corpus().map(|folder| folder.join("odd")) else { return };
    for (path, expected) in files(&folder) {
        let name = path.file_name().unwrap().to_str().unwrap();
        for options in both() {
            match name {
                "array.json" => {
                    let error = run(std::slice::from_ref(&path), &options).unwrap_err();
                    assert!(matches!(error, ExtractError::Array { .. }), "{name}: {error}");
                }
                "wazuh-wrapped.json" => {
                    let error = run(std::slice::from_ref(&path), &options).unwrap_err();
                    assert!(matches!(error, ExtractError::Wrapped { .. }), "{name}: {error}");
                }
                "pretty.json" => {
                    let error = run(std::slice::from_ref(&path), &options).unwrap_err();
                    assert!(matches!(error, ExtractError::Pretty { .. }), "{name}: {error}");
                }
                _ => check(name, std::slice::from_ref(&path), &options, &expected["strict"]),
            }
        }
    }
}

#[test]
fn the_wrapped_log_is_recognised_and_read_where_told() {
    let Some(folder) = corpus().map(|folder| folder.join("odd")) else { return };
    let path = [folder.join("wazuh-wrapped.json")];
    let error = run(&path, &Options::default()).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("pass --event-path data"), "{error}");
    let expected = files(&folder).into_iter().find(|(file, _)| *file == path[0]).unwrap().1;
    let also = &expected["also_right"];
    let event_path = Some(also["with_path"].as_str().unwrap().parse().unwrap());
    let found = run(&path, &Options { event_path, ..Options::default() }).unwrap();
    assert_eq!(serde_json::json!(sorted_ips(&found)), also["ips"]);
}

/// Gives its bytes in pieces of one size.
struct Chunked(std::io::Cursor<Vec<u8>>, usize);

impl std::io::Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = buffer.len().min(self.1);
        self.0.read(&mut buffer[..size])
    }
}

#[test]
fn every_way_in_gives_the_same() {
    let Some(folder) = corpus() else { return };
    let all = files(&folder).into_iter().chain(files(&folder.join("odd")));
    let plain = all.filter(|(path, expected)| {
        // Small ones, and those that come as they are.
        let is_refused =
            expected["bytes"].is_null() && run(std::slice::from_ref(path), &Options::default()).is_err();
        path.metadata().unwrap().len() < 300_000 && !is_refused
    });
    for (path, _) in
        plain.filter(|(path, _)| path.extension().is_some_and(|end| end == "json" || end == "log"))
    {
        let (bytes, name) = (std::fs::read(&path).unwrap(), path.display());
        for strict in [false, true] {
            let options = Options { strict, ..Options::default() };
            let say = |found: Extraction| format!("{:?} {:?}", sorted_ips(&found), found.counts.lines);
            let read = |bytes: Vec<u8>, size, threads| {
                let reader = Chunked(std::io::Cursor::new(bytes), size);
                let options = Options { threads, ..options.clone() };
                say(extract_reader(&Input::Stdin, reader, &options, &AtomicBool::new(false)).unwrap())
            };
            let expected = say(run(std::slice::from_ref(&path), &options).unwrap());
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, &bytes).unwrap();
            let gzip = gzip.finish().unwrap();
            let zstd = zstd::encode_all(&bytes[..], 1).unwrap();
            for threads in [1, 2] {
                for size in [1, 7, 1 << 20] {
                    assert!(read(bytes.clone(), size, threads) == expected, "{name} in chunks of {size}");
                }
                assert!(read(gzip.clone(), 7, threads) == expected, "{name} as gzip");
                assert!(read(zstd.clone(), 7, threads) == expected, "{name} as zstd");
            }
        }
    }
}
