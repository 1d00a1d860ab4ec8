//! What the tests of the binary share: a scrubbed environment, a simulator in a process of its own, and records that are
//! held against the published schema.

#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "each test binary uses its part, and clippy takes this file for no test"
)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A home of its own, with no key, no configuration and no proxy of the machine's in it.
pub struct Home(pub tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below the home.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        sift::output::write_whole(&path, text.as_bytes(), 0o600).unwrap();
        path
    }

    /// A definition of the user's own.
    pub fn provider(&self, name: &str, text: &str) {
        self.put(&format!("config/sift/providers/{name}.toml"), text);
        for folder in ["config", "config/sift", "config/sift/providers"] {
            std::fs::set_permissions(self.path().join(folder), std::fs::Permissions::from_mode(0o700))
                .unwrap();
        }
    }

    /// `sift`, in this home.
    pub fn sift(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sift"));
        command.args(args).env_clear().current_dir(env!("CARGO_MANIFEST_DIR"));
        for (name, folder) in [
            ("HOME", ""),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
        ] {
            command.env(name, self.path().join(folder));
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.sift(args).output().unwrap()
    }

    /// Runs it against a simulator.
    pub fn ask(&self, simulator: &Simulator, args: &[&str]) -> Output {
        simulator.point(&mut self.sift(args)).output().unwrap()
    }
}

/// A simulator in a process of its own.
pub struct Simulator {
    child: Child,
    pub url: String,
}

impl Simulator {
    pub fn start(home: &Home, scenario: &str) -> Self {
        let file = home.put("scenario.toml", scenario);
        let mut child = home
            .sift(&["simulate", "--scenario", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, url }
    }

    /// Gives a command the keys and the addresses of the simulated providers.
    pub fn point<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for name in ["ABUSEIPDB", "VIRUSTOTAL", "SHODAN"] {
            command.env(format!("SIFT_{name}_BASE_URL"), &self.url);
        }
        command.env("ABUSEIPDB_API_KEY", "fake-key-abuseipdb-8d1f").env("SIFT_ABUSEIPDB_RATE", "100000/s")
    }

    /// The ledger, as the simulator serves it.
    pub fn ledger(&self) -> Value {
        let mut stream = std::net::TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.write_all(b"GET /__ledger HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// So many documentation addresses, one a line.
pub fn list(n: usize) -> String {
    (0..n).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "2001:db8::{:x}:{:x}", i >> 16, i & 0xffff);
        text
    })
}

/// The records of an output: each valid by the published schema, each of another address.
pub fn records(bytes: &[u8]) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../fixtures/record.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for record in &records {
        if let Some(fault) = validator.iter_errors(record).next() {
            panic!("{record}\n{} {fault}", fault.instance_path());
        }
    }
    let unique: BTreeSet<&str> = records.iter().map(|record| record["ip"].as_str().unwrap()).collect();
    assert_eq!(unique.len(), records.len(), "one record per address");
    records
}

/// How many records have this value at this path (`status`, `error.type`).
pub fn count(records: &[Value], path: &str, value: &str) -> usize {
    let at = format!("/{}", path.replace('.', "/"));
    records.iter().filter(|record| record.pointer(&at).and_then(Value::as_str) == Some(value)).count()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
