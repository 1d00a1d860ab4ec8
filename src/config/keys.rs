//! Where API keys come from. They are no part of the configuration, and never on the command line.
//!
//! First hit wins:
//!
//! | source | refused when |
//! |---|---|
//! | `SIFT_<PROVIDER>_API_KEY`, then the provider's usual variables | it is no text |
//! | `$CREDENTIALS_DIRECTORY/<provider>` (systemd's LoadCredential) | it cannot be read |
//! | `api_key_file` | it cannot be read, or others than owner and group can read or write it |
//! | `api_key_command`: the first line it prints | it fails, or takes longer than [`COMMAND_LIMIT`] |
//! | `credentials.toml` (`sift credentials set`) | anybody but the owner can read or write it |
//!
//! A key that is there and cannot be used is an error, never passed over for a weaker source. Blanks around it are
//! dropped; one that holds control characters is refused. No message shows any part of a key.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::credentials::Credentials;
use super::env::Environment;
use super::folders::Folders;
use super::known;
use super::origin::Origin;
use super::{ProviderConfig, command};

/// Keys have some hundred bytes; what is longer is no key.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// A command may ask for a passphrase, so people need time; cron must not hang.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A key that cannot be used. The message never shows it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key with a line break or another control character, which no header can carry.
    #[error("the API key in {origin} holds control characters, so it was cut or pasted wrongly")]
    ControlCharacters {
        /// Where it is.
        origin: Origin,
    },
    /// A key that is no text.
    #[error("the API key in {origin} is not UTF-8")]
    NotText {
        /// Where it is.
        origin: Origin,
    },
    /// A file that cannot be read.
    #[error("cannot read the API key in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file that others can read or write.
    #[error("{} can be read or written by others (mode {mode:04o})", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file of keys that is no TOML of our kind.
    #[error("{}:{line}: not a line of the form provider = \"key\"", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A command that gave no key.
    #[error("the command {program} gave no API key: {reason}")]
    Command {
        /// The program.
        program: String,
        /// What it did instead; never what it printed.
        reason: String,
    },
}

impl KeyError {
    /// What to type or change, where that is known.
    #[must_use]
    pub fn tip(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!("chmod 600 {}", path.display())),
            Self::Syntax { .. } => {
                Some("'sift credentials set PROVIDER' writes it as it should be".to_owned())
            }
            _ => None,
        }
    }
}

/// Finds API keys.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    env: &'a Environment,
    folders: Option<&'a Folders>,
    hidden: &'a [String],
}

impl<'a> Keys<'a> {
    /// Looks in this environment, and where it points.
    #[must_use]
    pub const fn new(env: &'a Environment) -> Self {
        Self { env, folders: None, hidden: &[] }
    }

    /// Looks in `credentials.toml` of these folders too.
    #[must_use]
    pub const fn with_folders(self, folders: &'a Folders) -> Self {
        Self { folders: Some(folders), ..self }
    }

    /// Keeps these variables from commands, beside those whose names say that they hold a key: other providers' keys.
    #[must_use]
    pub const fn hiding(self, variables: &'a [String]) -> Self {
        Self { hidden: variables, ..self }
    }

    /// The provider's key from its environment variables alone.
    ///
    /// # Errors
    ///
    /// See [`KeyError`].
    pub fn find(
        &self,
        provider: &str,
        variables: &[impl AsRef<str>],
    ) -> Result<Option<(SecretString, Origin)>, KeyError> {
        self.find_with(provider, variables, &ProviderConfig::default())
    }

