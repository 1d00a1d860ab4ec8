//! Answers in the providers' own words: shapes as in their public documentation, contents invented.
//!
//! Bodies are written by hand into one string, because a full VirusTotal answer through a JSON tree would take longer
//! than everything else the server does.

mod abusech;
mod abuseipdb;
mod crowdsec;
mod failure;
mod greynoise;
mod ipinfo;
mod ipqualityscore;
mod misp;
mod otx;
mod shodan;
mod urlscan;
mod virustotal;

use std::net::IpAddr;

pub(super) use failure::{Failure, failure};

use super::kind::Kind;
use super::scenario::Size;
use super::verdict::Verdict;

/// What is true of an address in the eyes of one provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    pub ip: IpAddr,
    pub verdict: Verdict,
    /// A stock of random bits for the details.
    pub bits: u64,
    /// Private, reserved and so on.
    pub special: bool,
    pub origin: &'static Origin,
}

impl Face {
    /// An even draw from `low..=high`; each `salt` gives its own.
    pub(super) fn draw(&self, salt: u64, low: u64, high: u64) -> u64 {
        low + super::verdict::mix(self.bits ^ salt) % (high - low + 1)
    }

    /// A moment in the first two weeks of 2026 as (day, hour, minute, second): the same for the same face.
    fn moment(&self) -> (u64, u64, u64, u64) {
        (self.draw(1, 1, 14), self.draw(2, 0, 23), self.draw(3, 0, 59), self.draw(4, 0, 59))
    }

    fn is_bad(&self) -> bool {
        matches!(self.verdict, Verdict::Malicious | Verdict::Suspicious)
    }
}

/// Where an address is at home.
#[derive(Debug)]
pub(super) struct Origin {
    pub country: &'static str,
    pub country_name: &'static str,
    pub continent: &'static str,
    pub asn: u32,
    pub org: &'static str,
}

/// Invented networks with documentation AS numbers (RFC 5398).
pub(super) static ORIGINS: [Origin; 8] = [
    origin("NL", "Netherlands", "EU", 64_496, "Example Hosting B.V."),
    origin("DE", "Germany", "EU", 64_497, "Beispiel Netz GmbH"),
    origin("US", "United States", "NA", 64_498, "Example Cloud LLC"),
    origin("BR", "Brazil", "SA", 64_499, "Exemplo Telecom S.A."),
    origin("JP", "Japan", "AS", 64_500, "Example Network K.K."),
    origin("ZA", "South Africa", "AF", 64_501, "Example Fibre (Pty) Ltd"),
    origin("AU", "Australia", "OC", 64_502, "Example Broadband Pty Ltd"),
    origin("FR", "France", "EU", 64_503, "Exemple Internet SAS"),
];

const fn origin(
    country: &'static str,
    country_name: &'static str,
    continent: &'static str,
    asn: u32,
    org: &'static str,
) -> Origin {
    Origin { country, country_name, continent, asn, org }
}

/// A body and its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub text: String,
    /// Whether the provider dealt with the question: also by saying that it knows nothing.
    pub answers: bool,
}

impl Answer {
    fn ok(text: String) -> Self {
        Self { status: 200, text, answers: true }
    }

    fn not_found(text: String) -> Self {
        Self { status: 404, text, answers: true }
    }

    fn refused(status: u16, text: String) -> Self {
        Self { status, text, answers: false }
    }
}

/// What `kind` answers to a single question, or to the malformed text in it.
pub(super) fn answer(kind: Kind, asked: Result<&Face, &str>, quick: bool, size: Size) -> Answer {
    let face = match asked {
        Ok(face) => face,
        Err(text) => return failure::malformed(kind, text),
    };
    match kind {
        Kind::AbuseIpdb => abuseipdb::check(face),
        Kind::GreynoiseCommunity => greynoise::community(face),
        Kind::Greynoise => greynoise::single(face, quick),
        Kind::Virustotal => virustotal::address(face, size),
        Kind::Shodan => shodan::host(face, size),
        Kind::InternetDb => shodan::internetdb(face),
        Kind::Otx => otx::general(face),
        Kind::Ipinfo => ipinfo::lite(face),
        Kind::Threatfox => abusech::threatfox(face),
        Kind::Urlhaus => abusech::urlhaus(face),
        Kind::Crowdsec => crowdsec::smoke(face),
        Kind::Ipqualityscore => ipqualityscore::score(face),
        Kind::Urlscan | Kind::Misp | Kind::Custom => answer_many(kind, &[Ok(*face)], quick),
    }
}

/// What `kind` answers to a question in its bulk form, or to several addresses in one query.
pub(super) fn answer_many(kind: Kind, faces: &[Result<Face, String>], quick: bool) -> Answer {
    match kind {
        Kind::Greynoise => greynoise::multi(faces, quick),
        Kind::Ipinfo => ipinfo::batch(faces),
        Kind::Crowdsec => crowdsec::many(faces),
        Kind::Urlscan => urlscan::search(faces),
        Kind::Misp => misp::search(faces),
        // None of the others has a form for several.
        _ => failure(kind, Failure::Request),
    }
}

/// A text with `{ip}`, `{verdict}` and `{score}` filled in: the answer of a provider that the scenario defines.
pub(super) fn fill(template: &str, face: &Face, not_found: Option<u16>) -> Answer {
    let score = match face.verdict {
        Verdict::Malicious => face.draw(5, 80, 100),
        Verdict::Suspicious => face.draw(5, 30, 70),
        Verdict::Benign | Verdict::Unknown => 0,
    };
    let text = template
        .replace("{ip}", &face.ip.to_string())
        .replace("{verdict}", face.verdict.word())
        .replace("{score}", &score.to_string());
    match not_found {
        Some(status) if face.verdict == Verdict::Unknown => Answer { status, text, answers: true },
        _ => Answer::ok(text),
    }
}

/// `write!` into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        let _ = write!($out, $($arg)*);
    }};
}
use put;
