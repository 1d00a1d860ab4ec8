//! One request, out and back. The only place from which anything leaves the host.
//!
//! Every request is cleared here, whoever asks for it; every body is read through the cap; nothing is followed, resent or
//! remembered. Never holds a permit longer than the exchange: its owner passes it in and it is dropped with the reply read.

use super::mistrust;
use crate::plan::{Cleared, Guard, Withheld};
use crate::provider::{Definition, ErrorType, Prepared, Reply};
use reqwest::{Client, NoProxy, Proxy, Request};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// VirusTotal compresses only for a user agent that names gzip (providers.md §3.3).
const USER_AGENT: &str = concat!("sift/", env!("CARGO_PKG_VERSION"), " (gzip)");
/// Loopback never goes through a proxy, whatever NO_PROXY says.
const NEVER_PROXIED: &str = "localhost,127.0.0.0/8,::1";
/// TCP and TLS take no longer than this on a path that works; the attempt's own limit covers them too.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle connections are kept this long: longer than the 15 s between two look-ups at 4 a minute.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// What one address may take of a batch's reply: an entry of GreyNoise's full form has up to 3 KiB (its sample), of the
/// quick form 200 bytes.
const BYTES_PER_ADDRESS: usize = 4 << 10;
/// The longest reply of a batch: what the process that runs own filters takes in one frame.
const LARGEST_BATCH_BODY: usize = 48 << 20;

/// What the client is built from.
#[derive(Debug, Clone, Default)]
pub struct TransportSettings {
    /// Requests in flight at once, over all lanes: so many idle connections are kept to a host.
    pub concurrency: usize,
    /// Bytes of a body, decompressed, that are read at the most.
    pub max_body: usize,
    /// Proxy for https, with its password in it.
    pub proxy: Option<SecretString>,
    /// Hosts that are reached without the proxy: NO_PROXY's text.
    pub no_proxy: Option<String>,
    /// A PEM file with authorities that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether any provider is asked over TLS; without one, no root is loaded.
    pub tls: bool,
}

/// The client could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The `ca_file` cannot be read.
    #[error("cannot read the ca_file {path}", path = path.display())]
    ReadCa {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The `ca_file` holds no certificate.
    #[error("the ca_file {path} holds no PEM certificate", path = path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The proxy's address is none. It is not shown: it may hold a password.
    #[error("the proxy's address cannot be read (http://[user:password@]host:port is expected)")]
    Proxy,
    /// TLS or the resolver could not be set up.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

/// A request that brought no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) error: ErrorType,
    pub(super) message: String,
    pub(super) retry: bool,
    /// Nothing of it left this host: there was no connection to send it on.
    pub(super) unsent: bool,
}

/// The one pooled client, and the guard in front of it.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
    guard: Guard,
    max_body: usize,
}

impl Transport {
    /// Builds the client: redirects and resends off, TLS always verified.
    ///
    /// # Errors
    /// See [`TransportError`].
    pub fn new(settings: &TransportSettings, guard: Guard) -> Result<Self, TransportError> {
        // Ours is the only provider in the process; a second call finds it in place.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(settings.concurrency.max(1))
            .pool_idle_timeout(POOL_IDLE)
            .tcp_nodelay(true)
            .no_proxy();
        if let Some(proxy) = &settings.proxy {
            builder = builder.proxy(https_proxy(proxy, settings.no_proxy.as_deref())?);
        }
        builder = match &settings.ca_file {
            Some(path) => builder.tls_certs_merge(certificates(path)?),
            // Loading the system's roots costs 10 ms and more at the start.
            None if !settings.tls => builder.tls_certs_only([]),
            None => builder,
        };
        let client = builder.build().map_err(TransportError::Client)?;
        Ok(Self { client, guard, max_body: settings.max_body })
    }

    /// Whether `ip` may be sent to `definition`'s provider.
    pub(super) fn clear(&self, ip: IpAddr, definition: &Definition) -> Result<Cleared, Withheld> {
        self.guard.clear(ip, definition.is_loopback())
    }

    /// Makes the request for `ips`, each of which is cleared first: several go in the provider's bulk form.
    pub(super) fn prepare(
        &self,
        ips: &[IpAddr],
        definition: &Definition,
        key: Option<&SecretString>,
    ) -> Result<Prepared, Lost> {
        let mut cleared = Vec::with_capacity(ips.len());
        for &ip in ips {
            let clear = self.clear(ip, definition).map_err(|withheld| Lost {
                error: ErrorType::Internal,
                message: format!("{ip} must not leave this host: {}", withheld.as_str()),
                retry: false,
                unsent: false,
            })?;
            cleared.push(clear.ip());
        }
        let prepared = match cleared.as_slice() {
            [one] => definition.prepare(*one, key),
            many => definition.prepare_bulk(many, key),
        };
        prepared.map_err(|error| Lost {
            error: ErrorType::InvalidRequest,
            message: error.to_string(),
            retry: false,
            unsent: false,
        })
    }

