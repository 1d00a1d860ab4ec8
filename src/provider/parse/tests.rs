use super::*;
use crate::provider::DefinitionErrors;

const BUILTINS: &[(&str, &str)] = &[("base", OWN)];

const OWN: &str = r#"title = "In-house reputation"
role = "reputation"
accepts = ["ipv4", "ipv6"]

[key]
use = "required"
header = "X-Token"

[request]
base_url = "https://ti.example.net/api"
path = "/v1/{ip}"

[answer]
filter = '''
if .status == 200 then {found: true, score: .body.risk}
else null end
'''
"#;

fn service(
    name: &str,
    text: &str,
    origin: Origin,
    builtins: &[(&str, &str)],
) -> Result<Definition, Vec<DefinitionError>> {
    definition(name, text, origin, builtins).map(|entry| match entry {
        Entry::Service(definition) => *definition,
        Entry::List(_) => panic!("{name}"),
    })
}

fn read_own(text: &str) -> Result<Definition, String> {
    let origin = Origin::File("own.toml".into());
    service("own", text, origin, BUILTINS).map_err(|faults| DefinitionErrors(faults).to_string())
}

/// The definition with one text replaced, which must be there.
fn with(from: &str, to: &str) -> String {
    assert!(OWN.contains(from), "{from}");
    OWN.replacen(from, to, 1)
}

#[test]
fn a_short_definition_is_enough() {
    let own = read_own(OWN).unwrap();
    assert_eq!(own.sends, "the address");
    assert_eq!(own.pap, Pap::Amber);
    assert_eq!(own.cache, DEFAULT_AGES);
    assert_eq!(own.limits.concurrency, None);
    assert_eq!(own.key.env, ["SIFT_OWN_API_KEY"]);
    assert_eq!(own.base_url().as_str(), "https://ti.example.net/api");
}

