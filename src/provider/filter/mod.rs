//! The filters of a run: jaq programs that read `{ip, status, headers, body}` and give an answer, a failure or null.
//!
//! ```text
//! reply -> body (serde_json, bounded) -> engine (jaq) -> judge (null: common rule) -> reading
//! ```
//!
//! A built-in filter runs in this process: on one of tokio's threads for blocking work, or, where it is plain ([`direct`])
//! and the body small, at once. A user's filter is foreign code and runs in a child process (`child`, `serve`) that holds
//! nothing and can be ended.
//!
//! Measured on two cores that had other work (optimised build, 2026-11; jaq 3.1): an AbuseIPDB reply of 471 bytes 35 to
//! 50 microseconds by jaq in this process and 65 to 105 through the child, of which the least filter (`{found: false}`)
//! takes 5; a VirusTotal reply of 10 KiB with 95 engines 220; handing it to a blocking thread and back 15 to 40 more. A
//! filter compiles in 1.1 ms, a child starts in 2.4 ms.

mod answer;
mod body;
mod builtins;
mod child;
mod common;
mod direct;
mod engine;
mod judge;
mod program;
mod second;
mod serve;
mod wire;

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use reqwest::header::HeaderMap;

pub(super) use self::answer::{asn, country, organisation};
pub use self::serve::serve_filters;
use self::{
    child::{Host, Lost},
    engine::Engine,
    judge::Rules,
    program::{About, Ask, Found, Program, Source, Told, Trusted},
    second::Second,
    wire::Question,
};
use super::{
    Definition, DefinitionError, DefinitionErrors, ErrorType, Failure, FilterError, Missing, Reach, Reading,
    Reply, Thresholds, faults::Place,
};

/// The hidden sub-command under which the program serves filters: `main` calls [`serve_filters`] for it first of all.
pub const FILTER_COMMAND: &str = "__filter";

/// Where the user's own filters run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// In this process, whatever their origin, without limits of time, memory or stack: for tests alone.
    InProcess,
    /// Built-in ones in this process, the user's in a child: this program, called with [`FILTER_COMMAND`].
    Child(PathBuf),
}

impl Sandbox {
    /// The running program as its own child.
    #[must_use]
    pub fn this_program() -> Self {
        // On Linux this path leads to the running file even after an update has replaced it.
        let same = PathBuf::from("/proc/self/exe");
        Self::Child(if same.exists() { same } else { std::env::current_exe().unwrap_or(same) })
    }
}

/// The compiled filters of the providers of one run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Filters {
    lanes: Arc<[Lane]>,
    host: Arc<Host>,
    /// Started by the first reading that is for it.
    second: Arc<OnceLock<Second>>,
}

#[derive(Debug)]
struct Lane {
    rules: Rules,
    /// What an address is that a batch's reply leaves out.
    missing: Missing,
    place: Runs,
    /// Set once, by the reading that closed the lane for its filter's fault; later replies are not filtered.
    closed: OnceLock<Failure>,
}

#[derive(Debug)]
enum Runs {
    Here(Program),
    /// In the child, under this number.
    Child(usize),
}

/// A body that a plain filter of ours reads quickly. AbuseIPDB's have half a kilobyte, and take 12 microseconds with their
/// judging: about what the way to another thread and back costs.
const SMALL_BYTES: usize = 4 * 1024;

/// Compiles a filter to see whether it can be.
pub(super) fn check(source: &str) -> Result<(), FilterError> {
    Engine::compile(source).map(drop)
}

impl Filters {
    /// Compiles the filters of `definitions`; a lane is a place in that slice.
    ///
    /// # Errors
    /// All filters that do not compile.
    pub fn new(
        definitions: &[Arc<Definition>],
        sandbox: Sandbox,
        thresholds: Thresholds,
    ) -> Result<Self, DefinitionErrors> {
        let mut lanes = Vec::new();
        let mut foreign = Vec::new();
        let mut faults = Vec::new();
        let program = match sandbox {
            Sandbox::InProcess => None,
            Sandbox::Child(program) => Some(program),
        };
        for definition in definitions {
            let rules = Rules { role: definition.role, thresholds };
            let source = Source {
                filter: definition.filter.clone(),
                split: definition.bulk.as_ref().map(|bulk| bulk.split.clone()),
            };
            let compiled = Program::new(&source, Engine::compile);
            let place = if program.is_some() && definition.foreign_filter {
                foreign.push(source);
                compiled.map(|_| Runs::Child(foreign.len() - 1))
            } else {
                compiled.map(Runs::Here)
            };
            match place {
                Ok(place) => {
                    lanes.push(Lane { rules, missing: definition.missing(), place, closed: OnceLock::new() });
                }
                Err(source) => faults.push(DefinitionError::Filter {
                    place: Place { file: definition.name.clone(), line: None },
                    source,
                }),
            }
        }
        if !faults.is_empty() {
            return Err(DefinitionErrors(faults));
        }
        Ok(Self {
            lanes: lanes.into(),
            host: Arc::new(Host::new(program.unwrap_or_default(), foreign)),
            second: Arc::default(),
        })
    }

