//! The queue against a model of it, over any sequence of calls by several owners, and of their deaths.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::queue::{LEASE, task};
use super::*;
use crate::store::{Completed, Ended, Lease, Released, Task, TaskId};

const PROVIDERS: [&str; 2] = ["a", "b"];
const OWNERS: [&str; 2] = ["one", "two"];

#[derive(Debug, Clone)]
enum Call {
    Enqueue {
        provider: usize,
        n: u32,
        priority: u8,
        rank: u64,
        wait: Option<u32>,
        live: Option<u32>,
    },
    Take {
        provider: usize,
        n: u32,
        owner: usize,
    },
    /// Of the so-manieth lease that was ever granted, void or not.
    Renew(prop::sample::Index),
    Complete(prop::sample::Index),
    Defer(prop::sample::Index, u32),
    Fail(prop::sample::Index, Option<u32>),
    Release {
        owner: usize,
    },
    Retry,
    /// The store is dropped and opened again, as if its process had been killed between two calls.
    Reopen,
    Tick(u32),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let any = any::<prop::sample::Index>;
    let call = prop_oneof![
        4 => (0..2_usize, 0..4_u32, 0..3_u8, 0..3_u64, prop::option::weighted(0.2, 1..100_u32),
              prop::option::weighted(0.2, 1..200_u32))
            .prop_map(|(provider, n, priority, rank, wait, live)| {
                Call::Enqueue { provider, n, priority, rank, wait, live }
            }),
        4 => (0..2_usize, 1..4_u32, 0..2_usize)
            .prop_map(|(provider, n, owner)| Call::Take { provider, n, owner }),
        1 => any().prop_map(Call::Renew),
        3 => any().prop_map(Call::Complete),
        1 => (any(), 0..100_u32).prop_map(|(lease, wait)| Call::Defer(lease, wait)),
        2 => (any(), prop::option::of(0..100_u32)).prop_map(|(lease, wait)| Call::Fail(lease, wait)),
        1 => (0..2_usize).prop_map(|owner| Call::Release { owner }),
        1 => Just(Call::Retry),
        1 => Just(Call::Reopen),
        3 => (1..90_u32).prop_map(Call::Tick),
    ];
    prop::collection::vec(call, 1..60)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Ready,
    Delayed(u32),
    Leased { until: u32, owner: usize },
    Dead,
}

#[derive(Debug, Clone)]
struct Modelled {
    /// Grows from task to task.
    number: u32,
    state: State,
    /// Which of the leases that were ever granted is the last.
    lease: Option<usize>,
    place: (u8, u64),
    attempts: u32,
    deliveries: u32,
    expires: Option<u32>,
}

/// Provider and address.
type Pair = (usize, u32);

#[derive(Debug, Default)]
struct Model {
    now: u32,
    tasks: BTreeMap<Pair, Modelled>,
    numbers: u32,
    /// By address, what has ended since it was last done.
    ended: BTreeMap<u32, BTreeMap<usize, Ended>>,
    done: Vec<(u32, BTreeMap<usize, Ended>)>,
    leases: Vec<(TaskId, Pair)>,
}

impl Model {
    /// Whether the lease holds.
    fn held(&mut self, lease: usize) -> Option<Pair> {
        let (_, pair) = self.leases[lease];
        let task = self.tasks.get(&pair)?;
        (task.lease == Some(lease) && matches!(task.state, State::Leased { .. })).then_some(pair)
    }

    fn end(&mut self, (provider, n): Pair, how: Ended) {
        self.ended.entry(n).or_default().insert(provider, how);
        let open = self.tasks.iter().any(|((_, other), task)| *other == n && task.state != State::Dead);
        if !open {
            self.done.push((n, self.ended.remove(&n).unwrap_or_default()));
        }
    }

    fn put_back(&mut self, pair: Pair, wait: u32) {
        let due = self.now + wait;
        let task = self.tasks.get_mut(&pair).unwrap();
        task.deliveries -= 1;
        task.state = if wait > 0 { State::Delayed(due) } else { State::Ready };
    }

    fn give_up(&mut self, pair: Pair, why: Ended) {
        self.tasks.get_mut(&pair).unwrap().state = State::Dead;
        self.end(pair, why);
    }

