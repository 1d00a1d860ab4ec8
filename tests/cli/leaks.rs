//! No key where anybody could read it: every source in turn, at `-vv`, with everything that can go wrong.

use super::harness::{Home, Simulator};
use super::keys::{KEY, SOURCES};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Refusals, failures, a redirect to another place, and a provider that sends the key back.
const STORM: &str = "\
[providers.virustotal]
key = 'another'
[providers.shodan]
[[providers.shodan.faults]]
kind = 'status'
status = 500
every = 3
[[providers.shodan.faults]]
kind = 'reset'
every = 4
";

/// A server that speaks no TLS, at an https URL.
fn without_tls() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Whoever hung up first is not waited for.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    url
}

/// Every file below a folder that holds the key, but for those that are meant to.
fn holders(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holders(&path, found);
        } else if std::fs::read(&path).is_ok_and(|bytes| holds(&bytes)) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes())
}

/// A command at its loudest, with both providers' keys; VirusTotal's comes from the source.
fn loud(home: &Home, simulator: &Simulator, args: &[&str], arrange: fn(&Home, &mut Command)) -> Command {
    let mut command = home.sift(args);
    simulator.point(&mut command).env_remove("ABUSEIPDB_API_KEY").env("SHODAN_API_KEY", KEY);
    command.env("SIFT_SHODAN_RATE", "1000/s").env("SIFT_VIRUSTOTAL_RATE", "1000/s");
    command.env("SIFT_BREAKER_OPEN_FOR", "1s").env("SIFT_LOG", "trace").env("RUST_BACKTRACE", "full");
    arrange(home, &mut command);
    command
}