/// What is replaced, by what, and what is then said: each fault with its line and what would be right.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "title = ",
        "titel = ",
        "own.toml:1: unknown key `titel`; did you mean `title`?\nown.toml:1: `title` is missing",
    ),
    ("path = ", "pth = ", "own.toml:11: unknown key `request.pth`; did you mean `request.path`?"),
    (
        "[key]",
        "[limits]\nrate = [\"4/min\"]\n\n[key]",
        "own.toml:6: unknown key `limits.rate`; did you mean `limits.rates`?",
    ),
    (
        "\"reputation\"",
        "\"reptation\"",
        "own.toml:2: `role` is `reptation`, and must be one of reputation, context",
    ),
    ("\"ipv6\"]", "\"ipv5\"]", "own.toml:3: `accepts` holds ipv4, ipv6, or both"),
    ("https://ti", "https://{ip}", "own.toml:10: `request.base_url` must not hold a placeholder"),
    ("https://ti", "{scheme}://ti", "own.toml:10: `request.base_url` must not hold a placeholder"),
    (
        "https://ti",
        "http://ti",
        "own.toml:10: `request.base_url` must be https; plain http is for this machine",
    ),
    ("https://ti", "ftp://ti", "own.toml:10: `request.base_url` must be https, not ftp"),
    (
        "https://ti",
        "https://me:secret@ti",
        "own.toml:10: `request.base_url` must not hold a user or a password",
    ),
    ("net/api", "net/api?x=1", "own.toml:10: `request.base_url` must not hold a query"),
    (
        "/v1/{ip}",
        "/v1/{indicator}",
        "own.toml:11: `request.path` has a placeholder that is neither {ip} nor {family}",
    ),
    ("/v1/{ip}", "/v1?ip={ip}", "own.toml:11: `request.path` must not hold ? or #"),
    ("/v1/{ip}", "v1/{ip}", "own.toml:11: `request.path` must begin with /"),
    ("/v1/{ip}", "/../{ip}", "own.toml:11: `request.path` must be plain"),
    ("/v1/{ip}", "/v1", "own.toml:9: `request.path` is missing: the address must stand somewhere"),
    ("header = \"X-Token\"", "header = \"X Token\"", "own.toml:7: `key.header` is no name of a header"),
    ("header = \"X-Token\"", "", "own.toml:5: `key.header` is missing: a key goes either"),
    ("use = \"required\"", "use = \"required\"\nenv = [\"VT_API_KEY\"]", "own.toml:7: unknown key `key.env`"),
    (
        "/v1/{ip}\"",
        "/v1/{ip}\"\nheaders = { Host = \"x\" }",
        "own.toml:12: `headers.Host` is not for a definition to set",
    ),
    (
        "/v1/{ip}\"",
        "/v1/{ip}\"\nheaders = { x-token = \"x\" }",
        "own.toml:12: `headers.x-token` is not for a definition",
    ),
    (
        "/v1/{ip}\"",
        "/v1/{ip}\"\nheaders = { X-Ip = \"{ip}\" }",
        "own.toml:12: `headers.X-Ip` must not hold a placeholder",
    ),
    (
        "/v1/{ip}\"",
        "/v1/{ip}\"\nquery = { \"{ip}\" = \"1\" }",
        "own.toml:12: `query.{ip}` must not hold a placeholder in its name",
    ),
    (
        "/v1/{ip}\"",
        "/v1/{ip}\"\nbody = \"{}\"",
        "own.toml:12: `request.body` goes with method = \"POST\" alone",
    ),
    ("/v1/{ip}\"", "/v1\"\nmethod = \"POST\"\nbody = \"{ip}\"", "own.toml:13: `request.body` must be JSON"),
    ("/v1/{ip}\"", "/v1/{ip}\"\nmethod = \"DELETE\"", "own.toml:12: `request.method` is `DELETE`"),
    (
        "[key]",
        "[limits]\nrates = [\"9/day\"]\n[key]",
        "own.toml:6: `limits.rates` takes windows up to an hour",
    ),
    (
        "[key]",
        "[limits]\nquotas = [\"9/min\"]\n[key]",
        "own.toml:6: `limits.quotas` takes day, week and month",
    ),
    (
        "[key]",
        "[limits]\nquotas = [\"0/day\"]\n[key]",
        "own.toml:6: `limits.quotas` is wrong: `0/day` is no quota",
    ),
    (
        "[key]",
        "[limits]\nconcurrency = 0\n[key]",
        "own.toml:6: `limits.concurrency` must be a whole number from 1 to 256",
    ),
    ("[key]", "[cache]\nfound = \"1y\"\n[key]", "own.toml:6: `cache.found` must be a time like 24h"),
    ("[key]", "[cache]\nfound = \"366d\"\n[key]", "own.toml:6: `cache.found` must be a time like 24h"),
    ("= \"reputation\"", "=", "own.toml:2: "),
    (
        ".body.risk}",
        ".body.risk",
        "own.toml:16: the filter does not compile: line 2 of the filter: expected closing brace, found the end",
    ),
    ("else null", "els null", "own.toml:16: the filter does not compile: line 2 of the filter: expected "),
    ("found: true", "found: env.HOME", "there is no filter `env`"),
    ("found: true", "found: $ENV.HOME", "there is no variable `$ENV`"),
    ("found: true", "found: true, tag: splt(\"x\")", "there is no filter `splt`; did you mean `split`?"),
    ("found: true", "found: halt", "there is no filter `halt`; filters may use @base64, "),
    ("found: true", "found: input", "there is no filter `input`"),
    ("found: true", "found: now", "there is no filter `now`"),
    ("if .status", "import \"a\" as $a; if .status", "a filter cannot import or include"),
    ("if .status", "include \"a\"; if .status", "a filter cannot import or include"),
    (
        ".body.risk",
        ".body.risk|((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1",
        "more than 64 brackets",
    ),
];

#[test]
fn faults_name_their_line_and_what_was_meant() {
    for (from, to, expected) in FAULTS {
        let got = read_own(&with(from, to)).expect_err(to);
        assert!(got.contains(expected), "{to}\n got: {got}\nwant: {expected}");
    }
}

#[test]
fn all_faults_are_found_at_once() {
    let text = with("title = ", "titel = ").replace("https://", "http://").replace("X-Token", "X Token");
    assert_eq!(read_own(&text).unwrap_err().lines().count(), 4);
}

#[test]
fn a_long_filter_is_refused() {
    let long = format!(".body.risk{}", "\n# x".repeat(2_500));
    assert!(
        read_own(&with(".body.risk", &long)).unwrap_err().contains("more than the 8192 a filter may have")
    );
    // Nesting without brackets: jaq's parser recurses, on a stack that is meant for it.
    for (nest, times) in
        [("-", 8_000), ("try ", 2_000), (".|", 4_000), ("def f:", 1_300), ("1+", 4_000), ("1//", 2_600)]
    {
        let _ = read_own(&with(".body.risk}", &format!("({}1)}}", nest.repeat(times))));
    }
}

#[test]
fn names_are_file_stems_that_fit_into_variables() {
    for name in ["Own", "own_2", "", "-own", "o.wn", "ö", "averyveryveryveryveryveryveryverylongname"] {
        assert!(definition(name, OWN, Origin::File("x.toml".into()), BUILTINS).is_err(), "{name}");
    }
    let named = service("my-misp2", OWN, Origin::File("x.toml".into()), BUILTINS).unwrap();
    assert_eq!(named.key.env, ["SIFT_MY_MISP2_API_KEY"]);
}

