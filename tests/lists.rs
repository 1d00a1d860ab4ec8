//! Lists and MMDB files: downloaded, kept when the new one is broken, and answering without anybody being asked.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod harness;

use harness::{Home, Simulator, count, records, stderr};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::sync::{Arc, Mutex};

/// What the source sends next: status line, headers, body; and what it was asked.
#[derive(Default)]
struct Source {
    reply: (String, String, Vec<u8>),
    /// The tag of what it has; a request that names it is answered with 304.
    etag: Option<String>,
    asked: Vec<String>,
    sent_bytes: usize,
}

/// A source of lists on loopback, in a thread of its own, until the test ends.
struct Server {
    url: String,
    source: Arc<Mutex<Source>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/list.txt", listener.local_addr().unwrap());
        let source = Arc::new(Mutex::new(Source::default()));
        let shared = Arc::clone(&source);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &shared);
            }
        });
        Self { url, source }
    }

    fn sends(&self, status: &str, headers: &str, body: impl Into<Vec<u8>>) {
        self.source.lock().unwrap().reply = (status.to_owned(), headers.to_owned(), body.into());
    }

    fn asked(&self) -> usize {
        self.source.lock().unwrap().asked.len()
    }
}

fn serve(mut stream: TcpStream, source: &Mutex<Source>) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).unwrap() == 0 {
            return;
        }
    }
    let mut source = source.lock().unwrap();
    let knows =
        source.etag.as_ref().is_some_and(|tag| request.contains(&format!("if-none-match: {tag}\r\n")));
    let head = if knows {
        "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_owned()
    } else {
        let (status, headers, body) = &source.reply;
        let length = if headers.contains("Content-Length") {
            String::new()
        } else {
            format!("Content-Length: {}\r\n", body.len())
        };
        format!("HTTP/1.1 {status}\r\n{headers}{length}Connection: close\r\n\r\n")
    };
    let body = if knows { Vec::new() } else { source.reply.2.clone() };
    source.asked.push(request);
    source.sent_bytes += body.len();
    // A client that has seen enough may be gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

/// So many addresses of a list, one a line.
fn entries(n: u32) -> String {
    (0..n).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "2001:db8:1::{n:x}");
        text
    })
}

/// A list of the user's, `every` so often.
fn definition(home: &Home, url: &str, every: &str) {
    home.provider(
        "ours",
        &format!("title = \"Ours\"\nrole = \"reputation\"\n[list]\nurl = \"{url}\"\nformat = \"plain\"\nverdict = \"malicious\"\nscore = 100\nevery = \"{every}\"\n"),
    );
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What `sift lists list` says of a list: its state and its entries.
fn in_force(home: &Home, name: &str) -> (String, u64) {
    let output = home.run(&["lists", "list", "-f", "ndjson"]);
    let row = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|row| row["name"] == name)
        .unwrap();
    (row["state"].as_str().unwrap().to_owned(), row["entries"].as_u64().unwrap())
}

#[test]
fn a_list_that_has_not_changed_costs_nothing() {
    let (home, server) = (Home::new(), Server::start());
    definition(&home, &server.url, "1s");
    server.source.lock().unwrap().etag = Some("\"v1\"".to_owned());
    server.sends("200 OK", "ETag: \"v1\"\r\nLast-Modified: Thu, 15 Jan 2026 10:00:00 GMT\r\n", entries(500));
    let output = home.run(&["lists", "update", "ours"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "ours                 500 entries\n"),
        "{}",
        stderr(&output)
    );
    let bytes = server.source.lock().unwrap().sent_bytes;

    expire(&home, "asked");
    let output = home.run(&["lists", "update", "ours"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "ours                 unchanged\n")
    );
    let source = server.source.lock().unwrap();
    assert_eq!((source.asked.len(), source.sent_bytes), (2, bytes), "a 304 has no body");
    assert!(
        source.asked[1].contains("if-modified-since: Thu, 15 Jan 2026 10:00:00 GMT\r\n"),
        "{}",
        source.asked[1]
    );
    drop(source);
    assert_eq!(in_force(&home, "ours"), ("in force".to_owned(), 500));
}

