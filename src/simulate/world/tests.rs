//! What a request meets, decided without a socket.

use std::path::Path;

use super::super::http::{Parsed, parse};
use super::*;

fn world(scenario: &str) -> World {
    let scenario = Scenario::parse(Path::new("test"), scenario).unwrap();
    let wall = "2026-01-15T10:00:00Z".parse().unwrap();
    World::new(scenario, 1, "127.0.0.1:8080".parse().unwrap(), Instant::now(), wall)
}

fn send(world: &World, text: &str, after: Duration) -> Exchange {
    let Parsed::Whole(request, _) = parse(text.as_bytes()) else { panic!("{text}") };
    world.receive(&request, world.start + after)
}

fn get(world: &World, target: &str, headers: &str) -> (u16, String, String) {
    let text =
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: application/json\r\n{headers}\r\n");
    let Act::Reply(reply) = send(world, &text, Duration::ZERO).act else { panic!("{target}") };
    (reply.status, reply.headers.clone(), String::from_utf8_lossy(reply.body.bytes()).into_owned())
}

/// A request about 203.0.113.7 for each built-in provider: its name, method, target, key header and body.
const QUESTIONS: [(&str, &str, &str, &str, &str); 18] = [
    ("abuseipdb", "GET", "/api/v2/check?ipAddress=203.0.113.7", "Key: k\r\n", ""),
    ("greynoise-community", "GET", "/v3/community/203.0.113.7", "key: k\r\n", ""),
    ("greynoise", "GET", "/v3/ip/203.0.113.7", "key: k\r\n", ""),
    ("greynoise", "GET", "/v3/ip/203.0.113.7?quick=true", "key: k\r\n", ""),
    ("greynoise", "POST", "/v3/ip", "key: k\r\n", "{\"ips\":[\"203.0.113.7\"]}"),
    ("virustotal", "GET", "/api/v3/ip_addresses/203.0.113.7", "x-apikey: k\r\n", ""),
    ("shodan", "GET", "/shodan/host/203.0.113.7?key=k", "", ""),
    ("internetdb", "GET", "/203.0.113.7", "", ""),
    ("urlscan", "GET", "/api/v1/search/?q=page.ip%3A%22203.0.113.7%22", "API-Key: k\r\n", ""),
    ("otx", "GET", "/api/v1/indicators/IPv4/203.0.113.7/general", "X-OTX-API-KEY: k\r\n", ""),
    ("ipinfo", "GET", "/lite/203.0.113.7", "Authorization: Bearer k\r\n", ""),
    ("ipinfo", "POST", "/batch/lite?token=k", "", "[\"203.0.113.7\"]"),
    (
        "threatfox",
        "POST",
        "/api/v1/",
        "Auth-Key: k\r\n",
        "{\"query\":\"search_ioc\",\"search_term\":\"203.0.113.7\"}",
    ),
    ("urlhaus", "POST", "/v1/host/", "Auth-Key: k\r\n", "host=203.0.113.7"),
    ("crowdsec", "GET", "/v2/smoke/203.0.113.7", "x-api-key: k\r\n", ""),
    ("crowdsec", "GET", "/v2/smoke?ips=203.0.113.7", "x-api-key: k\r\n", ""),
    ("ipqualityscore", "GET", "/api/json/ip?ip=203.0.113.7", "IPQS-KEY: k\r\n", ""),
    ("misp", "POST", "/attributes/restSearch", "Authorization: k\r\n", "{\"value\":\"203.0.113.7\"}"),
];