    /// Sends it and reads the reply, within `limit`. `about`: how many addresses it asks about; a batch's reply may be
    /// that much longer.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection; the provider may have counted the request.
    pub(super) async fn exchange(
        &self,
        prepared: Prepared,
        limit: Duration,
        about: usize,
    ) -> Result<Reply, Lost> {
        let most = match about {
            0 | 1 => self.max_body,
            many => self.max_body.max(many.saturating_mul(BYTES_PER_ADDRESS).min(LARGEST_BATCH_BODY)),
        };
        self.exchange_within(prepared, limit, most).await
    }

    /// The same with a bound of its own for the body, in bytes.
    pub(super) async fn exchange_within(
        &self,
        prepared: Prepared,
        limit: Duration,
        most: usize,
    ) -> Result<Reply, Lost> {
        tokio::time::timeout(limit, self.send(prepared, most)).await.unwrap_or_else(|_| {
            Err(Lost {
                error: ErrorType::Timeout,
                message: format!("no answer within {}", seconds(limit)),
                retry: true,
                unsent: false,
            })
        })
    }

    async fn send(&self, prepared: Prepared, most: usize) -> Result<Reply, Lost> {
        let mut request = Request::new(prepared.method, prepared.url);
        *request.headers_mut() = prepared.headers;
        *request.body_mut() = prepared.body.map(Into::into);
        let sent = self.client.execute(request).await;
        let mut response = sent.map_err(|error| lost(error, "gave no HTTP reply"))?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > most => return Err(too_large(most)),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Reply { status, headers, body }),
                Err(error) => return Err(lost(error, "broke off in the middle of its reply")),
            }
        }
    }
}

fn too_large(most: usize) -> Lost {
    Lost {
        error: ErrorType::ResponseTooLarge,
        message: format!("the reply is larger than {most} bytes"),
        retry: false,
        unsent: false,
    }
}

fn https_proxy(proxy: &SecretString, no_proxy: Option<&str>) -> Result<Proxy, TransportError> {
    let skip = match no_proxy {
        Some(hosts) if !hosts.trim().is_empty() => format!("{NEVER_PROXIED},{hosts}"),
        _ => NEVER_PROXIED.to_owned(),
    };
    let mut url = reqwest::Url::parse(proxy.expose_secret()).map_err(|_| TransportError::Proxy)?;
    let credentials = (!url.username().is_empty()).then(|| {
        let decode = |text: &str| percent_decode(text);
        (decode(url.username()), decode(url.password().unwrap_or_default()))
    });
    // The password travels in its own header, so that no error text holds the address with it.
    let _ = (url.set_username(""), url.set_password(None));
    let mut proxy = Proxy::all(url).map_err(|_| TransportError::Proxy)?.no_proxy(NoProxy::from_string(&skip));
    if let Some((user, password)) = credentials {
        proxy = proxy.basic_auth(&user, &password);
    }
    Ok(proxy)
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%');
        out.push(decoded.unwrap_or(byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn certificates(path: &Path) -> Result<Vec<reqwest::Certificate>, TransportError> {
    let pem =
        std::fs::read(path).map_err(|source| TransportError::ReadCa { path: path.to_owned(), source })?;
    let found = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if found.is_empty() {
        return Err(TransportError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

/// Sorts a client's error by what it means. reqwest's own text holds the URL, and Shodan's key is in the URL: it is never
/// used; what is said comes from the causes below it.
fn lost(error: reqwest::Error, otherwise: &str) -> Lost {
    let error = error.without_url();
    let (mut tls, mut broken) = (None, false);
    let mut deepest = None;
    let mut cause = error.source();
    while let Some(below) = cause {
        tls = tls.or_else(|| of_tls(below));
        broken |= below.is::<hyper::Error>();
        deepest = Some(below.to_string());
        cause = below.source();
    }
    let detail = deepest.map(|text| format!(": {text}")).unwrap_or_default();
    let (kind, retry, message) = if let Some(tls) = tls {
        (ErrorType::Tls, false, mistrust::message(tls))
    } else if error.is_timeout() {
        (ErrorType::Timeout, true, "no connection in time".to_owned())
    } else if error.is_decode() && !broken {
        (ErrorType::InvalidResponse, false, format!("the reply cannot be decompressed{detail}"))
    } else if error.is_builder() {
        (ErrorType::InvalidRequest, false, "the request cannot be built".to_owned())
    } else if error.is_connect() {
        (ErrorType::Connection, true, format!("cannot be reached{detail}"))
    } else {
        (ErrorType::Connection, true, format!("{otherwise}{detail}"))
    };
    Lost { error: kind, message, retry, unsent: error.is_connect() }
}

/// rustls' errors come wrapped in `io::Error`, once or twice, whose `source` passes the wrapped one over.
fn of_tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let wrapped = || error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.downcast_ref().or_else(|| of_tls(wrapped()?))
}

/// A duration as people write it: "10 s", "0.25 s".
pub(super) fn seconds(duration: Duration) -> String {
    let text = format!("{:.3}", duration.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}
