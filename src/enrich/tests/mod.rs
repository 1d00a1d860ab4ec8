//! The lanes against the simulated providers, over real HTTP on loopback, on tokio's paused clock: client and server share
//! one runtime, so hours pass in milliseconds and every run is the same.

#![expect(clippy::cast_precision_loss, reason = "counts of a test are far below 2^52")]

mod arrivals;
mod batches;
mod bounds;
mod faults;
mod local;
mod memory;
mod refusals;
mod several;

use super::*;
use crate::extract::{self, Indicators, InputFormat};
use crate::plan::{Guard, Local, plan};
use crate::provider::{Sandbox, Table, Thresholds};
use crate::simulate::{Scenario, Server, Snapshot};
use crate::store::Account;
use outcome::{ErrorBody, Outcome, Part};
use std::fmt::Write as _;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;

/// A world: a scenario, how many addresses, and who is asked how.
pub(super) struct World {
    pub(super) scenario: String,
    pub(super) addresses: usize,
    /// Addresses beside those, one a line.
    pub(super) list: String,
    /// Providers are asked about both families, whatever they take.
    pub(super) both_families: bool,
    pub(super) local: Local,
    pub(super) lanes: Vec<(&'static str, Ask)>,
    pub(super) concurrency: usize,
    pub(super) max_time: Option<Duration>,
    pub(super) adjust: Box<dyn Fn(&mut LaneSettings)>,
    pub(super) stop_after: Option<Duration>,
    /// Sends addresses as they arrive, in the place of those above.
    pub(super) sender: Option<Sending>,
    /// What outlives the run.
    pub(super) memory: Option<Memory>,
    /// Look-ups that the run may spend: of each provider, and in all.
    pub(super) budgets: (Option<u64>, Option<u64>),
    /// Where providers are asked, if not at the simulator.
    pub(super) base: Option<String>,
    /// Wall time at the start.
    pub(super) start: &'static str,
}

/// What sends arrivals; it is over when its end is dropped.
pub(super) type Sending = Box<dyn FnOnce(mpsc::Sender<Arrival>) -> Pin<Box<dyn Future<Output = ()>>>>;

/// What came of it.
pub(super) struct Came {
    pub(super) finished: Vec<Finished>,
    pub(super) stats: Vec<LaneStats>,
    pub(super) ledger: Snapshot,
    pub(super) took: Duration,
}

impl World {
    pub(super) fn of(provider: &'static str, scenario: &str, addresses: usize) -> Self {
        Self {
            scenario: scenario.to_owned(),
            addresses,
            list: String::new(),
            both_families: false,
            local: Local::default(),
            lanes: vec![(provider, Ask::Always)],
            concurrency: 16,
            max_time: None,
            adjust: Box::new(|_| {}),
            stop_after: None,
            sender: None,
            memory: None,
            budgets: (None, None),
            base: None,
            start: "2026-01-15T10:00:00Z",
        }
    }

    /// Asks about what `send` sends.
    pub(super) fn sent_by<F: Future<Output = ()> + 'static>(
        self,
        send: impl FnOnce(mpsc::Sender<Arrival>) -> F + 'static,
    ) -> Self {
        Self { sender: Some(Box::new(move |coming| Box::pin(send(coming)))), ..self }
    }

    pub(super) fn adjusted(self, adjust: impl Fn(&mut LaneSettings) + 'static) -> Self {
        Self { adjust: Box::new(adjust), ..self }
    }

    pub(super) fn run(self) -> Came {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(self.play())
    }

    async fn play(self) -> Came {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.scenario.as_bytes()).unwrap();
        let scenario = Scenario::load(file.path()).unwrap_or_else(|error| panic!("{error}"));
        let server = Server::bind(scenario, ([127, 0, 0, 1], 0).into(), 1).await.unwrap();
        let (base, ledger) = (format!("http://{}", server.addr()), server.ledger());
        tokio::spawn(server.run(std::future::pending()));