/// Makes the card say that something was long ago, as if time had passed.
fn expire(home: &Home, member: &str) {
    let path = home.path().join("data/sift/lists/ours.json");
    let mut card: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    card[member] = "2026-01-01T00:00:00Z".into();
    home.put("data/sift/lists/ours.json", &card.to_string());
}

#[test]
fn a_source_is_asked_no_more_often_than_it_allows() {
    let (home, server) = (Home::new(), Server::start());
    definition(&home, &server.url, "1h");
    server.sends("200 OK", "", entries(3));
    assert_eq!(home.run(&["lists", "update", "ours"]).status.code(), Some(0));
    let again = home.run(&["lists", "update", "ours"]);
    assert!(stdout(&again).contains("not asked: not again before"), "{}", stdout(&again));
    assert_eq!((again.status.code(), server.asked()), (Some(0), 1));
    // A refusal counts, too, and its wait is kept.
    expire(&home, "asked");
    server.sends("429 Too Many Requests", "Retry-After: 86400\r\n", "");
    let refused = home.run(&["lists", "update", "ours"]);
    assert!(
        stderr(&refused).contains("ours: 429") && stderr(&refused).contains("the old list stays in force")
    );
    assert_eq!(refused.status.code(), Some(4));
    expire(&home, "asked");
    home.run(&["lists", "update", "ours"]);
    assert_eq!(server.asked(), 2);
}

#[test]
fn what_is_no_list_leaves_the_old_one_in_force() {
    let (home, server) = (Home::new(), Server::start());
    definition(&home, &server.url, "1s");
    server.sends("200 OK", "", entries(1_000));
    assert_eq!(home.run(&["lists", "update", "ours"]).status.code(), Some(0));
    let cut = entries(1_000).into_bytes()[..9_000].to_vec();
    let replies: [(&str, &str, Vec<u8>, &str); 8] = [
        ("200 OK", "Content-Length: 20000\r\n", cut, "broke off"),
        ("200 OK", "", Vec::new(), "holds no entry"),
        ("200 OK", "", b"<html><body>Sign in</body></html>".to_vec(), "no list but a page"),
        ("200 OK", "", entries(10).into_bytes(), "10 entries after 1000"),
        ("200 OK", "", "not an address\n".repeat(1_000).into_bytes(), "are no addresses"),
        ("500 Internal Server Error", "", Vec::new(), "the source answered 500"),
        (
            "302 Found",
            "Location: https://elsewhere.example/\r\n",
            Vec::new(),
            "it has moved to https://elsewhere.example/",
        ),
        ("404 Not Found", "", Vec::new(), "not there any more"),
    ];
    for (status, headers, body, said) in replies {
        server.sends(status, headers, body);
        expire(&home, "asked");
        let output = home.run(&["lists", "update", "ours"]);
        let text = stderr(&output);
        assert!(text.contains(said) && text.contains("the old list stays in force"), "{said}: {text}");
        assert_eq!(
            (output.status.code(), in_force(&home, "ours")),
            (Some(4), ("in force".to_owned(), 1_000)),
            "{said}"
        );
    }
    // A list may really have shrunk.
    server.sends("200 OK", "", entries(10));
    expire(&home, "asked");
    home.run(&["lists", "update", "ours", "--take-smaller"]);
    assert_eq!(in_force(&home, "ours").1, 10);
    // Nobody there: nothing is counted as asked, and the old one stays.
    definition(&home, "http://127.0.0.1:9/list.txt", "1s");
    let output = home.run(&["lists", "update", "ours"]);
    assert!(stderr(&output).contains("cannot be reached"), "{}", stderr(&output));
}

#[test]
fn a_download_has_its_own_bound() {
    let (home, server) = (Home::new(), Server::start());
    definition(&home, &server.url, "1s");
    server.sends("200 OK", "", entries(5_000));
    let output =
        home.sift(&["lists", "update", "ours"]).env("SIFT_LISTS_MAX_SIZE", "64KiB").output().unwrap();
    assert!(stderr(&output).contains("larger than 65536 bytes"), "{}", stderr(&output));
    assert_eq!(home.run(&["lists", "update", "ours"]).status.code(), Some(0));
}

