//! Accepting connections and moving bytes; what to answer is decided in `world`.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::alarm::Alarm;
use super::http::{Parsed, parse, reason};
use super::ledger::{Ledger, Outcome};
use super::reply::{Act, JSON, Reply};
use super::scenario::Scenario;
use super::world::{Exchange, World};

/// Connections served at once; further ones wait to be accepted. Above any client's concurrency, below the usual
/// limit of 1,024 open files.
const MOST_CONNECTIONS: usize = 900;
/// While an answer is held back, at most this much of what the client sends on is taken in.
const MOST_AHEAD: usize = 64 << 10;
/// A slow body goes out in so many pieces.
const PIECES: u32 = 16;
/// After a failed accept (too many open files, mostly) the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the simulator cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// Asked to listen where others could reach it.
    #[error("the simulator listens on loopback only, not on {0}")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {listen}")]
    Listen {
        /// What was asked for.
        listen: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The system's timer, which exact latencies need.
    #[error("cannot use a timer")]
    Timer(#[source] std::io::Error),
}

/// The simulator, listening.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    listener: TcpListener,
    world: Arc<World>,
    alarm: Option<Arc<Alarm>>,
}

impl Server {
    /// Listens on `listen` (port 0: any free one) and prepares `scenario`; `seed` decides latencies, shares, answers.
    /// From here on, connections are taken by the system and wait for [`Server::run`].
    ///
    /// # Errors
    ///
    /// [`SimulateError::NotLoopback`] for an address that others could reach, [`SimulateError::Listen`] if it cannot
    /// be had.
    pub async fn bind(scenario: Scenario, listen: SocketAddr, seed: u64) -> Result<Self, SimulateError> {
        if !listen.ip().is_loopback() {
            return Err(SimulateError::NotLoopback(listen));
        }
        let fail = |source| SimulateError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let addr = listener.local_addr().map_err(fail)?;
        // The one look at the system's clock: all later times are this plus what tokio's clock says has passed.
        let world = Arc::new(World::new(scenario, seed, addr, Instant::now(), jiff::Timestamp::now()));
        Ok(Self { addr, listener, world, alarm: None })
    }

    /// Holds answers back to the tenth of a millisecond, where tokio's timers may be two late. For a server
    /// in real time: a paused clock would not end its waits.
    ///
    /// # Errors
    ///
    /// [`SimulateError::Timer`] if the system has no timer left.
    pub fn with_exact_latencies(mut self) -> Result<Self, SimulateError> {
        self.alarm = Some(Arc::new(Alarm::new().map_err(SimulateError::Timer)?));
        Ok(self)
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What has arrived; stays readable after [`Server::run`] has ended.
    #[must_use]
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.world.ledger)
    }

    /// Serves until `stop` is ready, then drops all connections.
    ///
    /// # Errors
    ///
    /// [`SimulateError::Timer`] if the timer fails; what fails on a connection ends that connection.
    ///
    /// # Cancellation
    ///
    /// Dropping the future drops all connections, as `stop` does.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), SimulateError> {
        let mut connections = JoinSet::new();
        let alarm = self.alarm.clone();
        let rings = async move {
            match &alarm {
                Some(alarm) => alarm.ring().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(stop, rings);
        let (mut accepts_from, mut was_refused) = (None, false);
        loop {
            let accepts = accepts_from.is_none() && connections.len() < MOST_CONNECTIONS;
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                failed = &mut rings => return failed.map_err(SimulateError::Timer),
                Some(ended) = connections.join_next(), if !connections.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a connection of the simulator failed");
                    }
                }
                () = sleep_until(accepts_from.unwrap_or_else(Instant::now)), if accepts_from.is_some() => {
                    accepts_from = None;
                }
                accepted = self.listener.accept(), if accepts => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(Connection::new(stream, &self).serve());
                    }
                    Err(error) => {
                        // Once: it goes on for as long as the connections that are open stay.
                        if !std::mem::replace(&mut was_refused, true) {
                            tracing::warn!(%error, "the simulator could not accept a connection");
                        }
                        accepts_from = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                },
            }
        }
    }
}

/// One client's connection.
struct Connection {
    stream: TcpStream,
    world: Arc<World>,
    alarm: Option<Arc<Alarm>>,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
}

/// What is left to do on a connection.
#[derive(PartialEq, Eq)]
enum After {
    Next,
    Close,
}

impl Connection {
    fn new(stream: TcpStream, server: &Server) -> Self {
        let (world, alarm) = (Arc::clone(&server.world), server.alarm.clone());
        world.ledger.connected();
        Self { stream, world, alarm, inbound: Vec::with_capacity(4 << 10), outbound: Vec::new() }
    }