        let base = self.base.clone().unwrap_or(base);
        let table = Table::builtin().unwrap();
        let specs: Vec<LaneSpec> = self
            .lanes
            .iter()
            .map(|&(name, ask)| {
                let mut definition = table.get(name).unwrap().with_base_url(&base, &[]).unwrap();
                definition.accepts.ipv6 |= self.both_families;
                let definition = Arc::new(definition);
                let mut settings = plain(&definition, self.concurrency);
                (self.adjust)(&mut settings);
                LaneSpec {
                    key: Some("fake-key".to_owned().into()),
                    ask,
                    settings,
                    keeping: Keeping {
                        account: Account::on_loopback(name, Some("fake-key")),
                        version: definition.version,
                        found_for: definition.cache.found,
                        unknown_for: definition.cache.unknown,
                        reserve: 0.2,
                    },
                    budget: self.budgets.0,
                    definition,
                }
            })
            .collect();
        let definitions: Vec<_> = specs.iter().map(|spec| Arc::clone(&spec.definition)).collect();
        let indicators = Arc::new(addresses(self.addresses, &self.list));
        let laid = plan(&indicators, &definitions, &Guard::default(), &self.local, None);
        let settings = TransportSettings {
            concurrency: self.concurrency,
            max_body: 1 << 20,
            ..TransportSettings::default()
        };
        let (work, sending) = match self.sender {
            None => (Work::Ranked { indicators, order: laid.order }, None),
            Some(send) => {
                let (coming, inbox) = mpsc::channel(8);
                (Work::Arriving(inbox), Some(send(coming)))
            }
        };
        let (stopper, stop) = stop::channel();
        let run = Run {
            filters: Arc::new(Filters::new(&definitions, Sandbox::InProcess, Thresholds::default()).unwrap()),
            lanes: specs,
            work,
            local: Arc::new(self.local),
            transport: Transport::new(&settings, Guard::default()).unwrap(),
            concurrency: self.concurrency,
            max_time: self.max_time,
            clock: RunClock::starting_at(self.start.parse().unwrap()),
            stop,
            seed: 7,
            board: crate::enrich::Board::default(),
            keep_raw: false,
            memory: self.memory,
            budget: self.budgets.1,
        };
        if let Some(after) = self.stop_after {
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                stopper.stop(Stop::Interrupted);
                // Kept, so that nobody takes its end for a stop that can no longer come.
                std::future::pending::<()>().await;
            });
        }
        let (out, mut inbox) = mpsc::channel(64);
        let began = Instant::now();
        let collect = async {
            let mut finished = Vec::new();
            while let Some(one) = inbox.recv().await {
                finished.push(one);
            }
            finished
        };
        let send = async {
            if let Some(sending) = sending {
                sending.await;
            }
        };
        let (stats, finished, ()) = tokio::join!(super::run(run, out), collect, send);
        Came { finished, stats, ledger: ledger.snapshot(), took: began.elapsed() }
    }
}

/// A lane without limits of its own.
fn plain(definition: &Definition, slots: usize) -> LaneSettings {
    LaneSettings {
        slots,
        rates: Vec::new(),
        burst: 1,
        quotas: definition.limits.quotas.clone(),
        timeout: Duration::from_secs(10),
        deadline: Duration::from_secs(120),
        retries: 3,
        retry_budget: 0.2,
        breaker: BreakerSettings { failures: 8, window: 10, open_for: Duration::from_secs(30) },
    }
}

/// So many documentation addresses, one after the other, and those of the list.
fn addresses(n: usize, list: &str) -> Indicators {
    let mut text = list.to_owned();
    for i in 0..n {
        let _ = writeln!(text, "2001:db8::{:x}:{:x}", i >> 16, i & 0xffff);
    }
    let options = extract::Options { format: InputFormat::List, ..extract::Options::default() };
    let input = crate::input::Input::Stdin;
    extract::extract_reader(&input, std::io::Cursor::new(text), &options, &AtomicBool::new(false))
        .unwrap()
        .indicators
}

impl Came {
    /// Every address came out exactly once.
    pub(super) fn is_whole(&self, addresses: usize) -> &Self {
        let ids: std::collections::BTreeSet<u32> = self.finished.iter().map(|finished| finished.id).collect();
        assert_eq!(
            (ids.len(), self.finished.len()),
            (addresses, addresses),
            "one record per address, always"
        );
        assert_eq!(self.ledger.total.special, 0, "no private address leaves");
        self
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.finished.iter().flat_map(|finished| &finished.parts)
    }

    pub(super) fn answered(&self) -> usize {
        self.parts().filter(|part| matches!(part.outcome, Outcome::Answered { .. })).count()
    }

    pub(super) fn errors(&self) -> impl Iterator<Item = (&ErrorBody, u32)> {
        self.parts().filter_map(|part| match &part.outcome {
            Outcome::Failed { error, attempts, .. } => Some((error, *attempts)),
            Outcome::Answered { .. } => None,
        })
    }

    pub(super) fn provider(&self, name: &str) -> &crate::simulate::ProviderReport {
        self.ledger.provider(name).unwrap()
    }
}
