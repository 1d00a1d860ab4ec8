#![expect(clippy::disallowed_methods, reason = "a test's files need no atomic writing")]

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::provider::{Filters, KeyUse, Sandbox, Thresholds};

const OWN: &str = "title = \"Own\"\nrole = \"context\"\naccepts = [\"ipv4\"]\n[request]\nbase_url = \"https://ti.example.net\"\n\
                   path = \"/{ip}\"\n[answer]\nfilter = \"null\"\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        Self(folder)
    }

    fn load(&self) -> Result<(Vec<String>, Vec<String>), String> {
        Table::load(Some(self.0.path()))
            .map(|(table, notices)| {
                (
                    table.names().map(str::to_owned).collect(),
                    notices.iter().map(ToString::to_string).collect(),
                )
            })
            .map_err(|faults| faults.to_string())
    }

    fn allow(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.0.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn the_built_in_ones_are_whole_short_and_compile() {
    let table = Table::builtin().unwrap();
    let all: Vec<_> = table.iter().cloned().collect();
    assert_eq!(all.len(), BUILTIN.len());
    Filters::new(&all, Sandbox::InProcess, Thresholds::default()).unwrap();
    for (name, text) in BUILTIN {
        assert!(text.lines().count() < 80, "{name}");
        let definition = table.get(name).unwrap();
        assert_eq!(definition.base_url().scheme(), "https");
        let sift = format!("SIFT_{}_API_KEY", name.replace('-', "_").to_uppercase());
        assert_eq!(
            definition.key.env.first().is_some_and(|env| *env == sift),
            definition.key.usage != KeyUse::None
        );
    }
    assert_eq!(table.get("virustotal").unwrap().key.env, ["SIFT_VIRUSTOTAL_API_KEY", "VT_API_KEY"]);
    assert_eq!(table.nearest("abuseidpb"), Some("abuseipdb"));
}

#[test]
fn a_folder_adds_and_overrides() {
    let folder =
        Folder::new(&[("own.toml", OWN), ("shodan.toml", OWN), ("notes.txt", "x"), ("own.toml.bak", "x")]);
    let (names, notices) = folder.load().unwrap();
    assert!(names.contains(&"own".to_owned()));
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].ends_with("shodan.toml takes the place of the built-in provider shodan"),
        "{}",
        notices[0]
    );
    let (table, _) = Table::load(Some(folder.0.path())).unwrap();
    // It takes no key, and above all not the one that was set for Shodan.
    assert!(table.get("shodan").unwrap().key.env.is_empty());
    assert!(Table::load(Some(Path::new("/nonexistent/providers"))).is_ok());
    assert!(Table::load(None).unwrap().1.is_empty());
}

#[test]
fn what_others_can_write_is_refused() {
    let folder = Folder::new(&[("own.toml", OWN)]);
    for mode in [0o664, 0o646, 0o666] {
        folder.allow("own.toml", mode);
        assert!(folder.load().unwrap_err().contains("can be written by group or others"), "{mode:o}");
    }
    folder.allow("own.toml", 0o600);
    assert!(folder.load().is_ok());
    folder.allow("", 0o775);
    assert!(folder.load().unwrap_err().contains("can be written by group or others"));
}

#[test]
fn all_faults_of_all_files_come_at_once() {
    let long = format!("# {}\n{OWN}", "x".repeat(70_000));
    let folder = Folder::new(&[
        ("Upper.toml", OWN),
        ("long.toml", &long),
        ("own.toml", OWN),
        ("typo.toml", &OWN.replace("title", "titel")),
        ("wrong.toml", "]"),
    ]);
    std::fs::create_dir(folder.0.path().join("dir.toml")).unwrap();
    let faults = folder.load().unwrap_err();
    for expected in [
        "Upper.toml: `the file's name`",
        "long.toml is longer",
        "typo.toml:1: unknown key `titel`",
        "wrong.toml:1: ",
        "dir.toml is not a regular file",
    ] {
        assert!(faults.contains(expected), "{expected}\n{faults}");
    }
}
