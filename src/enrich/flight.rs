//! One exchange in flight, from the permit to the reading.

use super::limit::headers::{Told, told};
use super::retry::after::retry_after;
use super::transport::{Lost, Transport};
use crate::provider::{Dialect, ErrorType, Filters, Prepared, Reading};
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// The addresses of one request.
#[derive(Debug)]
pub(super) enum Asked {
    One(IpAddr),
    /// In the provider's bulk form.
    Many(Vec<IpAddr>),
}

impl Asked {
    pub(super) fn about(ips: Vec<IpAddr>) -> Self {
        match ips.as_slice() {
            [one] => Self::One(*one),
            _ => Self::Many(ips),
        }
    }

    pub(super) fn ips(&self) -> &[IpAddr] {
        match self {
            Self::One(ip) => std::slice::from_ref(ip),
            Self::Many(ips) => ips,
        }
    }
}

/// What an exchange brought.
#[derive(Debug)]
pub(super) enum Brought {
    /// A reply, and what it says of each address that was asked about, in their order.
    Reply {
        status: u16,
        readings: Vec<Reading>,
        told: Vec<Told>,
        retry_after: Option<Duration>,
        /// The body as it came; a batch's is nobody's own and is not kept.
        raw: Option<Box<[u8]>>,
        /// How the body begins, where nothing can be made of it and somebody wants to see such things.
        odd: Option<Box<[u8]>>,
    },
    /// None.
    Nothing(Lost),
}

/// An exchange that ended.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) sent: Instant,
    pub(super) took: Duration,
    pub(super) brought: Brought,
}

/// Of a body that cannot be read, so much is kept for a person: far more than is shown, so that no key that it echoes
/// is cut before it is masked.
const ODD_BYTES: usize = 16 << 10;

fn is_odd(reading: &Reading) -> bool {
    matches!(reading, Reading::Failure(failure) if failure.error == ErrorType::InvalidResponse)
}

/// What every exchange of a lane needs.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) transport: Transport,
    pub(super) filters: Arc<Filters>,
    pub(super) lane: usize,
    pub(super) dialect: Dialect,
    /// Whether outcomes show the bodies.
    pub(super) keep_raw: bool,
    /// Whether bodies are kept at all.
    pub(super) keep_body: bool,
}

/// Sends, reads, and gives the permit back as soon as the reply is here: the filter runs without it.
pub(super) async fn fly(
    flying: Arc<Flying>,
    asked: Asked,
    prepared: Prepared,
    limit: Duration,
    wall: Timestamp,
    permit: OwnedSemaphorePermit,
) -> Landed {
    let sent = Instant::now();
    let reply = flying.transport.exchange(prepared, limit, asked.ips().len()).await;
    drop(permit);
    let took = sent.elapsed();
    let brought = match reply {
        Err(lost) => Brought::Nothing(lost),
        Ok(reply) => {
            let arrived = wall + jiff::SignedDuration::try_from(took).unwrap_or_default();
            let told = told(flying.dialect, &reply.headers, arrived);
            let retry_after = retry_after(&reply.headers, arrived);
            let status = reply.status;
            let keeps = flying.keep_body && matches!(asked, Asked::One(_));
            let raw = keeps.then(|| reply.body.as_slice().into());
            let shows = tracing::enabled!(tracing::Level::DEBUG);
            let start = shows.then(|| reply.body.iter().copied().take(ODD_BYTES).collect());
            let readings = match asked {
                Asked::One(ip) => vec![flying.filters.read_about(flying.lane, Some(ip), reply).await],
                Asked::Many(ips) => flying.filters.read_bulk(flying.lane, ips, reply).await,
            };
            let odd = start.filter(|_| readings.iter().any(is_odd));
            Brought::Reply { status, readings, told, retry_after, raw, odd }
        }
    };
    Landed { sent, took, brought }
}
