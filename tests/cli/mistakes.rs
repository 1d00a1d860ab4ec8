//! Ten typical mistakes: each ends in one error that says what to do.

use super::harness::{Home, Simulator, list, stderr};
use super::without;
use std::process::Output;

/// What was said, without the first words that say what is read and asked.
fn said(home: &Home, output: &Output) -> String {
    let text = without(home, &stderr(output));
    let tips = text.matches("tip:").count();
    assert!((1..=3).contains(&tips), "{text}");
    let faults =
        text.lines().filter(|line| line.starts_with("error:") || line.starts_with("warning:")).count();
    assert_eq!(faults, 1, "{text}");
    let kept = text.lines().filter(|line| !line.starts_with("reading ") && !line.starts_with("asking, "));
    format!("{}\n{}", output.status, kept.collect::<Vec<_>>().join("\n"))
}

#[test]
fn no_key() {
    let home = Home::new();
    let output = home.run(&["enrich", "fixtures/eve.json"]);
    insta::assert_snapshot!(said(&home, &output), @"
    exit status: 2
    error: there is nobody to ask: no API key was found
      looked for: ABUSECH_AUTH_KEY, ABUSEIPDB_API_KEY, CROWDSEC_API_KEY, GREYNOISE_API_KEY, IPINFO_TOKEN, IPQS_API_KEY, SHODAN_API_KEY, SIFT_MISP_API_KEY, VT_API_KEY; and where 'sift help credentials' says
      tip: rehearse without a key: sift enrich --simulate FILE
      tip: store a key: sift credentials set NAME
      tip: or ask who needs none: lists ('sift lists update'), or a provider, as in -p internetdb
    ");
}

#[test]
fn a_wrong_key() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[providers.abuseipdb]\nkey = 'another'");
    let file = home.put("list", &list(39));
    let output = home.ask(&simulator, &["enrich", file.to_str().unwrap(), "-c", "1"]);
    let text = said(&home, &output);
    let took = text.rsplit("took ").next().unwrap().split(';').next().unwrap().to_owned();
    let text = text.replace(&took, "TIME");
    insta::assert_snapshot!(text, @"
    exit status: 4
    error: abuseipdb does not accept the API key (401); 39 look-ups not answered
      key from: ABUSEIPDB_API_KEY
      tip: check it with 'sift credentials check abuseipdb'
    39 addresses in 39 lines: 39 not answered
      abuseipdb  1 request, 1 address sent to 127.0.0.1, 39 not answered: it refuses the API key
    took TIME; put the API key of abuseipdb right: 'sift providers show abuseipdb' says where it is read from
    ");
}

#[test]
fn a_misspelt_provider() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "-p", "abusipdb", "fixtures/eve.json"])), @"
    exit status: 2
    error: there is no provider named 'abusipdb'
      tip: did you mean 'abuseipdb'?
    ");
}

#[test]
fn a_misspelt_flag() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "--fail-om", "malicious", "fixtures/eve.json"])), @"
    exit status: 2
    error: unexpected argument '--fail-om' found

      tip: a similar argument exists: '--fail-on'

    Usage: sift enrich --fail-on <LEVEL> [FILE]...

    For more information, try '--help'.
    ");
}

#[test]
fn a_missing_file() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "--simulate", "evee.json"])), @r#"
    exit status: 1
    error: evee.json does not exist
      tip: check its name; "-" is standard input
    "#);
}

#[test]
fn an_address_in_the_place_of_a_file() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "--simulate", "45.9.3.3"])), @"
    exit status: 1
    error: 45.9.3.3 does not exist
      tip: for an address: sift lookup 45.9.3.3
    ");
    for (command, address) in [("extract", "2001:db8::7"), ("enqueue", "203.0.113.7")] {
        let output = home.run(&[command, address]);
        assert_eq!(output.status.code(), Some(1));
        let tip = format!("tip: for an address: echo {address} | sift {command} -");
        assert!(stderr(&output).contains(&tip), "{}", stderr(&output));
    }
    // A file of that name is read.
    let file = home.put("45.9.3.3", "203.0.113.7\n");
    let output = home.sift(&["extract", "45.9.3.3"]).current_dir(file.parent().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_binary_file() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "--simulate", "/bin/sh"])), @"
    exit status: 1
    error: /bin/sh is an executable, not text
      tip: unpack it and pass what is inside; gzip and zstd are read as they are
    ");
}

#[test]
fn an_empty_file() {
    let home = Home::new();
    let file = home.put("eve.json", "");
    let output = home.run(&["enrich", "--simulate", file.to_str().unwrap()]);
    let text = said(&home, &output);
    let text = text.split("\nno addresses").next().unwrap().to_owned();
    insta::assert_snapshot!(text, @"
    exit status: 0
    warning: no address was found in HOME/eve.json
      tip: is it the right file? one event of eve.json a line is expected, or one address a line
    ");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_filter_that_leaves_nothing() {
    let home = Home::new();
    let output = home.run(&["enrich", "--simulate", "--since", "1h", "fixtures/eve.json"]);
    let text = stderr(&output);
    let told = "\
warning: no address was found in fixtures/eve.json: the filters left out all 61 events
  tip: widen --since, --severity, --alerts or --event-type
";
    assert!(text.contains(told), "{text}");
    let text = stderr(&home.run(&["extract", "--since", "1h", "fixtures/eve.json"]));
    assert!(text.contains("no addresses in 61 events of 62 lines; the filters left out all 61"), "{text}");
}

#[test]
fn an_unreadable_configuration() {
    let home = Home::new();
    // A folder cannot be read by anybody; a mode would not keep root out, who may run this.
    home.put("config/sift/config.toml/file", "");
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "fixtures/eve.json"])), @"
    exit status: 2
    error: HOME/config/sift/config.toml: cannot be read: is a directory
      tip: make it a file that you can read, or read none with --config none
    ");
}

#[test]
fn a_closed_port_behind_a_proxy() {
    let home = Home::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = home.sift(&["lookup", "9.9.9.9", "--retries", "0"]);
    command.env("VT_API_KEY", "fake").env("HTTPS_PROXY", format!("http://ana:s3cret@{closed}"));
    let output = command.output().unwrap();
    let text = said(&home, &output).replace(&closed.port().to_string(), "PORT");
    let text = text.split("\n1 address").next().unwrap().to_owned();
    insta::assert_snapshot!(text, @"
    exit status: 4
    virustotal: public API: not for commercial products, services or business workflows (said once)
    error: virustotal: cannot be reached: Connection refused (os error 111); 1 look-up not answered, 9.9.9.9
      through the proxy: 127.0.0.1:PORT
      tip: 'sift doctor' says which providers can be reached
    ");
}

#[test]
fn a_folder_that_cannot_be_written_to() {
    let home = Home::new();
    // Not even root writes here.
    insta::assert_snapshot!(said(&home, &home.run(&["enrich", "--simulate", "-o", "/proc/out.ndjson", "fixtures/eve.json"])), @"
    exit status: 1
    error: cannot open /proc/out.ndjson for writing: No such file or directory (os error 2)
      tip: name another file with -o, in a folder that you may write to
    ");
}
