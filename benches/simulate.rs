//! Requests a second that the simulator serves over loopback: 32 connections, full VirusTotal bodies.
//!
//! The client is as thin as can be (it looks for the length and reads so many bytes), so that most of the time is the
//! server's. Both share one thread: what is printed is what one core does for both. `bare` is the ceiling: a server that
//! reads a packet and writes the same 11 KB each time.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sift::simulate::{Scenario, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const CONNECTIONS: u32 = 32;
const EACH: u32 = 100;

/// Asks `EACH` addresses over one connection; gives the bytes of the answers.
async fn ask(addr: SocketAddr, path: &'static str, lane: u32) -> usize {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
    for n in 0..EACH {
        let ip = lane * EACH + n;
        let request = format!(
            "GET {path}2001:db8::{ip:x} HTTP/1.1\r\nHost: {addr}\r\nAccept: application/json\r\nKey: k\r\nx-apikey: k\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut have = 0;
        loop {
            have += stream.read(&mut buffer[have..]).await.unwrap();
            let text = std::str::from_utf8(&buffer[..have]).unwrap();
            let Some(head) = text.find("\r\n\r\n") else { continue };
            let length = text.split("Content-Length: ").nth(1).unwrap().split('\r').next().unwrap();
            if have == head + 4 + length.parse::<usize>().unwrap() {
                break;
            }
        }
        total += have;
    }
    total
}

/// Serves one and the same answer, as long as a full one of VirusTotal's.
async fn bare() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let body = "x".repeat(11_000);
        let answer: Arc<str> =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into();
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut buffer = [0; 4 << 10];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    addr
}

fn served(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (bare, addr) = runtime.block_on(async {
        let scenario = Scenario::named("calm").unwrap();
        let server = Server::bind(scenario, "127.0.0.1:0".parse().unwrap(), 1).await.unwrap();
        let addr = server.addr();
        tokio::spawn(server.run(std::future::pending()));
        (bare().await, addr)
    });
    let mut group = criterion.benchmark_group("simulate");
    group.throughput(Throughput::Elements((CONNECTIONS * EACH).into()));
    for (name, addr, path) in [
        ("bare", bare, "/"),
        ("abuseipdb", addr, "/api/v2/check?ipAddress="),
        ("virustotal-full", addr, "/api/v3/ip_addresses/"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let mut lanes = JoinSet::new();
                    for lane in 0..CONNECTIONS {
                        lanes.spawn(ask(addr, path, lane));
                    }
                    lanes.join_all().await.into_iter().sum::<usize>()
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, served);
criterion_main!(benches);
