//! Whether a provider's server can be reached: no key, no address, nothing that counts.

use super::outcome::ErrorBody;
use super::retry::after::http_date;
use super::transport::Transport;
use crate::provider::{Definition, Prepared};
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{DATE, HeaderMap};
use std::time::Duration;
use tokio::time::Instant;

/// A server that answered, whatever it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// The status.
    pub status: u16,
    /// The server's own clock, to the second.
    pub date: Option<Timestamp>,
    /// From the start of the connection to the head of the reply.
    pub took: Duration,
}

impl Transport {
    /// Asks for the head of the provider's base URL.
    ///
    /// # Errors
    /// Why there was no reply: the words are those of a look-up.
    pub async fn reach(&self, definition: &Definition, limit: Duration) -> Result<Reached, ErrorBody> {
        let prepared = Prepared {
            method: Method::HEAD,
            url: definition.base_url().clone(),
            headers: HeaderMap::new(),
            body: None,
        };
        let began = Instant::now();
        match self.exchange(prepared, limit, 1).await {
            Ok(reply) => {
                let date = reply.headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(http_date);
                Ok(Reached { status: reply.status, date, took: began.elapsed() })
            }
            Err(lost) => Err(ErrorBody::new(lost.error, lost.message)),
        }
    }
}
