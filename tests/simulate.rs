//! The simulator over real sockets: rates, faults, hold-offs and the ledger, as a client meets them.
//!
//! Server and client share one runtime with a paused clock, so that minutes pass in milliseconds.

#![expect(clippy::unwrap_used, reason = "a test's helper fails the test by panicking")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sift::simulate::{Ledger, Scenario, Server, SimulateError, Snapshot};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// A running server and a client for it.
struct Rehearsal {
    base: String,
    ledger: Arc<Ledger>,
    client: reqwest::Client,
}

/// What a client got.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

fn scenario(text: &str) -> Scenario {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    Scenario::load(file.path()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

impl Rehearsal {
    async fn start(scenario: Scenario) -> Self {
        // Reqwest is built without a TLS provider of its own; another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = Server::bind(scenario, "127.0.0.1:0".parse().unwrap(), 1).await.unwrap();
        let (base, ledger) = (format!("http://{}", server.addr()), server.ledger());
        tokio::spawn(server.run(std::future::pending()));
        let client = reqwest::Client::builder()
            .no_proxy()
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .build()
            .unwrap();
        Self { base, ledger, client }
    }

    async fn with(text: &str) -> Self {
        Self::start(scenario(text)).await
    }

    async fn get(&self, target: &str) -> Result<Got, reqwest::Error> {
        let request = self.client.get(format!("{}{target}", self.base)).header("accept", "application/json");
        let mut response = request.header("key", "k").header("x-apikey", "k").send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(Got { status, headers, body })
    }

    /// Asks AbuseIPDB about the n-th address.
    async fn ask(&self, n: u32) -> Result<Got, reqwest::Error> {
        self.get(&format!("/abuseipdb/api/v2/check?ipAddress=2001:db8::{n:x}")).await
    }

    fn snapshot(&self) -> Snapshot {
        self.ledger.snapshot()
    }
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Asked every 100 ms for 65 s: which requests were admitted, in 100 ms steps?
async fn admitted(limits: &str) -> Vec<u32> {
    let rehearsal = Rehearsal::with(&format!("[providers.abuseipdb]\nlimits = [{limits}]\n")).await;
    let mut open = Vec::new();
    for step in 0..650 {
        if rehearsal.ask(step).await.unwrap().status == 200 {
            open.push(step);
        }
        sleep(Duration::from_millis(100)).await;
    }
    open
}

#[tokio::test(start_paused = true)]
async fn windows_open_when_their_kind_says() {
    // The clock is read some steps late at most, never early.
    let near = |got: Vec<u32>, due: &[u32]| {
        assert_eq!(got.len(), due.len(), "{got:?}");
        assert!(got.iter().zip(due).all(|(got, due)| got.abs_diff(*due) <= 1), "{got:?} {due:?}");
    };
    near(admitted("{count = 4, per = '1min'}").await, &[0, 1, 2, 3, 600, 601, 602, 603]);
    near(
        admitted("{count = 3, per = '20s', kind = 'fixed'}").await,
        &[0, 1, 2, 200, 201, 202, 400, 401, 402, 600, 601, 602],
    );
    near(
        admitted("{count = 4, per = '1min', kind = 'bucket', burst = 2}").await,
        &[0, 1, 150, 300, 450, 600],
    );
}

#[tokio::test(start_paused = true)]
async fn the_ledger_shows_limits_exceeded_and_hold_offs_ignored() {
    let rehearsal = Rehearsal::with("[providers.abuseipdb]\nlimits = [{count = 2, per = '10s'}]\n").await;
    for n in 0..2 {
        assert_eq!(rehearsal.ask(n).await.unwrap().status, 200);
    }
    let refused = rehearsal.ask(2).await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("10")));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(rehearsal.ask(3).await.unwrap().status, 429);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(rehearsal.ask(4).await.unwrap().status, 200);
    let snapshot = rehearsal.snapshot();
    let page = snapshot.provider("abuseipdb").unwrap();
    assert_eq!((page.requests, page.too_many, page.in_hold_off), (5, 2, 1));
    assert_eq!((page.limits[0].max_in_window, page.limits[0].exceeded), (4, 2));
    assert!((4900.0..5200.0).contains(&page.hold_off_breaches[0].left_ms));
}

#[tokio::test(start_paused = true)]
async fn latency_is_kept_and_the_peak_is_counted() {
    let rehearsal = Arc::new(Rehearsal::with("[every]\nlatency = '50ms'\n").await);
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..32_u32 {
        let rehearsal = Arc::clone(&rehearsal);
        tasks.spawn(async move {
            for n in 0..10 {
                assert_eq!(rehearsal.ask(lane * 10 + n).await.unwrap().status, 200);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let took = started.elapsed();
    assert!((500..=700).contains(&took.as_millis()), "{took:?}");
    let snapshot = rehearsal.snapshot();
    assert_eq!(
        (snapshot.total.requests, snapshot.total.peak_in_flight, snapshot.total.distinct),
        (320, 32, 320)
    );
    assert!((50.0..60.0).contains(&snapshot.total.mean_hold_ms), "{}", snapshot.total.mean_hold_ms);
    assert_eq!(snapshot.total.peak_connections, 32);
}

#[tokio::test(start_paused = true)]
async fn a_day_of_100_gives_100_answers() {
    let rehearsal = Rehearsal::start(Scenario::named("quota").unwrap()).await;
    let mut statuses = Vec::new();
    for n in 0..105 {
        statuses.push(rehearsal.ask(n).await.unwrap().status);
    }
    assert_eq!((statuses.iter().filter(|it| **it == 200).count(), statuses[100]), (100, 429));
    let page = rehearsal.snapshot().provider("abuseipdb").unwrap().clone();
    assert_eq!((page.statuses[&200], page.statuses[&429], page.in_hold_off), (100, 5, 4));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_no_longer_in_flight() {
    let rehearsal = Rehearsal::with("[every]\nlatency = '10s'\n").await;
    let left = tokio::time::timeout(Duration::from_secs(1), rehearsal.ask(1)).await;
    assert!(left.is_err());
    sleep(Duration::from_millis(50)).await;
    let total = rehearsal.snapshot().total;
    assert_eq!((total.requests, total.in_flight, total.peak_in_flight), (1, 0, 1));
    assert_eq!(rehearsal.snapshot().provider("abuseipdb").unwrap().abandoned, 1);
}

async fn fault(fault: &str) -> (Rehearsal, Result<Got, reqwest::Error>) {
    let rehearsal = Rehearsal::with(&format!("[every]\nfaults = [{{{fault}, first = 1}}]\n")).await;
    let got = rehearsal.ask(1).await;
    assert_eq!(rehearsal.ask(2).await.unwrap().status, 200, "{fault}: the next request is answered");
    assert_eq!(
        rehearsal.snapshot().provider("abuseipdb").unwrap().faults.len(),
        1,
        "{fault} is in the ledger"
    );
    (rehearsal, got)
}

#[tokio::test(start_paused = true)]
async fn faults_that_answer() {
    for (kind, status, starts) in [
        ("kind = 'status', status = 503", 503, "{\"errors\""),
        ("kind = 'burst-500'", 500, "{\"errors\""),
        ("kind = 'html'", 200, "<!DOCTYPE html>"),
        ("kind = 'html404'", 404, "<html>"),
        ("kind = 'error-in-200'", 200, "{\"errors\""),
        ("kind = 'unauthorized'", 401, "{\"errors\""),
        ("kind = 'forbidden'", 402, "{\"errors\""),
        ("kind = 'broken-json'", 200, "{\"data\""),
        ("kind = 'empty'", 200, ""),
        ("kind = 'huge'", 200, "{\"data\":\"xxx"),
        ("kind = 'nest'", 200, "[[[["),
    ] {
        let got = fault(kind).await.1.unwrap();
        assert_eq!(got.status, status, "{kind}");
        assert!(got.body.starts_with(starts.as_bytes()), "{kind}");
        match kind {
            "kind = 'huge'" => assert!(got.body.len() > 10_000_000),
            "kind = 'nest'" => assert_eq!(got.body.len(), 5_000_000),
            "kind = 'broken-json'" => {
                assert!(serde_json::from_slice::<serde_json::Value>(&got.body).is_err());
            }
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn faults_that_break_the_exchange() {
    let cut = fault("kind = 'cut'").await.1.unwrap_err();
    assert!(cut.is_body() || cut.is_decode(), "{cut:?}");
    for kind in ["kind = 'reset'", "kind = 'not-http'"] {
        let broken = fault(kind).await.1.unwrap_err();
        assert!(broken.is_request(), "{broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn faults_that_take_time() {
    let started = Instant::now();
    assert!(fault("kind = 'stall'").await.1.unwrap_err().is_timeout());
    assert!(started.elapsed() >= Duration::from_secs(30));
    let started = Instant::now();
    assert_eq!(fault("kind = 'slow', over = '5s'").await.1.unwrap().status, 200);
    assert!((5..7).contains(&started.elapsed().as_secs()));
    let started = Instant::now();
    assert_eq!(fault("kind = 'delay', delay = '3s'").await.1.unwrap().status, 200);
    assert!((3..5).contains(&started.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_bomb_is_small_on_the_wire() {
    let rehearsal = Rehearsal::with("[every]\nfaults = [{kind = 'gzip-bomb', bytes = 3000000}]\n").await;
    assert_eq!(rehearsal.ask(1).await.unwrap().body.len(), 3_000_000);
    assert!(rehearsal.snapshot().total.bytes_out < 20_000);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_leads_to_the_trap_and_tells_who_followed() {
    let (rehearsal, got) = fault("kind = 'redirect', location = 'http://localhost:{port}/__trap'").await;
    let got = got.unwrap();
    let port = rehearsal.base.rsplit(':').next().unwrap();
    assert_eq!(
        (got.status, got.header("location")),
        (302, Some(format!("http://localhost:{port}/__trap").as_str()))
    );
    assert_eq!(rehearsal.snapshot().trap.requests, 0);
    rehearsal.get("/__trap").await.unwrap();
    assert_eq!((rehearsal.snapshot().trap.requests, rehearsal.snapshot().trap.with_key), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn retry_after_as_the_scenario_wants_it() {
    for (form, text) in [
        ("exact", Some("60")),
        ("none", None),
        ("zero", Some("0")),
        ("negative", Some("-1")),
        ("garbage", Some("soon, perhaps")),
        ("date", Some("Thu, 15 Jan 2026 10:01:01 GMT")),
        ("2s", Some("2")),
        ("8h", Some("28800")),
    ] {
        let rehearsal = Rehearsal::with(&format!(
            "epoch = '2026-01-15T10:00:00.5Z'\n[providers.abuseipdb]\nretry_after = '{form}'\nlimits = [{{count = 1, per = '1min'}}]\n"
        ))
        .await;
        rehearsal.ask(1).await.unwrap();
        let got = rehearsal.ask(2).await.unwrap();
        assert_eq!((got.status, got.header("retry-after")), (429, text), "{form}");
        assert!(got.header("date").unwrap().starts_with("Thu, 15 Jan 2026 10:00:0"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_ledger_is_served_and_reset() {
    let rehearsal = Rehearsal::with("").await;
    rehearsal.ask(7).await.unwrap();
    let ledger: serde_json::Value =
        serde_json::from_slice(&rehearsal.get("/__ledger").await.unwrap().body).unwrap();
    assert_eq!(ledger["providers"]["abuseipdb"]["order"], serde_json::json!(["2001:db8::7"]));
    assert_eq!(ledger["total"]["peak_in_flight"], 1);
    rehearsal.get("/__reset").await.unwrap();
    assert_eq!(rehearsal.snapshot().total.requests, 0);
}

#[tokio::test]
async fn it_listens_on_loopback_or_not_at_all() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let refused = Server::bind(Scenario::named("calm").unwrap(), listen.parse().unwrap(), 1).await;
        assert!(matches!(refused, Err(SimulateError::NotLoopback(_))), "{listen}");
    }
    let taken =
        Server::bind(Scenario::named("calm").unwrap(), "127.0.0.1:0".parse().unwrap(), 1).await.unwrap();
    let again = Server::bind(Scenario::named("calm").unwrap(), taken.addr(), 1).await;
    assert!(matches!(again, Err(SimulateError::Listen { .. })));
}

#[tokio::test]
async fn it_stops_when_told() {
    let server =
        Server::bind(Scenario::named("calm").unwrap(), "127.0.0.1:0".parse().unwrap(), 1).await.unwrap();
    let (addr, (stop, stopped)) = (server.addr(), tokio::sync::oneshot::channel::<()>());
    let running = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    let mut open = TcpStream::connect(addr).await.unwrap();
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(open.read(&mut [0; 8]).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(addr).await.is_err());
}

/// Out of descriptors, it goes on with those that it has, and says so once.
#[test]
fn connections_beyond_the_open_files_wait_and_hold_nobody_up() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let mut server = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" simulate --scenario calm", env!("CARGO_BIN_EXE_sift")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().rsplit('/').next().unwrap().to_owned();
    let connect = || std::net::TcpStream::connect(&addr).unwrap();
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"GET /internetdb/203.0.113.7 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        // The answer is one packet.
        let mut answer = [0; 4 << 10];
        let read = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert!(answer.starts_with("HTTP/1.1 ") && answer.ends_with('}'), "{answer}");
    };
    let mut first = connect();
    ask(&mut first);
    let mut others: Vec<_> = (0..60).map(|_| connect()).collect();
    // The last one waits for its turn, which comes when others leave.
    ask(&mut first);
    let mut last = others.pop().unwrap();
    drop(others);
    ask(&mut last);
    server.kill().unwrap();
    let mut said = String::new();
    server.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
    server.wait().unwrap();
    assert_eq!(said.matches("could not accept a connection").count(), 1, "{said}");
}

#[tokio::test]
async fn requests_in_one_packet_and_in_many() {
    let rehearsal = Rehearsal::with("").await;
    let mut stream = TcpStream::connect(rehearsal.base.trim_start_matches("http://")).await.unwrap();
    let request = "GET /203.0.113.7 HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.repeat(3).as_bytes()).await.unwrap();
    for byte in format!("{}\r\nConnection: close\r\n\r\n", request.trim_end()).bytes() {
        stream.write_all(&[byte]).await.unwrap();
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.matches("HTTP/1.1 ").count(), 4, "{text}");
    assert_eq!(rehearsal.snapshot().total.other_hosts, ["x"]);
    let mut stream = TcpStream::connect(rehearsal.base.trim_start_matches("http://")).await.unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    assert_eq!(rehearsal.snapshot().total.malformed, 1);
}

#[test]
fn a_scenario_file_that_is_not_there_says_so() {
    let error = Scenario::load(&PathBuf::from("nowhere.toml")).unwrap_err();
    assert_eq!(error.to_string(), "nowhere.toml: cannot read it");
}

#[tokio::test(start_paused = true)]
async fn a_storm_is_weathered_and_accounted_for() {
    let rehearsal = Rehearsal::start(Scenario::named("storm").unwrap()).await;
    let mut answered = 0;
    for n in 0..120 {
        for target in ["api/v2/check?ipAddress=", "v3/community/", "api/v3/ip_addresses/", "shodan/host/"] {
            let key = if target.starts_with("shodan") { "?key=k" } else { "" };
            let got = rehearsal.get(&format!("/{target}203.0.113.{n}{key}")).await;
            answered += u64::from(got.is_ok_and(|got| got.status == 200 || got.status == 404));
        }
    }
    let snapshot = rehearsal.snapshot();
    assert_eq!((snapshot.total.requests, snapshot.total.in_flight, snapshot.total.malformed), (480, 0, 0));
    let faults: usize = snapshot.providers.values().map(|page| page.faults.len()).sum();
    assert!(answered > 350 && faults >= 10, "{answered} answered, {faults} kinds of fault\n{snapshot}");
    assert_eq!(snapshot.trap.requests, 0);
}
