//! Which requests go wrong, and how.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::body::{Failure, failure};
use super::kind::Kind;
use super::reply::{Act, Body, HTML, JSON, Reply};
use super::scenario::{Fault, FaultKind};
use super::verdict::{falls_in, mix, mix_address};

/// Salt of the draws over requests, so that they differ from those over addresses.
const REQUESTS: u64 = 0x72_65_71;

const CAPTIVE: &str = "<!DOCTYPE html>\n<html><head><title>Network login</title></head><body><form action=\"/login\">\
                       Please sign in to use this network.</form></body></html>\n";
const NOT_FOUND: &str = "<html><head><title>404 Not Found</title></head><body>404 Not Found</body></html>\n";

/// A fault of a scenario at work.
#[derive(Debug)]
pub(super) struct Trouble {
    pub fault: Fault,
    applied: u64,
    /// Large bodies are made when first wanted.
    large: OnceLock<Arc<[u8]>>,
}

impl Trouble {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, applied: 0, large: OnceLock::new() }
    }

    /// Whether it hits this request, the provider's `ordinal`-th; if so, counts it as applied.
    pub(super) fn strikes(&mut self, seed: u64, provider: u64, ordinal: u64, addresses: &[IpAddr]) -> bool {
        let fault = &self.fault;
        let salt = fault.kind as u64;
        let in_range =
            fault.from.is_none_or(|from| ordinal >= from) && fault.to.is_none_or(|to| ordinal <= to);
        let in_cycle = fault.every.is_none_or(|every| {
            let run = fault.run.unwrap_or(if fault.kind == FaultKind::Burst500 { 10 } else { 1 });
            ordinal >= every.get() && ordinal % every < run
        });
        let named = fault.addresses.is_empty() || addresses.iter().any(|ip| fault.addresses.contains(ip));
        let drawn =
            fault.share.is_none_or(|share| falls_in(mix(mix(provider ^ REQUESTS ^ salt) ^ ordinal), share));
        let drawn_address = fault.address_share.is_none_or(|share| {
            addresses.iter().any(|ip| falls_in(mix_address(mix(seed ^ salt), *ip), share))
        });
        let strikes = in_range
            && in_cycle
            && named
            && drawn
            && drawn_address
            && fault.first.is_none_or(|first| self.applied < first);
        self.applied += u64::from(strikes);
        strikes
    }

    /// What happens instead of the answer; `None` if the answer follows, only later or slower.
    pub(super) fn act(&self, kind: Kind, port: u16, sound: impl FnOnce() -> Reply) -> Act {
        let fault = &self.fault;
        let refuse = |reason| {
            let answer = failure(kind, reason);
            Act::Reply(Reply::new(answer.status, JSON, answer.text))
        };
        match fault.kind {
            FaultKind::Status | FaultKind::Burst500 => refuse(Failure::Status(fault.status.unwrap_or(500))),
            FaultKind::Unauthorized => refuse(Failure::WrongKey),
            FaultKind::Forbidden => refuse(Failure::Plan),
            FaultKind::Stall => Act::Stall,
            FaultKind::Slow => Act::Slow(sound(), fault.over.map_or(Duration::from_secs(10), |span| span.0)),
            FaultKind::Delay => Act::Reply(sound()),
            FaultKind::Cut => Act::Cut(sound()),
            FaultKind::Reset => Act::Reset,
            FaultKind::NotHttp => Act::Raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
            FaultKind::Html => Act::Reply(Reply::new(200, HTML, CAPTIVE)),
            FaultKind::Html404 => Act::Reply(Reply::new(404, HTML, NOT_FOUND)),
            FaultKind::Empty => Act::Reply(Reply::new(200, JSON, "")),
            FaultKind::ErrorIn200 => {
                Act::Reply(Reply::new(200, JSON, failure(kind, Failure::Status(500)).text))
            }
            FaultKind::BrokenJson => {
                let mut reply = sound();
                let half = reply.body.bytes().len() / 2;
                let text =
                    String::from_utf8_lossy(reply.body.bytes().get(..half).unwrap_or_default()).into_owned();
                reply.body = Body::Text(text.into());
                Act::Reply(reply)
            }
            FaultKind::Huge | FaultKind::Nest | FaultKind::GzipBomb => Act::Reply(self.large()),
            FaultKind::Redirect => {
                let mut reply = Reply::new(302, HTML, "");
                let to = fault.location.as_deref().unwrap_or("/__trap").replace("{port}", &port.to_string());
                // A scenario's line break would end the header.
                reply.headers = format!("Location: {}\r\n", to.replace(['\r', '\n'], ""));
                Act::Reply(reply)
            }
        }
    }

    /// How much later than otherwise the answer comes.
    pub(super) fn delay(&self) -> Duration {
        match (self.fault.kind, self.fault.delay) {
            (_, Some(span)) => span.0,
            (FaultKind::Delay, None) => Duration::from_secs(2),
            _ => Duration::ZERO,
        }
    }

    /// Whether the provider's answer still reaches the client whole.
    pub(super) fn still_answers(&self) -> bool {
        matches!(self.fault.kind, FaultKind::Slow | FaultKind::Delay)
    }

    fn large(&self) -> Reply {
        let mut reply = Reply::new(200, JSON, "");
        let body = self.large.get_or_init(|| match self.fault.kind {
            FaultKind::Nest => vec![b'['; self.fault.bytes.unwrap_or(5_000_000)].into(),
            FaultKind::GzipBomb => bomb(self.fault.bytes.unwrap_or(64_000_000)).into(),
            _ => {
                let mut text = vec![b'x'; self.fault.bytes.unwrap_or(10_000_000)];
                text.splice(..0, *b"{\"data\":\"");
                text.extend_from_slice(b"\"}");
                text.into()
            }
        });
        if self.fault.kind == FaultKind::GzipBomb {
            reply.headers.push_str("Content-Encoding: gzip\r\n");
        }
        reply.body = Body::Shared(Arc::clone(body));
        reply
    }
}

