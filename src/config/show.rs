//! The configuration in words: what is in force, and a file to begin with.

use std::fmt::Write as _;

use ipnet::IpNet;

use super::{DEFAULT, Origins};

impl Origins {
    /// What is in force, as TOML that can be read again but for masked secrets; with `origin`, each line says where its
    /// value comes from. For `sift config show`.
    #[must_use]
    pub fn render(&self, origin: bool) -> String {
        let mut text = String::new();
        let mut table = "";
        // Keys of the top table come first, or they would belong to the table above them.
        let (top, below): (Vec<_>, Vec<_>) = self.iter().partition(|(path, _, _)| !path.contains('.'));
        for (path, value, from) in top.into_iter().chain(below) {
            let (at, key) = path.rsplit_once('.').unwrap_or(("", path));
            if at != table {
                let _ = write!(text, "\n[{at}]\n");
                table = at;
            }
            let comment = if origin { format!("  # {from}") } else { String::new() };
            let _ = writeln!(text, "{key} = {value}{comment}");
        }
        text
    }
}

/// The text of a new configuration file: the commented default, with the user's own networks filled in. Networks of
/// `home_net` go into `exclude`, so that none of their addresses is ever sent, and into `home_net`, for the rank.
#[must_use]
pub fn init_text(home_net: &[IpNet]) -> String {
    if home_net.is_empty() {
        return DEFAULT.to_owned();
    }
    let networks: Vec<String> = home_net.iter().map(|network| format!("\"{network}\"")).collect();
    let list = format!("[{}]", networks.join(", "));
    let mut text = String::with_capacity(DEFAULT.len() + 2 * list.len());
    for line in DEFAULT.lines() {
        let key = line.split('=').next().unwrap_or_default().trim();
        match (key, line.split_once('#')) {
            ("exclude" | "home_net", Some((before, comment))) if before.contains("[]") => {
                let _ = writeln!(text, "# {}", comment.trim());
                let _ = writeln!(text, "{}", before.replace("[]", &list).trim_end());
            }
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}
