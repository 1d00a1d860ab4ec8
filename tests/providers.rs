//! Every saved reply of every built-in provider, read by its filter; and the user's own filters in their child process.

#![expect(clippy::unwrap_used, reason = "clippy knows `#[test]` functions alone as tests, not their helpers")]
#![expect(clippy::disallowed_methods, reason = "a test's files need no atomic writing")]

use std::{
    collections::BTreeSet,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use sift::provider::{
    Answer, Definition, ErrorType, Filters, Reach, Reading, Reply, Sandbox, Table, Thresholds, Verdict,
};

/// One line of `fixtures/reply/index.json`.
#[derive(Debug, Deserialize)]
struct Sample {
    provider: String,
    case: String,
    status: u16,
    body: String,
    headers: Option<String>,
    /// What the reply is, by the provider's documents.
    class: String,
    /// What reading it must give.
    expect: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/reply")
}

fn samples() -> Vec<Sample> {
    serde_json::from_slice(&std::fs::read(folder().join("index.json")).unwrap()).unwrap()
}

fn reply(sample: &Sample) -> Reply {
    let mut headers = HeaderMap::new();
    if let Some(file) = &sample.headers {
        let text = std::fs::read_to_string(folder().join(file)).unwrap();
        for (name, value) in text.lines().skip(1).filter_map(|line| line.split_once(": ")) {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
        }
    }
    Reply { status: sample.status, headers, body: std::fs::read(folder().join(&sample.body)).unwrap() }
}

/// The address that a sample was asked about: the one that its body names first, or else the usual one.
fn asked(sample: &Sample) -> IpAddr {
    let body = std::fs::read_to_string(folder().join(&sample.body)).unwrap();
    let ip = ["2001:db8::7", "203.0.113.9", "192.0.2.53"].into_iter().find(|ip| body.contains(ip));
    ip.filter(|_| !body.contains("198.51.100.7\"")).unwrap_or("198.51.100.7").parse().unwrap()
}

/// The reading in a few words, as `expect` has them.
fn words(reading: &Reading) -> String {
    match reading {
        Reading::Answer(answer) if !answer.found => {
            assert_eq!((answer.verdict, answer.score), (Verdict::Unknown, None));
            "not found".into()
        }
        Reading::Answer(answer) => {
            let score = answer.score.map(|score| format!(" {score}")).unwrap_or_default();
            let good = if answer.known_good { " known-good" } else { "" };
            format!("{}{score}{good}", answer.verdict)
        }
        Reading::Failure(failure) => {
            assert!(!failure.message.is_empty());
            let reach = if failure.reach == Reach::Lane { "lane" } else { "lookup" };
            format!("{} {reach}{}", failure.error, if failure.retry { " retry" } else { "" })
        }
    }
}

fn all() -> Vec<Arc<Definition>> {
    Table::builtin().unwrap().iter().cloned().collect()
}

fn lane(definitions: &[Arc<Definition>], name: &str) -> Option<usize> {
    definitions.iter().position(|definition| definition.name == name)
}

#[test]
fn every_saved_reply_reads_as_it_must() {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let mut faults = Vec::new();
    for sample in samples() {
        let lanes = if let Some(lane) = lane(&definitions, &sample.provider) {
            vec![lane]
        } else if sample.expect.starts_with("invalid_response") {
            // What no provider says is an answer of none.
            (0..definitions.len()).collect()
        } else {
            // What a 429 means is for each filter to say; the common rule is seen through one that leaves it alone.
            vec![lane(&definitions, "internetdb").unwrap()]
        };
        if sample.expect == "bulk" {
            continue;
        }
        for lane in lanes {
            let got = words(&filters.read_here(lane, Some(asked(&sample)), &reply(&sample)));
            if got != sample.expect {
                let Sample { provider, case, expect, .. } = &sample;
                faults.push(format!("{provider} {case}: {got}, not {expect}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A proxy's or a provider's mix-up: what is said of one address is never told of another.
#[test]
fn no_answer_about_another_address_is_taken() {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let mut names = BTreeSet::new();
    for sample in samples() {
        let Some(lane) = lane(&definitions, &sample.provider) else { continue };
        let reply = reply(&sample);
        let is_answer = matches!(filters.read_here(lane, Some(asked(&sample)), &reply), Reading::Answer(_));
        let names_one = String::from_utf8_lossy(&reply.body).contains(&asked(&sample).to_string());
        if !is_answer || !names_one {
            continue;
        }
        let Reading::Failure(failure) = filters.read_here(lane, Some([9, 9, 9, 9].into()), &reply) else {
            // These search a text for what was asked, and say that it is not there.
            assert!(["threatfox", "misp"].contains(&sample.provider.as_str()), "{}", sample.provider);
            continue;
        };
        assert_eq!((failure.error, failure.reach), (ErrorType::InvalidResponse, Reach::Lookup));
        assert_eq!(failure.message, format!("the reply is about {}, not 9.9.9.9", asked(&sample)));
        names.insert(sample.provider);
    }
    let of: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = [
        "abuseipdb",
        "crowdsec",
        "greynoise",
        "greynoise-community",
        "internetdb",
        "ipinfo",
        "otx",
        "shodan",
        "urlhaus",
        "urlscan",
        "virustotal",
    ];
    assert_eq!(of, all);
}

/// A second look at the table itself: no class of reply may be expected to read as something it is not.
#[test]
fn what_is_expected_fits_the_class() {
    for Sample { provider, case, class, expect, .. } in samples() {
        let allowed: &[&str] = match class.as_str() {
            "hit" => &["malicious", "suspicious", "invalid_response"],
            "bulk" => &["bulk", "invalid_response"],
            "config" => &["invalid_request lane"],
            "benign" => &["benign", "invalid_response"],
            "context" => &["unknown"],
            "unknown" => &["not found"],
            "not_applicable" | "bad_input" => &["invalid_request"],
            "quota_exhausted" => &["quota_exhausted lane", "rate_limited"],
            "slow_down" | "slow_down_or_quota" => &["rate_limited", "server_error", "forbidden"],
            "auth" => &["unauthorized lane"],
            "plan" => &["forbidden lane"],
            "plan_per_item" => &["forbidden lookup"],
            "transient" => &["server_error lookup retry", "invalid_response lookup retry"],
            "error" | "list" | "quota_probe" | "ok" => &["invalid_response", "unauthorized"],
            other => panic!("unknown class {other}"),
        };
        assert!(
            allowed.iter().any(|start| expect.starts_with(start)),
            "{provider} {case}: {class} as {expect}"
        );
    }
}

#[test]
fn every_saved_file_is_in_the_table() {
    let named: BTreeSet<String> =
        samples().into_iter().flat_map(|sample| [Some(sample.body), sample.headers]).flatten().collect();
    for provider in
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for file in std::fs::read_dir(&provider).unwrap().map(|entry| entry.unwrap().path()) {
            let name = format!(
                "{}/{}",
                provider.file_name().unwrap().to_str().unwrap(),
                file.file_name().unwrap().to_str().unwrap()
            );
            assert!(named.contains(&name), "{name}");
        }
    }
}

fn answer(provider: &str, case: &str) -> Answer {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let sample =
        samples().into_iter().find(|sample| sample.provider == provider && sample.case == case).unwrap();
    match filters.read_here(lane(&definitions, provider).unwrap(), None, &reply(&sample)) {
        Reading::Answer(answer) => *answer,
        Reading::Failure(failure) => panic!("{failure:?}"),
    }
}

/// One answer of each provider, whole.
#[test]
fn answers_hold_what_the_provider_says() {
    let show = |provider, case| serde_json::to_string(&answer(provider, case)).unwrap();
    insta::assert_snapshot!(show("abuseipdb", "found"), @r#"{"verdict":"malicious","score":100,"found":true,"base_score":100.0,"reports":57,"last_seen":"2026-01-14T21:17:06Z","country":"NL","as_org":"Example Hosting B.V.","reference":"https://www.abuseipdb.com/check/198.51.100.7","hostnames":["host7.example.net"]}"#);
    insta::assert_snapshot!(show("abuseipdb", "whitelisted"), @r#"{"verdict":"benign","score":0,"found":true,"base_score":0.0,"reports":120,"last_seen":"2026-01-14T10:00:00Z","country":"NL","as_org":"Example Hosting B.V.","reference":"https://www.abuseipdb.com/check/192.0.2.53","known_good":true}"#);
    insta::assert_snapshot!(show("virustotal", "found"), @r#"{"verdict":"malicious","score":84,"found":true,"base_score":12.0,"last_seen":"2026-01-14T20:57:06Z","country":"NL","asn":64500,"as_org":"Example Hosting B.V.","reference":"https://www.virustotal.com/gui/ip-address/198.51.100.7"}"#);
    insta::assert_snapshot!(show("greynoise-community", "found"), @r#"{"verdict":"malicious","score":90,"found":true,"tags":["noise"],"last_seen":"2026-01-14T00:00:00Z","reference":"https://viz.greynoise.io/ip/198.51.100.7"}"#);
    insta::assert_snapshot!(show("greynoise-community", "found_benign_riot"), @r#"{"verdict":"benign","score":0,"found":true,"tags":["Example Public DNS","riot"],"last_seen":"2026-01-15T00:00:00Z","reference":"https://viz.greynoise.io/ip/192.0.2.53","known_good":true}"#);
    insta::assert_snapshot!(show("shodan", "found"), @r#"{"verdict":"unknown","score":null,"found":true,"tags":["cloud"],"last_seen":"2026-01-14T21:17:06Z","country":"NL","asn":64500,"as_org":"Example Hosting B.V.","reference":"https://www.shodan.io/host/198.51.100.7","ports":[22,80,443],"hostnames":["host7.example.net"],"vulns":["CVE-2000-0001"]}"#);
    insta::assert_snapshot!(show("internetdb", "found"), @r#"{"verdict":"unknown","score":null,"found":true,"tags":["cloud"],"reference":"https://internetdb.shodan.io/198.51.100.7","ports":[22,80,443],"hostnames":["host7.example.net"],"vulns":["CVE-2000-0001"]}"#);
    insta::assert_snapshot!(show("urlscan", "found"), @r#"{"verdict":"unknown","score":null,"found":true,"reports":1,"last_seen":"2026-01-14T21:17:06Z","country":"NL","asn":64500,"as_org":"Example Hosting B.V.","reference":"https://urlscan.io/search/#page.ip%3A%22198.51.100.7%22","hostnames":["login.example.com"]}"#);
}

/// A filter of the user, in the child process, on a reply `{"n": 1}`.
struct Own {
    filters: Filters,
}

impl Own {
    fn new(sources: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (place, source) in sources.iter().enumerate() {
            let text = format!(
                "title = \"Own\"\nrole = \"reputation\"\naccepts = [\"ipv4\"]\n[request]\nbase_url = \"https://ti.example.net\"\n\
                 path = \"/{{ip}}\"\n[answer]\nfilter = '''\n{source}\n'''\n"
            );
            std::fs::write(folder.path().join(format!("own{place}.toml")), text).unwrap();
        }
        let (table, notices) = Table::load(Some(folder.path())).unwrap();
        assert!(notices.is_empty());
        let own: Vec<_> =
            table.iter().filter(|definition| definition.name.starts_with("own")).cloned().collect();
        let program = Sandbox::Child(env!("CARGO_BIN_EXE_sift").into());
        Self { filters: Filters::new(&own, program, Thresholds::default()).unwrap() }
    }

    fn read(&self, lane: usize) -> String {
        let reply = Reply { status: 200, headers: HeaderMap::new(), body: b"{\"n\": 1}".to_vec() };
        words(&self.filters.read_here(lane, None, &reply))
    }
}

#[test]
fn an_own_filter_answers_from_its_child() {
    let own = Own::new(&["{found: (.body.n == 1), score: 80}"]);
    for _ in 0..3 {
        assert_eq!(own.read(0), "malicious 80");
    }
}

/// Each of these would hang or end the process that runs it. It costs its own lane, and no other.
#[test]
fn a_filter_that_loops_grows_or_overflows_costs_its_lane_alone() {
    let own = Own::new(&[
        "{found: false}",
        "def f: f; f",
        "[repeat(1)]",
        "\"x\" * 1000000000 | length | {found: false}",
        "reduce range(100) as $n (\"x\"; . + .) | {found: false}",
        "def f: 1 + f; f",
        "[limit(100000000; repeat(\"abcdefgh\"))] | length",
    ]);
    assert_eq!(own.read(0), "not found");
    for lane in 1..7 {
        let reply = Reply { status: 200, headers: HeaderMap::new(), body: b"{\"n\": 1}".to_vec() };
        let Reading::Failure(failure) = own.filters.read_here(lane, None, &reply) else { panic!("{lane}") };
        assert_eq!(
            (failure.error, failure.reach),
            (ErrorType::InvalidResponse, Reach::Lane),
            "{lane}: {failure:?}"
        );
        assert!(failure.message.ends_with("and was ended"), "{lane}: {failure:?}");
        // The lane stays closed without another try, and the others get a fresh child.
        assert_eq!(own.read(lane), "invalid_response lane");
        assert_eq!(own.read(0), "not found");
    }
}

#[test]
fn a_filter_that_gives_too_much_or_too_little_costs_its_reply() {
    let own = Own::new(&[
        "empty",
        "{found: false}, {found: false}",
        "{found: true, tags: [\"x\" * 70000]}",
        "error(\"no\")",
        "[range(100)] | tojson",
        "{found: true, verdct: \"malicious\"}",
        "reduce range(200) as $n (1; [.])",
    ]);
    let expected = ["invalid_response lookup"; 4]
        .into_iter()
        .chain(["invalid_response lane"; 2])
        .chain(["invalid_response lookup"]);
    for (lane, expected) in expected.enumerate() {
        assert_eq!(own.read(lane), expected, "{lane}");
    }
}

/// Five megabytes of `[` overflow the stack of jaq's own parser.
#[test]
fn a_body_of_brackets_is_an_invalid_response() {
    let own = Own::new(&["{found: false}"]);
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: vec![b'['; 5_000_000] };
    assert_eq!(words(&own.filters.read_here(0, None, &reply)), "invalid_response lookup");
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::this_program(), Thresholds::default()).unwrap();
    for lane in 0..definitions.len() {
        assert_eq!(words(&filters.read_here(lane, None, &reply)), "invalid_response lookup");
    }
}

#[tokio::test(start_paused = true)]
async fn reading_does_not_move_a_paused_clock() {
    let own = Own::new(&["{found: false}"]);
    let before = tokio::time::Instant::now();
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: b"{}".to_vec() };
    let timeout = tokio::time::timeout(std::time::Duration::from_millis(1), own.filters.read(0, reply)).await;
    assert_eq!(words(&timeout.unwrap()), "not found");
    assert_eq!(before.elapsed(), std::time::Duration::ZERO);
}

async fn batch(provider: &str, case: &str, status: u16, ips: &[&str]) -> Vec<String> {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::this_program(), Thresholds::default()).unwrap();
    let sample =
        samples().into_iter().find(|sample| sample.provider == provider && sample.case == case).unwrap();
    let ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
    let reply = Reply { status, ..reply(&sample) };
    let readings = filters.read_bulk(lane(&definitions, provider).unwrap(), ips, reply).await;
    readings.iter().map(words).collect()
}

/// Answers come back to their questions, in whatever order they stood; what nobody asked about is dropped.
#[tokio::test]
async fn a_batch_is_taken_apart_and_realigned() {
    let asked = ["203.0.113.9", "192.0.2.53", "198.51.100.7", "198.51.100.99"];
    let lost = "invalid_response lookup retry";
    let greynoise = batch("greynoise", "bulk", 200, &asked).await;
    assert_eq!(greynoise, ["not found", "benign 0 known-good", "malicious 90", lost]);
    let ipinfo =
        batch("ipinfo", "bulk", 200, &["192.0.2.1", "203.0.113.9", "198.51.100.7", "198.51.100.99"]).await;
    assert_eq!(ipinfo, ["invalid_request lookup", "unknown", "unknown", lost]);
    let misp = batch("misp", "found", 200, &asked).await;
    assert_eq!(misp, ["not found", "not found", "malicious 100", "not found"]);
}

#[tokio::test]
async fn a_batch_that_fails_fails_for_each() {
    let asked = ["203.0.113.9", "198.51.100.7"];
    assert_eq!(batch("greynoise", "unauthorized", 401, &asked).await, ["unauthorized lane"; 2]);
    assert_eq!(batch("greynoise", "bulk", 500, &asked).await, ["server_error lookup retry"; 2]);
    assert_eq!(batch("ipinfo", "rate_limited", 429, &asked).await, ["quota_exhausted lane"; 2]);
    // One answer is not the answer for all.
    assert_eq!(batch("greynoise", "found", 200, &asked).await, ["invalid_response lookup"; 2]);
    assert_eq!(batch("shodan", "found", 200, &asked).await, ["invalid_response lookup"; 2]);
}

/// The search finds parts of the text, so 198.51.100.70 must not count for 198.51.100.7.
#[test]
fn a_neighbour_is_not_a_hit() {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let sample = samples().into_iter().find(|sample| sample.case == "found_substring").unwrap();
    let read = |ip: &str| {
        let lane = lane(&definitions, "threatfox").unwrap();
        filters.read_here(lane, Some(ip.parse().unwrap()), &reply(&sample))
    };
    let Reading::Answer(answer) = read("198.51.100.7") else { panic!() };
    assert_eq!(answer.reports, Some(2));
    let Reading::Answer(neighbour) = read("198.51.100.70") else { panic!() };
    assert_eq!((neighbour.reports, neighbour.score), (Some(1), Some(50)));
    assert_eq!(words(&read("198.51.100.71")), "not found");
}

/// An address has many spellings; who lists it under another one than ours has listed it all the same.
#[tokio::test]
async fn an_address_is_found_however_it_is_spelled() {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let ip: IpAddr = "2a00:1450::7".parse().unwrap();
    let json = |body: String| Reply { status: 200, headers: HeaderMap::new(), body: body.into_bytes() };
    let misp = |value: &str| {
        json(format!(r#"{{"response":{{"Attribute":[{{"value":"{value}","to_ids":true}}]}}}}"#))
    };
    let threatfox = |ioc: &str| {
        json(format!(r#"{{"query_status":"ok","data":[{{"id":"1","ioc":"{ioc}","confidence_level":75}}]}}"#))
    };
    for spelled in ["2A00:1450::7", "2a00:1450:0:0:0:0:0:7", "2a00:1450::0007 ", "2a00:1450::7"] {
        let lane = lane(&definitions, "misp").unwrap();
        let alone = filters.read_here(lane, Some(ip), &misp(spelled));
        assert_eq!(words(&alone), "malicious 100", "{spelled}");
        let many = filters.read_bulk(lane, vec![ip, [9, 9, 9, 9].into()], misp(spelled)).await;
        let many: Vec<String> = many.iter().map(words).collect();
        assert_eq!(many, ["malicious 100", "not found"], "{spelled}");
    }
    for spelled in ["2A00:1450::7", "[2A00:1450::7]:443", "http://[2a00:1450:0::7]/x"] {
        let lane = lane(&definitions, "threatfox").unwrap();
        assert_eq!(
            words(&filters.read_here(lane, Some(ip), &threatfox(spelled))),
            "malicious 75",
            "{spelled}"
        );
    }
    let mapped = filters.read_here(
        lane(&definitions, "misp").unwrap(),
        Some([9, 9, 9, 9].into()),
        &misp("::ffff:9.9.9.9"),
    );
    assert_eq!(words(&mapped), "malicious 100");
}

/// An entry of a batch that stands under one address and names another is as mixed up as a whole reply that does.
#[tokio::test]
async fn a_batch_has_no_answer_about_another_address_either() {
    let definitions = all();
    let filters = Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap();
    let body = r#"{"45.9.0.1":{"ip":"45.9.0.2","country_code":"US"},"45.9.0.2":{"ip":"45.9.0.2","country_code":"US"}}"#;
    let reply = Reply { status: 200, headers: HeaderMap::new(), body: body.into() };
    let asked = vec![[45, 9, 0, 1].into(), [45, 9, 0, 2].into()];
    let read = filters.read_bulk(lane(&definitions, "ipinfo").unwrap(), asked, reply).await;
    assert_eq!(read.iter().map(words).collect::<Vec<_>>(), ["invalid_response lookup", "unknown"]);
}

/// A batch goes through the child like anything else of the user's, and may overrun there.
#[tokio::test]
async fn an_own_batch_runs_in_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let text = |split: &str| {
        format!(
            "title = \"Own\"\nrole = \"reputation\"\naccepts = [\"ipv4\"]\n[request]\nbase_url = \"https://ti.example.net\"\n\
             path = \"/{{ip}}\"\n[bulk]\nsize = 3\ncounts = \"request\"\nmissing = \"not-found\"\npath = \"/many\"\n\
             query = {{ q = \"{{ips}}\" }}\nsplit = \"{split}\"\n[answer]\nfilter = \"{{found: true, score: .body}}\"\n"
        )
    };
    std::fs::write(folder.path().join("own.toml"), text(".body")).unwrap();
    std::fs::write(folder.path().join("slow.toml"), text("def f: f; f")).unwrap();
    let (table, _) = Table::load(Some(folder.path())).unwrap();
    let own: Vec<_> = ["own", "slow"].iter().map(|name| Arc::clone(table.get(name).unwrap())).collect();
    let filters =
        Filters::new(&own, Sandbox::Child(env!("CARGO_BIN_EXE_sift").into()), Thresholds::default()).unwrap();
    let ips: Vec<IpAddr> =
        ["198.51.100.7", "198.51.100.8", "198.51.100.9"].iter().map(|ip| ip.parse().unwrap()).collect();
    let url = own[0].prepare_bulk(&ips, None).unwrap().url;
    assert_eq!(url.as_str(), "https://ti.example.net/many?q=198.51.100.7%2C198.51.100.8%2C198.51.100.9");
    assert!(own[0].prepare_bulk(&[ips.clone(), ips.clone()].concat(), None).is_err());
    assert!(own[0].prepare_bulk(&[], None).is_err());
    let reply = Reply {
        status: 200,
        headers: HeaderMap::new(),
        body: br#"{"198.51.100.9": 10, "198.51.100.7": 90, "nonsense": 1}"#.to_vec(),
    };
    let read: Vec<String> =
        filters.read_bulk(0, ips.clone(), reply.clone()).await.iter().map(words).collect();
    assert_eq!(read, ["malicious 90", "not found", "unknown 10"]);
    let read: Vec<String> = filters.read_bulk(1, ips, reply).await.iter().map(words).collect();
    assert_eq!(read, ["invalid_response lane"; 3]);
}