#[test]
fn not_in_what_is_said_written_or_shown() {
    let tls = without_tls();
    for (name, arrange) in SOURCES {
        let home = Home::new();
        let simulator = Simulator::start(&home, STORM);
        let (records, summary) = (home.path().join("records"), home.path().join("summary"));
        let (records, summary) = (records.to_str().unwrap(), summary.to_str().unwrap());
        let files = ["-o", records, "--summary-file", summary];
        let enrich = ["enrich", "-vv", "--raw", "fixtures/eve.json", "--retries", "1"];
        for (args, more) in [
            ([&enrich[..], &files].concat(), &[][..]),
            // The TLS handshake meets a server that does not speak it.
            (
                [&enrich[..], &files].concat(),
                &[("SIFT_VIRUSTOTAL_BASE_URL", tls.as_str()), ("SIFT_SHODAN_BASE_URL", tls.as_str())][..],
            ),
            ([&enrich[..], &files].concat(), &[("SIFT_PANIC", "1")][..]),
            ([&enrich[..], &["--log-format", "json"], &files].concat(), &[]),
            (vec!["doctor", "-vv"], &[]),
            (vec!["credentials", "check", "-vv"], &[]),
            (vec!["credentials", "list", "-vv"], &[]),
            (vec!["config", "show", "--origin", "-vv"], &[]),
            (vec!["providers", "show", "virustotal", "-vv"], &[]),
        ] {
            let mut command = loud(&home, &simulator, &args, arrange);
            let output = command.envs(more.iter().copied()).output().unwrap();
            assert!(!holds(&output.stdout), "{name}, {args:?}: on stdout");
            assert!(!holds(&output.stderr), "{name}, {args:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!output.stderr.is_empty() || !output.stdout.is_empty(), "{name}, {args:?}");
        }
        let mut found = Vec::new();
        holders(home.path(), &mut found);
        // Where the source itself keeps it, and nowhere else.
        found.retain(|file| !["key", "vault", "virustotal", "credentials.toml"].contains(&file.as_str()));
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn what_went_wrong_was_really_seen() {
    // The test above proves nothing unless the faults that it speaks of happen.
    let home = Home::new();
    let simulator = Simulator::start(&home, STORM);
    let (_, arrange) = SOURCES[0];
    let args = ["enrich", "-vv", "fixtures/eve.json", "--retries", "1"];
    let run = |variables: &[(&str, String)]| {
        let mut command = loud(&home, &simulator, &args, arrange);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, text) = run(&[]);
    for words in ["does not accept the API key (401)", "status=500", "debug: reply", "no reply"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (_, text) = run(&[("SIFT_VIRUSTOTAL_BASE_URL", without_tls())]);
    assert!(text.contains("does not speak TLS"), "{text}");
    let (code, text) = run(&[("SIFT_PANIC", "1".to_owned())]);
    assert!(text.contains("error: a bug in sift") && text.contains("tip: please report it"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_key_that_is_sent_back_is_masked() {
    let home = Home::new();
    let body = format!("{{\"ip\": \"{{ip}}\", \"you\": \"{KEY}\", \"verdict\": \"{{verdict}}\"}}");
    let scenario = format!("[providers.inhouse]\nkey_header = 'X-Key'\nbody = '{body}'\n");
    let simulator = Simulator::start(&home, &scenario);
    home.provider(
        "inhouse",
        &format!(
            "title = 'In-house'\nrole = 'reputation'\naccepts = ['ipv4', 'ipv6']\nsends = 'the address'\n\
             [key]\nuse = 'required'\nheader = 'X-Key'\n[request]\nbase_url = '{}'\npath = '/inhouse/{{ip}}'\n\
             [answer]\nfilter = 'if .status == 200 then {{found: true, verdict: .body.verdict}} else null end'\n",
            simulator.url
        ),
    );
    let mut command = home.sift(&["lookup", "203.0.113.7", "--raw", "-vv"]);
    let output = command.env("SIFT_INHOUSE_API_KEY", KEY).output().unwrap();
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["providers"]["inhouse"]["raw"]["you"], "********", "{record}");
    assert!(!holds(&output.stdout) && !holds(&output.stderr));
}

#[test]
fn not_on_the_command_line_and_in_no_core() {
    for (name, arrange) in SOURCES {
        let home = Home::new();
        let simulator = Simulator::start(&home, "[every]\nlatency = '20s'");
        let command = loud(&home, &simulator, &["enrich", "-v", "fixtures/eve.json"], arrange);
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let envs: Vec<_> =
            command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        // A shell lifts the limit first, as a machine that gathers cores does.
        let mut shell = Command::new("sh");
        shell.env_clear().arg("-c").arg("ulimit -c unlimited; cd \"$HOME\" && exec \"$0\" \"$@\"");
        shell.arg(command.get_program()).args(args);
        for (variable, value) in envs {
            match value {
                Some(value) => shell.env(variable, value),
                None => shell.env_remove(variable),
            };
        }
        shell.env("PATH", "/usr/bin:/bin");
        let eve = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/eve.json");
        std::fs::create_dir_all(home.path().join("fixtures")).unwrap();
        std::fs::copy(eve, home.path().join("fixtures/eve.json")).unwrap();
        let mut child = shell.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // It has its keys and asks once it says so.
        let mut said = Vec::new();
        let mut stderr = child.stderr.take().unwrap();
        let mut piece = [0; 4096];
        while !said.windows(6).any(|window| window == b"asking") {
            let read = stderr.read(&mut piece).unwrap();
            assert!(read > 0, "{name}: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(piece.get(..read).unwrap());
        }
        let cmdline = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
        assert!(cmdline.windows(6).any(|window| window == b"enrich") && !holds(&cmdline), "{name}");
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
        Command::new("kill").args(["-ABRT", &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        assert!(status.signal().is_some() && !status.core_dumped(), "{name}: {status}");
        let core = std::fs::read_dir(home.path()).unwrap().filter_map(Result::ok);
        let core = core.filter(|entry| entry.file_name().to_string_lossy().starts_with("core")).count();
        assert_eq!(core, 0, "{name}");
    }
}
