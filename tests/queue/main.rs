//! Look-ups that are made later: the binary against the simulator, with a queue that outlives it.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test that kills processes waits for them, and has no runtime"
)]

mod kills;
mod tend;
mod work;

#[path = "../harness/mod.rs"]
mod harness;

use harness::{Home, Simulator, stderr};
use serde_json::Value;
use std::process::{Command, Output};

const FAST: &str = "[every]\nlatency = '0ms'\n";

/// A home, a simulator, and how `sift` is called there.
struct Desk {
    home: Home,
    simulator: Simulator,
}

impl Desk {
    fn new(scenario: &str) -> Self {
        let home = Home::new();
        let simulator = Simulator::start(&home, scenario);
        Self { home, simulator }
    }

    /// A command, not begun.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.sift(args);
        // Every provider that has a key is asked as often as one likes.
        self.simulator.point(&mut command).env("SIFT_ABUSEIPDB_DAILY", "1000000");
        command
    }

    fn sift(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The lines of a command that must end with 0.
    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let output = self.sift(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The counts of one provider's tasks.
    fn status(&self, provider: &str) -> [u64; 4] {
        let rows = self.rows(&["queue", "status", "-f", "ndjson"]);
        let row = rows.iter().find(|row| row["provider"] == provider);
        ["ready", "delayed", "leased", "dead"].map(|name| row.map_or(0, |row| row[name].as_u64().unwrap()))
    }

    fn put(&self, name: &str, text: &str) -> String {
        self.home.put(name, text).to_str().unwrap().to_owned()
    }
}

/// Sends a process a signal.
fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}
