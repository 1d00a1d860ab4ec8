//! What outlives a run, with a real store: answers that were paid for, and the quota that all processes share.

use super::*;
use crate::enrich::outcome::CacheUse;
use crate::provider::ErrorType;
use crate::store::{self, Ledger as _, Look, Place, SqliteStore, Store, Who};
use std::sync::OnceLock;

const FAST: &str = "[providers.virustotal]\nlatency = '20ms'\nsize = 'small'\n";

/// A store in a folder of its own, and runs over it.
struct Shop {
    folder: tempfile::TempDir,
    store: Arc<SqliteStore>,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&Place::new(folder.path())).unwrap());
        Self { folder, store }
    }

    fn memory(&self) -> Memory {
        memory(self.store.clone())
    }

    fn world(&self, addresses: usize) -> World {
        World { memory: Some(self.memory()), ..World::of("virustotal", FAST, addresses) }
    }
}

fn memory(store: Arc<dyn Store>) -> Memory {
    Memory {
        store,
        who: Who::Person,
        user: "ana".into(),
        max_age: None,
        refresh: false,
        offline: false,
        stale_if_error: Duration::ZERO,
        stopper: stop::channel().0,
        fault: Arc::new(OnceLock::new()),
    }
}

fn free(world: World) -> World {
    world.adjusted(|settings| settings.quotas.clear())
}

fn uses(came: &Came, of: CacheUse) -> usize {
    let is = |part: &&Part| matches!(part.outcome, Outcome::Answered { cache, .. } if cache == of);
    came.parts().filter(is).count()
}

#[test]
fn a_second_run_asks_for_nothing() {
    let shop = Shop::new();
    let first = free(shop.world(300)).run();
    assert_eq!((first.is_whole(300).answered(), uses(&first, CacheUse::Miss)), (300, 300));
    let second = free(shop.world(400)).run();
    assert_eq!(second.is_whole(400).answered(), 400);
    assert_eq!((uses(&second, CacheUse::Hit), uses(&second, CacheUse::Miss)), (300, 100));
    assert_eq!(second.stats[0].requests, 100);
    assert_eq!(second.stats[0].hits, 300);
    // What was kept is what was answered.
    let answers = |came: &Came| {
        let mut all: Vec<(u32, String)> = came
            .finished
            .iter()
            .filter(|one| one.id < 300)
            .map(|one| match &one.parts[0].outcome {
                Outcome::Answered { answer, .. } => (one.id, format!("{answer:?}")),
                Outcome::Failed { error, .. } => panic!("{error:?}"),
            })
            .collect();
        all.sort();
        all
    };
    assert_eq!(answers(&first), answers(&second));
}

#[test]
fn answers_grow_old() {
    let shop = Shop::new();
    free(shop.world(20)).run();
    let day_later = |memory: Memory| World {
        start: "2026-01-16T10:30:00Z",
        memory: Some(memory),
        ..World::of("virustotal", FAST, 20)
    };
    let older = Memory { max_age: Some(Duration::from_secs(48 * 3_600)), ..shop.memory() };
    assert_eq!(free(day_later(older)).run().stats[0].requests, 0);
    let offline = free(day_later(Memory { offline: true, ..shop.memory() })).run();
    assert_eq!(offline.is_whole(20).stats[0].requests, 0);
    assert!(offline.errors().all(|(error, attempts)| error.error == ErrorType::Offline && attempts == 0));
    assert_eq!(free(day_later(shop.memory())).run().stats[0].requests, 20);
    // Those are new again, and --refresh does not care.
    let refreshed = free(day_later(Memory { refresh: true, ..shop.memory() })).run();
    assert_eq!(refreshed.is_whole(20).stats[0].requests, 20);
    let offline = free(day_later(Memory { offline: true, ..shop.memory() })).run();
    assert_eq!((offline.is_whole(20).answered(), offline.stats[0].requests), (20, 0));
}

