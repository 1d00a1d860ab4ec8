//! Addresses that come while the run goes on.

use super::*;
use crate::enrich::source::WINDOW;
use crate::provider::ErrorType;
use std::cell::Cell;
use std::net::Ipv6Addr;

const QUICK: &str = "[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'";

/// 2001:db8:: and so on, all alike.
fn arrival(id: u32) -> Arrival {
    let ip = Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(id)).into();
    Arrival { ip, id, weight: 0, lanes: None }
}

/// Without limits but 4 a minute for VirusTotal.
fn four_a_minute(settings: &mut LaneSettings) {
    if settings.quotas.iter().any(|quota| quota.count.get() == 500) {
        settings.rates = vec!["4/min".parse().unwrap()];
    }
    settings.quotas.clear();
}

fn unlimited(settings: &mut LaneSettings) {
    settings.quotas.clear();
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Sends so many, one each `every` milliseconds.
fn steadily(
    count: u32,
    every: u64,
) -> impl FnOnce(mpsc::Sender<Arrival>) -> Pin<Box<dyn Future<Output = ()>>> {
    move |coming| {
        Box::pin(async move {
            for id in 0..count {
                coming.send(arrival(id)).await.unwrap();
                pause(every).await;
            }
        })
    }
}

fn ids(came: &Came) -> Vec<u32> {
    came.finished.iter().map(|finished| finished.id).collect()
}

#[test]
fn each_comes_out_once_and_the_run_ends_with_its_senders() {
    let mut world = World::of("abuseipdb", QUICK, 0).adjusted(unlimited).sent_by(steadily(500, 20));
    world.lanes.push(("shodan", Ask::Always));
    let came = world.run();
    came.is_whole(500);
    assert_eq!((came.answered(), came.errors().count()), (1_000, 0));
    let expected = Duration::from_secs(10);
    assert!((expected..expected + Duration::from_millis(100)).contains(&came.took), "{:?}", came.took);
}

#[test]
fn one_that_arrives_is_asked_about_at_once() {
    let came = World::of("abuseipdb", QUICK, 0).sent_by(|coming| async move {
        pause(60_000).await;
        coming.send(arrival(1)).await.unwrap();
        pause(60_000).await;
        coming.send(arrival(2)).await.unwrap();
    });
    let came = came.run();
    came.is_whole(2);
    assert_eq!(came.answered(), 2);
    assert!(came.took < Duration::from_millis(120_100), "{:?}", came.took);
}

#[test]
fn without_arrivals_the_run_ends() {
    let came = World::of("abuseipdb", QUICK, 0).sent_by(|coming| async move { drop(coming) }).run();
    came.is_whole(0);
    assert!(came.took < Duration::from_secs(1));
}

#[test]
fn a_lane_takes_the_heaviest_of_what_has_arrived() {
    let came = World::of("virustotal", QUICK, 0).adjusted(four_a_minute).sent_by(|coming| async move {
        for id in 0..4 {
            coming.send(arrival(id)).await.unwrap();
        }
        pause(1_000).await;
        coming.send(Arrival { weight: 7, ..arrival(4) }).await.unwrap();
        coming.send(Arrival { weight: 9, ..arrival(5) }).await.unwrap();
        pause(20_000).await;
        coming.send(Arrival { weight: 8, ..arrival(6) }).await.unwrap();
    });
    let came = came.run();
    // One each 15 s: the fifth is there before the second turn, and the last before the third.
    assert_eq!(ids(came.is_whole(7)), [0, 5, 6, 4, 1, 2, 3]);
}

#[test]
fn the_cascade_asks_about_what_the_others_did_not_clear() {
    let answers = "[answers]\n'2001:db8::1' = 'benign'\n'2001:db8::2' = 'malicious'\n'2001:db8::3' = 'benign'\n'2001:db8::4' = 'unknown'";
    let mut world = World::of("abuseipdb", &format!("{answers}\n{QUICK}"), 0).adjusted(unlimited).sent_by(
        |coming| async move {
            for id in 1..5 {
                coming.send(arrival(id)).await.unwrap();
                pause(1_000).await;
            }
        },
    );
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world.run();
    let parts: Vec<_> =
        came.is_whole(4).finished.iter().map(|finished| (finished.id, finished.parts.len())).collect();
    assert_eq!(parts, [(1, 1), (2, 2), (3, 1), (4, 2)]);
}

#[test]
fn lanes_that_are_named_are_asked_and_no_others() {
    let answers = "[answers]\n'2001:db8::1' = 'benign'\n'2001:db8::2' = 'benign'\n'2001:db8::3' = 'benign'";
    let mut world = World::of("abuseipdb", &format!("{answers}\n{QUICK}"), 0).adjusted(unlimited).sent_by(
        |coming| async move {
            for (id, lanes) in [(1, 0b001), (2, 0b010), (3, 0b110), (4, 0)] {
                coming.send(Arrival { lanes: Some(lanes), ..arrival(id) }).await.unwrap();
                pause(1_000).await;
            }
        },
    );
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious), ("shodan", Ask::Always)];
    let came = world.run();
    came.is_whole(4);
    let mut asked: Vec<(u32, Vec<&str>)> = came
        .finished
        .iter()
        .map(|finished| (finished.id, finished.parts.iter().map(|part| &*part.provider).collect()))
        .collect();
    for (_, names) in &mut asked {
        names.sort_unstable();
    }
    let expected =
        [(1, vec!["abuseipdb"]), (2, vec!["virustotal"]), (3, vec!["shodan", "virustotal"]), (4, vec![])];
    assert_eq!(asked, expected);
}