    /// What taking gives: pair, attempts, deliveries.
    fn take(&mut self, provider: usize, n: usize, owner: usize) -> Vec<(Pair, u32, u32)> {
        let now = self.now;
        for (_, task) in self.tasks.iter_mut().filter(|((other, _), _)| *other == provider) {
            if let State::Delayed(due) | State::Leased { until: due, .. } = task.state
                && due <= now
            {
                task.state = State::Ready;
            }
        }
        let mut ready: Vec<_> = self
            .tasks
            .iter()
            .filter(|((other, _), task)| *other == provider && task.state == State::Ready)
            .map(|(pair, task)| ((task.place, task.number), *pair))
            .collect();
        ready.sort_unstable();
        let mut taken = Vec::new();
        for (_, pair) in ready {
            if taken.len() == n {
                break;
            }
            let task = self.tasks.get_mut(&pair).unwrap();
            if task.expires.is_some_and(|expires| expires <= now) {
                self.give_up(pair, Ended::Expired);
            } else if task.deliveries == 10 {
                self.give_up(pair, Ended::Lost);
            } else {
                task.deliveries += 1;
                task.state = State::Leased { until: now + 60, owner };
                taken.push((pair, task.attempts, task.deliveries));
            }
        }
        taken
    }

    fn enqueue(&mut self, pair: Pair, place: (u8, u64), due: Option<u32>, expires: Option<u32>) -> bool {
        let state = due.map_or(State::Ready, State::Delayed);
        let number = match self.tasks.get_mut(&pair) {
            Some(task) if task.state != State::Dead => {
                task.place = task.place.min(place);
                return false;
            }
            Some(dead) => dead.number,
            None => {
                self.numbers += 1;
                self.numbers
            }
        };
        let task = Modelled { number, state, lease: None, place, attempts: 0, deliveries: 0, expires };
        self.tasks.insert(pair, task);
        true
    }
}

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&calls(), |calls| {
            let ground = ground();
            let mut store = ground.open();
            let mut model = Model::default();
            for call in calls {
                if matches!(call, Call::Reopen) {
                    drop(store);
                    store = ground.open();
                }
                apply(&store, &mut model, &call)?;
                compare(&store, &model)?;
            }
            Ok(())
        })
        .unwrap();
}

fn second(seconds: u32) -> Timestamp {
    at(f64::from(seconds))
}

fn apply(store: &Arc<dyn Store>, model: &mut Model, call: &Call) -> Result<(), TestCaseError> {
    let now = second(model.now);
    match *call {
        Call::Enqueue { provider, n, priority, rank, wait, live } => {
            let (due, expires) = (wait.map(|wait| model.now + wait), live.map(|live| model.now + live));
            let task = Task {
                priority,
                rank,
                not_before: due.map(second),
                expires_at: expires.map(second),
                ..task(PROVIDERS[provider], n)
            };
            let added = get(store.enqueue(vec![task], now));
            let new = model.enqueue((provider, n), (priority, rank), due, expires);
            prop_assert_eq!((added.added, added.already), (u64::from(new), u64::from(!new)));
        }
        Call::Take { provider, n, owner } => {
            let leases = get(store.take(PROVIDERS[provider], n, LEASE, OWNERS[owner].into(), now));
            let row = |lease: &Lease| (lease.task.ip, lease.attempts, lease.deliveries);
            let expected = model.take(provider, n as usize, owner);
            let rows: Vec<_> = expected
                .iter()
                .map(|((_, n), attempts, deliveries)| (ip(*n), *attempts, *deliveries))
                .collect();
            prop_assert_eq!(leases.iter().map(row).collect::<Vec<_>>(), rows);
            for (lease, (pair, ..)) in leases.iter().zip(expected) {
                model.tasks.get_mut(&pair).unwrap().lease = Some(model.leases.len());
                model.leases.push((lease.id, pair));
            }
        }
        Call::Release { owner } => {
            let held = |task: &Modelled| matches!(task.state, State::Leased { owner: o, .. } if o == owner);
            let pairs: Vec<_> =
                model.tasks.iter().filter(|(_, task)| held(task)).map(|(pair, _)| *pair).collect();
            prop_assert_eq!(get(store.release(OWNERS[owner].into(), now)), pairs.len() as u64);
            for pair in pairs {
                model.put_back(pair, 0);
            }
        }
        Call::Retry => {
            let dead: Vec<_> = model.tasks.values_mut().filter(|task| task.state == State::Dead).collect();
            prop_assert_eq!(get(store.retry(None, now)), dead.len() as u64);
            for task in dead {
                *task = Modelled {
                    state: State::Ready,
                    lease: None,
                    attempts: 0,
                    deliveries: 0,
                    expires: None,
                    ..task.clone()
                };
            }
        }
        Call::Reopen => {}
        Call::Tick(seconds) => model.now += seconds,
        Call::Renew(_) | Call::Complete(_) | Call::Defer(..) | Call::Fail(..) => {
            return by_lease(store, model, call);
        }
    }
    Ok(())
}

