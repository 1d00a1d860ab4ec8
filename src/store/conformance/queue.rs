use super::*;
use crate::store::{Added, Completed, Done, Ended, Lease, Purge, Released, Task, TaskId};

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    a_pair_is_one_task(&ground());
    the_most_urgent_is_taken_first(&ground());
    nobody_gets_what_another_holds(&ground());
    a_lost_lease_changes_nothing(&ground());
    a_renewed_lease_holds(&ground());
    an_address_is_done_with_its_last_task(&ground());
    what_was_paid_for_is_kept_even_when_the_lease_is_lost(&ground());
    putting_off_costs_no_attempt_and_failing_does(&ground());
    dead_letters_are_seen_and_taken_up_again(&ground());
    a_task_that_kills_its_workers_is_given_up(&ground());
    an_expired_task_is_never_asked(&ground());
    an_owner_gives_back_all_it_holds(&ground());
    results_are_read_once(&ground());
    purging_removes_what_it_says(&ground());
    very_many_may_fall_due_at_once(&ground());
}

pub(super) const LEASE: Duration = Duration::from_secs(60);

pub(super) fn task(provider: &str, n: u32) -> Task {
    Task {
        provider: provider.into(),
        ip: ip(n),
        priority: 1,
        rank: u64::from(n),
        context: format!(r#"{{"count":{n}}}"#).into_bytes().into(),
        not_before: None,
        expires_at: None,
        job: None,
    }
}

fn add(store: &Arc<dyn Store>, tasks: Vec<Task>) -> (u64, u64) {
    let Added { added, already } = get(store.enqueue(tasks, at(0.0)));
    (added, already)
}

fn take(store: &Arc<dyn Store>, provider: &str, n: u32, owner: &str, seconds: f64) -> Vec<Lease> {
    get(store.take(provider, n, LEASE, owner.into(), at(seconds)))
}

fn taken(store: &Arc<dyn Store>, provider: &str, n: u32, seconds: f64) -> Vec<IpAddr> {
    take(store, provider, n, "me", seconds).into_iter().map(|lease| lease.task.ip).collect()
}

fn completed(id: TaskId, outcome: &str) -> Completed {
    Completed { id, outcome: outcome.as_bytes().to_vec(), settled: None }
}

fn complete(store: &Arc<dyn Store>, id: TaskId, seconds: f64) -> bool {
    get(store.complete(vec![completed(id, "{}")], at(seconds), None))[0]
}

fn a_pair_is_one_task(ground: &impl Ground) {
    let store = ground.open();
    assert_eq!(add(&store, vec![task("a", 1), task("a", 2), task("b", 1), task("a", 1)]), (3, 1));
    assert_eq!(add(&ground.open(), vec![task("a", 1), task("b", 2)]), (1, 1));
    assert_eq!(taken(&store, "a", 9, 0.0), [ip(1), ip(2)]);
    // One that is being worked on is open as well.
    assert_eq!(add(&store, vec![task("a", 1)]), (0, 1));
    assert_eq!(taken(&store, "b", 9, 0.0), [ip(1), ip(2)]);
    assert_eq!(taken(&store, "nobody", 9, 0.0), [] as [IpAddr; 0]);
}

fn the_most_urgent_is_taken_first(ground: &impl Ground) {
    let store = ground.open();
    let urgent = Task { priority: 0, ..task("a", 7) };
    let later = Task { not_before: Some(at(10.0)), rank: 0, ..task("a", 8) };
    add(&store, vec![task("a", 3), later, task("a", 1), urgent, task("a", 2), task("a", 9)]);
    // Asked for again, more urgently; and again, less so.
    add(&store, vec![Task { priority: 0, rank: 9, ..task("a", 9) }, Task { priority: 2, ..task("a", 1) }]);
    assert_eq!(taken(&store, "a", 3, 0.0), [ip(7), ip(9), ip(1)]);
    assert_eq!(taken(&store, "a", 1, 9.9), [ip(2)]);
    assert_eq!(taken(&store, "a", 9, 10.0), [ip(8), ip(3)]);
}

fn nobody_gets_what_another_holds(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    add(&mine, (0..10).map(|n| task("a", n)).collect());
    let first = take(&mine, "a", 4, "me", 0.0);
    let second = take(&theirs, "a", 9, "they", 0.0);
    assert_eq!((first.len(), second.len()), (4, 6));
    assert!(first.iter().all(|lease| second.iter().all(|other| other.task.ip != lease.task.ip)));
    assert_eq!(first[1].task, task("a", 1));
    assert_eq!((first[1].attempts, first[1].deliveries, first[1].until), (0, 1, at(60.0)));
    // Mine have run out; theirs, too, a moment later.
    assert_eq!(take(&theirs, "a", 9, "they", 59.9), []);
    assert_eq!(take(&theirs, "a", 20, "they", 60.0).len(), 10);
}

fn a_lost_lease_changes_nothing(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    add(&mine, vec![task("a", 1)]);
    let old = take(&mine, "a", 1, "me", 0.0)[0].id;
    let new = take(&theirs, "a", 1, "they", 60.0)[0].clone();
    assert_eq!((new.deliveries, new.id.id), (2, old.id));
    assert!(!complete(&mine, old, 61.0));
    assert_eq!(get(mine.renew(vec![old], LEASE, at(61.0))), [false]);
    assert_eq!(get(mine.defer(vec![old], at(99.0), at(61.0))), [Released::Void]);
    assert_eq!(get(mine.fail(old, vec![], None, at(61.0))), Released::Void);
    assert!(complete(&theirs, new.id, 61.0));
    assert!(!complete(&theirs, new.id, 61.0), "a second time");
    assert_eq!(get(mine.results(None, 9)).len(), 1);
}

fn a_renewed_lease_holds(ground: &impl Ground) {
    let store = ground.open();
    add(&store, vec![task("a", 1)]);
    let id = take(&store, "a", 1, "me", 0.0)[0].id;
    assert_eq!(get(store.renew(vec![id], LEASE, at(40.0))), [true]);
    assert_eq!(take(&store, "a", 1, "they", 99.9), []);
    assert_eq!(take(&store, "a", 1, "they", 100.0).len(), 1);
}

fn an_address_is_done_with_its_last_task(ground: &impl Ground) {
    let store = ground.open();
    let job = |task: Task| Task { job: Some("cron".into()), ..task };
    add(&store, vec![job(task("a", 1)), job(task("b", 1)), task("a", 2)]);
    let a = take(&store, "a", 2, "me", 0.0);
    let b = take(&store, "b", 1, "me", 0.0);
    get(store.complete(vec![completed(a[0].id, "one")], at(1.0), None));
    assert_eq!(get(store.results(None, 9)), []);
    get(store.complete(vec![completed(a[1].id, "two"), completed(b[0].id, "three")], at(2.0), None));
    let done = |number, n: u32, job: Option<&str>, outcomes: &[(&str, &str)]| Done {
        number,
        ip: ip(n),
        context: task("a", n).context,
        job: job.map(Into::into),
        at: at(2.0),
        outcomes: outcomes
            .iter()
            .map(|(provider, outcome)| ((*provider).into(), Ended::Completed(outcome.as_bytes().to_vec())))
            .collect(),
    };
    let expected =
        [done(1, 2, None, &[("a", "two")]), done(2, 1, Some("cron"), &[("a", "one"), ("b", "three")])];
    assert_eq!(get(store.results(None, 9)), expected);
    // Once more from the start: a new task, and a result of its own.
    assert_eq!(add(&store, vec![task("a", 2)]), (1, 0));
    let again = take(&store, "a", 1, "me", 3.0)[0].id;
    get(store.complete(vec![completed(again, "four")], at(2.0), None));
    assert_eq!(get(store.results(Some(2), 9)), [done(3, 2, None, &[("a", "four")])]);
}

fn what_was_paid_for_is_kept_even_when_the_lease_is_lost(ground: &impl Ground) {
    let store = ground.open();
    add(&store, vec![task("abuseipdb", 1)]);
    let ask = ask(&["10/day"]);
    assert_eq!(going(&admit(&store, &ask, [1], 0.0)), 1);
    let old = take(&store, "abuseipdb", 1, "me", 0.0)[0].id;
    let new = take(&store, "abuseipdb", 1, "they", 60.0)[0].id;
    let settled = Settled { ip: ip(1), end: End::Answered(stored(ip(1), 1.0)) };
    let late = Completed { id: old, outcome: vec![], settled: Some((account(), settled)) };
    assert_eq!(get(store.complete(vec![late], at(61.0), None)), [false]);
    assert!(get(store.answers(&account(), vec![ip(1)], false))[0].is_some());
    assert_eq!(admit(&store, &ask, [1], 62.0).verdicts, [Admission::Answered]);
    assert!(complete(&store, new, 63.0));
}

fn putting_off_costs_no_attempt_and_failing_does(ground: &impl Ground) {
    let store = ground.open();
    add(&store, vec![task("a", 1)]);
    let mut now = 0.0;
    // Each evening for two weeks: the quota is used up.
    for _ in 0..14 {
        let lease = take(&store, "a", 1, "me", now)[0].clone();
        assert_eq!((lease.attempts, lease.deliveries), (0, 1));
        assert_eq!(get(store.defer(vec![lease.id], at(now + 86_400.0), at(now))), [Released::Waits]);
        assert_eq!(take(&store, "a", 1, "me", now + 86_399.0), []);
        now += 86_400.0;
    }
    for attempts in 0..3 {
        let lease = take(&store, "a", 1, "me", now)[0].clone();
        assert_eq!((lease.attempts, lease.deliveries), (attempts, 1));
        now += 10.0;
        let failed = get(store.fail(lease.id, b"502".to_vec(), Some(at(now)), at(now - 10.0)));
        assert_eq!(failed, Released::Waits);
    }
    // Given back at once.
    let lease = take(&store, "a", 1, "me", now)[0].clone();
    get(store.defer(vec![lease.id], at(now), at(now)));
    assert_eq!(take(&store, "a", 1, "me", now).len(), 1);
}

fn dead_letters_are_seen_and_taken_up_again(ground: &impl Ground) {
    let store = ground.open();
    add(&store, vec![task("a", 1), task("b", 1), task("a", 2)]);
    for lease in take(&store, "a", 2, "me", 0.0) {
        assert_eq!(get(store.fail(lease.id, b"gone".to_vec(), None, at(1.0))), Released::Dead);
    }
    let failed = get(store.failed(0, 9));
    assert_eq!(failed.len(), 2);
    assert_eq!(failed[0].task, task("a", 1));
    assert_eq!((failed[0].attempts, failed[0].at), (1, at(1.0)));
    assert_eq!(failed[0].why, Ended::Failed(b"gone".to_vec()));
    assert_eq!(get(store.failed(failed[0].id, 9)), failed[1..]);
    assert_eq!(take(&store, "a", 9, "me", 1_000.0), []);
    // An address of which all that is left is dead is done.
    let done = get(store.results(None, 9));
    assert_eq!((done.len(), done[0].ip), (1, ip(2)));
    assert_eq!(done[0].outcomes, [("a".into(), Ended::Failed(b"gone".to_vec()))]);
    let b = take(&store, "b", 1, "me", 2.0)[0].id;
    assert!(complete(&store, b, 2.0));
    assert_eq!(get(store.results(Some(1), 9))[0].outcomes.len(), 2);

    assert_eq!(get(store.retry(Some("b".into()), at(3.0))), 0);
    assert_eq!(get(store.retry(Some("a".into()), at(3.0))), 2);
    assert_eq!(get(store.failed(0, 9)), []);
    let again = take(&store, "a", 9, "me", 3.0);
    assert_eq!(again.len(), 2);
    assert_eq!((again[0].attempts, again[0].deliveries, &again[0].task), (0, 1, &task("a", 1)));
    for lease in again {
        assert!(complete(&store, lease.id, 4.0));
    }
    let done = get(store.results(Some(2), 9));
    assert_eq!(
        done.iter().map(|done| (done.ip, done.outcomes.len())).collect::<Vec<_>>(),
        [(ip(1), 1), (ip(2), 1)]
    );

    // Enqueued again, a dead letter is a task like any other.
    add(&store, vec![task("a", 5)]);
    let lease = take(&store, "a", 1, "me", 5.0)[0].id;
    get(store.fail(lease, vec![], None, at(5.0)));
    assert_eq!(add(&store, vec![task("a", 5)]), (1, 0));
    assert_eq!(get(store.failed(0, 9)), []);
    assert!(!complete(&store, lease, 5.0));
    assert_eq!(taken(&store, "a", 1, 5.0), [ip(5)]);
}

fn a_task_that_kills_its_workers_is_given_up(ground: &impl Ground) {
    let store = ground.open();
    add(&store, vec![task("a", 1), task("a", 2)]);
    for delivery in 1..=10 {
        let leases = take(&store, "a", 1, "me", f64::from(delivery) * 60.0);
        assert_eq!((leases[0].task.ip, leases[0].deliveries), (ip(1), delivery));
    }
    assert_eq!(taken(&store, "a", 1, 660.0), [ip(2)]);
    let failed = get(store.failed(0, 9));
    assert_eq!((failed.len(), &failed[0].why, failed[0].deliveries), (1, &Ended::Lost, 10));
    assert_eq!(get(store.results(None, 9))[0].outcomes, [("a".into(), Ended::Lost)]);
}

fn an_expired_task_is_never_asked(ground: &impl Ground) {
    let store = ground.open();
    let short_lived = Task { expires_at: Some(at(10.0)), ..task("a", 1) };
    add(&store, vec![short_lived, task("a", 2)]);
    assert_eq!(taken(&store, "a", 1, 10.0), [ip(2)]);
    assert_eq!(get(store.failed(0, 9))[0].why, Ended::Expired);
    // Taken up again by hand, it does not die of its age once more.
    assert_eq!(get(store.retry(None, at(20.0))), 1);
    assert_eq!(taken(&store, "a", 1, 20.0), [ip(1)]);
}

fn an_owner_gives_back_all_it_holds(ground: &impl Ground) {
    let store = ground.open();
    add(&store, (0..6).map(|n| task(if n % 2 == 0 { "a" } else { "b" }, n)).collect());
    let mine = take(&store, "a", 3, "me", 0.0);
    take(&store, "b", 1, "me", 0.0);
    take(&store, "b", 1, "they", 0.0);
    assert_eq!(get(store.release("me".into(), at(1.0))), 4);
    assert_eq!(get(store.release("me".into(), at(1.0))), 0);
    assert!(!complete(&store, mine[0].id, 1.0));
    let again = take(&store, "a", 9, "they", 1.0);
    assert_eq!((again.len(), again[0].deliveries), (3, 1));
    assert_eq!(taken(&store, "b", 9, 1.0), [ip(1), ip(5)]);
}

fn results_are_read_once(ground: &impl Ground) {
    let store = ground.open();
    add(&store, (0..5).map(|n| task("a", n)).collect());
    for lease in take(&store, "a", 5, "me", 0.0) {
        complete(&store, lease.id, 1.0);
    }
    let numbers = |after| get(store.results(after, 2)).iter().map(|done| done.number).collect::<Vec<_>>();
    assert_eq!(numbers(None), [1, 2]);
    assert_eq!(numbers(None), [1, 2], "printed, and the reader died");
    get(store.mark_read(2));
    assert_eq!(numbers(None), [3, 4]);
    get(store.mark_read(1));
    assert_eq!(numbers(None), [3, 4]);
    assert_eq!(numbers(Some(0)), [1, 2]);
    assert_eq!(numbers(Some(4)), [5]);
    // Old ones that were read go with the audit trail.
    assert_eq!(get(store.prune(at(91.0 * 86_400.0), u64::MAX)).results, 2);
    assert_eq!(numbers(Some(0)), [3, 4]);
}

fn purging_removes_what_it_says(ground: &impl Ground) {
    let store = ground.open();
    let fill = |first: u32| {
        add(&store, vec![task("a", first), task("a", first + 1), task("b", first + 1), task("a", first + 2)]);
        let leases = take(&store, "a", 3, "me", 0.0);
        assert!(complete(&store, leases[0].id, 0.0));
        assert!(complete(&store, leases[1].id, 0.0));
        get(store.fail(leases[2].id, vec![], None, at(0.0)));
    };
    let counts = || {
        let status = get(store.status(at(0.0)));
        let open: u64 = status.iter().map(|status| status.ready + status.delayed + status.leased).sum();
        (open, status.iter().map(|status| status.dead).sum(), get(store.results(Some(0), 99)).len())
    };
    fill(0);
    assert_eq!(counts(), (1, 1, 2));
    get(store.mark_read(1));
    assert_eq!(get(store.purge(Purge::Read, at(0.0))), 1);
    assert_eq!(counts(), (1, 1, 1));
    assert_eq!(get(store.purge(Purge::Dead, at(0.0))), 1);
    assert_eq!(counts(), (1, 0, 1));
    // What one provider said of the address is a result, though the other is never asked.
    assert_eq!(get(store.purge(Purge::Open, at(0.0))), 1);
    assert_eq!(counts(), (0, 0, 2));
    assert_eq!(get(store.results(Some(0), 9))[1].outcomes.len(), 1);
    fill(10);
    assert_eq!(get(store.purge(Purge::All, at(0.0))), 2 + 4);
    assert_eq!(counts(), (0, 0, 0));
}

fn very_many_may_fall_due_at_once(ground: &impl Ground) {
    // Midnight UTC, when a day's quota begins anew.
    let store = ground.open();
    let tomorrow = |n| Task { not_before: Some(at(50_400.0)), ..task("a", n) };
    add(&store, (0..10_000).map(tomorrow).collect());
    assert_eq!(taken(&store, "a", 10, 50_399.0), [] as [IpAddr; 0]);
    let status = &get(store.status(at(50_399.0)))[0];
    assert_eq!((status.delayed, status.next_due), (10_000, Some(at(50_400.0))));
    let mut n = 0;
    loop {
        let leases = take(&store, "a", 256, "me", 50_400.0);
        if leases.is_empty() {
            break;
        }
        n += leases.len();
        let all = leases.iter().map(|lease| completed(lease.id, "{}")).collect();
        assert!(get(store.complete(all, at(50_400.0), None)).into_iter().all(|held| held));
    }
    assert_eq!(n, 10_000);
    assert_eq!(get(store.results(None, 20_000)).len(), 10_000);
    assert_eq!(get(store.status(at(50_400.0))), []);
}
