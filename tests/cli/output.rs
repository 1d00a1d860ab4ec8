//! The forms of output, through the binary.

use super::harness::{Home, Simulator, records, stderr};
use super::stdout;
use serde_json::Value;

const ANSWERS: &str = "[answers]\n'203.0.113.7' = 'malicious'\n'203.0.113.9' = 'unknown'\n";

fn lookup(home: &Home, simulator: &Simulator, more: &[&str]) -> std::process::Output {
    home.ask(
        simulator,
        &[&["lookup", "203.0.113.7", "203.0.113.9", "10.0.0.1", "--sort", "input"], more].concat(),
    )
}

#[test]
fn sheets_with_fields_of_ones_own() {
    let home = Home::new();
    let simulator = Simulator::start(&home, ANSWERS);
    let fields =
        ["--fields", "ip,status,verdict,providers.abuseipdb.found,providers.abuseipdb.attempts,reason"];
    let output = lookup(&home, &simulator, &[&["-f", "csv", "--defang"], &fields[..]].concat());
    insta::assert_snapshot!(stdout(&output), @"
    ip,status,verdict,providers.abuseipdb.found,providers.abuseipdb.attempts,reason
    203.0.113[.]7,ok,malicious,true,1,
    203.0.113[.]9,ok,unknown,false,1,
    10.0.0[.]1,skipped,,,,private
    ");
    let output =
        lookup(&home, &simulator, &[&["-f", "tsv", "--no-skipped", "--refresh"], &fields[..]].concat());
    insta::assert_snapshot!(stdout(&output).replace('\t', "|"), @"
    ip|status|verdict|providers.abuseipdb.found|providers.abuseipdb.attempts|reason
    203.0.113.7|ok|malicious|true|1|
    203.0.113.9|ok|unknown|false|1|
    ");
    let output = lookup(&home, &simulator, &["-f", "csv", "--fields", "ip,verdikt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is no field `verdikt`"), "{}", stderr(&output));
}

#[test]
fn json_is_one_array_and_cannot_be_added_to() {
    let home = Home::new();
    let simulator = Simulator::start(&home, ANSWERS);
    let output = lookup(&home, &simulator, &["-f", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let file = home.path().join("out.json");
    let output = lookup(&home, &simulator, &["-f", "json", "--append", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output), @"
    error: --append adds lines, and json is one array
      tip: -f ndjson can be added to
    ");
    assert!(!file.exists());
    // Nothing at all is still an array.
    let empty = home.put("empty", "");
    let output = home.run(&["enrich", "--simulate", "-f", "json", empty.to_str().unwrap()]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), serde_json::json!([]));
}

#[test]
fn raw_answers_as_they_came() {
    let home = Home::new();
    let simulator = Simulator::start(&home, ANSWERS);
    let with = records(&lookup(&home, &simulator, &["--raw"]).stdout);
    assert_eq!(with[0]["providers"]["abuseipdb"]["raw"]["data"]["ipAddress"], "203.0.113.7");
    let without = records(&lookup(&home, &simulator, &[]).stdout);
    assert!(without[0]["providers"]["abuseipdb"].get("raw").is_none());
    // A sheet reaches into them.
    let fields = ["--raw", "-f", "csv", "--fields", "providers.abuseipdb.raw.data.ipAddress"];
    assert!(stdout(&lookup(&home, &simulator, &fields)).contains("\n203.0.113.7\n"));
}

#[test]
fn what_a_provider_says_does_not_steer_the_terminal() {
    let home = Home::new();
    let body = "{\\\"ip\\\": \\\"{ip}\\\", \\\"tag\\\": \\\"\\\\u001b[2J\\\\u202egpj\\\\u0007\\\"}";
    let scenario = format!("[providers.inhouse]\nbody = \"{body}\"\n");
    let simulator = Simulator::start(&home, &scenario);
    home.provider(
        "inhouse",
        &format!(
            "title = 'In-house'\nrole = 'reputation'\naccepts = ['ipv4']\nsends = 'the address'\n[request]\nbase_url = '{}'\npath = '/inhouse/{{ip}}'\n\
             [answer]\nfilter = 'if .status == 200 then {{found: true, score: 90, tags: [.body.tag]}} else null end'\n",
            simulator.url
        ),
    );
    for form in ["table", "csv", "tsv"] {
        let output = home.run(&["lookup", "203.0.113.7", "-p", "inhouse", "-f", form, "--color", "never"]);
        let text = stdout(&output);
        assert!(text.contains("203.0.113.7"), "{}", stderr(&output));
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{form}: {text:?}");
        assert!(text.contains("[2J"), "{form}: {text:?}");
    }
}
