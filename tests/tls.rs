//! TLS is never switched off: a server whose name is wrong is not asked, one whose authority is named is.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod harness;

use harness::{Home, count, records, stderr};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

/// Serves one fixed AbuseIPDB answer over TLS on loopback, under a certificate for `name`; returns the port and the PEM.
fn serve(name: &str) -> (u16, String) {
    serve_as(name, rcgen::IsCa::NoCa)
}

/// The same with a certificate that may be an authority's.
fn serve_as(name: &str, is_ca: rcgen::IsCa) -> (u16, String) {
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = is_ca;
    let certificate = params.self_signed(&signing_key).unwrap();
    let pem = certificate.pem();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || answer(stream, config));
        }
    });
    (port, pem)
}

fn answer(mut stream: std::net::TcpStream, config: Arc<rustls::ServerConfig>) {
    const BODY: &str = include_str!("../fixtures/reply/abuseipdb/found.json");
    let Ok(mut connection) = rustls::ServerConnection::new(config) else { return };
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    let mut buffer = [0; 4096];
    if matches!(tls.read(&mut buffer), Ok(1..)) {
        let _ = write!(
            tls,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
            BODY.len()
        );
        let _ = tls.flush();
    }
}

fn ask(home: &Home, port: u16, ca: Option<&str>) -> std::process::Output {
    let ca = ca.map(|pem| format!("ca_file = '{}'\n", home.put("ca.pem", pem).display())).unwrap_or_default();
    home.put(
        "config/sift/config.toml",
        &format!("{ca}[providers.abuseipdb]\nbase_url = 'https://localhost:{port}'\nrate = '100/s'\n"),
    );
    let mut command = home.sift(&["lookup", "198.51.100.7", "-f", "ndjson", "--retries", "1"]);
    command.env("ABUSEIPDB_API_KEY", "fake-key-tls").output().unwrap()
}

#[test]
fn an_authority_that_is_named_is_trusted() {
    let (port, pem) = serve("localhost");
    let home = Home::new();
    let output = ask(&home, port, Some(&pem));
    assert_eq!(
        (output.status.code(), count(&records(&output.stdout), "status", "ok")),
        (Some(0), 1),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_unknown_authority_and_a_wrong_name_are_tls_errors() {
    let (unknown, _) = serve("localhost");
    let (wrong, pem) = serve("elsewhere.example");
    let authority = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let (own, own_pem) = serve_as("localhost", authority);
    let home = Home::new();
    for (output, why, is_for_ca_file) in [
        (ask(&home, unknown, None), "is from an issuer that is not trusted", true),
        (ask(&home, wrong, Some(&pem)), "is for another name", false),
        (
            ask(&home, own, Some(&own_pem)),
            "is that of an authority, which no server may use as its own",
            false,
        ),
    ] {
        let records = records(&output.stdout);
        assert_eq!(
            (output.status.code(), count(&records, "error.type", "tls")),
            (Some(4), 1),
            "{records:?} {}",
            stderr(&output)
        );
        let said = stderr(&output);
        assert!(said.contains(&format!("its certificate {why}; 1 look-up")), "{said}");
        assert_eq!(said.contains("ca_file"), is_for_ca_file, "{said}");
        assert!(!said.contains("fake-key"));
    }
}
