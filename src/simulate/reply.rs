//! What goes back over the socket.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::http::reason;

/// The type of nearly every body.
pub(super) const JSON: &str = "application/json";
/// The type of the bodies that ought to have been JSON.
pub(super) const HTML: &str = "text/html; charset=UTF-8";

/// A response.
#[derive(Debug)]
pub(super) struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    /// Further header lines, each ended by CRLF.
    pub headers: String,
    pub body: Body,
}

/// A response's body; shared where it is large and always the same.
#[derive(Debug)]
pub(super) enum Body {
    Text(Cow<'static, str>),
    Shared(Arc<[u8]>),
}

impl Body {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Shared(bytes) => bytes,
        }
    }
}

/// What the connection does with a request.
#[derive(Debug)]
pub(super) enum Act {
    Reply(Reply),
    /// The head at once, the body in pieces over this time.
    Slow(Reply, Duration),
    /// Never an answer.
    Stall,
    /// The head as for the whole body, half of the body, the end.
    Cut(Reply),
    Reset,
    /// These bytes, the end.
    Raw(&'static [u8]),
}

impl Act {
    /// The response in it, if there is one.
    pub(super) fn reply(&mut self) -> Option<&mut Reply> {
        match self {
            Self::Reply(reply) | Self::Slow(reply, _) | Self::Cut(reply) => Some(reply),
            Self::Stall | Self::Reset | Self::Raw(_) => None,
        }
    }

    /// The status that goes out, if one does.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Reply(reply) | Self::Slow(reply, _) | Self::Cut(reply) => Some(reply.status),
            Self::Stall | Self::Reset | Self::Raw(_) => None,
        }
    }
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status, content_type, headers: String::new(), body: Body::Text(body.into()) }
    }

    /// Writes the head into `out`. `date` is the Date header's value.
    pub(super) fn write_head(&self, out: &mut Vec<u8>, date: &str, keep_alive: bool) {
        let status = self.status.to_string();
        for part in
            ["HTTP/1.1 ", status.as_str(), " ", reason(self.status), "\r\nDate: ", date, "\r\nContent-Type: "]
        {
            out.extend_from_slice(part.as_bytes());
        }
        let length = self.body.bytes().len().to_string();
        let close = if keep_alive { "" } else { "Connection: close\r\n" };
        for part in [self.content_type, "\r\nContent-Length: ", &length, "\r\n", &self.headers, close, "\r\n"]
        {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_written_out() {
        let mut reply = Reply::new(429, JSON, "{}");
        reply.headers.push_str("Retry-After: 1\r\n");
        let mut out = Vec::new();
        reply.write_head(&mut out, "Thu, 15 Jan 2026 10:00:00 GMT", false);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 429 Too Many Requests\r\nDate: Thu, 15 Jan 2026 10:00:00 GMT\r\nContent-Type: application/json\r\n\
             Content-Length: 2\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
        );
    }
}
