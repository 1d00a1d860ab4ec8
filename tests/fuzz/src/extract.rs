//! Looks for a line on which the scanner and the full parse disagree.
//!
//! cargo-fuzz needs a nightly compiler, so this is a loop of its own: it takes lines of the files named, changes them
//! at random (bytes, pieces of JSON, stretches doubled, dropped or taken from another line) and asks
//! `sift::extract::disagreement`. What it finds goes to `fixtures/fuzz/extract`, where a test replays it.
//!
//! ```text
//! cargo run --release --manifest-path tests/fuzz/Cargo.toml -- SECONDS SEED FILE...
//! ```

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// xorshift64*, Vigna 2016: enough for choosing, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

const PIECES: [&[u8]; 38] = [
    b"} 17 {", b"}\"a\"{", b"}[]\t{", b"}null{", b"{", b"}", b"[", b"]", b",", b":", b"\"", b"\\", b"\\\"", b"\\u0073", b"\\ud800", b" ", b"\t", b"\r", b"\0", b"\x01", b"\xff",
    b"}{", b"} {", b"}\t{", b"\"src_ip\":", b"\"dest_ip\":\"192.0.2.7\"", b"\"event_type\":\"alert\"", b"\"alert\":{\"severity\":1}",
    b"\"src_ip\":\"2001:db8::1\",", b"\"dest_port\":0443", b"null", b"1e400", b"-0", b"00", b",\"timestamp\":\"2025-01-31T08:02:11Z\"",
    b"\"signature\":\"a\\\\\"", b"203.0.113.7", b"\xc3\xa9",
];

fn mutate(line: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(line.len() + 1);
    let end = (at + random.below(40)).min(line.len());
    match random.below(8) {
        0 if at < line.len() => line[at] = random.next() as u8,
        1 if at < line.len() => line[at] ^= 1 << random.below(8),
        2 => drop(line.drain(at..end)),
        3 => line.truncate(at),
        4 => {
            let stretch = line[at..end].to_vec();
            line.splice(at..at, stretch);
        }
        5 => {
            let from = random.below(other.len() + 1);
            let to = (from + random.below(200)).min(other.len());
            line.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            let piece = PIECES[random.below(PIECES.len())];
            line.splice(at..at, piece.iter().copied());
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut lines = Vec::new();
    for path in arguments {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        lines.extend(bytes.split(|&byte| byte == b'\n').filter(|line| line.len() < 8192).map(<[u8]>::to_vec));
    }
    assert!(!lines.is_empty(), "name files to start from");
    let (mut random, mut tried) = (Random(seed | 1 << 40), 0_u64);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for _ in 0..1000 {
            let (mut line, other) = (lines[random.below(lines.len())].clone(), random.below(lines.len()));
            for _ in 0..=random.below(4) {
                mutate(&mut line, &lines[other], &mut random);
            }
            tried += 1;
            if let Some(text) = sift::extract::disagreement(&line) {
                let path = format!("fixtures/fuzz/extract/found-{seed}-{tried}.json");
                std::fs::write(&path, &line).expect("run me in the crate's folder");
                println!("{path}\n{}\n{text}", String::from_utf8_lossy(&line));
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{tried} lines, no disagreement (seed {seed})");
    ExitCode::SUCCESS
}