#[test]
fn an_answer_out_of_date_stands_in_for_a_failure_where_that_is_wanted() {
    let shop = Shop::new();
    free(shop.world(20)).run();
    let broken =
        "[providers.virustotal]\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 503\nfrom = 1\n";
    let late = |hours: u64| World {
        start: "2026-01-16T11:00:00Z",
        memory: Some(Memory { stale_if_error: Duration::from_secs(hours * 3_600), ..shop.memory() }),
        ..World::of("virustotal", broken, 30)
    };
    let came = free(late(2)).run();
    assert_eq!(uses(came.is_whole(30), CacheUse::Stale), 20);
    assert_eq!(came.errors().count(), 10);
    assert_eq!(came.stats[0].stale, 20);
    assert_eq!(free(late(0)).run().is_whole(30).answered(), 0);
}

#[test]
fn a_days_quota_is_one_for_all_runs() {
    let shop = Shop::new();
    let quota = |world: World| world.adjusted(|settings| settings.quotas = vec!["50/day".parse().unwrap()]);
    let first = quota(shop.world(30)).run();
    assert_eq!(first.is_whole(30).answered(), 30);
    let second = quota(shop.world(80)).run();
    // 30 from the cache, 20 more, and the rest is told when.
    assert_eq!((second.is_whole(80).answered(), second.stats[0].requests), (50, 20));
    for (error, attempts) in second.errors() {
        assert_eq!((error.error, attempts), (ErrorType::QuotaExhausted, 0));
        assert_eq!(error.retry_at.unwrap().to_string(), "2026-01-16T00:00:00Z");
    }
    assert_eq!(second.stats[0].closed, Some(ErrorType::QuotaExhausted));
    let third = quota(shop.world(80)).run();
    assert_eq!((third.is_whole(80).answered(), third.stats[0].requests), (50, 0));
    let tomorrow = quota(World { start: "2026-01-16T00:00:01Z", ..shop.world(80) }).run();
    assert_eq!((tomorrow.is_whole(80).answered(), tomorrow.stats[0].requests), (80, 30));
}

#[test]
fn a_job_leaves_the_reserve_to_people() {
    let shop = Shop::new();
    let quota = |world: World| world.adjusted(|settings| settings.quotas = vec!["50/day".parse().unwrap()]);
    let job = Memory { who: Who::Job("hourly".into()), ..shop.memory() };
    let came = quota(World { memory: Some(job), ..shop.world(60) }).run();
    assert_eq!((came.is_whole(60).answered(), came.stats[0].requests), (40, 40));
    assert!(
        came.errors().all(|(error, _)| error.error == ErrorType::BudgetExhausted && error.retry_at.is_some())
    );
    let person = quota(shop.world(60)).run();
    assert_eq!((person.is_whole(60).answered(), person.stats[0].requests), (50, 10));
}

#[test]
fn a_hold_off_is_everybodys() {
    let shop = Shop::new();
    let scenario = "[providers.virustotal]\nlatency = '20ms'\n\
        [[providers.virustotal.faults]]\nkind = 'status'\nstatus = 429\nretry_after = '8h'\nfrom = 6\n";
    let mut world = World { memory: Some(shop.memory()), ..World::of("virustotal", scenario, 20) };
    world.concurrency = 1;
    let first = free(world).run();
    assert_eq!((first.is_whole(20).answered(), first.stats[0].requests), (5, 6));
    let second = free(shop.world(20)).run();
    assert_eq!((second.is_whole(20).answered(), second.stats[0].requests), (5, 0));
    assert!(second.errors().all(|(error, attempts)| error.retry_at.is_some() && attempts == 0));
    let later = free(World { start: "2026-01-15T18:01:00Z", ..shop.world(20) }).run();
    assert_eq!((later.is_whole(20).answered(), later.stats[0].requests), (20, 15));
}

#[test]
fn a_budget_bounds_the_run() {
    let shop = Shop::new();
    let came = free(World { budgets: (Some(7), None), ..shop.world(20) }).run();
    assert_eq!((came.is_whole(20).answered(), came.stats[0].requests), (7, 7));
    assert!(
        came.errors().all(|(error, attempts)| error.error == ErrorType::BudgetExhausted && attempts == 0)
    );
    // What the cache answers costs nothing.
    let came = free(World { budgets: (None, Some(7)), ..shop.world(20) }).run();
    assert_eq!((came.is_whole(20).answered(), came.stats[0].requests), (14, 7));
    let alone = free(World { budgets: (Some(3), None), ..World::of("virustotal", FAST, 20) }).run();
    assert_eq!((alone.is_whole(20).answered(), alone.stats[0].requests), (3, 3));
}

