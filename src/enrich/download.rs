//! A list's download, over the run's one client: nothing of anybody's addresses leaves with it.

use super::outcome::ErrorBody;
use super::retry::after::retry_after;
use super::transport::Transport;
use crate::provider::{ErrorType, Prepared};
use jiff::Timestamp;
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Method, Url};
use std::time::Duration;

/// What the last download of a list was, in the server's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
}

/// What a download brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Downloaded {
    /// The list is what it was (304).
    Unchanged,
    /// Another one.
    Whole {
        /// The bytes, decompressed.
        body: Vec<u8>,
        /// To be sent with the next one.
        validators: Validators,
    },
}

/// A download that brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDownloaded {
    /// Why.
    pub error: ErrorBody,
    /// How long the server wants to be left alone.
    pub wait: Option<Duration>,
}

impl Transport {
    /// Downloads a list of at most `most` bytes within `limit`, unless it is what `known` says. `now` is for the dates of
    /// the reply. Redirects are not followed, as everywhere.
    ///
    /// # Errors
    /// No reply, one that is too long, or any status but 200 and 304.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    pub async fn download(
        &self,
        url: &Url,
        known: &Validators,
        most: usize,
        limit: Duration,
        now: Timestamp,
    ) -> Result<Downloaded, NotDownloaded> {
        let mut headers = HeaderMap::new();
        put(&mut headers, IF_NONE_MATCH, known.etag.as_deref());
        put(&mut headers, IF_MODIFIED_SINCE, known.last_modified.as_deref());
        let asks_whether = !headers.is_empty();
        let prepared = Prepared { method: Method::GET, url: url.clone(), headers, body: None };
        let reply = self
            .exchange_within(prepared, limit, most)
            .await
            .map_err(|lost| NotDownloaded { error: ErrorBody::new(lost.error, lost.message), wait: None })?;
        match reply.status {
            200 => Ok(Downloaded::Whole {
                body: reply.body,
                validators: Validators {
                    etag: text(&reply.headers, ETAG),
                    last_modified: text(&reply.headers, LAST_MODIFIED),
                },
            }),
            304 if asks_whether => Ok(Downloaded::Unchanged),
            status => Err(NotDownloaded {
                error: ErrorBody { http_status: Some(status), ..refused(status, &reply.headers) },
                wait: retry_after(&reply.headers, now),
            }),
        }
    }
}

/// A validator that cannot stand in a header is left out: the download is then a whole one.
fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn refused(status: u16, headers: &HeaderMap) -> ErrorBody {
    let target = text(headers, reqwest::header::LOCATION).unwrap_or_default();
    let (error, message) = match status {
        300..=399 => (
            ErrorType::InvalidResponse,
            format!("{status}: it has moved to {target}; the definition's url must say so"),
        ),
        401 | 403 => (ErrorType::Forbidden, format!("{status}: the source does not let us have it")),
        404 | 410 => (ErrorType::InvalidRequest, format!("{status}: it is not there any more")),
        429 => (ErrorType::RateLimited, "429: the source asks to come less often".to_owned()),
        500..=599 => (ErrorType::ServerError, format!("the source answered {status}")),
        _ => (ErrorType::InvalidResponse, format!("the source answered {status}")),
    };
    ErrorBody::new(error, message)
}
