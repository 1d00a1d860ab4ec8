use proptest::prelude::*;

use super::*;
use crate::provider::{Origin, Table, parse};

fn ask(name: &str, ip: &str, key: Option<&str>) -> Prepared {
    let table = Table::builtin().unwrap();
    let key = key.map(|key| SecretString::from(key.to_owned()));
    table.get(name).unwrap().prepare(ip.parse().unwrap(), key.as_ref()).unwrap()
}

#[test]
fn each_built_in_asks_as_its_documents_say() {
    let cases = [
        (
            "abuseipdb",
            "198.51.100.7",
            "https://api.abuseipdb.com/api/v2/check?ipAddress=198.51.100.7&maxAgeInDays=90",
        ),
        (
            "abuseipdb",
            "2001:db8::7",
            "https://api.abuseipdb.com/api/v2/check?ipAddress=2001%3Adb8%3A%3A7&maxAgeInDays=90",
        ),
        ("virustotal", "198.51.100.7", "https://www.virustotal.com/api/v3/ip_addresses/198.51.100.7"),
        ("virustotal", "2001:db8::7", "https://www.virustotal.com/api/v3/ip_addresses/2001:db8::7"),
        ("greynoise-community", "198.51.100.7", "https://api.greynoise.io/v3/community/198.51.100.7"),
        (
            "shodan",
            "198.51.100.7",
            "https://api.shodan.io/shodan/host/198.51.100.7?minify=true&key=k%26x%3D1",
        ),
        ("internetdb", "198.51.100.7", "https://internetdb.shodan.io/198.51.100.7"),
        (
            "urlscan",
            "2001:db8::7",
            "https://urlscan.io/api/v1/search/?q=page.ip%3A%222001%3Adb8%3A%3A7%22&size=10",
        ),
    ];
    for (name, ip, url) in cases {
        let prepared = ask(name, ip, Some("k&x=1"));
        assert_eq!(prepared.url.as_str(), url);
        assert_eq!(prepared.method, Method::GET);
        assert_eq!(prepared.headers["accept"], "application/json");
    }
}

#[test]
fn a_key_is_sensitive_and_never_shown() {
    const KEY: &str = "not-a-real-key-0123456789";
    for (name, header) in [("abuseipdb", "key"), ("virustotal", "x-apikey"), ("urlscan", "api-key")] {
        let prepared = ask(name, "198.51.100.7", Some(KEY));
        assert!(prepared.headers[header].is_sensitive());
        assert_eq!(prepared.headers[header], KEY);
        assert!(!format!("{prepared:?}").contains(KEY));
    }
    assert!(!format!("{:?}", ask("shodan", "198.51.100.7", Some(KEY))).contains(KEY));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let table = Table::builtin().unwrap();
    let ip = "198.51.100.7".parse().unwrap();
    let missing = table.get("abuseipdb").unwrap().prepare(ip, None).unwrap_err();
    assert_eq!(missing.to_string(), "abuseipdb needs a key; set SIFT_ABUSEIPDB_API_KEY");
    let key = SecretString::from("two\nlines".to_owned());
    let unfit = table.get("abuseipdb").unwrap().prepare(ip, Some(&key)).unwrap_err();
    assert!(!unfit.to_string().contains("lines"));
    let family =
        table.get("greynoise-community").unwrap().prepare("2001:db8::7".parse().unwrap(), None).unwrap_err();
    assert_eq!(family.to_string(), "greynoise-community does not answer for IPv6 addresses");
    assert!(table.get("urlscan").unwrap().prepare(ip, None).unwrap().headers.get("api-key").is_none());
}

/// The space after `Bearer` was once cut off with the end of the text, and every key of IPinfo's refused.
#[test]
fn a_prefix_keeps_its_space() {
    let request = ask("ipinfo", "198.51.100.7", Some("k"));
    assert_eq!(request.headers["authorization"], "Bearer k");
}

#[test]
fn a_base_url_moves_and_its_key_does_not_follow_everywhere() {
    let table = Table::builtin().unwrap();
    let (with_key, without) = (table.get("abuseipdb").unwrap(), table.get("internetdb").unwrap());
    let moved = |url: &str, to: &[&str]| {
        let to: Vec<String> = to.iter().map(|host| (*host).to_owned()).collect();
        with_key
            .with_base_url(url, &to)
            .map(|moved| moved.base_url().to_string())
            .map_err(|error| error.to_string())
    };
    for url in [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://localhost:1",
        "https://127.0.0.1",
        "https://api.abuseipdb.com/v9",
    ] {
        assert!(moved(url, &[]).is_ok(), "{url}");
    }
    let refused = moved("https://proxy.example.net", &[]).unwrap_err();
    assert!(refused.ends_with("add send_key_to = [\"proxy.example.net\"]"), "{refused}");
    assert!(moved("https://proxy.example.net", &["Proxy.example.net"]).is_ok());
    assert!(moved("https://proxy.example.net", &["example.net"]).is_err());
    assert!(without.with_base_url("https://proxy.example.net", &[]).is_ok());
    // Another port is another origin, and plain http is another still.
    for url in [
        "https://api.abuseipdb.com:8443",
        "http://api.abuseipdb.com",
        "http://127.0.0.1.example.net",
        "https://u@127.0.0.1",
        "nonsense",
        "data:x",
    ] {
        assert!(moved(url, &[]).is_err(), "{url}");
    }
    let moved = with_key.with_base_url("http://127.0.0.1:8080/sim/", &[]).unwrap();
    assert!(moved.is_loopback() && !with_key.is_loopback());
    let key = SecretString::from("k".to_owned());
    let url = moved.prepare("198.51.100.7".parse().unwrap(), Some(&key)).unwrap().url;
    assert_eq!(url.as_str(), "http://127.0.0.1:8080/sim/api/v2/check?ipAddress=198.51.100.7&maxAgeInDays=90");
    // Moving on does not make the place between the key's home.
    let twice = with_key.with_base_url("https://proxy.example.net", &["proxy.example.net".into()]).unwrap();
    assert!(twice.with_base_url("https://proxy.example.net/x", &[]).is_err());
}