#[test]
fn a_box_without_a_network_takes_lists_from_a_folder() {
    let home = Home::new();
    home.put("stick/feodo.json", "[]");
    home.put("stick/cins.txt", "2001:db8:1::7\n");
    home.put("stick/spamhaus-drop-v4.json", "<html>");
    let stick = home.path().join("stick");
    let output = home.run(&["lists", "update", "--from", stick.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stdout(&output).contains("tor-exits            not in the folder\n"), "{}", stdout(&output));
    assert!(stderr(&output).contains("spamhaus-drop-v4: the download is no list"), "{}", stderr(&output));
    assert_eq!(in_force(&home, "cins"), ("in force".to_owned(), 1));
    assert_eq!(in_force(&home, "feodo"), ("in force".to_owned(), 0));
    assert_eq!(in_force(&home, "spamhaus-drop-v4").0, "not downloaded");
    // The same files once more are no news.
    let again = home.run(&["lists", "update", "cins", "--from", stick.to_str().unwrap()]);
    assert_eq!(stdout(&again), "cins                 unchanged\n");
}

#[test]
fn a_list_of_ones_own_is_added_used_and_removed() {
    let (home, server) = (Home::new(), Server::start());
    let file = home.put("hosts.csv", "name,address\na,2001:db8:1::7\nb,2001:db8:1::8\n");
    let output = home.run(&[
        "lists",
        "add",
        "hosts",
        file.to_str().unwrap(),
        "--verdict",
        "malicious",
        "--tag",
        "lab",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    server.sends("200 OK", "", "{\"list\": [\"2001:db8:1::9\"]}");
    let output = home.run(&["lists", "add", "good", &server.url, "--known-good", "--every", "6h"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((in_force(&home, "hosts").1, in_force(&home, "good").1), (2, 1));
    let taken = home.run(&["lists", "add", "good", &server.url]);
    assert_eq!(taken.status.code(), Some(2));
    let nothing = home.run(&["lists", "add", "readme", "README.md"]);
    assert!(stderr(&nothing).contains("no addresses were found"), "{}", stderr(&nothing));
    assert!(!home.path().join("config/sift/providers/readme.toml").exists());

    let simulator = Simulator::start(&home, "");
    let list = home.put("list", "2001:db8:1::7\n2001:db8:1::9\n2001:db8:1::1\n");
    let output = home.ask(&simulator, &["enrich", "-p", "abuseipdb", list.to_str().unwrap()]);
    let all = records(&output.stdout);
    let of = |ip: &str| all.iter().find(|record| record["ip"] == ip).unwrap();
    assert_eq!(of("2001:db8:1::7")["providers"]["hosts"]["verdict"], "malicious", "{}", stderr(&output));
    assert_eq!(of("2001:db8:1::7")["providers"]["hosts"]["cache"], "local");
    assert_eq!(of("2001:db8:1::7")["tags"].as_array().unwrap().iter().filter(|tag| *tag == "lab").count(), 1);
    let good = of("2001:db8:1::9");
    assert_eq!(
        (&good["verdict"], &good["rule"], &good["complete"]),
        (&"benign".into(), &"vouched-for".into(), &true.into())
    );
    assert_eq!(good["providers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(of("2001:db8:1::1")["providers"]["lists"]["found"], false);
    let asked = &simulator.ledger()["providers"]["abuseipdb"];
    assert_eq!(asked["requests"], 2, "the known good one is not asked about: {asked}");
    let output =
        home.ask(&simulator, &["enrich", "-p", "abuseipdb", "--ask-known-good", list.to_str().unwrap()]);
    let known: Vec<_> =
        records(&output.stdout).into_iter().filter(|record| record["ip"] == "2001:db8:1::9").collect();
    assert_eq!(known[0]["providers"].as_object().unwrap().len(), 2);

    let output = home.run(&["lists", "remove", "hosts", "good"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!home.path().join("config/sift/providers/hosts.toml").exists());
    assert!(!stdout(&home.run(&["lists", "list", "-f", "ndjson"])).contains("\"name\":\"hosts\""));
}

/// A home with a bad list, a good one, and MMDB files.
fn equipped() -> Home {
    let home = Home::new();
    let bad = home.put("bad.txt", "203.0.113.7\n");
    let good = home.put("good.txt", "203.0.113.53\n");
    for (name, file, flag) in [("bad", &bad, "--verdict=malicious"), ("good", &good, "--known-good")] {
        let output = home.run(&["lists", "add", name, file.to_str().unwrap(), flag]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    for name in ["geolite2_country", "geolite2_asn"] {
        let from =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/mmdb/{name}.mmdb"));
        std::fs::copy(from, home.path().join(format!("data/sift/{name}.mmdb"))).unwrap();
    }
    home
}

#[test]
fn without_a_network_this_machine_answers_and_nothing_reads_as_clean() {
    let home = equipped();
    let list = home.put("list", "203.0.113.7\n203.0.113.53\n203.0.113.9\n10.0.0.1\n");
    let mut command = home.sift(&["enrich", "-p", "abuseipdb,greynoise-community", list.to_str().unwrap()]);
    // Nobody listens there.
    for name in ["ABUSEIPDB", "GREYNOISE_COMMUNITY"] {
        command.env(format!("SIFT_{name}_BASE_URL"), "http://127.0.0.1:9");
    }
    command.env("ABUSEIPDB_API_KEY", "fake").env("SIFT_RETRIES", "0");
    let output = command.output().unwrap();
    let all = records(&output.stdout);
    assert_eq!((all.len(), output.status.code()), (4, Some(3)), "{}", stderr(&output));
    let of = |ip: &str| all.iter().find(|record| record["ip"] == ip).unwrap();
    let bad = of("203.0.113.7");
    assert_eq!(
        (&bad["verdict"], &bad["complete"], &bad["country"]),
        (&"malicious".into(), &false.into(), &"DE".into())
    );
    assert_eq!(bad["providers"]["abuseipdb"]["error"]["type"], "connection");
    assert_eq!(
        (&of("203.0.113.9")["status"], &of("203.0.113.9")["error"]["type"]),
        (&"error".into(), &"connection".into())
    );
    assert_eq!(of("203.0.113.9")["country"], "DE", "what is known of it is told all the same");
    // Nobody was asked about it, so nobody's silence counts.
    assert_eq!(
        (&of("203.0.113.53")["verdict"], &of("203.0.113.53")["complete"]),
        (&"benign".into(), &true.into())
    );
    assert!(all.iter().all(|record| record["verdict"] != "benign" || record["complete"] == true));
    assert_eq!(count(&all, "status", "skipped"), 1);
}

#[test]
fn without_a_key_lists_and_files_answer_alone() {
    let home = equipped();
    let list = home.put("list", "2001:db8::1\n203.0.113.7\n");
    // A provider on loopback makes documentation addresses public ones; it takes neither of these.
    home.provider(
        "nobody",
        "title = \"Nobody\"\nrole = \"reputation\"\naccepts = [\"ipv4\"]\nsends = \"the address\"\n[request]\n\
         base_url = \"http://127.0.0.1:9\"\npath = \"/{ip}\"\n[answer]\nfilter = '''null'''\n",
    );
    home.put("config/sift/config.toml", "[input]\nnever_send = [\"203.0.113.0/24\"]\n");
    let output = home.run(&["enrich", "-p", "nobody", list.to_str().unwrap()]);
    let all = records(&output.stdout);
    assert_eq!((all.len(), output.status.code()), (2, Some(0)), "{}", stderr(&output));
    let of = |ip: &str| all.iter().find(|record| record["ip"] == ip).unwrap();
    assert_eq!(
        (&of("203.0.113.7")["verdict"], &of("203.0.113.7")["complete"]),
        (&"malicious".into(), &true.into())
    );
    let unknown = of("2001:db8::1");
    assert_eq!(
        (&unknown["verdict"], &unknown["rule"], &unknown["asn"]),
        (&"unknown".into(), &"only-context".into(), &64_501.into())
    );
    assert!(
        stderr(&output).contains("2 answered here alone, by 2 lists and 2 MMDB files"),
        "{}",
        stderr(&output)
    );
    // Nobody at all to ask, and lists: a run all the same.
    let output = home.run(&["enrich", list.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("nobody is asked"), "{}", stderr(&output));
}

#[test]
fn addresses_over_the_limit_keep_what_this_machine_knows() {
    let home = equipped();
    let simulator = Simulator::start(&home, "");
    let list = home.put("list", "203.0.113.1\n203.0.113.7\n203.0.113.9\n");
    let output = home.ask(&simulator, &["enrich", "-p", "abuseipdb", "--limit", "1", list.to_str().unwrap()]);
    let all = records(&output.stdout);
    let of = |ip: &str| all.iter().find(|record| record["ip"] == ip).unwrap();
    assert_eq!((all.len(), output.status.code()), (3, Some(3)), "{}", stderr(&output));
    assert_eq!(
        (&of("203.0.113.7")["verdict"], &of("203.0.113.7")["complete"]),
        (&"malicious".into(), &false.into())
    );
    assert_eq!(of("203.0.113.9")["error"]["type"], "budget_exhausted");
    assert_eq!(of("203.0.113.9")["country"], "DE");
}

#[test]
fn a_marking_leaves_providers_out() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let list = home.put("list", "203.0.113.7\n");
    let output = home.ask(&simulator, &["enrich", "--pap", "red", list.to_str().unwrap()]);
    let text = stderr(&output);
    assert!(text.contains("left out by PAP red: abuseipdb (amber)"), "{text}");
    assert!(text.contains("there is nobody to ask under PAP red"), "{text}");
    assert_eq!((output.status.code(), simulator.ledger()["total"]["requests"].as_u64()), (Some(2), Some(0)));
    let output = home.ask(&simulator, &["enrich", "--pap", "amber", list.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 address sent to 127.0.0.1"), "{}", stderr(&output));
}

#[test]
fn lists_that_grew_old_are_left_aside_and_named() {
    let (home, server) = (Home::new(), Server::start());
    definition(&home, &server.url, "1s");
    server.sends("200 OK", "", "203.0.113.7\n");
    home.run(&["lists", "update", "ours"]);
    expire(&home, "confirmed");
    let simulator = Simulator::start(&home, "");
    let list = home.put("list", "203.0.113.7\n");
    let output = home.ask(&simulator, &["enrich", list.to_str().unwrap()]);
    assert!(stderr(&output).contains("lists out of date, and left aside: ours"), "{}", stderr(&output));
    assert!(records(&output.stdout)[0]["providers"]["ours"].is_null());
    assert_eq!(in_force(&home, "ours").0, "out of date");
}

#[test]
fn one_key_that_opens_two_services_of_the_same_people_is_used_once() {
    let home = Home::new();
    let asked = |vars: &[(&str, &str)]| {
        let mut command = home.sift(&["providers", "list", "-f", "ndjson"]);
        command.envs(vars.iter().copied());
        let rows = stdout(&command.output().unwrap());
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter(|row| row["enabled"] == true)
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&[("GREYNOISE_API_KEY", "k")]), ["greynoise"]);
    assert_eq!(asked(&[("SIFT_GREYNOISE_COMMUNITY_API_KEY", "k")]), ["greynoise-community"]);
    assert_eq!(
        asked(&[("GREYNOISE_API_KEY", "k"), ("SIFT_GREYNOISE_ENABLED", "false")]),
        ["greynoise-community"]
    );
    // The run chooses alike.
    let list = home.put("list", "203.0.113.7\n");
    let mut command = home.sift(&["enrich", "-n", list.to_str().unwrap()]);
    let said = stdout(&command.env("GREYNOISE_API_KEY", "k").output().unwrap());
    assert!(said.contains("greynoise ") && !said.contains("greynoise-community"), "{said}");
}

#[test]
fn a_batch_leaves_in_one_request() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    // Made ones: there are not enough documentation addresses of this family, and they are asked of loopback alone.
    let text: String = (0..10_000_u32).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{}", std::net::Ipv4Addr::from_bits(0x0b00_0000 + n));
        text
    });
    let list = home.put("list", &text);
    let mut command = home.sift(&["enrich", "-p", "greynoise", list.to_str().unwrap()]);
    command.env("SIFT_GREYNOISE_BASE_URL", &simulator.url).env("GREYNOISE_API_KEY", "k");
    let output = command.env("SIFT_GREYNOISE_QUOTA", "10000/day").output().unwrap();
    let all = records(&output.stdout);
    assert_eq!((all.len(), output.status.code()), (10_000, Some(0)), "{}", stderr(&output));
    assert_eq!(simulator.ledger()["providers"]["greynoise"]["requests"], 1);
    assert!(stderr(&output).contains("1 request, 10,000 addresses sent to 127.0.0.1"), "{}", stderr(&output));
}
