use secrecy::ExposeSecret;

use super::*;

fn find(variables: &[(&str, &str)]) -> Result<Option<(String, String)>, KeyError> {
    let env = variables.iter().copied().collect();
    let found = Keys::new(&env).find("greynoise-community", &["GREYNOISE_API_KEY"])?;
    Ok(found.map(|(key, origin)| (key.expose_secret().to_owned(), origin.to_string())))
}

#[test]
fn our_own_variable_comes_before_the_usual_ones() {
    let own = ("SIFT_GREYNOISE_COMMUNITY_API_KEY", " one\n");
    let usual = ("GREYNOISE_API_KEY", "two");
    assert_eq!(find(&[own, usual]).unwrap(), Some(("one".into(), own.0.into())));
    assert_eq!(find(&[usual]).unwrap(), Some(("two".into(), usual.0.into())));
    assert_eq!(find(&[(own.0, "  "), usual]).unwrap().unwrap().0, "two");
    assert_eq!(find(&[]).unwrap(), None);
}

#[test]
fn a_key_with_a_line_break_is_refused_and_not_shown() {
    let error = find(&[("GREYNOISE_API_KEY", "s3cret\nHost: evil")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the API key in GREYNOISE_API_KEY holds control characters, so it was cut or pasted wrongly"
    );
    assert!(!format!("{error:?}").contains("s3cret"));
}

/// A folder with files of the given modes.
fn files(files: &[(&str, &str, u32)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, mode) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::output::write_whole(&path, text.as_bytes(), *mode).unwrap();
        // The umask of whoever runs the tests must not hide what is tested.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
    }
    folder
}

struct Case {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    settings: ProviderConfig,
}

impl Case {
    fn find(&self) -> Result<Option<(String, String)>, KeyError> {
        let at = |name: &str| self.folder.path().join(name);
        let folders =
            Folders { config: at("config"), system_config: at("etc"), state: at("s"), data: at("d") };
        let env = self.variables.iter().map(|(name, value)| (*name, value.clone())).collect();
        let found = Keys::new(&env).with_folders(&folders).find_with(
            "shodan",
            &["SHODAN_API_KEY"],
            &self.settings,
        )?;
        let shown = |origin: Origin| origin.to_string().replace(self.folder.path().to_str().unwrap(), "");
        Ok(found.map(|(key, origin)| (key.expose_secret().to_owned(), shown(origin))))
    }
}

#[test]
fn the_first_source_wins() {
    let folder = files(&[
        ("run/shodan", "two\n", 0o400),
        ("key", "three\n", 0o640),
        ("config/credentials.toml", "shodan = \"five\"\n", 0o600),
    ]);
    let at = |name: &str| folder.path().join(name);
    let settings = ProviderConfig {
        api_key_file: Some(at("key")),
        api_key_command: Some(["sh", "-c", "printf 'four\\nnotes\\n'"].map(str::to_owned).to_vec()),
        ..ProviderConfig::default()
    };
    let variables = vec![
        ("SHODAN_API_KEY", "one".to_owned()),
        ("CREDENTIALS_DIRECTORY", at("run").to_str().unwrap().to_owned()),
        ("PATH", "/usr/bin:/bin".to_owned()),
    ];
    let mut case = Case { folder, variables, settings };
    let found = |key: &str, origin: &str| Some((key.to_owned(), origin.to_owned()));
    assert_eq!(case.find().unwrap(), found("one", "SHODAN_API_KEY"));
    case.variables.remove(0);
    assert_eq!(case.find().unwrap(), found("two", "/run/shodan"));
    case.variables.remove(0);
    assert_eq!(case.find().unwrap(), found("three", "/key"));
    case.settings.api_key_file = None;
    assert_eq!(case.find().unwrap(), found("four", "command sh"));
    case.settings.api_key_command = None;
    assert_eq!(case.find().unwrap(), found("five", "/config/credentials.toml:1"));
}

#[test]
fn a_file_that_others_can_read_is_refused_not_passed_over() {
    for (name, mode, refused) in
        [("key", 0o644, true), ("key", 0o602, true), ("key", 0o640, false), ("key", 0o600, false)]
    {
        let folder = files(&[(name, "s3cret", mode)]);
        let settings =
            ProviderConfig { api_key_file: Some(folder.path().join(name)), ..ProviderConfig::default() };
        let case = Case { folder, variables: vec![], settings };
        assert_eq!(matches!(case.find(), Err(KeyError::Exposed { .. })), refused, "{mode:o}");
    }
    for (mode, refused) in [(0o640, true), (0o604, true), (0o600, false)] {
        let folder = files(&[("config/credentials.toml", "shodan = \"s3cret\"\n", mode)]);
        let case = Case { folder, variables: vec![], settings: ProviderConfig::default() };
        assert_eq!(matches!(case.find(), Err(KeyError::Exposed { .. })), refused, "{mode:o}");
    }
}

#[test]
fn a_command_gets_no_keys_and_its_failure_is_told() {
    let run = |script: &str| {
        let settings = ProviderConfig {
            api_key_command: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
            ..ProviderConfig::default()
        };
        let variables = vec![("VT_API_KEY", "s3cret".to_owned()), ("PATH", "/usr/bin:/bin".to_owned())];
        Case { folder: files(&[]), variables, settings }.find()
    };
    assert_eq!(run("echo key${VT_API_KEY}").unwrap().unwrap().0, "key");
    for (script, reason) in
        [("echo s3cret; exit 2", "it ended with exit status: 2"), ("true", "it printed nothing")]
    {
        let error = run(script).unwrap_err().to_string();
        assert_eq!(error, format!("the command sh gave no API key: {reason}"));
    }
}

#[test]
fn a_missing_key_file_is_an_error_and_has_a_tip_where_one_helps() {
    let settings =
        ProviderConfig { api_key_file: Some("/nonexistent/key".into()), ..ProviderConfig::default() };
    let error = Case { folder: files(&[]), variables: vec![], settings }.find().unwrap_err();
    assert_eq!(error.to_string(), "cannot read the API key in /nonexistent/key");
    let exposed = KeyError::Exposed { path: "/etc/key".into(), mode: 0o644 };
    assert_eq!(exposed.to_string(), "/etc/key can be read or written by others (mode 0644)");
    assert_eq!(exposed.tip().unwrap(), "chmod 600 /etc/key");
}
