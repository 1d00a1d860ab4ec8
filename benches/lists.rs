//! Lists: a million prefixes of both families in ten lists, and a million addresses matched against them on one thread.
//!
//! `load` reads the ten texts and puts them together; `hit` says whether an address is on any list, `names` on which, and
//! `said` makes of it what stands in a record. The peak of memory is printed once, after loading.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sift::plan::Local;
use sift::provider::{Entries, Format, ListDefinition, Lists, Table};

const LISTS: u32 = 10;
const PREFIXES: u32 = 1_000_000;
const ADDRESSES: u64 = 1_000_000;

/// splitmix64: the same lists in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn v4(&mut self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::try_from(self.next() >> 32).unwrap())
    }

    fn v6(&mut self) -> Ipv6Addr {
        Ipv6Addr::from_bits((0x2a00 << 112) | (u128::from(self.next()) << 48))
    }
}

/// Nine in ten are IPv4; half are single addresses, the others networks.
fn texts() -> Vec<String> {
    let mut random = Random(1);
    (0..LISTS)
        .map(|_| {
            (0..PREFIXES / LISTS).fold(String::new(), |mut text, n| {
                let is_v6 = n % 10 == 9;
                match (is_v6, n % 2 == 0) {
                    (false, true) => writeln!(text, "{}", random.v4()),
                    (false, false) => writeln!(text, "{}/{}", random.v4(), 20 + random.next() % 13),
                    (true, true) => writeln!(text, "{}", random.v6()),
                    (true, false) => writeln!(text, "{}/{}", random.v6(), 40 + random.next() % 25),
                }
                .unwrap();
                text
            })
        })
        .collect()
}

fn definition(number: usize) -> Arc<ListDefinition> {
    let table = Table::builtin().unwrap();
    let like = ListDefinition::clone(table.list("cins").unwrap());
    Arc::new(ListDefinition { name: format!("list-{number}"), ..like })
}

fn load(texts: &[String]) -> Lists {
    let read = |(number, text): (usize, &String)| {
        (definition(number), Entries::read(&Format::Plain, text.as_bytes()))
    };
    Lists::build(texts.iter().enumerate().map(read).collect())
}

fn addresses() -> Vec<IpAddr> {
    let mut random = Random(2);
    (0..ADDRESSES).map(|n| if n % 10 == 9 { random.v6().into() } else { random.v4().into() }).collect()
}

/// Peak of the process's memory in MiB; 0 where the system does not say.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

fn lists(criterion: &mut Criterion) {
    let texts = texts();
    let before = peak_mib();
    let loaded = load(&texts);
    #[expect(clippy::print_stdout, reason = "a figure beside criterion's own")]
    {
        println!("peak after loading: {} MiB, of which {before} before", peak_mib());
    }
    let addresses = addresses();
    let mut group = criterion.benchmark_group("lists");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(PREFIXES)));
    group.bench_function("load", |bench| bench.iter(|| load(black_box(&texts))));
    group.throughput(Throughput::Elements(ADDRESSES));
    group.bench_function("hit", |bench| {
        bench.iter(|| addresses.iter().filter(|ip| loaded.contains(**ip)).count());
    });
    group.bench_function("names", |bench| {
        bench.iter(|| addresses.iter().map(|ip| loaded.matches(*ip).count()).sum::<usize>());
    });
    let local = Local::new(loaded.clone(), |_| jiff::Timestamp::UNIX_EPOCH, Vec::new());
    group.bench_function("said", |bench| {
        bench.iter(|| addresses.iter().map(|ip| local.said(*ip).len()).sum::<usize>());
    });
    group.finish();
}

criterion_group!(benches, lists);
criterion_main!(benches);