    /// The provider's key and where it was found; none if there is none. `variables` are the provider's usual ones,
    /// asked after `SIFT_<PROVIDER>_API_KEY`. May run a command and then block for [`COMMAND_LIMIT`]: ask only for
    /// providers that are to be asked, and before the runtime starts.
    ///
    /// # Errors
    ///
    /// See [`KeyError`].
    pub fn find_with(
        &self,
        provider: &str,
        variables: &[impl AsRef<str>],
        settings: &ProviderConfig,
    ) -> Result<Option<(SecretString, Origin)>, KeyError> {
        if let Some(found) = self.variable(provider, variables)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.systemd(provider)? {
            return Ok(Some(found));
        }
        if let Some(path) = &settings.api_key_file {
            // A group may share a key: /etc/sift/credentials is root's and readable by the group sift.
            return read_key(path, 0o007).map(|key| key.map(|key| (key, Origin::file(path, 0))));
        }
        if let Some(program) = &settings.api_key_command {
            return self.command(program, variables);
        }
        let Some(folders) = self.folders else { return Ok(None) };
        let stored = Credentials::read(&folders.credentials_file())?;
        let Some((key, line)) = stored.get(provider) else { return Ok(None) };
        let origin = Origin::file(folders.credentials_file(), line);
        Ok(usable(key.expose_secret(), &origin)?.map(|key| (key, origin)))
    }

    fn variable(
        &self,
        provider: &str,
        variables: &[impl AsRef<str>],
    ) -> Result<Option<(SecretString, Origin)>, KeyError> {
        let own = known::variable(&format!("{provider}_api_key"));
        for name in std::iter::once(own.as_str()).chain(variables.iter().map(AsRef::as_ref)) {
            let Some(value) = self.env.get_os(name) else { continue };
            let origin = Origin::Variable(name.to_owned());
            let Some(value) = value.to_str() else { return Err(KeyError::NotText { origin }) };
            if let Some(key) = usable(value, &origin)? {
                return Ok(Some((key, origin)));
            }
        }
        Ok(None)
    }

    fn systemd(&self, provider: &str) -> Result<Option<(SecretString, Origin)>, KeyError> {
        let Some(folder) = self.env.get_os("CREDENTIALS_DIRECTORY") else { return Ok(None) };
        let path = Path::new(folder).join(provider);
        match read_key(&path, 0) {
            Err(KeyError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            found => Ok(found?.map(|key| (key, Origin::file(path, 0)))),
        }
    }

    fn command(
        &self,
        program: &[String],
        variables: &[impl AsRef<str>],
    ) -> Result<Option<(SecretString, Origin)>, KeyError> {
        let name = program.first().cloned().unwrap_or_default();
        let hidden = self.hidden.iter().map(String::as_str);
        let environment = self.env.child(variables.iter().map(AsRef::as_ref).chain(hidden));
        let refuse = |reason: String| KeyError::Command { program: name.clone(), reason };
        let output = command::output(program, &environment, COMMAND_LIMIT, MAX_KEY_BYTES).map_err(refuse)?;
        let origin = Origin::Command(name.clone());
        let text = text(output, &origin)?;
        // Like pass, whose entries hold the secret in the first line and notes below.
        let first = text.expose_secret().lines().next().unwrap_or_default();
        match usable(first, &origin)? {
            Some(key) => Ok(Some((key, origin))),
            None => Err(refuse("it printed nothing".to_owned())),
        }
    }
}

/// Reads a key's file whole. `forbidden` are the bits of its mode that must not be set.
fn read_key(path: &Path, forbidden: u32) -> Result<Option<SecretString>, KeyError> {
    let origin = Origin::file(path, 0);
    usable(read_secret(path, forbidden)?.expose_secret(), &origin)
}

/// The text of a file that holds secrets; its mode is read from the open file, so that it cannot change in between.
pub(super) fn read_secret(path: &Path, forbidden: u32) -> Result<SecretString, KeyError> {
    let unreadable = |source| KeyError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & forbidden != 0 {
        return Err(KeyError::Exposed { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.take(MAX_KEY_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    text(bytes, &Origin::file(path, 0))
}

fn text(bytes: Vec<u8>, origin: &Origin) -> Result<SecretString, KeyError> {
    String::from_utf8(bytes).map(Into::into).map_err(|_| KeyError::NotText { origin: origin.clone() })
}

/// The key without blanks around it; none if nothing is left.
pub(super) fn usable(raw: &str, origin: &Origin) -> Result<Option<SecretString>, KeyError> {
    let key = raw.trim();
    if key.chars().any(char::is_control) {
        return Err(KeyError::ControlCharacters { origin: origin.clone() });
    }
    Ok(if key.is_empty() { None } else { Some(key.to_owned().into()) })
}

#[cfg(test)]
mod tests;
