use super::*;
use crate::provider::{ErrorType, Window};
use crate::store::{AuditFilter, Blocked, Why};

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    a_day_shared_by_four_grants_exactly_its_quota(&ground());
    a_day_begins_at_midnight_utc_and_a_month_on_the_first(&ground());
    a_rolling_day_gives_back_what_it_took_a_day_ago(&ground());
    jobs_leave_the_reserve_to_people(&ground());
    a_batch_costs_what_it_counts_as(&ground());
    what_was_not_sent_is_given_back(&ground());
    what_will_outlast_the_process_is_told_early(&ground());
    a_quota_that_is_no_longer_there_holds_nobody_up(&ground());
    keys_have_quotas_of_their_own(&ground());
    several_processes_share_a_short_window(&ground());
    the_audit_trail_has_every_attempt(&ground());
    old_audit_rows_are_pruned(&ground());
}

fn a_day_shared_by_four_grants_exactly_its_quota(ground: &(impl Ground + ?Sized)) {
    let stores: Vec<_> = (0..4).map(|_| ground.open()).collect();
    let granted: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u32)
            .zip(&stores)
            .map(|(k, store)| {
                scope.spawn(move || {
                    let ask = ask(&["500/day"]);
                    (0..50)
                        .map(|i| going(&admit(store, &ask, (0..10).map(|j| k * 500 + i * 10 + j), 0.0)))
                        .sum()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(granted.iter().sum::<usize>(), 500, "{granted:?}");
    let row = &get(stores[0].quota(at(0.0)))[0];
    assert_eq!((row.used, row.left, row.limit), (500, 0, 500));
    let midnight = "2026-01-16T00:00:00Z".parse().unwrap();
    let blocked = Blocked { window: Some(Window::Day), until: midnight, why: Why::Quota, left: 0 };
    assert_eq!(admit(&stores[3], &ask(&["500/day"]), [5_000], 1.0).blocked, Some(blocked));
}

fn a_day_begins_at_midnight_utc_and_a_month_on_the_first(ground: &impl Ground) {
    let store = ground.open();
    let ask = ask(&["3/day", "7/month"]);
    let mut n = 0;
    let mut granted = |seconds: f64| {
        n += 10;
        let admitted = admit(&store, &ask, n..n + 10, seconds);
        (going(&admitted), admitted.blocked.and_then(|blocked| blocked.window))
    };
    let (midnight, first) = (14.0 * 3_600.0, (14.0 + 16.0 * 24.0) * 3_600.0);
    assert_eq!(granted(0.0), (3, Some(Window::Day)));
    assert_eq!(granted(midnight - 0.001), (0, Some(Window::Day)));
    assert_eq!(granted(midnight), (3, Some(Window::Day)));
    assert_eq!(granted(midnight + 86_400.0), (1, Some(Window::Month)));
    assert_eq!(granted(first - 0.001), (0, Some(Window::Month)));
    assert_eq!(granted(first), (3, Some(Window::Day)));
}

fn a_rolling_day_gives_back_what_it_took_a_day_ago(ground: &impl Ground) {
    let store = ground.open();
    let ask = Ask { rolling_day: true, ..ask(&["10/day"]) };
    let mut n = 0;
    let mut granted = |wish: u32, seconds: f64| {
        n += 100;
        let admitted = admit(&store, &ask, n..n + wish, seconds);
        (going(&admitted), admitted.blocked.map(|blocked| blocked.until))
    };
    let hour = 3_600.0;
    assert_eq!(granted(6, 0.0), (6, None));
    assert_eq!(granted(3, 10.0 * hour), (3, None));
    // A bucket of five minutes counts until its last possible look-up is a day old.
    let first_leaves = at(24.0 * hour + 300.0);
    assert_eq!(granted(3, 23.0 * hour), (1, Some(first_leaves)));
    assert_eq!(granted(1, 24.0 * hour + 299.0), (0, Some(first_leaves)));
    assert_eq!(granted(9, 24.0 * hour + 300.0), (6, Some(at(34.0 * hour + 300.0))));
    assert_eq!(granted(9, 34.0 * hour + 300.0), (3, Some(at(47.0 * hour + 300.0))));
}

fn jobs_leave_the_reserve_to_people(ground: &impl Ground) {
    let store = ground.open();
    let person = Ask { reserve: 0.2, ..ask(&["100/day"]) };
    let job = Ask { who: Who::Job("cron".into()), ..person.clone() };
    let worker = Ask { who: Who::Worker(None), ..person.clone() };
    let admitted = admit(&store, &job, 0..90, 0.0);
    assert_eq!(going(&admitted), 80);
    assert_eq!(admitted.blocked.map(|blocked| (blocked.why, blocked.left)), Some((Why::Reserve, 100)));
    let blocked = admit(&store, &worker, [200], 0.0).blocked;
    assert_eq!(blocked.map(|blocked| (blocked.why, blocked.left)), Some((Why::Reserve, 20)));
    let admitted = admit(&store, &person, 300..330, 0.0);
    assert_eq!(going(&admitted), 20);
    assert_eq!(admitted.blocked.map(|blocked| blocked.why), Some(Why::Quota));
    assert_eq!(get(store.quota(at(0.0)))[0].reserve, 20);
}

fn a_batch_costs_what_it_counts_as(ground: &impl Ground) {
    let store = ground.open();
    let ask = Arc::new(ask(&["2/day"]));
    let batch = |first: u32| (first..first + 50).map(|n| Look::from(ip(n))).collect::<Vec<_>>();
    for first in [0, 50] {
        assert_eq!(going(&get(store.admit(Arc::clone(&ask), batch(first), false, at(0.0)))), 50);
    }
    let third = get(store.admit(Arc::clone(&ask), batch(100), false, at(0.0)));
    assert_eq!((going(&third), third.blocked.map(|blocked| blocked.left)), (0, Some(0)));
    // Those of the first batch were not sent: the call that they cost is given back once.
    let settled = (0..50).map(|n| Settled { ip: ip(n), end: End::NotSent }).collect();
    get(store.settle(&account(), settled, None));
    assert_eq!(get(store.quota(at(0.0)))[0].left, 1);
}

fn what_was_not_sent_is_given_back(ground: &impl Ground) {
    let store = ground.open();
    let ask = Ask { burst: 1, ..ask(&["2/day", "1/min"]) };
    assert_eq!(going(&admit(&store, &ask, [1], 0.0)), 1);
    settle(&store, 1, End::NotSent);
    assert_eq!(get(store.audit(AuditFilter::default(), 0)).rows, []);
    assert_eq!(going(&admit(&store, &ask, [2], 0.0)), 1);
    // Yesterday's token does not become today's.
    let midnight = 14.0 * 3_600.0;
    assert_eq!(going(&admit(&store, &ask, [3], midnight)), 1);
    settle(&store, 2, End::NotSent);
    assert_eq!(get(store.quota(at(midnight)))[0].used, 1);
    settle(&store, 3, End::Nothing(ErrorType::Timeout));
    assert_eq!(get(store.quota(at(midnight)))[0].used, 1);
}

fn what_will_outlast_the_process_is_told_early(ground: &impl Ground) {
    let (store, other) = (ground.open(), ground.open());
    admit(&store, &ask(&[]), [1], 0.0);
    let (early, safe) = tokio::sync::oneshot::channel();
    let settled = vec![Settled { ip: ip(1), end: End::Answered(stored(ip(1), 0.0)) }];
    let settling = store.settle(&account(), settled, Some(early));
    let seen_by_others = async {
        safe.await.unwrap();
        other.answers(&account(), vec![ip(1)], false).await.unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (durable, seen) = runtime.block_on(async { tokio::join!(settling, seen_by_others) });
    assert!(durable.is_ok() && seen[0].is_some());
}

fn a_quota_that_is_no_longer_there_holds_nobody_up(ground: &impl Ground) {
    let store = ground.open();
    assert_eq!(going(&admit(&store, &ask(&["1/day", "9/month"]), 0..5, 0.0)), 1);
    assert_eq!(going(&admit(&store, &ask(&["9/month"]), 10..15, 0.0)), 5);
    // Raised, it goes on from what is spent, as far as it was counted.
    assert_eq!(going(&admit(&store, &ask(&["4/day"]), 20..25, 0.0)), 3);
}

fn keys_have_quotas_of_their_own(ground: &impl Ground) {
    let store = ground.open();
    let mine = ask(&["1/day"]);
    let theirs =
        Ask { account: Account::new("abuseipdb", "api.abuseipdb.com", Some("another")), ..mine.clone() };
    for ask in [&mine, &theirs] {
        let looks = vec![Look { ip: ip(1), known: None }];
        assert_eq!(going(&get(store.admit(Arc::new(ask.clone()), looks, true, at(0.0)))), 1);
    }
    assert_eq!(going(&admit(&store, &mine, [2], 0.0)), 0);
}

fn several_processes_share_a_short_window(ground: &impl Ground) {
    let stores = [ground.open(), ground.open()];
    let ask = Ask { burst: 1, ..ask(&["4/min"]) };
    let mut sent: Vec<f64> = Vec::new();
    let mut due = [0.0, 0.0];
    for n in 0..40 {
        let who = usize::from(due[1] < due[0]);
        let admitted = admit(&stores[who], &ask, [n], due[who]);
        match admitted.blocked {
            None => sent.push(due[who]),
            Some(blocked) => {
                assert_eq!((blocked.window, blocked.why), (Some(Window::Minute), Why::Quota));
                assert!(blocked.until > at(due[who]));
                due[who] = blocked.until.duration_since(at(0.0)).as_secs_f64();
            }
        }
    }
    assert!(sent.len() >= 13, "{sent:?}");
    assert!(sent.windows(5).all(|five| five[4] - five[0] > 60.0), "{sent:?}");
    // And as evenly as one alone would send.
    assert!(sent.windows(2).all(|two| two[1] - two[0] > 14.5), "{sent:?}");
}

fn the_audit_trail_has_every_attempt(ground: &impl Ground) {
    let store = ground.open();
    let person = ask(&["100/day"]);
    let job = Ask { who: Who::Job("cron".into()), user: "bob".into(), ..person.clone() };
    admit(&store, &person, [1, 2], 0.0);
    settle(&store, 1, End::Answered(stored(ip(1), 0.5)));
    settle(&store, 2, End::Nothing(ErrorType::Timeout));
    admit(&store, &job, [3], 1_000.0);
    admit(&store, &job, [2], 2_000.0);
    let rows = |filter: AuditFilter| {
        let page = get(store.audit(filter, 0));
        assert_eq!(page.next, None);
        let row = |row: &crate::store::AuditRow| (row.ip, row.outcome.as_deref().map(str::to_owned));
        page.rows.iter().map(row).collect::<Vec<_>>()
    };
    let all = [
        (ip(1), Some("found".to_owned())),
        (ip(2), Some("timeout".to_owned())),
        (ip(3), None),
        (ip(2), None),
    ];
    assert_eq!(rows(AuditFilter::default()), all);
    assert_eq!(rows(AuditFilter { since: Some(at(1_000.0)), ..AuditFilter::default() }), all[2..]);
    assert_eq!(rows(AuditFilter { until: Some(at(1_000.0)), ..AuditFilter::default() }), all[..2]);
    assert_eq!(rows(AuditFilter { job: Some("cron".into()), ..AuditFilter::default() }), all[2..]);
    assert_eq!(rows(AuditFilter { user: Some("ann".into()), ..AuditFilter::default() }), all[..2]);
    assert_eq!(rows(AuditFilter { ip: Some(ip(3)), ..AuditFilter::default() }), all[2..3]);
    assert_eq!(rows(AuditFilter { provider: Some("zz".into()), ..AuditFilter::default() }), []);
    let last = get(store.audit(AuditFilter::default(), 0)).rows.pop().unwrap();
    assert_eq!((last.who, &*last.user, last.key_id), (job.who, "bob", account().key_id));
    assert_eq!((last.at, &*last.provider), (at(2_000.0), "abuseipdb"));
}

fn old_audit_rows_are_pruned(ground: &impl Ground) {
    let store = ground.open();
    let ask = ask(&[]);
    admit(&store, &ask, 0..2_500, 0.0);
    let day = 86_400.0;
    admit(&store, &ask, 3_000..3_002, 2.0 * day);
    assert_eq!(get(store.prune(at(91.0 * day), u64::MAX)).audit, 2_500);
    let page = get(store.audit(AuditFilter::default(), 0));
    assert_eq!((page.rows.len(), page.next), (2, None));
    // A full page says where the next begins.
    admit(&store, &ask, 5_000..6_500, 92.0 * day);
    let page = get(store.audit(AuditFilter::default(), 0));
    let rest = get(store.audit(AuditFilter::default(), page.next.unwrap()));
    assert_eq!(page.rows.len() + rest.rows.len(), 1_502);
    assert_eq!(rest.next, None);
}
