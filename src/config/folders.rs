//! Where things are kept: systemd's folders first, then XDG's.

use std::path::{Path, PathBuf};

use super::env::Environment;

/// The folders of `sift`. None of them need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Configuration, credentials, the user's definitions: `CONFIGURATION_DIRECTORY`, or `$XDG_CONFIG_HOME/sift`.
    pub config: PathBuf,
    /// The machine's configuration: `/etc/sift`.
    pub system_config: PathBuf,
    /// What must not be lost: `STATE_DIRECTORY`, or `$XDG_STATE_HOME/sift`.
    pub state: PathBuf,
    /// Lists and databases: `$XDG_DATA_HOME/sift`.
    pub data: PathBuf,
}

impl Folders {
    /// The folders by the environment. Without a home they are those of a service: `/etc/sift` and
    /// `/var/lib/sift`.
    #[must_use]
    pub fn find(env: &Environment) -> Self {
        let home = absolute(env, "HOME").or_else(|| etcetera::home_dir().ok());
        let find = |systemd: Option<&str>, xdg: &str, below_home: &str, service: &str| {
            systemd
                .and_then(|name| first_absolute(env, name))
                .or_else(|| absolute(env, xdg).map(|folder| folder.join("sift")))
                .or_else(|| home.as_ref().map(|home| home.join(below_home).join("sift")))
                .unwrap_or_else(|| PathBuf::from(service))
        };
        Self {
            config: find(Some("CONFIGURATION_DIRECTORY"), "XDG_CONFIG_HOME", ".config", "/etc/sift"),
            system_config: PathBuf::from("/etc/sift"),
            state: find(Some("STATE_DIRECTORY"), "XDG_STATE_HOME", ".local/state", "/var/lib/sift"),
            data: find(None, "XDG_DATA_HOME", ".local/share", "/var/lib/sift"),
        }
    }

    /// The user's configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The machine's configuration file.
    #[must_use]
    pub fn system_config_file(&self) -> PathBuf {
        self.system_config.join("config.toml")
    }

    /// The keys stored by `sift credentials set`.
    #[must_use]
    pub fn credentials_file(&self) -> PathBuf {
        self.config.join("credentials.toml")
    }
}

/// XDG's specification: a path that is not absolute is ignored.
fn absolute(env: &Environment, name: &str) -> Option<PathBuf> {
    env.get_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// systemd gives several with colons between where a unit asks for several; ours is the first (systemd.exec(5)).
fn first_absolute(env: &Environment, name: &str) -> Option<PathBuf> {
    let all = env.get_os(name)?;
    std::env::split_paths(all).next().filter(|path: &PathBuf| Path::is_absolute(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_comes_before_xdg_before_home() {
        let mut variables = vec![("HOME", "/home/ana")];
        let folders = Folders::find(&variables.iter().copied().collect());
        assert_eq!(folders.config_file(), Path::new("/home/ana/.config/sift/config.toml"));
        assert_eq!(folders.state, Path::new("/home/ana/.local/state/sift"));
        variables.extend([("XDG_STATE_HOME", "/s"), ("XDG_DATA_HOME", "not/absolute")]);
        let folders = Folders::find(&variables.iter().copied().collect());
        assert_eq!(folders.state, Path::new("/s/sift"));
        assert_eq!(folders.data, Path::new("/home/ana/.local/share/sift"));
        variables.push(("STATE_DIRECTORY", "/var/lib/sift:/var/lib/sift/metrics"));
        assert_eq!(Folders::find(&variables.iter().copied().collect()).state, Path::new("/var/lib/sift"));
    }
}
