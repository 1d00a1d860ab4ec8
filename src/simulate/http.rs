//! Just enough HTTP/1.1 to be asked by a client: one request at a time out of a growing buffer.
//!
//! Own and small, because the faults need the bare socket, and because nothing is faster.

use std::borrow::Cow;

use memchr::memmem;

/// A request's head may be this long: clients keep theirs below 8 KiB, Shodan's comma lists in the path do not.
const LONGEST_HEAD: usize = 64 << 10;
/// A request's body may be this long: 10,000 IPv6 addresses of GreyNoise's bulk form take 430 KB.
const LONGEST_BODY: usize = 4 << 20;

/// A whole request, still in the buffer.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub method: &'a str,
    /// As sent: percent-encoded, from its first slash, without the query.
    pub path: &'a str,
    pub query: &'a str,
    headers: &'a str,
    pub body: &'a [u8],
    pub keep_alive: bool,
}

/// What the buffer holds.
#[derive(Debug)]
pub(super) enum Parsed<'a> {
    /// Not yet all of a request; `wants_continue` once its head asks for a word before the body.
    Partial { wants_continue: bool },
    /// A request and how many bytes it took.
    Whole(Request<'a>, usize),
    /// Not a request that is served here, with the status to close with.
    Bad(u16),
}

/// Looks for one request at the start of `buffer`.
pub(super) fn parse(buffer: &[u8]) -> Parsed<'_> {
    let Some(end) = memmem::find(buffer, b"\r\n\r\n") else {
        return if buffer.len() > LONGEST_HEAD {
            Parsed::Bad(431)
        } else {
            Parsed::Partial { wants_continue: false }
        };
    };
    if end > LONGEST_HEAD {
        return Parsed::Bad(431);
    }
    let (head, rest) = buffer.split_at(end);
    let Ok(head) = std::str::from_utf8(head) else { return Parsed::Bad(400) };
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut parts = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Parsed::Bad(400);
    };
    if method.is_empty() || !(version == "HTTP/1.1" || version == "HTTP/1.0") {
        return Parsed::Bad(if version.starts_with("HTTP/") { 505 } else { 400 });
    }
    let Some(target) = origin_form(target) else { return Parsed::Bad(400) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request { method, path, query, headers, body: &[], keep_alive: version == "HTTP/1.1" };
    if let Some(connection) = request.header("connection") {
        request.keep_alive =
            if connection.eq_ignore_ascii_case("close") { false } else { request.keep_alive };
    }
    if request.header("transfer-encoding").is_some() {
        return Parsed::Bad(411);
    }
    let length = match request.header("content-length").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(length)) if length <= LONGEST_BODY => length,
        Some(Ok(_)) => return Parsed::Bad(413),
        Some(Err(_)) => return Parsed::Bad(400),
    };
    let Some(body) = rest.get(4..4 + length) else {
        return Parsed::Partial { wants_continue: request.header("expect").is_some() };
    };
    request.body = body;
    Parsed::Whole(request, end + 4 + length)
}

/// The target from its path on; a client that takes this server for a proxy sends the whole URL.
fn origin_form(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let after = target.strip_prefix("http://")?;
    Some(after.find('/').map_or("/", |slash| after.split_at(slash).1))
}

impl<'a> Request<'a> {
    /// The first header of this name (lower case), trimmed.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers, names as sent, values trimmed.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.headers
            .split("\r\n")
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The first query parameter of this name, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        form_value(self.query, name)
    }
}

/// A value out of `a=1&b=2`, decoded.
pub(super) fn form_value<'a>(form: &'a str, name: &str) -> Option<Cow<'a, str>> {
    form.split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| decode(value, true))
}

/// Percent-decodes; `+` is a space in queries and forms. What is no UTF-8 afterwards is replaced.
pub(super) fn decode(text: &str, plus: bool) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let escaped = after.get(..2).filter(|_| *byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match escaped.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(value) => {
                out.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            None if *byte == b'+' && plus => out.push(b' '),
            None => out.push(*byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// The words after a status.
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        425 => "Too Early",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Simulated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_or_awaited() {
        let bytes = b"POST /v3/ip?quick=true HTTP/1.1\r\nHost: x\r\nkey:  k \r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.1";
        for cut in 0..bytes.len() - 14 {
            assert!(matches!(parse(&bytes[..cut]), Parsed::Partial { .. }), "{cut}");
        }
        let Parsed::Whole(request, taken) = parse(bytes) else { panic!() };
        assert_eq!((request.method, request.path, request.query), ("POST", "/v3/ip", "quick=true"));
        assert_eq!(
            (request.header("key"), request.header("none"), request.body),
            (Some("k"), None, &b"body"[..])
        );
        assert_eq!(request.parameter("quick").as_deref(), Some("true"));
        assert_eq!(taken, bytes.len() - 14);
        assert!(request.keep_alive);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for (text, status) in [
            ("GET /\r\n\r\n", 400),
            ("GET / HTTP/2\r\n\r\n", 505),
            ("\u{16}\u{3} hello world\r\n\r\n", 400),
            ("GET x HTTP/1.1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        ] {
            assert!(matches!(parse(text.as_bytes()), Parsed::Bad(given) if given == status), "{text}");
        }
        assert!(matches!(parse(&vec![b'a'; LONGEST_HEAD + 1]), Parsed::Bad(431)));
    }

    #[test]
    fn connections_and_expectations_are_read() {
        let Parsed::Whole(request, _) = parse(b"GET http://h:1/a HTTP/1.0\r\n\r\n") else { panic!() };
        assert_eq!((request.path, request.keep_alive), ("/a", false));
        let Parsed::Whole(request, _) = parse(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n") else {
            panic!()
        };
        assert!(!request.keep_alive);
        let waits = parse(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
        assert!(matches!(waits, Parsed::Partial { wants_continue: true }));
    }

    #[test]
    fn escapes_are_undone() {
        for (text, plus, plain) in [
            ("a%3Ab", false, "a:b"),
            ("a+b", true, "a b"),
            ("a+b", false, "a+b"),
            ("%", false, "%"),
            ("%4", true, "%4"),
            ("%zz", false, "%zz"),
        ] {
            assert_eq!(decode(text, plus), plain);
        }
    }
}