/// Calls that name a lease.
fn by_lease(store: &Arc<dyn Store>, model: &mut Model, call: &Call) -> Result<(), TestCaseError> {
    let (Call::Renew(which) | Call::Complete(which) | Call::Defer(which, _) | Call::Fail(which, _)) = call
    else {
        return Ok(());
    };
    if model.leases.is_empty() {
        return Ok(());
    }
    let lease = which.index(model.leases.len());
    let (id, _) = model.leases[lease];
    let held = model.held(lease);
    let now = second(model.now);
    match *call {
        Call::Complete(_) => {
            let outcome = format!("{lease}").into_bytes();
            let completed = Completed { id, outcome: outcome.clone(), settled: None };
            prop_assert_eq!(get(store.complete(vec![completed], now, None)), [held.is_some()]);
            if let Some(pair) = held {
                model.tasks.remove(&pair);
                model.end(pair, Ended::Completed(outcome));
            }
        }
        Call::Defer(_, wait) => {
            let released = if held.is_some() { Released::Waits } else { Released::Void };
            prop_assert_eq!(get(store.defer(vec![id], second(model.now + wait), now)), [released]);
            if let Some(pair) = held {
                model.put_back(pair, wait);
            }
        }
        Call::Fail(_, wait) => {
            let due = wait.map(|wait| second(model.now + wait));
            let released = match (held, wait) {
                (None, _) => Released::Void,
                (Some(_), Some(_)) => Released::Waits,
                (Some(_), None) => Released::Dead,
            };
            let error = format!("{lease}").into_bytes();
            prop_assert_eq!(get(store.fail(id, error.clone(), due, now)), released);
            if let Some(pair) = held {
                model.tasks.get_mut(&pair).unwrap().attempts += 1;
                model.put_back(pair, wait.unwrap_or(0));
                if wait.is_none() {
                    model.give_up(pair, Ended::Failed(error));
                }
            }
        }
        _ => {
            prop_assert_eq!(get(store.renew(vec![id], LEASE, now)), [held.is_some()]);
            if let Some(pair) = held {
                let until = model.now + 60;
                let task = model.tasks.get_mut(&pair).unwrap();
                if let State::Leased { until: end, .. } = &mut task.state {
                    *end = until;
                }
            }
        }
    }
    Ok(())
}

fn compare(store: &Arc<dyn Store>, model: &Model) -> Result<(), TestCaseError> {
    let done: Vec<_> = get(store.results(Some(0), 1_000))
        .into_iter()
        .map(|done| (done.ip, done.outcomes.into_iter().collect::<BTreeMap<_, _>>()))
        .collect();
    let expected: Vec<_> = model
        .done
        .iter()
        .map(|(n, ended)| {
            let ended = ended.iter().map(|(provider, ended)| (PROVIDERS[*provider].into(), ended.clone()));
            (ip(*n), ended.collect::<BTreeMap<_, _>>())
        })
        .collect();
    prop_assert_eq!(done, expected);
    let status = get(store.status(second(model.now)));
    for (provider, name) in PROVIDERS.iter().enumerate() {
        let mut counts = [0; 4];
        for (_, task) in model.tasks.iter().filter(|((other, _), _)| *other == provider) {
            counts[match task.state {
                State::Delayed(due) if due > model.now => 1,
                State::Leased { until, .. } if until > model.now => 2,
                State::Ready | State::Delayed(_) | State::Leased { .. } => 0,
                State::Dead => 3,
            }] += 1;
        }
        let row = status.iter().find(|status| &*status.provider == *name);
        let found = row.map_or([0; 4], |row| [row.ready, row.delayed, row.leased, row.dead]);
        prop_assert_eq!(found, counts);
    }
    Ok(())
}
