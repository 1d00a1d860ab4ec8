use super::*;
use crate::store::{Age, MAX_BODY_BYTES};

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    gives_back_what_was_kept(&ground());
    a_body_is_given_back_whatever_it_looks_like(&ground());
    a_newer_answer_replaces_an_older_one_only(&ground());
    a_body_outlives_being_read_again(&ground());
    an_answer_may_be_kept_for_ever(&ground());
    keys_share_answers_and_hosts_do_not(&ground());
    explains_and_counts(&ground());
    clears(&ground());
    prunes_what_expired_then_what_expires_soonest(&ground());
}

fn gives_back_what_was_kept(ground: &impl Ground) {
    let store = ground.open();
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    let long = vec![7; MAX_BODY_BYTES + 1];
    let longest = vec![7; MAX_BODY_BYTES];
    let kept = [
        Stored { body: Some(br#"{"data":{}}"#.to_vec()), ..stored(ip(1), 0.0) },
        Stored { found: false, status: 404, version: 3, ..stored(v6, -1.5) },
        Stored { body: Some(longest), ..stored(ip(3), 0.0) },
        Stored { body: Some(long), ..stored(ip(4), 0.0) },
    ];
    get(store.keep(&account(), kept.to_vec()));
    drop(store);

    let store = ground.open();
    let ips = vec![ip(3), v6, ip(9), ip(1), ip(4), ip(1)];
    let with_bodies = get(store.answers(&account(), ips.clone(), true));
    let [one, six, three, mut four] = kept;
    four.body = None;
    let bare = |stored: &Stored| Some(Stored { body: None, ..stored.clone() });
    let without = [&three, &six, &one, &four, &one].map(bare);
    assert_eq!(with_bodies, [Some(three), Some(six.clone()), None, Some(one.clone()), Some(four), Some(one)]);
    let [third, sixth, first, fourth, again] = without;
    assert_eq!(
        get(store.answers(&account(), ips.clone(), false)),
        [third, sixth, None, first, fourth, again]
    );
    let ages = get(store.ages(&account(), ips));
    assert_eq!(ages[1], Some(Age { fetched_at: at(-1.5), found: false, version: 3 }));
    assert_eq!(ages[2], None);
}

fn a_body_is_given_back_whatever_it_looks_like(ground: &impl Ground) {
    let store = ground.open();
    // The last three begin as zstd's frames do.
    let bodies: [&[u8]; 6] = [
        b"",
        b"{}",
        &[7; 2_000],
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd{}",
        &b"\x28\xb5\x2f\xfd".repeat(1_000),
    ];
    let kept = (0..).zip(bodies).map(|(n, body)| Stored { body: Some(body.to_vec()), ..stored(ip(n), 0.0) });
    get(store.keep(&account(), kept.collect()));
    let found = get(store.answers(&account(), (0..6).map(ip).collect(), true));
    let found: Vec<_> = found.into_iter().map(|stored| stored.unwrap().body.unwrap()).collect();
    assert_eq!(found, bodies);
}

fn a_newer_answer_replaces_an_older_one_only(ground: &impl Ground) {
    let store = ground.open();
    let put = |seconds, status| {
        get(store.keep(&account(), vec![Stored { status, ..stored(ip(1), seconds) }]));
        get(store.answers(&account(), vec![ip(1)], true))[0].as_ref().map(|stored| stored.status)
    };
    assert_eq!(put(10.0, 200), Some(200));
    assert_eq!(put(9.0, 404), Some(200));
    assert_eq!(put(11.0, 203), Some(203));
}

fn a_body_outlives_being_read_again(ground: &impl Ground) {
    let store = ground.open();
    let body = Some(b"{}".to_vec());
    get(store.keep(&account(), vec![Stored { body: body.clone(), ..stored(ip(1), 0.0) }]));
    get(store.keep(&account(), vec![Stored { version: 5, ..stored(ip(1), 0.0) }]));
    let read_again = get(store.answers(&account(), vec![ip(1)], true));
    assert_eq!(read_again, [Some(Stored { version: 5, body, ..stored(ip(1), 0.0) })]);
    // A new reply that brings none has none.
    get(store.keep(&account(), vec![stored(ip(1), 1.0)]));
    assert_eq!(get(store.answers(&account(), vec![ip(1)], true)), [Some(stored(ip(1), 1.0))]);
}

fn an_answer_may_be_kept_for_ever(ground: &impl Ground) {
    let store = ground.open();
    get(store.keep(&account(), vec![Stored { keep_until: Timestamp::MAX, ..stored(ip(1), 0.0) }]));
    assert_eq!(get(store.prune(at(1e9), u64::MAX)).expired, 0);
    let kept = get(store.answers(&account(), vec![ip(1)], false)).remove(0).unwrap();
    assert_eq!(kept.keep_until.as_second(), Timestamp::MAX.as_second());
}

fn keys_share_answers_and_hosts_do_not(ground: &impl Ground) {
    let store = ground.open();
    get(store.keep(&account(), vec![stored(ip(1), 0.0)]));
    let of = |account: Account| get(store.answers(&account, vec![ip(1)], false))[0].is_some();
    assert!(of(Account::new("abuseipdb", "api.abuseipdb.com", Some("another"))));
    assert!(!of(Account::on_loopback("abuseipdb", Some("secret"))));
    assert!(!of(Account::new("other", "api.abuseipdb.com", Some("secret"))));
}

fn explains_and_counts(ground: &impl Ground) {
    let store = ground.open();
    let other = Account::on_loopback("zz", None);
    let body = Some(b"{\"a\":1}".to_vec());
    get(store.keep(&account(), vec![Stored { body: body.clone(), ..stored(ip(1), 0.0) }, stored(ip(2), 5.0)]));
    get(store.keep(&other, vec![stored(ip(1), 1.0)]));
    let kept = get(store.explain(ip(1)));
    let names: Vec<_> = kept.iter().map(|kept| (&*kept.provider, &*kept.host)).collect();
    assert_eq!(names, [("abuseipdb", "api.abuseipdb.com"), ("zz", "loopback")]);
    assert_eq!(kept[0].stored.body, body);
    let stats = get(store.stats());
    assert_eq!((stats[0].answers, stats[0].fetched), (2, Some((at(0.0), at(5.0)))));
    assert_eq!((stats[1].answers, stats.len()), (1, 2));
    assert!(stats[0].bytes > 200, "{stats:?}");
}

fn clears(ground: &impl Ground) {
    let store = ground.open();
    let other = Account::on_loopback("zz", None);
    for account in [&account(), &other] {
        get(store.keep(account, (0..2_500).map(|n| stored(ip(n), 0.0)).collect()));
    }
    assert_eq!(get(store.clear(Some("zz".into()), Some(ip(1)))), 1);
    assert_eq!(get(store.clear(None, Some(ip(1)))), 1);
    assert_eq!(get(store.clear(Some("zz".into()), None)), 2_499);
    assert_eq!(get(store.stats()).iter().map(|stats| stats.answers).sum::<u64>(), 2_499);
    assert_eq!(get(store.clear(None, None)), 2_499);
    assert_eq!(get(store.stats()), []);
}

fn prunes_what_expired_then_what_expires_soonest(ground: &impl Ground) {
    let store = ground.open();
    // Number n expires at n seconds.
    let answers = (0..4_000).map(|n| Stored { keep_until: at(f64::from(n)), ..stored(ip(n), -100.0) });
    get(store.keep(&account(), answers.collect()));
    let pruned = get(store.prune(at(1_499.5), u64::MAX));
    assert_eq!((pruned.expired, pruned.evicted), (1_500, 0));
    let bytes = get(store.stats())[0].bytes;
    let pruned = get(store.prune(at(1_499.5), bytes / 5));
    assert_eq!((pruned.expired, pruned.evicted), (0, 2_000));
    let left = get(store.ages(&account(), (0..4_000).map(ip).collect()));
    assert!(left.iter().enumerate().all(|(n, age)| age.is_some() == (n >= 3_500)));
    assert!(get(store.stats())[0].bytes <= bytes / 5);
}