fn posting(body: &str) -> Definition {
    let text = format!(
        "title = \"Own\"\nrole = \"context\"\naccepts = [\"ipv4\", \"ipv6\"]\n[request]\nmethod = \"POST\"\n\
         base_url = \"https://ti.example.net\"\npath = \"/search/{{family}}\"\n{body}\n[answer]\nfilter = \"null\"\n"
    );
    match parse::definition("own", &text, Origin::Builtin, &[]).unwrap() {
        parse::Entry::Service(definition) => *definition,
        parse::Entry::List(_) => panic!(),
    }
}

#[test]
fn bodies_are_json_or_a_form() {
    let json =
        posting(r#"body = '{"query": "search", "term": "{ip}", "nested": [{"ip": "<{ip}>"}], "n": 1}'"#);
    let prepared = json.prepare("2001:db8::7".parse().unwrap(), None).unwrap();
    assert_eq!(prepared.url.path(), "/search/IPv6");
    assert_eq!(prepared.headers["content-type"], "application/json");
    let body: Value = serde_json::from_slice(&prepared.body.unwrap()).unwrap();
    let expected = serde_json::json!({"query": "search", "term": "2001:db8::7", "nested": [{"ip": "<2001:db8::7>"}], "n": 1});
    assert_eq!(body, expected);
    let form = posting("form = { host = \"{ip}\", x = \"a&b\" }");
    let prepared = form.prepare("2001:db8::7".parse().unwrap(), None).unwrap();
    assert_eq!(prepared.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(prepared.body.unwrap(), b"host=2001%3Adb8%3A%3A7&x=a%26b");
}

proptest! {
    /// Whatever stands in a segment stays in it, and reads back as it was.
    #[test]
    fn a_segment_stays_one(text in "\\PC{0,40}") {
        let encoded = encode_segment(&text);
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:%".contains(&byte)));
        let url = Url::parse(&format!("https://ti.example.net/a/x{encoded}x/b")).unwrap();
        prop_assert_eq!(url.path_segments().unwrap().count(), 3);
        prop_assert_eq!((url.query(), url.fragment()), (None, None));
    }

    /// Any address makes a request to the same host, in its own place.
    #[test]
    fn an_address_never_leaves_its_place(ip in any::<std::net::IpAddr>()) {
        static TABLE: std::sync::LazyLock<Table> = std::sync::LazyLock::new(|| Table::builtin().unwrap());
        for definition in TABLE.iter().filter(|definition| definition.is_placed() && definition.accepts.accepts(ip)) {
            let key = SecretString::from("k".to_owned());
            let prepared = definition.prepare(ip, Some(&key)).unwrap();
            prop_assert_eq!(prepared.url.host_str(), Some(definition.host()));
            let in_query = prepared.url.query_pairs().any(|(_, value)| value.contains(&ip.to_string()));
            let in_path = prepared.url.path_segments().unwrap().any(|part| part == ip.to_string());
            prop_assert!(prepared.body.is_some() || in_query != in_path);
        }
    }
}

#[test]
fn a_batch_stands_where_its_documents_say() {
    let table = Table::builtin().unwrap();
    let ips: Vec<IpAddr> = ["198.51.100.7", "203.0.113.9"].iter().map(|ip| ip.parse().unwrap()).collect();
    let key = SecretString::from("k".to_owned());
    let bulk = |name: &str| table.get(name).unwrap().prepare_bulk(&ips, Some(&key)).unwrap();
    let greynoise = bulk("greynoise");
    assert_eq!(
        (greynoise.method, greynoise.url.as_str()),
        (Method::POST, "https://api.greynoise.io/v3/ip?quick=true")
    );
    assert_eq!(greynoise.body.unwrap(), br#"{"ips":["198.51.100.7","203.0.113.9"]}"#);
    assert_eq!(bulk("ipinfo").body.unwrap(), br#"["198.51.100.7","203.0.113.9"]"#);
    let none = table.get("abuseipdb").unwrap().prepare_bulk(&ips, Some(&key)).unwrap_err();
    assert_eq!(none.to_string(), "abuseipdb cannot be asked about 2 addresses at once, only about 1 to 0");
}

/// A service of one's own leads nowhere until it is placed; its first place is then its key's home.
#[test]
fn an_instance_has_to_be_placed() {
    let table = Table::builtin().unwrap();
    let misp = table.get("misp").unwrap();
    let (ip, key) = ("198.51.100.7".parse().unwrap(), SecretString::from("k".to_owned()));
    let nowhere = misp.prepare(ip, Some(&key)).unwrap_err();
    assert_eq!(
        nowhere.to_string(),
        "misp has no base URL; set [providers.misp] base_url, or SIFT_MISP_BASE_URL"
    );
    let placed = misp.with_base_url("https://misp.example.net/x", &[]).unwrap();
    assert!(placed.is_placed() && !misp.is_placed());
    let prepared = placed.prepare(ip, Some(&key)).unwrap();
    assert_eq!(prepared.url.as_str(), "https://misp.example.net/x/attributes/restSearch");
    assert_eq!(prepared.headers["authorization"], "k");
    assert!(placed.with_base_url("https://other.example.net", &[]).is_err());
    assert!(misp.with_base_url("http://misp.example.net", &[]).is_err());
}
