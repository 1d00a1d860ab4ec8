//! `sift doctor` and `sift providers check`.

use super::harness::{Home, Simulator, stderr};
use super::{stdout, without};

#[test]
fn all_that_is_wrong_at_once() {
    let home = Home::new();
    home.put("config/sift/config.toml", "retires = 1\n");
    home.provider("own", "title = \"Own\"\n");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = home.sift(&["doctor"]);
    command.env("SIFT_VIRUSTOTAL_API_KEY_FILE", "/nowhere/key").env("ABUSEIPDB_API_KEY", "fake");
    command.env("HTTPS_PROXY", format!("http://ana:s3cret@{closed}"));
    command.env("XDG_STATE_HOME", "/proc/nowhere");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = without(&home, &stdout(&output)).replace(&closed.port().to_string(), "PORT");
    let text: Vec<&str> = text.lines().filter(|line| !line.contains("clock")).collect();
    insta::assert_snapshot!(text.join("\n"), @"
    wrong  providers      HOME/config/sift/providers/own.toml:1: `role` is missing: it must be there
    wrong  providers      HOME/config/sift/providers/own.toml:1: `accepts` is missing: it must be a list of texts
    wrong  providers      HOME/config/sift/providers/own.toml:1: `request` is missing: it must be a table
    wrong  providers      HOME/config/sift/providers/own.toml:1: `answer` is missing: it must be a table
    wrong  configuration  HOME/config/sift/config.toml:1: unknown key 'retires' in the top table
                          tip: did you mean 'retries'?
    wrong  configuration  SIFT_VIRUSTOTAL_API_KEY_FILE: 'providers.virustotal.api_key_file' names /nowhere/key, which cannot be read: No such file or directory (os error 2)
    odd    key            abuseipdb: from the variable ABUSEIPDB_API_KEY
                          tip: keep it out of the environment, which children and dumps see: sift credentials set abuseipdb
    ok     state          /proc/nowhere/sift (made when it is needed)
    ok     proxy          127.0.0.1:PORT
    ok     store          /proc/nowhere/sift/sift.db (made by the first look-up)
    ok     providers      would ask abuseipdb
    wrong  reach          abuseipdb: cannot be reached: Connection refused (os error 111)
                          tip: check the network, the proxy (HTTPS_PROXY, NO_PROXY) and DNS
    7 wrong, 1 odd
    ");
}

#[test]
fn all_is_well() {
    let home = Home::new();
    home.put("config/sift/credentials.toml", "abuseipdb = \"fake\"\n");
    let simulator = Simulator::start(&home, "");
    let run = |more: &[&str]| {
        let mut command = home.sift(&[&["doctor"], more].concat());
        simulator.point(&mut command).env_remove("ABUSEIPDB_API_KEY");
        let output = command.output().unwrap();
        (output.status.code(), stdout(&output))
    };
    let (code, text) = run(&["--offline"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("all is well\n") && !text.contains("reach"), "{text}");
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
    let (code, text) = run(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ok     reach          abuseipdb: in "), "{text}");
    let (code, text) = run(&["--ask"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ok     asked          abuseipdb: answered in "), "{text}");
    assert_eq!(simulator.ledger()["providers"]["abuseipdb"]["requests"], 1);
}

#[test]
fn a_filter_that_compares_with_the_address_asks_for_it() {
    let home = Home::new();
    let check = |name: &str, more: &[&str]| {
        let reply = format!("fixtures/reply/{name}/found.json");
        let output = home.run(&[&["providers", "check", name, "--reply", &reply], more].concat());
        (output.status.code(), stderr(&output))
    };
    let (code, said) = check("threatfox", &[]);
    assert_eq!(code, Some(4));
    assert!(said.contains("tip: give the one that was asked about: --ip 203.0.113.7"), "{said}");
    assert_eq!(check("threatfox", &["--ip", "203.0.113.7"]), (Some(0), String::new()));
    assert_eq!(check("abuseipdb", &[]), (Some(0), String::new()));
    // No address makes this one an answer.
    let (code, said) = check("threatfox", &["--status", "500"]);
    assert_eq!((code, said.as_str()), (Some(4), ""));
}

#[test]
fn definitions_are_checked_before_they_are_trusted() {
    let home = Home::new();
    let output = home.run(&["providers", "check"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("\nabuseipdb            ok     the address"), "{}", stdout(&output));
    let good = "title = 'Own'\nrole = 'reputation'\naccepts = ['ipv4']\nsends = 'the address'\n[request]\nbase_url = 'https://intel.example'\npath = '/{ip}'\n\
                [answer]\nfilter = 'if .status == 200 then {found: true, score: .body.risk} else null end'\n";
    let file = home.put("own.toml", good);
    let reply = home.put("reply.json", "{\"risk\": 80}");
    let (file, reply) = (file.to_str().unwrap(), reply.to_str().unwrap());
    let output = home.run(&["providers", "check", file, "--reply", reply]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @r#"
    {
      "found": true,
      "score": 80,
      "verdict": "malicious"
    }
    "#);
    let output = home.run(&["providers", "check", file, "--reply", reply, "--status", "429"]);
    assert_eq!(output.status.code(), Some(4));
    insta::assert_snapshot!(stdout(&output), @r#"
    {
      "error": {
        "message": "429: the provider asks to slow down",
        "type": "rate_limited"
      }
    }
    "#);

    home.put("own.toml", &good.replace("score:", "score").replace("https://", "http://"));
    let output = home.run(&["providers", "check", file]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"
    error: HOME/own.toml:6: `request.base_url` must be https; plain http is for this machine (127.0.0.1, ::1, localhost) alone
    error: HOME/own.toml:9: the filter does not compile: line 1 of the filter: expected comma or right brace, found `.body`
    ");
    home.provider("own", "titel = 'Own'\n");
    assert_eq!(home.run(&["providers", "check"]).status.code(), Some(2));
}