#[test]
fn a_partial_batch_leaves_after_a_blink() {
    let came = World::of("misp", QUICK, 0).adjusted(unlimited).sent_by(|coming| async move {
        for burst in 0..3 {
            for id in 0..30 {
                coming.send(arrival(burst * 30 + id)).await.unwrap();
            }
            pause(10_000).await;
        }
    });
    let came = came.run();
    came.is_whole(90);
    assert_eq!((came.answered(), came.provider("misp").requests), (90, 3));
    assert!(came.provider("misp").last_ms < 20_100.0, "{}", came.provider("misp").last_ms);
}

#[test]
fn what_trickles_in_without_a_pause_keeps_no_batch_for_long() {
    // A hundred in a batch, one each 40 ms: without a bound the first would wait for four seconds.
    let came = World::of("misp", QUICK, 0).adjusted(unlimited).sent_by(steadily(100, 40)).run();
    came.is_whole(100);
    let requests = came.provider("misp").requests;
    assert!((4..=5).contains(&requests), "{requests}");
}

#[test]
fn what_arrives_at_a_closed_lane_has_its_word_at_once() {
    let scenario = "[every]\nlatency = '10ms'\n[providers.virustotal]\nkey = 'another'\nsize = 'small'";
    for names in [vec!["virustotal"], vec!["virustotal", "abuseipdb"], vec!["abuseipdb", "virustotal"]] {
        let mut world = World::of("abuseipdb", scenario, 0).adjusted(unlimited).sent_by(steadily(200, 1_000));
        world.lanes = names.iter().map(|&name| (name, Ask::Always)).collect();
        let came = world.run();
        came.is_whole(200);
        assert_eq!(came.answered(), 200 * (names.len() - 1));
        assert!(came.errors().all(|(error, _)| error.error == ErrorType::Unauthorized));
        assert_eq!((came.errors().count(), came.provider("virustotal").requests), (200, 1));
        let closed = came.stats.iter().find(|lane| lane.closed.is_some()).unwrap();
        assert_eq!(closed.unasked, 199);
        assert!(came.took < Duration::from_millis(200_100), "{:?}", came.took);
    }
}

#[test]
fn a_closed_lane_of_the_cascade_too() {
    let scenario = "[every]\nlatency = '10ms'\n[providers.virustotal]\nkey = 'another'\nsize = 'small'";
    let mut world = World::of("abuseipdb", scenario, 0).adjusted(unlimited).sent_by(steadily(100, 5));
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world.run();
    came.is_whole(100);
    assert!(came.provider("virustotal").requests <= 16);
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::Unauthorized));
}

