//! The environment, read once and passed in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// A snapshot of the environment's variables. Keys may be among them, so it is never printed.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The value of a variable; none if it is unset, empty, or not UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// The value of a variable as it is; none if it is unset or empty, which mean the same for all of ours.
    #[must_use]
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Names and values of our own variables, those that are UTF-8.
    pub(super) fn ours(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = self.0.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        named.filter(|(name, value)| name.starts_with("SIFT_") && !value.is_empty())
    }

    /// What a child process gets: everything but API keys, the way to them, and proxies with a password. `keys` are
    /// further variables that hold keys, as providers' definitions name them.
    #[must_use]
    pub fn child<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> BTreeMap<OsString, OsString> {
        let keys: Vec<&str> = keys.into_iter().collect();
        let passes = |name: &OsStr, value: &OsStr| {
            let name = name.to_string_lossy().to_ascii_uppercase();
            let is_key = ["_API_KEY", "_APIKEY", "_AUTH_KEY"].iter().any(|end| name.ends_with(end))
                || keys.iter().any(|key| key.eq_ignore_ascii_case(&name));
            let has_password = name.ends_with("_PROXY") && value.to_string_lossy().contains('@');
            !is_key && !has_password && !name.starts_with("SIFT_") && name != "CREDENTIALS_DIRECTORY"
        };
        self.0
            .iter()
            .filter(|(name, value)| passes(name, value))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_get_no_keys() {
        let env: Environment = [
            ("PATH", "/usr/bin"),
            ("HOME", "/home/ana"),
            ("VT_API_KEY", "secret"),
            ("SIFT_ABUSEIPDB_API_KEY", "secret"),
            ("MISP_TOKEN", "secret"),
            ("HTTPS_PROXY", "http://ana:secret@proxy.example:3128"),
            ("NO_PROXY", "localhost"),
            ("CREDENTIALS_DIRECTORY", "/run/credentials/sift.service"),
        ]
        .into_iter()
        .collect();
        let child = env.child(["MISP_TOKEN"]);
        let names: Vec<_> = child.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["HOME", "NO_PROXY", "PATH"]);
        assert!(!format!("{env:?}").contains("secret"));
    }
}
