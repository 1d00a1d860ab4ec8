//! Extraction of generated eve.json, in bytes a second: bare, alerts only, with context, on one thread and on two, from
//! gzip and from zstd. `benches/README.md` has the comparison with other readers on a larger file.
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{fmt::Write as _, io::Write as _, path::PathBuf, sync::atomic::AtomicBool};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sift::{
    extract::{Options, extract},
    input::Input,
};

/// Large enough that starting threads does not show.
const BYTES: usize = 32 << 20;

/// Lines in the shape of Suricata 8, a fifteenth of them alerts; half of the addresses come again and again.
fn generate() -> (String, u64) {
    let (mut text, mut events, mut state) = (String::with_capacity(BYTES + 4096), 0, 1_u64);
    // xorshift64*, Vigna 2016.
    let mut random = |below: u64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    };
    while text.len() < BYTES {
        let (host, repeats) = (random(400), random(2) == 0);
        let peer = if repeats { random(2000) } else { random(1 << 24) };
        let is_alert = random(15) == 0;
        write!(
            text,
            "{{\"timestamp\":\"2025-01-31T08:{:02}:{:02}.402123+0000\",\"flow_id\":{},\"in_iface\":\"ens5f0\",\
             \"event_type\":\"{}\",\"src_ip\":\"100.{}.{}.{}\",\"src_port\":{},\"dest_ip\":\"10.20.{}.{}\",\
             \"dest_port\":443,\"proto\":\"TCP\",\"ip_v\":4,\"community_id\":\"1:TTI4NDQwNDI1ODA3OTg3MjEyODQ=\"",
            events / 4000 % 60,
            events / 60 % 60,
            random(1 << 50),
            if is_alert { "alert" } else { "tls" },
            peer >> 16,
            peer >> 8 & 255,
            peer & 255,
            random(65536),
            host >> 8,
            host & 255,
        )
        .unwrap();
        if is_alert {
            write!(
                text,
                ",\"alert\":{{\"action\":\"allowed\",\"gid\":1,\"signature_id\":{},\"rev\":3,\"signature\":\"ET SCAN \
                 Example {}\",\"category\":\"Misc\",\"severity\":{}}},\"payload_printable\":\"{}\"",
                2_000_000 + host,
                host,
                1 + host % 3,
                "GET /x HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n{\\\"src_ip\\\":\\\"192.0.2.1\\\"}".repeat(8),
            )
            .unwrap();
        }
        text.push_str(",\"tls\":{\"sni\":\"cdn.example.com\",\"version\":\"TLS 1.3\",\"ja3\":{\"string\":\"");
        text.push_str(&"4865-4866-4867-49195-49199,".repeat(15));
        text.push_str("0\"},\"client_alpns\":[\"h2\",\"http/1.1\"]}}\n");
        events += 1;
    }
    (text, events)
}

fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
    path
}

fn benches(criterion: &mut Criterion) {
    let (text, events) = generate();
    let folder = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let files = [
        ("plain", file(&folder, "eve.json", text.as_bytes())),
        ("gz", file(&folder, "eve.json.gz", &gzip.finish().unwrap())),
        ("zst", file(&folder, "eve.json.zst", &zstd::encode_all(text.as_bytes(), 3).unwrap())),
    ];
    let plain = Options::default();
    let kinds = [
        ("bare", Options { context: false, ..plain.clone() }),
        ("alerts", Options { context: false, event_types: vec!["alert".to_owned()], ..plain.clone() }),
        ("context", plain.clone()),
        ("strict", Options { strict: true, ..plain }),
    ];
    for (unit, throughput) in
        [("bytes", Throughput::Bytes(text.len() as u64)), ("events", Throughput::Elements(events))]
    {
        let mut group = criterion.benchmark_group(format!("extract/{unit}"));
        group.sample_size(10).throughput(throughput);
        for (form, path) in &files {
            for (kind, options) in &kinds {
                for threads in [1, 2] {
                    let options = Options { threads, ..options.clone() };
                    let inputs = [Input::File(path.clone())];
                    group.bench_function(format!("{form}/{kind}/{threads}"), |bencher| {
                        bencher.iter(|| extract(&inputs, &options, &AtomicBool::new(false)).unwrap());
                    });
                }
                // The rest says nothing new in events.
                if unit == "events" {
                    break;
                }
            }
        }
        group.finish();
    }
}

criterion_group!(extraction, benches);
criterion_main!(extraction);