#[test]
fn a_stop_ends_the_run_and_all_that_was_sent_comes_out() {
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    let mut world = World::of("virustotal", QUICK, 0).adjusted(four_a_minute).sent_by(|coming| async move {
        while coming.send(arrival(count.get())).await.is_ok() {
            count.set(count.get() + 1);
            pause(100).await;
        }
    });
    world.stop_after = Some(Duration::from_secs(31));
    let came = world.run();
    came.is_whole(sent.get() as usize);
    assert!(sent.get() > 300 && came.took < Duration::from_secs(32), "{} {:?}", sent.get(), came.took);
    assert_eq!(came.answered(), 3);
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::Cancelled));
}

#[test]
fn its_time_ends_the_run_while_it_waits_for_more() {
    for names in [&["abuseipdb"][..], &[]] {
        let mut world = World::of("abuseipdb", QUICK, 0).adjusted(unlimited).sent_by(|coming| async move {
            for id in 0..5 {
                coming.send(arrival(id)).await.unwrap();
            }
            coming.closed().await;
            assert!(coming.send(arrival(9)).await.is_err());
        });
        world.max_time = Some(Duration::from_secs(60));
        world.lanes = names.iter().map(|&name| (name, Ask::Always)).collect();
        let came = world.run();
        assert_eq!(came.is_whole(5).answered(), 5 * names.len());
        assert!((60..61).contains(&came.took.as_secs()), "{:?}", came.took);
    }
}

#[test]
fn a_sender_waits_where_too_many_are_unfinished() {
    let sent = Rc::new(Cell::new(0));
    let count = Rc::clone(&sent);
    let mut world = World::of("virustotal", QUICK, 0).adjusted(four_a_minute).sent_by(|coming| async move {
        while coming.send(arrival(count.get())).await.is_ok() {
            count.set(count.get() + 1);
        }
    });
    world.stop_after = Some(Duration::from_secs(1));
    let came = world.run();
    came.is_whole(sent.get() as usize);
    // Those beyond the window stood in the channel.
    assert!((WINDOW..=WINDOW + 9).contains(&sent.get()), "{}", sent.get());
}

#[test]
fn one_that_is_finished_may_come_again_and_failures_are_tried_again() {
    let scenario = format!("{QUICK}\n[[every.faults]]\nkind = 'status'\nstatus = 503\nfrom = 2\nfirst = 2");
    let came = World::of("abuseipdb", &scenario, 0).adjusted(unlimited).sent_by(|coming| async move {
        for _ in 0..50 {
            coming.send(arrival(3)).await.unwrap();
            pause(10_000).await;
        }
    });
    let came = came.run();
    assert_eq!((ids(&came), came.answered(), came.stats[0].retries), (vec![3; 50], 50, 2));
}

#[test]
fn more_than_the_window_flow_through_it() {
    let count = WINDOW * 2 + 100;
    // The lane closes early, so most are finished as they come.
    let came = World::of("abuseipdb", "[every]", 0).sent_by(move |coming| async move {
        for id in 0..count {
            coming.send(Arrival { weight: u64::from(id % 7), ..arrival(id) }).await.unwrap();
        }
    });
    let came = came.adjusted(|settings| settings.quotas = vec!["500/day".parse().unwrap()]).run();
    came.is_whole(count as usize);
    assert_eq!((came.answered(), came.stats[0].unasked), (500, u64::from(count) - 500));
}

#[test]
fn lists_of_this_machine_answer_where_nobody_is_asked() {
    let mut world = World::of("abuseipdb", QUICK, 0).sent_by(steadily(3, 10));
    world.lanes = Vec::new();
    world.local = crate::plan::local::tests::local();
    world.max_time = Some(Duration::from_secs(5));
    let came = world.run();
    came.is_whole(3);
    assert!(came.took < Duration::from_secs(1), "{:?}", came.took);
}
