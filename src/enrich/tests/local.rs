//! Lists and files of this machine beside the lanes.

use super::*;
use crate::plan::local::tests::{lists, local};
use crate::provider::ErrorType;
use crate::provider::{Role, Verdict};

fn cins(text: &str) -> Local {
    Local::new(lists(&[("cins", text)]), |_| "2026-01-15T09:00:00Z".parse().unwrap(), Vec::new())
}

#[test]
fn what_lists_and_files_say_stands_beside_the_providers_answers() {
    let mut world = World::of("abuseipdb", "[every]\nlatency = '10ms'", 0);
    world.list = "203.0.113.7\n203.0.113.99\n".to_owned();
    world.local = local();
    let came = world.run();
    came.is_whole(2);
    for finished in &came.finished {
        let names: Vec<&str> = finished.parts.iter().map(|part| &*part.provider).collect();
        let list = if names.contains(&"cins") { "cins" } else { "tor-exits" };
        assert_eq!(names, ["abuseipdb", list, "mmdb"]);
    }
    assert_eq!(came.stats[0].answered, 2, "what this machine says is nobody's look-up");
}

#[test]
fn known_good_addresses_are_not_asked_about() {
    let mut world = World::of("abuseipdb", "[every]\nlatency = '10ms'", 0);
    world.list = "203.0.113.54\n203.0.113.53\n".to_owned();
    world.local = local();
    let came = world.run();
    // The second is on a list of bad ones, too.
    assert_eq!(came.finished.len(), 1);
    let order = &came.provider("abuseipdb").order;
    assert_eq!(order.iter().map(ToString::to_string).collect::<Vec<_>>(), ["203.0.113.53"]);
}

#[test]
fn the_cascade_hears_what_a_list_says() {
    // The first provider knows nothing of any of them; the last is on a list of bad ones, and goes before the others.
    let answers: String =
        (1..=8).map(|n| format!("'2001:db8::{n}' = 'unknown'\n")).collect::<Vec<_>>().concat();
    let scenario =
        format!("[answers]\n{answers}[every]\nlatency = '10ms'\n[providers.virustotal]\nsize = 'small'");
    let mut world = World::of("abuseipdb", &scenario, 0);
    (1..=8).for_each(|n| writeln!(world.list, "2001:db8::{n}").unwrap());
    world.local = cins("2001:db8::8\n");
    world.lanes = vec![("abuseipdb", Ask::Always), ("virustotal", Ask::Suspicious)];
    let came = world
        .adjusted(|settings| {
            if settings.quotas.iter().any(|quota| quota.count.get() == 500) {
                settings.rates = vec!["4/min".parse().unwrap()];
            }
            settings.quotas.clear();
        })
        .run();
    came.is_whole(8);
    let order: Vec<String> = came.provider("virustotal").order.iter().map(ToString::to_string).collect();
    assert_eq!(order.len(), 8);
    let place = order.iter().position(|ip| ip == "2001:db8::8").unwrap();
    // The first handed over may have left before, and the next been taken up.
    assert!(place <= 2, "{order:?}");
}

#[test]
fn a_list_answers_where_nobody_can_be_reached() {
    let mut world = World::of("abuseipdb", "[every]\n[[every.faults]]\nkind = 'reset'", 0);
    world.list = "2001:db8::1\n2001:db8::2\n".to_owned();
    world.local = cins("2001:db8::2\n");
    let came = world.adjusted(|settings| settings.retries = 0).run();
    came.is_whole(2);
    assert!(came.errors().all(|(error, _)| error.error == ErrorType::Connection));
    let said: Vec<Verdict> = came
        .parts()
        .filter(|part| part.role == Role::Reputation)
        .filter_map(|part| match &part.outcome {
            Outcome::Answered { answer, .. } => Some(answer.verdict),
            Outcome::Failed { .. } => None,
        })
        .collect();
    assert_eq!(said, [Verdict::Suspicious]);
}
