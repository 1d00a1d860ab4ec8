//! The failures of a run, each kind once, with how many look-ups it cost.

use super::keyring::Keyring;
use super::voice::{self, Detail};
use crate::enrich::is_about_issuer;
use crate::output::record::Entry;
use crate::output::{Failure, Record, thousands};
use crate::provider::ErrorType;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Gathers them. Its size is that of the providers times the kinds.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<(String, ErrorType), Kind>);

#[derive(Debug)]
struct Kind {
    count: u64,
    /// The first that came of a request; what was left by a closed lane says less.
    message: String,
    status: Option<u16>,
    was_asked: bool,
    example: IpAddr,
}

impl Failures {
    /// Takes those of one record.
    pub(super) fn take(&mut self, record: &Record) {
        for (provider, entry) in record.providers.iter() {
            let Entry::Error(failed) = entry else { continue };
            let Failure { error, message, http_status, .. } = &failed.error;
            let was_asked = failed.attempts > 0;
            let kind = self.0.entry((provider.to_owned(), *error)).or_insert_with(|| Kind {
                count: 0,
                message: message.clone(),
                status: *http_status,
                was_asked,
                example: record.ip,
            });
            kind.count += 1;
            if was_asked && !kind.was_asked {
                *kind = Kind {
                    message: message.clone(),
                    status: *http_status,
                    was_asked,
                    example: record.ip,
                    ..*kind
                };
            }
        }
    }

    /// Says those that a person can do something about, and with `-q`, where no summary follows, all of them.
    pub(super) fn say(&self, keys: &Keyring, proxy: Option<&str>, quiet: u8) {
        for ((provider, error), kind) in &self.0 {
            let is_told_in_summary = quiet == 0 && !needs_hands(*error);
            if is_told_in_summary || *error == ErrorType::Cancelled {
                continue;
            }
            let lookups = if kind.count == 1 {
                "1 look-up".to_owned()
            } else {
                format!("{} look-ups", thousands(kind.count))
            };
            let details = details(provider, *error, kind, keys, proxy);
            let text = if *error == ErrorType::Unauthorized {
                let status = kind.status.map(|status| format!(" ({status})")).unwrap_or_default();
                format!("{provider} does not accept the API key{status}; {lookups} not answered")
            } else {
                let among = if kind.count > 1 { " among them" } else { "" };
                format!("{provider}: {}; {lookups} not answered, {}{among}", kind.message, kind.example)
            };
            if needs_hands(*error) {
                voice::error(&text, &details);
            } else {
                voice::warn_with(&text, &details);
            }
        }
    }
}

/// Whether it stays until somebody does something about it.
fn needs_hands(error: ErrorType) -> bool {
    matches!(
        error,
        ErrorType::Unauthorized
            | ErrorType::Forbidden
            | ErrorType::Tls
            | ErrorType::Connection
            | ErrorType::InvalidRequest
            | ErrorType::InvalidResponse
            | ErrorType::ResponseTooLarge
            | ErrorType::Internal
    )
}

fn details(
    provider: &str,
    error: ErrorType,
    kind: &Kind,
    keys: &Keyring,
    proxy: Option<&str>,
) -> Vec<Detail<'static>> {
    let mut details = Vec::new();
    if matches!(error, ErrorType::Unauthorized | ErrorType::Forbidden)
        && let Some(origin) = keys.origin(provider)
    {
        details.push(("key from", origin.to_string()));
    }
    if let (ErrorType::Connection | ErrorType::Tls | ErrorType::Timeout, Some(proxy)) = (error, proxy) {
        details.push(("through the proxy", proxy.to_owned()));
    }
    let tip = match error {
        ErrorType::Unauthorized => format!("check it with 'sift credentials check {provider}'"),
        ErrorType::Forbidden => "see what the key's plan covers".to_owned(),
        ErrorType::Tls if is_about_issuer(&kind.message) => {
            "if a proxy signs by itself, name its authority with ca_file".to_owned()
        }
        ErrorType::Connection => "'sift doctor' says which providers can be reached".to_owned(),
        ErrorType::InvalidResponse => {
            format!("see what it sends: sift lookup {} -p {provider} -vv", kind.example)
        }
        ErrorType::ResponseTooLarge => "max_body in the configuration is the limit".to_owned(),
        ErrorType::Internal => "please report it".to_owned(),
        _ => return details,
    };
    details.push(("tip", tip));
    details
}