    /// Answers one request after the other until either side has had enough.
    async fn serve(mut self) {
        // Small answers are not held back for more; if it cannot be set they are merely later.
        let _ = self.stream.set_nodelay(true);
        let mut continued = false;
        loop {
            let (exchange, taken, keep_alive, head_only, arrived) = match parse(&self.inbound) {
                Parsed::Whole(request, taken) => {
                    let arrived = Instant::now();
                    let exchange = self.world.receive(&request, arrived);
                    (exchange, taken, request.keep_alive, request.method == "HEAD", arrived)
                }
                Parsed::Partial { wants_continue } => {
                    if wants_continue && !continued {
                        continued = true;
                        if self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
                            return;
                        }
                    }
                    match self.stream.read_buf(&mut self.inbound).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) => continue,
                    }
                }
                Parsed::Bad(status) => return self.refuse(status).await,
            };
            continued = false;
            self.inbound.drain(..taken);
            if self.finish(exchange, arrived, keep_alive, head_only).await == After::Close {
                return;
            }
        }
    }

    async fn refuse(&mut self, status: u16) {
        self.world.ledger.not_http();
        self.outbound.clear();
        let text = format!("{{\"message\":\"{}\"}}", reason(status));
        let reply = Reply::new(status, JSON, text);
        reply.write_head(&mut self.outbound, &self.world.date(Instant::now()), false);
        self.outbound.extend_from_slice(reply.body.bytes());
        // The connection ends either way.
        let _ = self.stream.write_all(&self.outbound).await;
    }

    /// Holds the answer back for as long as the exchange says, does what it says, and notes the end.
    async fn finish(
        &mut self,
        exchange: Exchange,
        arrived: Instant,
        keep_alive: bool,
        head_only: bool,
    ) -> After {
        let Exchange { page, answered, announced, hold, act } = exchange;
        let mut ticket = Ticket { ledger: Arc::clone(&self.world.ledger), page, arrived, ended: false };
        if !hold.is_zero() && !self.hold(Some(arrived + hold)).await {
            return After::Close;
        }
        let status = act.status();
        let Some((bytes, after)) = self.act(act, keep_alive, head_only).await else {
            // Gone in the middle: counted with its status, as abandoned.
            ticket.end(status, 0, true, &[], None);
            return After::Close;
        };
        ticket.end(status, bytes, false, &answered, announced);
        if keep_alive { after } else { After::Close }
    }

    /// Waits until then, or for ever; false as soon as the client is gone.
    async fn hold(&mut self, until: Option<Instant>) -> bool {
        let timer = async {
            match (until, &self.alarm) {
                (Some(until), Some(alarm)) => alarm.until(until).await,
                (Some(until), None) => sleep_until(until).await,
                (None, _) => std::future::pending().await,
            }
        };
        tokio::pin!(timer);
        loop {
            tokio::select! {
                biased;
                () = &mut timer => return true,
                read = self.stream.read_buf(&mut self.inbound), if self.inbound.len() < MOST_AHEAD => {
                    if matches!(read, Ok(0) | Err(_)) {
                        return false;
                    }
                }
            }
        }
    }

    /// Gives the bytes sent, or nothing if the client left before.
    async fn act(&mut self, act: Act, keep_alive: bool, head_only: bool) -> Option<(u64, After)> {
        self.outbound.clear();
        let date = self.world.date(Instant::now());
        let (reply, part, after) = match &act {
            Act::Stall => {
                self.hold(None).await;
                return None;
            }
            Act::Reset => {
                // With the option set, closing the socket sends RST; without it the client sees an early end.
                let _ = self.stream.set_zero_linger();
                return Some((0, After::Close));
            }
            Act::Raw(bytes) => {
                self.stream.write_all(bytes).await.ok()?;
                return Some((bytes.len() as u64, After::Close));
            }
            Act::Slow(reply, over) => {
                reply.write_head(&mut self.outbound, &date, keep_alive);
                return self.dribble(reply.body.bytes(), *over).await;
            }
            Act::Reply(reply) => (reply, reply.body.bytes(), After::Next),
            Act::Cut(reply) => {
                let body = reply.body.bytes();
                (reply, body.get(..body.len() / 2).unwrap_or_default(), After::Close)
            }
        };
        reply.write_head(&mut self.outbound, &date, keep_alive);
        let part = if head_only { &[] } else { part };
        // Large bodies go out from where they are.
        let (inline, apart) = if part.len() > MOST_AHEAD { (&[][..], part) } else { (part, &[][..]) };
        self.outbound.extend_from_slice(inline);
        self.stream.write_all(&self.outbound).await.ok()?;
        self.stream.write_all(apart).await.ok()?;
        Some(((self.outbound.len() + apart.len()) as u64, after))
    }

    /// The head that is ready, then the body in pieces over this time.
    async fn dribble(&mut self, body: &[u8], over: Duration) -> Option<(u64, After)> {
        let started = Instant::now();
        self.stream.write_all(&self.outbound).await.ok()?;
        let piece = body.len().div_ceil(PIECES as usize).max(1);
        for (nth, bytes) in (1_u32..).zip(body.chunks(piece)) {
            if !self.hold(Some(started + over * nth / PIECES)).await {
                return None;
            }
            self.stream.write_all(bytes).await.ok()?;
        }
        Some(((self.outbound.len() + body.len()) as u64, After::Next))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.world.ledger.disconnected();
    }
}

/// A request in flight; dropped without an end, it was abandoned.
struct Ticket {
    ledger: Arc<Ledger>,
    page: Option<usize>,
    arrived: Instant,
    ended: bool,
}

impl Ticket {
    fn end(
        &mut self,
        status: Option<u16>,
        bytes: u64,
        abandoned: bool,
        answered: &[std::net::IpAddr],
        announced: Option<Duration>,
    ) {
        self.ended = true;
        let Some(page) = self.page else { return };
        let (arrived, at) = (self.arrived, Instant::now());
        self.ledger.end(&Outcome { page, arrived, at, status, bytes, abandoned, answered, announced });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.ended {
            self.end(None, 0, true, &[], None);
        }
    }
}
