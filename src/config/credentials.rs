//! `credentials.toml`: keys stored by `sift credentials set`, one `provider = "key"` a line, readable by its owner alone.
//!
//! It is created with its mode (0600) and O_EXCL under another name, and moved into place: at no moment can anybody
//! else read it, and a crash leaves the old one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use toml::de::{DeTable, DeValue};

use super::keys::{KeyError, read_secret, usable};
use super::origin::Origin;
use crate::output::write_whole;

const HEADING: &str =
    "# API keys, stored by 'sift credentials set'. Nobody else may read this file (mode 0600).\n";

/// Keys by provider, each with its line.
#[derive(Debug, Default)]
pub struct Credentials(BTreeMap<String, (SecretString, usize)>);

impl Credentials {
    /// Reads the file; one that is not there is an empty one.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that others can read or write, or that is of another form. No message shows a key.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = match read_secret(path, 0o077) {
            Err(KeyError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            read => read?,
        };
        let text = text.expose_secret();
        let syntax = |byte: usize| {
            let line = text.get(..byte).map_or(0, |before| before.matches('\n').count()) + 1;
            (KeyError::Syntax { path: path.to_owned(), line }, line)
        };
        // The parser's own message shows the line, and with it the key.
        let table =
            DeTable::parse(text).map_err(|error| syntax(error.span().map_or(0, |span| span.start)).0)?;
        let mut keys = BTreeMap::new();
        for (provider, key) in table.get_ref() {
            let (error, line) = syntax(provider.span().start);
            let DeValue::String(key) = key.get_ref() else { return Err(error) };
            keys.insert(provider.get_ref().to_string(), (SecretString::from(key.to_string()), line));
        }
        Ok(Self(keys))
    }

    /// A provider's key and its line.
    #[must_use]
    pub fn get(&self, provider: &str) -> Option<(&SecretString, usize)> {
        self.0.get(provider).map(|(key, line)| (key, *line))
    }

    /// The providers that have a key here.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Takes a key, in the place of an older one; blanks around it are dropped. False if nothing is left of it.
    ///
    /// # Errors
    ///
    /// A key with control characters.
    pub fn set(&mut self, provider: &str, key: &SecretString) -> Result<bool, KeyError> {
        let origin = Origin::Command("credentials set".to_owned());
        let Some(key) = usable(key.expose_secret(), &origin)? else { return Ok(false) };
        self.0.insert(provider.to_owned(), (key, 0));
        Ok(true)
    }

    /// Forgets a key; false if there was none.
    pub fn remove(&mut self, provider: &str) -> bool {
        self.0.remove(provider).is_some()
    }

    /// Writes the file, and its folder (0700) if that is not there.
    ///
    /// # Errors
    ///
    /// What the system says; the old file is then still there.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut text = HEADING.to_owned();
        for (provider, (key, _)) in &self.0 {
            let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{} = {}", quoted(provider), quoted(key.expose_secret()));
        }
        let text = SecretString::from(text);
        write_whole(path, text.expose_secret().as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_stored_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/credentials.toml");
        let mut stored = Credentials::read(&path).unwrap();
        assert!(stored.set("virustotal", &" s3cret\n".to_owned().into()).unwrap());
        assert!(stored.set("my-misp", &"qu\"ote".to_owned().into()).unwrap());
        assert!(!stored.set("shodan", &" \n".to_owned().into()).unwrap());
        assert!(stored.set("shodan", &"s3\ncret".to_owned().into()).is_err());
        stored.write(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let mut stored = Credentials::read(&path).unwrap();
        assert_eq!(stored.providers().collect::<Vec<_>>(), ["my-misp", "virustotal"]);
        let (key, line) = stored.get("virustotal").unwrap();
        assert_eq!((key.expose_secret(), line), ("s3cret", 3));
        assert!(stored.remove("virustotal") && !stored.remove("virustotal"));
        stored.write(&path).unwrap();
        assert!(Credentials::read(&path).unwrap().get("virustotal").is_none());
        assert!(!format!("{stored:?}").contains("ote"));
    }

    #[test]
    fn a_broken_file_is_told_without_its_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        for (text, line) in
            [("a = \"1\"\nvt = s3cret\n", 2), ("vt = 3\n", 1), ("[vt]\nkey = \"s3cret\"\n", 1)]
        {
            write_whole(&path, text.as_bytes(), 0o600).unwrap();
            let error = Credentials::read(&path).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(
                shown.contains(&format!("credentials.toml:{line}:")) && !shown.contains("s3cret"),
                "{shown}"
            );
        }
    }
}