/// Gzip of so many spaces: sound JSON white space, a thousandth of it on the wire.
fn bomb(bytes: usize) -> Vec<u8> {
    static CHUNK: [u8; 32 << 10] = [b' '; 32 << 10];
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut left = bytes;
    while left > 0 {
        let piece = CHUNK.get(..left.min(CHUNK.len())).unwrap_or(&CHUNK);
        left -= piece.len();
        // Writing into memory does not fail; if it did, the bomb would be smaller.
        if encoder.write_all(piece).is_err() {
            break;
        }
    }
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(text: &str) -> Trouble {
        Trouble::new(toml::from_str(text).unwrap())
    }

    fn struck(text: &str, requests: u64) -> Vec<u64> {
        let mut trouble = trouble(text);
        let ip = "203.0.113.7".parse().unwrap();
        (1..=requests).filter(|ordinal| trouble.strikes(1, 2, *ordinal, &[ip])).collect()
    }

    #[test]
    fn selectors_choose_requests() {
        for (text, hit) in [
            ("kind = 'stall'", &[1, 2, 3, 4, 5, 6, 7, 8, 9][..]),
            ("kind = 'stall'\nfrom = 3\nto = 5", &[3, 4, 5]),
            ("kind = 'stall'\nevery = 4", &[4, 8]),
            ("kind = 'stall'\nevery = 4\nrun = 2", &[4, 5, 8, 9]),
            ("kind = 'stall'\nfirst = 2", &[1, 2]),
            ("kind = 'stall'\nfrom = 4\nfirst = 2", &[4, 5]),
            ("kind = 'stall'\nshare = 0.0", &[]),
            ("kind = 'stall'\naddresses = ['203.0.113.8']", &[]),
            ("kind = 'stall'\naddresses = ['203.0.113.8', '203.0.113.7']\nto = 1", &[1]),
            ("kind = 'burst-500'\nevery = 9", &[9]),
        ] {
            assert_eq!(struck(text, 9), hit, "{text}");
        }
        assert_eq!(struck("kind = 'burst-500'\nevery = 20", 60).len(), 21);
        let half = struck("kind = 'stall'\nshare = 0.5", 1000).len();
        assert!((400..600).contains(&half), "{half}");
    }

    #[test]
    fn an_address_is_struck_every_time_and_everywhere() {
        let mut trouble = trouble("kind = 'stall'\naddress_share = 0.3");
        let mut hit = 0;
        for n in 0..=255_u8 {
            let ip = [IpAddr::from([203, 0, 113, n])];
            let first = trouble.strikes(1, 2, 1, &ip);
            assert_eq!(first, trouble.strikes(1, 99, 500, &ip));
            hit += u32::from(first);
        }
        assert!((50..110).contains(&hit), "{hit}");
    }

    #[test]
    fn a_bomb_unpacks_to_what_was_asked() {
        let packed = bomb(1_000_003);
        assert!(packed.len() < 10_000, "{}", packed.len());
        let mut out = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed), &mut out).unwrap();
        assert_eq!(out.len(), 1_000_003);
    }
}
