//! Providers that a user wrote: asked like built-in ones, and held off where they would do harm.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod harness;

use harness::{Home, Simulator, count, list, records, stderr};

fn definition(url: &str, filter: &str) -> String {
    format!(
        "title = \"In-house\"\nrole = \"reputation\"\naccepts = [\"ipv4\", \"ipv6\"]\nsends = \"the address\"\n\
         [answer]\nfilter = '''\n{filter}\n'''\n\
         [request]\nmethod = \"GET\"\nbase_url = \"{url}\"\npath = \"/inhouse/check/{{ip}}\"\n"
    )
}

const SCENARIO: &str =
    "[providers.inhouse]\nbody = '{\"ip\": \"{ip}\", \"verdict\": \"{verdict}\", \"score\": {score}}'";

fn ask(home: &Home, simulator: &Simulator, addresses: usize) -> std::process::Output {
    let file = home.put("list", &list(addresses));
    home.ask(simulator, &["enrich", "-p", "abuseipdb,inhouse", file.to_str().unwrap()])
}

#[test]
fn a_provider_of_ones_own_is_asked_like_any_other() {
    let home = Home::new();
    let simulator = Simulator::start(&home, SCENARIO);
    home.provider(
        "inhouse",
        &definition(&simulator.url, "{found: true, verdict: .body.verdict, score: .body.score}"),
    );
    let output = ask(&home, &simulator, 20);
    let records = records(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(records.iter().all(|record| record["providers"]["inhouse"]["status"] == "ok"));
}

#[test]
fn a_filter_that_would_do_harm_closes_its_own_lane_alone() {
    for harm in [
        "def f: f; f",
        "[repeat(1)]",
        "def f: 1 + f; f",
        "reduce range(60) as $i (\"x\"; . + .)",
        "[range(1e12)] | length",
    ] {
        let home = Home::new();
        let simulator = Simulator::start(&home, SCENARIO);
        home.provider("inhouse", &definition(&simulator.url, harm));
        let output = ask(&home, &simulator, 20);
        let text = stderr(&output);
        let records = records(&output.stdout);
        assert_eq!(records.len(), 20, "{harm}: {text}");
        assert!(
            records.iter().all(|record| record["providers"]["abuseipdb"]["status"] == "ok"),
            "{harm}: {text}"
        );
        // Either its answers are invalid, or it was refused before the run, by name.
        let refused = text.contains("inhouse");
        let invalid = records
            .iter()
            .all(|record| record["providers"]["inhouse"]["error"]["type"] == "invalid_response");
        assert!(invalid || refused, "{harm}: {text}");
        assert!(records.iter().all(|record| record["verdict"] != "benign"), "{harm}");
    }
}

#[test]
fn a_definition_with_faults_is_named_and_the_run_goes_on() {
    for (fault, said) in [
        (definition("https://{ip}.example.org", "{found: false}"), "placeholder"),
        (definition("http://192.0.2.1", "{found: false}"), "https"),
        (definition("https://example.org", "halt"), "halt"),
        (definition("https://example.org", "env"), "env"),
        (definition("https://example.org", "{found: "), "inhouse"),
        (definition("https://example.org", "{found: false}").replace("[request]", "[reqest]"), "request"),
    ] {
        let home = Home::new();
        let simulator = Simulator::start(&home, "");
        home.provider("inhouse", &fault);
        let file = home.put("list", &list(10));
        let output = home.ask(&simulator, &["enrich", file.to_str().unwrap()]);
        let text = stderr(&output);
        assert!(text.contains("inhouse.toml") && text.contains(said), "{said}: {text}");
        assert_eq!(count(&records(&output.stdout), "status", "ok"), 10, "{said}: {text}");
    }
}

#[test]
fn a_body_of_brackets_is_an_invalid_response_and_the_run_goes_on() {
    let home = Home::new();
    let faults =
        "\n[[providers.inhouse.faults]]\nkind = 'nest'\nbytes = 1500000\naddresses = ['2001:db8::3']";
    let simulator = Simulator::start(&home, &format!("{SCENARIO}{faults}"));
    home.provider("inhouse", &definition(&simulator.url, "{found: true, verdict: .body.verdict}"));
    let output = ask(&home, &simulator, 10);
    let records = records(&output.stdout);
    let wrong: Vec<_> =
        records.iter().filter(|record| record["providers"]["inhouse"]["status"] == "error").collect();
    assert_eq!(wrong.len(), 1, "{}", stderr(&output));
    assert_eq!(wrong[0]["providers"]["inhouse"]["error"]["type"], "invalid_response");
}

/// The definition that the README shows.
fn of_the_readme() -> String {
    let readme = include_str!("../README.md");
    let block = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(block.lines().count() <= 16, "short enough to write by hand");
    block.to_owned()
}

const IN_HOUSE: &str =
    "[providers.inhouse]\nbody = '{\"verdict\": \"{verdict}\", \"score\": {score}, \"labels\": [\"lab\"]}'";

#[test]
fn the_readmes_provider_works_everywhere_without_a_line_of_rust() {
    let home = Home::new();
    let simulator = Simulator::start(&home, &format!("{IN_HOUSE}\n[answers]\n'203.0.113.7' = 'malicious'"));
    home.provider("inhouse", &of_the_readme());
    let file = home.put("list", &list(20));
    let run = |args: &[&str]| {
        let mut command = home.sift(args);
        command.env("SIFT_INHOUSE_BASE_URL", &simulator.url).output().unwrap()
    };
    let enriched = run(&["enrich", "-p", "inhouse", file.to_str().unwrap()]);
    assert_eq!((enriched.status.code(), count(&records(&enriched.stdout), "status", "ok")), (Some(0), 20));
    assert!(stderr(&enriched).contains("20 addresses sent to 127.0.0.1"), "{}", stderr(&enriched));
    let looked_up = run(&["lookup", "-p", "inhouse", "-f", "ndjson", "--pap", "red", "203.0.113.7"]);
    let record = &records(&looked_up.stdout)[0];
    assert_eq!(
        (&record["verdict"], &record["tags"][0]),
        (&"malicious".into(), &"lab".into()),
        "{}",
        stderr(&looked_up)
    );
    let dry = run(&["enrich", "-n", "--refresh", "-p", "inhouse", file.to_str().unwrap()]);
    let said = String::from_utf8(dry.stdout).unwrap();
    assert!(said.contains("inhouse") && said.contains("the address, would go to 127.0.0.1"), "{said}");
    let shown = String::from_utf8(run(&["providers", "show", "inhouse"]).stdout).unwrap();
    assert!(shown.contains("50/s") && shown.contains("red"), "{shown}");
}

#[test]
fn a_saved_reply_shows_what_the_filter_makes_of_it_or_where_it_fails() {
    let home = Home::new();
    home.provider("inhouse", &of_the_readme());
    let file = home.path().join("config/sift/providers/inhouse.toml");
    let sample =
        home.put("sample.json", "{\"verdict\": \"suspicious\", \"score\": 40, \"labels\": [\"lab\"]}");
    let check = |definition: &std::path::Path, sample: &std::path::Path, more: &[&str]| {
        let args = ["providers", "check", definition.to_str().unwrap(), "--reply", sample.to_str().unwrap()];
        home.run(&[&args, more].concat())
    };
    let read = check(&file, &sample, &[]);
    let answer: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(
        (&answer["verdict"], &answer["score"]),
        (&"suspicious".into(), &40.into()),
        "{}",
        stderr(&read)
    );
    let unknown = check(&file, &sample, &["--status", "404"]);
    let answer: serde_json::Value = serde_json::from_slice(&unknown.stdout).unwrap();
    assert_eq!(answer["found"], false);
    // A filter that stumbles says so in jq's words; one that is no jq, with its line.
    let odd = home.put("odd.json", "[1, 2]");
    let stumbled = check(&file, &odd, &[]);
    let said = String::from_utf8_lossy(&stumbled.stdout).into_owned() + &stderr(&stumbled);
    assert!(said.contains("the filter cannot read the reply") && stumbled.status.code() != Some(0), "{said}");
    let wrong = home.put("wrong.toml", &of_the_readme().replace("then {found: false}", "then {found: false"));
    let refused = check(&wrong, &sample, &[]);
    assert!(stderr(&refused).contains("wrong.toml"), "{}", stderr(&refused));
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn terms_of_use_are_said_once() {
    let home = Home::new();
    let ask = || {
        // A dead proxy on loopback: nothing leaves this machine.
        let mut command = home.sift(&["lookup", "-p", "internetdb", "9.9.9.9"]);
        command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("SIFT_RETRIES", "0");
        stderr(&command.output().unwrap())
    };
    let (first, second) = (ask(), ask());
    assert!(first.contains("internetdb: ") && first.contains("non-commercial"), "{first}");
    assert!(!second.contains("non-commercial"), "{second}");
}

#[test]
fn a_live_check_asks_each_once() {
    let home = Home::new();
    let simulator = Simulator::start(&home, IN_HOUSE);
    home.provider("inhouse", &of_the_readme());
    let check = |url: &str| {
        let mut command = home.sift(&["providers", "check", "--live", "inhouse", "abuseipdb"]);
        command.env("ABUSEIPDB_API_KEY", "k").env("SIFT_ABUSEIPDB_BASE_URL", &simulator.url);
        command.env("SIFT_INHOUSE_BASE_URL", url).output().unwrap()
    };
    let good = check(&simulator.url);
    let said = String::from_utf8(good.stdout).unwrap();
    assert!(said.contains("inhouse") && said.matches("ok, after").count() == 2, "{said}");
    assert_eq!((good.status.code(), simulator.ledger()["total"]["requests"].as_u64()), (Some(0), Some(2)));
    let half = check("http://127.0.0.1:9");
    let said = String::from_utf8(half.stdout).unwrap();
    assert!(said.contains("connection: cannot be reached"), "{said}");
    assert_eq!(half.status.code(), Some(3));
}