#[test]
fn batches_are_counted_and_kept_address_by_address() {
    let shop = Shop::new();
    let scenario = "[providers.greynoise]\nlatency = '20ms'\n";
    let world = |n| {
        let mut world = World { memory: Some(shop.memory()), ..World::of("greynoise", scenario, 0) };
        world.list = (0..n).fold(String::new(), |list, n| {
            list + &std::net::Ipv4Addr::from_bits(0x0b00_0000 + n).to_string() + "\n"
        });
        world.adjusted(|settings| settings.quotas = vec!["500/week".parse().unwrap()])
    };
    let first = world(300).run();
    assert_eq!((first.is_whole(300).answered(), first.stats[0].requests), (300, 1));
    let second = world(600).run();
    assert_eq!((second.is_whole(600).answered(), uses(&second, CacheUse::Hit)), (500, 300));
    assert_eq!(second.errors().count(), 100);
    assert!(second.errors().all(|(error, _)| error.error == ErrorType::QuotaExhausted));
}

#[test]
fn a_budget_that_ends_while_more_is_admitted_ends_the_run() {
    let shop = Shop::new();
    let mut world =
        World { memory: Some(shop.memory()), ..World::of("greynoise", "[every]\nlatency = '20ms'", 0) };
    world.list = (0..40).fold(String::new(), |list, n| {
        list + &std::net::Ipv4Addr::from_bits(0x0b00_0000 + n).to_string() + "\n"
    });
    world.budgets = (Some(7), None);
    let came = free(world).run();
    assert_eq!((came.is_whole(40).answered(), came.errors().count()), (7, 33));
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::BudgetExhausted));
}

#[test]
fn a_connection_that_never_came_about_spends_nothing() {
    let shop = Shop::new();
    let world = || shop.world(20).adjusted(|settings| settings.quotas = vec!["25/day".parse().unwrap()]);
    let mut dead = world();
    dead.base = Some("http://127.0.0.1:9".to_owned());
    let came = dead.run();
    assert_eq!(came.is_whole(20).answered(), 0);
    let errors: Vec<_> = came.errors().map(|(error, _)| error.error).collect();
    assert!(errors.iter().all(|error| *error == ErrorType::Connection), "{errors:?}");
    assert_eq!(world().run().is_whole(20).answered(), 20);
}

#[test]
fn failures_are_never_kept() {
    let shop = Shop::new();
    let broken = "[providers.virustotal]\n[[providers.virustotal.faults]]\nkind = 'status'\nstatus = 403\nfrom = 1\nfirst = 1\n";
    let mut world = World { memory: Some(shop.memory()), ..World::of("virustotal", broken, 5) };
    world.concurrency = 1;
    let first = free(world).run();
    let failed = first.is_whole(5).errors().count();
    assert!(failed > 0);
    let second = free(shop.world(5)).run();
    assert_eq!(second.is_whole(5).answered(), 5);
    assert_eq!(usize::try_from(second.stats[0].requests).unwrap(), failed);
}

/// A process that hangs has claimed more than the lane may have in flight: they were never seen after, and the run hung too.
#[test]
fn claims_of_one_that_hangs_are_waited_for_and_no_longer() {
    let shop = Shop::new();
    let other = SqliteStore::open(&Place::new(shop.folder.path())).unwrap();
    let ask = store::Ask {
        account: Account::on_loopback("virustotal", Some("fake-key")),
        quotas: Vec::new(),
        burst: 1,
        rolling_day: false,
        reserve: 0.0,
        who: Who::Person,
        user: "bob".into(),
        keep_claim: Duration::from_secs(30),
    };
    let mut world = free(shop.world(40));
    world.concurrency = 4;
    let ips = addresses(40, "");
    let looks: Vec<Look> = ips.iter().take(20).map(Look::from).collect();
    let admitted = other.admit(Arc::new(ask), looks, true, world.start.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(admitted).unwrap().blocked.is_none());
    let came = world.run();
    assert_eq!((came.is_whole(40).answered(), came.stats[0].requests), (40, 40));
    assert!((30..35).contains(&came.took.as_secs()), "{:?}", came.took);
}