    /// What a reply to a question of the lane's provider means. Never fails and never panics, whatever the reply.
    ///
    /// `ip` is the address that was asked about; filters of services that answer with more than that (a search for a
    /// part of the text) compare with it, and pass over every reply where it is not given.
    ///
    /// # Cancellation
    /// Dropping the future loses the reading alone.
    pub async fn read_about(&self, lane: usize, ip: Option<IpAddr>, reply: Reply) -> Reading {
        let is_quick = reply.body.len() <= SMALL_BYTES && self.lanes.get(lane).is_some_and(Lane::is_quick);
        let filters = self.clone();
        let read = move || filters.read_here(lane, ip, &reply);
        if is_quick {
            return self.second.get_or_init(second).read(read).await;
        }
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| broken_down())
    }

    /// [`Self::read_about`] without the address.
    ///
    /// # Cancellation
    /// As there.
    pub async fn read(&self, lane: usize, reply: Reply) -> Reading {
        self.read_about(lane, None, reply).await
    }

    /// [`Self::read_about`], blocking the calling thread.
    #[must_use]
    pub fn read_here(&self, lane: usize, ip: Option<IpAddr>, reply: &Reply) -> Reading {
        self.all(lane, About::One(ip), reply).into_iter().next().unwrap_or_else(broken_down)
    }

    /// What a batch's reply means for each of the addresses that were asked, in their order; as many as were asked.
    ///
    /// A failure of the whole stands for each of them. An address that the reply leaves out was not found, or is a
    /// failure, as the definition says; answers about addresses that nobody asked about are dropped.
    ///
    /// # Cancellation
    /// Dropping the future loses the readings alone.
    pub async fn read_bulk(&self, lane: usize, ips: Vec<IpAddr>, reply: Reply) -> Vec<Reading> {
        let (filters, asked) = (self.clone(), ips.len());
        let read = move || filters.all(lane, About::Many(ips), &reply);
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|_| std::iter::repeat_with(broken_down).take(asked).collect())
    }

    /// One reading for each address that is asked about.
    fn all(&self, lane: usize, about: About, reply: &Reply) -> Vec<Reading> {
        let asked = about.addresses();
        let whole = |failure: &Failure| vec![Reading::Failure(failure.clone()); asked.len()];
        let Some(lane) = self.lanes.get(lane) else {
            return whole(&Failure {
                error: ErrorType::Internal,
                reach: Reach::Lookup,
                message: "there is no such lane".into(),
                retry: false,
            });
        };
        if let Some(failure) = lane.closed.get() {
            return whole(failure);
        }
        let readings = match lane.told(&self.host, about, reply) {
            Ok(told) => lane.readings(reply, told, &asked),
            Err(lost) => whole(&lost.failure()),
        };
        for reading in &readings {
            if let Reading::Failure(failure) = reading
                && failure.error == ErrorType::InvalidResponse
                && failure.reach == Reach::Lane
            {
                // Another thread may have closed it just now, which is as good.
                let _ = lane.closed.set(failure.clone());
                break;
            }
        }
        readings
    }
}

/// A paused clock, on which the lanes are tested, runs on while another thread works.
fn second() -> Second {
    if cfg!(test) { Second::none() } else { Second::start() }
}

/// jaq is not ours: a panic of its own on an odd reply costs that reply.
fn broken_down() -> Reading {
    Reading::Failure(Failure {
        error: ErrorType::InvalidResponse,
        reach: Reach::Lookup,
        message: "the filter broke down on the reply".into(),
        retry: false,
    })
}

impl About {
    /// The addresses that are asked about, as far as they are given.
    fn addresses(&self) -> Vec<Option<IpAddr>> {
        match self {
            Self::One(ip) => vec![*ip],
            Self::Many(ips) => ips.iter().copied().map(Some).collect(),
        }
    }
}

impl Lane {
    /// Whether the filter is ours and without loops: its time is bounded by the body.
    fn is_quick(&self) -> bool {
        matches!(&self.place, Runs::Here(program) if program.is_plain())
    }

    fn told(&self, host: &Host, about: About, reply: &Reply) -> Result<Told, Lost> {
        let ask = |headers| Ask { about, status: reply.status, headers };
        match &self.place {
            Runs::Here(program) => {
                let headers = if program.names_headers() { headers(&reply.headers) } else { Vec::new() };
                Ok(program.read(&Trusted, &ask(headers), &reply.body))
            }
            Runs::Child(program) => {
                let ask = ask(headers(&reply.headers));
                host.exchange(&Question { program: *program, ask }, &reply.body)
            }
        }
    }

    fn readings(&self, reply: &Reply, told: Told, asked: &[Option<IpAddr>]) -> Vec<Reading> {
        let Told { kind, found } = told;
        match found {
            Found::Decided => vec![judge::decided(reply, kind); asked.len()],
            Found::Whole(outcome) => match asked {
                [one] => vec![judge::reading(self.rules, reply, kind, outcome, *one)],
                many => {
                    let reading = judge::reading(self.rules, reply, kind, outcome, None);
                    vec![judge::of_batch(reading); many.len()]
                }
            },
            Found::Parts(parts) => parts
                .into_iter()
                .zip(asked)
                .map(|(part, ip)| match part {
                    Some(outcome) => judge::reading(self.rules, reply, kind, outcome, *ip),
                    None => judge::left_out(self.missing),
                })
                .collect(),
        }
    }
}

impl Lost {
    fn failure(self) -> Failure {
        let (error, message) = match self {
            Self::Overran => {
                (ErrorType::InvalidResponse, "the filter took more than its 250 ms and was ended")
            }
            Self::Died => (ErrorType::InvalidResponse, "the filter ran out of memory or stack and was ended"),
            Self::NotStarted => (ErrorType::Internal, "the process that runs own filters cannot be started"),
        };
        Failure { error, reach: Reach::Lane, message: message.into(), retry: false }
    }
}

/// Names are lower case already; repeated headers are joined as HTTP joins them.
fn headers(map: &HeaderMap) -> Vec<(String, String)> {
    map.keys()
        .map(|name| {
            let values = map.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
            (name.as_str().to_owned(), values.collect::<Vec<_>>().join(", "))
        })
        .collect()
}