fn text(method: &str, target: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn every_built_in_provider_answers_at_the_root_and_under_its_name() {
    for verdict in ["malicious", "suspicious", "benign", "unknown"] {
        let world = world(&format!("[answers]\n'203.0.113.7' = '{verdict}'\n"));
        for (name, method, target, headers, body) in QUESTIONS {
            let ask = |target: &str| {
                let exchange = send(&world, &text(method, target, headers, body), Duration::ZERO);
                assert_eq!(exchange.answered.len(), 1, "{name} answers {verdict}");
                let Act::Reply(reply) = exchange.act else { panic!("{name}") };
                (reply.status, String::from_utf8_lossy(reply.body.bytes()).into_owned())
            };
            let before = world.ledger.snapshot().provider(name).map_or(0, |page| page.requests);
            let plain = ask(target);
            assert!(plain.0 == 200 || (plain.0 == 404 && verdict == "unknown"), "{name}: {plain:?}");
            assert_eq!(ask(&format!("/{name}{target}")), plain, "{name}");
            serde_json::from_str::<serde_json::Value>(&plain.1)
                .unwrap_or_else(|error| panic!("{name}: {error}: {}", plain.1));
            let snapshot = world.ledger.snapshot();
            let page = snapshot.provider(name).unwrap_or_else(|| panic!("{name} has a page"));
            assert_eq!((page.requests - before, page.distinct, page.no_key), (2, 1, 0), "{name}");
        }
    }
    let world = world("");
    assert_eq!(get(&world, "/virustotal/robots.txt", "").0, 404);
    assert_eq!(world.ledger.snapshot().total.unrouted, 1);
}

#[test]
fn a_provider_that_wants_a_key_refuses_without() {
    let world = world("");
    for (name, method, target, _, body) in QUESTIONS {
        let target = target.replace("?key=k", "").replace("?token=k", "");
        let exchange = send(&world, &text(method, &target, "", body), Duration::ZERO);
        let kind = Kind::named(name).unwrap();
        assert_eq!(exchange.answered.is_empty(), kind.requires_key(), "{name}");
        if kind.requires_key() {
            let Act::Reply(reply) = exchange.act else { panic!("{name}") };
            // IPQualityScore says it in the body of a 200.
            assert!(
                [401, 403].contains(&reply.status) || name == "ipqualityscore",
                "{name}: {}",
                reply.status
            );
        }
    }
}

#[test]
fn a_batch_is_taken_apart_priced_and_bounded() {
    let world = world(
        "[answers]\n'203.0.113.1' = 'malicious'\n'203.0.113.2' = 'unknown'\n[providers.greynoise]\ndaily = {count = 5, reset = '1h'}\n",
    );
    let ask = |target: &str, ips: &[&str]| {
        let body = serde_json::json!({ "ips": ips }).to_string();
        let Act::Reply(reply) = send(&world, &text("POST", target, "key: k\r\n", &body), Duration::ZERO).act
        else {
            panic!()
        };
        (reply.status, serde_json::from_slice::<serde_json::Value>(reply.body.bytes()).unwrap())
    };
    let (status, answer) = ask("/v3/ip", &["203.0.113.1", "203.0.113.2", "example"]);
    assert_eq!((status, answer["data"].as_array().unwrap().len()), (200, 1));
    assert_eq!(answer["request_metadata"]["ips_not_found"], serde_json::json!(["203.0.113.2"]));
    // Two of five are left: too few for the full form, enough for the quick one, which costs one in all.
    assert_eq!(ask("/v3/ip", &["203.0.113.1"; 3]).0, 429);
    assert_eq!(ask("/v3/ip?quick=true", &["203.0.113.1"; 3]).0, 200);
    let page = world.ledger.snapshot().provider("greynoise").unwrap().clone();
    assert_eq!((page.requests, page.distinct, page.malformed_addresses), (3, 2, 1));
    let many: Vec<String> = (0..10_001).map(|n| format!("203.0.{}.{}", n / 256, n % 256)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(ask("/v3/ip?quick=true", &many).0, 400);
}

#[test]
fn pinned_verdicts_show_in_each_providers_words() {
    let world = world(
        "[answers]\n'203.0.113.1' = 'malicious'\n'203.0.113.2' = 'benign'\n'203.0.113.3' = 'unknown'\n'203.0.113.4' = 'suspicious'\n",
    );
    let json = |target: &str| -> serde_json::Value {
        serde_json::from_str(&get(&world, target, "Key: k\r\nx-apikey: k\r\n").2).unwrap()
    };
    let score = |n: u8| {
        json(&format!("/api/v2/check?ipAddress=203.0.113.{n}"))["data"]["abuseConfidenceScore"]
            .as_u64()
            .unwrap()
    };
    assert!(score(1) >= 75 && (26..75).contains(&score(4)) && score(2) == 0 && score(3) == 0);
    let data = json("/api/v2/check?ipAddress=203.0.113.2")["data"].clone();
    assert!(data["isWhitelisted"] == true && data["totalReports"].as_u64().unwrap() > 0);
    let class = |n: u8| json(&format!("/v3/community/203.0.113.{n}"));
    assert_eq!(class(1)["classification"], "malicious");
    assert_eq!((&class(2)["riot"], &class(3)["noise"]), (&true.into(), &false.into()));
    let vt = json("/api/v3/ip_addresses/203.0.113.1")["data"]["attributes"].clone();
    let stats = vt["last_analysis_stats"].as_object().unwrap();
    assert_eq!(
        vt["last_analysis_results"].as_object().unwrap().len() as u64,
        stats.values().map(|it| it.as_u64().unwrap()).sum::<u64>()
    );
    assert!(stats["malicious"].as_u64().unwrap() >= 8);
}

#[test]
fn keys_are_wanted_where_the_provider_wants_them() {
    let world = world(
        "[providers.virustotal]\nkey = 'right'\n[providers.inhouse]\nbody = '{\"ip\":\"{ip}\"}'\nkey_header = 'X-Key'\n",
    );
    let vt = "/api/v3/ip_addresses/203.0.113.7";
    for (target, headers, status, says) in [
        (vt, "", 401, "AuthenticationRequiredError"),
        (vt, "x-apikey: wrong\r\n", 401, "WrongCredentialsError"),
        (vt, "x-apikey: right\r\n", 200, "data"),
        ("/api/v2/check?ipAddress=203.0.113.7", "", 401, "Authentication failed"),
        ("/shodan/host/203.0.113.7", "", 401, "Invalid API key"),
        ("/shodan/host/203.0.113.7?key=", "", 401, "Invalid API key"),
        ("/inhouse/203.0.113.7", "", 401, "Invalid API key"),
        ("/inhouse/203.0.113.7", "x-key: any\r\n", 200, "{\"ip\":\"203.0.113.7\"}"),
    ] {
        let (given, _, body) = get(&world, target, headers);
        assert!(
            (given == status || (status == 200 && given == 404)) && (given == 404 || body.contains(says)),
            "{target} {headers}: {given} {body}"
        );
    }
    let snapshot = world.ledger.snapshot();
    let page = snapshot.provider("virustotal").unwrap();
    assert_eq!((page.no_key, page.wrong_key), (1, 1));
}

#[test]
fn errors_of_abuseipdb_are_html_without_the_right_accept() {
    let world = world("");
    let text = "GET /api/v2/check?ipAddress=203.0.113.7 HTTP/1.1\r\n\r\n";
    let Act::Reply(reply) = send(&world, text, Duration::ZERO).act else { panic!() };
    assert_eq!((reply.status, reply.content_type), (401, HTML));
}

#[test]
fn a_day_used_up_is_told_by_header_and_status() {
    let world = world("[providers.abuseipdb]\ndaily = {count = 1000, used = 998, reset = '8h'}\n");
    let ask = |n: u8| get(&world, &format!("/api/v2/check?ipAddress=203.0.113.{n}"), "Key: k\r\n");
    assert!(ask(1).1.contains("X-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 1\r\n"));
    assert!(ask(2).1.contains("X-RateLimit-Remaining: 0\r\n"));
    let (status, headers, body) = ask(3);
    assert_eq!(status, 429);
    for part in
        ["X-RateLimit-Remaining: 0\r\n", "X-RateLimit-Reset: 1768500000\r\n", "Retry-After: 28800\r\n"]
    {
        assert!(headers.contains(part), "{headers}");
    }
    assert!(body.contains("Daily rate limit of 1000"));
}

#[test]
fn a_penalty_keeps_everything_out() {
    let world = world(
        "[providers.internetdb]\nlimits = [{count = 1, per = '1s'}]\npenalty = '1h'\nretry_after = 'exact'\n",
    );
    let ask = |seconds: u64| {
        let text = "GET /203.0.113.7 HTTP/1.1\r\n\r\n";
        let Act::Reply(reply) = send(&world, text, Duration::from_secs(seconds)).act else { panic!() };
        (reply.status == 429, reply.headers)
    };
    assert!(!ask(0).0);
    assert_eq!(ask(0), (true, "Retry-After: 3600\r\n".to_owned()));
    assert_eq!(ask(1800), (true, "Retry-After: 1800\r\n".to_owned()));
    assert!(!ask(3600).0);
}

#[test]
fn the_world_is_the_same_for_the_same_seed() {
    let (one, two) = (world(""), world(""));
    for n in 0..64 {
        let target = format!("/api/v2/check?ipAddress=203.0.113.{n}");
        assert_eq!(get(&one, &target, "Key: k\r\n"), get(&two, &target, "Key: k\r\n"));
    }
}

#[test]
fn the_trap_sees_keys_wherever_they_are() {
    let world = world("[providers.inhouse]\nbody = 'x'\nkey_header = 'X-Key'\nkey = 'example-key'\n");
    for (target, headers, caught) in [
        ("/__trap", "", 0),
        ("/__trap", "x-apikey: k\r\n", 1),
        ("/__trap", "Cookie: a=example-key\r\n", 2),
        ("/__trap?key=k", "", 3),
        ("/__trap", "User-Agent: sift\r\n", 3),
    ] {
        get(&world, target, headers);
        assert_eq!(world.ledger.snapshot().trap.with_key, caught, "{target} {headers}");
    }
    assert_eq!(world.ledger.snapshot().trap.requests, 5);
}

#[test]
fn midnight_is_the_end_of_the_day_by_default() {
    assert_eq!(until_midnight("2026-01-15T23:59:50Z".parse().unwrap()), Duration::from_secs(10));
    assert_eq!(until_midnight("2026-01-15T00:00:00Z".parse().unwrap()), DAY);
}

#[test]
fn special_addresses_are_answered_as_the_providers_do_and_noted() {
    let world = world("");
    assert!(get(&world, "/api/v2/check?ipAddress=10.0.0.5", "Key: k\r\n").2.contains("\"isPublic\":false"));
    assert_eq!(get(&world, "/v3/community/10.0.0.5", "").0, 400);
    let snapshot = world.ledger.snapshot();
    assert_eq!((snapshot.total.special, snapshot.total.distinct), (2, 1));
}

#[test]
fn what_is_no_address_is_refused_in_the_providers_words() {
    let world = world("");
    for (target, status) in [
        ("/api/v2/check?ipAddress=example", 422),
        ("/v3/community/example", 400),
        ("/api/v3/ip_addresses/example", 400),
        ("/shodan/host/example?key=k", 400),
        ("/1.2.3", 422),
        ("/api/v1/search/?q=x", 400),
    ] {
        assert_eq!(get(&world, target, "Key: k\r\nx-apikey: k\r\n").0, status, "{target}");
    }
}