/// The cache asks again when what is asked, or how it is read, has changed; and not when only a limit has.
#[test]
fn the_version_follows_what_changes_an_answer() {
    let own = read_own(OWN).unwrap();
    let version = |text: &str| read_own(text).unwrap().version;
    assert_eq!(own.version, version(&with("In-house", "Our")));
    assert_eq!(own.version, version(&with("[key]", "[limits]\nconcurrency = 9\n[key]")));
    for (from, to) in [(".body.risk", ".body.score"), ("/v1/", "/v2/"), ("\"reputation\"", "\"context\"")] {
        assert_ne!(own.version, version(&with(from, to)), "{to}");
    }
    let moved = own.with_base_url("http://127.0.0.1:8080", &[]).unwrap();
    assert_ne!(own.version, moved.version);
    // Who is asked at another host has another account there.
    assert_eq!(own.with_base_url("http://127.0.0.1:8080/api/", &[]).unwrap().version, own.version);
    // The same on every machine: a number that stores keep.
    assert_eq!(own.with_base_url("https://ti.example.net/api", &[]).unwrap().version, own.version);
}

/// A named instance says what is its own, and the rest stays as it is.
#[test]
fn a_definition_extends_a_built_in() {
    let text = "extends = \"base\"\ntitle = \"Second\"\n[request]\nbase_url = \"https://second.example.net\"\n[limits]\nrates = [\"1/s\"]\n";
    let own = read_own(text).unwrap();
    let base = service("base", OWN, Origin::Builtin, &[]).unwrap();
    assert_eq!((own.title.as_str(), own.host()), ("Second", "second.example.net"));
    assert_eq!((own.filter == base.filter, own.foreign_filter), (true, false));
    assert_eq!(own.key.env, ["SIFT_OWN_API_KEY"]);
    assert_eq!(own.limits.rates.len(), 1);
    assert_eq!(
        own.prepare("198.51.100.7".parse().unwrap(), Some(&"k".into())).unwrap().url.path(),
        "/v1/198.51.100.7"
    );
    let unknown = read_own("extends = \"bse\"\n").unwrap_err();
    assert_eq!(
        unknown,
        "own.toml:1: `extends` must name a built-in provider, and `bse` is none; did you mean `base`?"
    );
    let typo = read_own("extends = \"base\"\n[request]\npth = \"/x\"\n").unwrap_err();
    assert_eq!(typo, "own.toml:3: unknown key `request.pth`; did you mean `request.path`?");
    let foreign = read_own("extends = \"base\"\n[answer]\nfilter = \"nul\"\n").unwrap_err();
    assert!(foreign.contains("own.toml:3: the filter does not compile"), "{foreign}");
    // What a user's file wrongly takes apart is found in it.
    assert!(
        read_own("extends = \"base\"\nrequest = 1\n")
            .unwrap_err()
            .starts_with("own.toml:2: `request` must be a table")
    );
}

#[test]
fn faults_of_lists_name_their_line_too() {
    let list =
        "title = \"Ours\"\nrole = \"reputation\"\n[list]\nformat = \"plain\"\nverdict = \"malicious\"\n";
    let read = |text: &str| {
        definition("ours", text, Origin::File("ours.toml".into()), BUILTINS)
            .map(|entry| matches!(entry, Entry::List(_)))
            .map_err(|faults| DefinitionErrors(faults).to_string())
    };
    assert!(read(list).unwrap());
    for (from, to, expected) in [
        ("format", "fromat", "ours.toml:4: unknown key `list.fromat`; did you mean `list.format`?"),
        ("\"plain\"", "\"csv\"", "ours.toml:3: `list.column` must be a whole number from 0 to 99"),
        ("\"plain\"", "\"json-lines\"", "ours.toml:3: `list.field` is missing"),
        ("\"malicious\"", "\"bad\"", "ours.toml:5: `list.verdict` is `bad`"),
        (
            "\"malicious\"",
            "\"malicious\"\nscore = 101",
            "ours.toml:6: `list.score` must be a whole number from 0 to 100",
        ),
        (
            "\"malicious\"",
            "\"malicious\"\nknown_good = true",
            "ours.toml:6: `list.known_good` goes with verdict",
        ),
        (
            "\"malicious\"",
            "\"malicious\"\nurl = \"http://ti.example.net\"",
            "ours.toml:6: `list.url` must be an https URL",
        ),
        (
            "\"malicious\"",
            "\"malicious\"\nreference = \"javascript:x\"",
            "ours.toml:6: `list.reference` must be an https URL",
        ),
        ("[list]", "[request]\n[list]", "ours.toml:3: unknown key `request`"),
    ] {
        let got = read(&list.replacen(from, to, 1)).expect_err(to);
        assert!(got.contains(expected), "{to}\n got: {got}\nwant: {expected}");
    }
}
