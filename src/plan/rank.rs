//! The rank: what is asked first, so that a small quota is spent on the worst.

use crate::extract::{Indicators, RankKey};
use std::cmp::{Ordering, Reverse};
use std::net::IpAddr;

/// Orders two addresses by DESIGN.md §3, worst first: in an alert before not; severity (1 is worst, none is last); inbound
/// before outbound, where it is known what is inside; more events; more recent. Ties by address, so that two runs agree.
fn worst_first(a: (&RankKey, IpAddr), b: (&RankKey, IpAddr)) -> Ordering {
    let weight = |key: &RankKey| {
        (
            Reverse(key.in_alert),
            key.severity.unwrap_or(u8::MAX),
            Reverse(key.inbound),
            Reverse(key.outbound),
            Reverse(key.count),
            Reverse(key.last_ms),
        )
    };
    weight(a.0).cmp(&weight(b.0)).then_with(|| a.1.cmp(&b.1))
}

/// Sorts addresses, given by number, worst first. Needs no memory beside them.
pub fn rank(indicators: &Indicators, ids: &mut [u32]) {
    ids.sort_unstable_by(|&a, &b| {
        let (left, right) = (indicators.rank_key(a), indicators.rank_key(b));
        worst_first((&left, indicators.ip(a)), (&right, indicators.ip(b)))
    });
}

/// The same order as one number, the largest first, for addresses that come one by one: counts above two million and
/// times of the same second are told apart no more.
#[must_use]
pub fn weight(key: &RankKey) -> u64 {
    let most = (1 << COUNT_BITS) - 1;
    let seconds = key.last_ms.map_or(0, |ms| u32::try_from(ms / 1000).unwrap_or(0));
    let mut weight = u64::from(key.in_alert);
    for (bits, value) in [
        (8, u64::from(u8::MAX - key.severity.unwrap_or(u8::MAX))),
        (1, u64::from(key.inbound)),
        (1, u64::from(key.outbound)),
        (COUNT_BITS, key.count.min(most)),
        (32, u64::from(seconds)),
    ] {
        weight = weight << bits | value;
    }
    weight
}

/// What 64 bits leave beside the others.
const COUNT_BITS: u32 = 21;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: RankKey = RankKey {
        in_alert: false,
        severity: None,
        inbound: false,
        outbound: false,
        count: 1,
        last_ms: Some(0),
    };

    #[test]
    fn each_criterion_decides_before_those_after_it() {
        let ip: IpAddr = "203.0.113.7".parse().unwrap();
        // Worst first; each differs from the next in the criterion that ranks it, and is behind in all later ones.
        let order = [
            RankKey { in_alert: true, severity: Some(1), ..QUIET },
            RankKey { in_alert: true, severity: Some(2), inbound: true, ..QUIET },
            RankKey { in_alert: true, severity: Some(2), outbound: true, ..QUIET },
            RankKey { in_alert: true, severity: Some(2), count: 100, ..QUIET },
            RankKey { in_alert: true, severity: Some(2), count: 9, last_ms: Some(2), ..QUIET },
            RankKey { in_alert: true, severity: Some(2), count: 9, last_ms: Some(1), ..QUIET },
            RankKey { in_alert: true, severity: Some(3), count: 1_000, ..QUIET },
            RankKey { in_alert: true, severity: None, count: 1_000, ..QUIET },
            RankKey { count: 1_000_000, ..QUIET },
            QUIET,
        ];
        for pair in order.windows(2) {
            assert_eq!(worst_first((&pair[0], ip), (&pair[1], ip)), Ordering::Less, "{pair:?}");
        }
        assert_eq!(worst_first((&QUIET, ip), (&QUIET, "203.0.113.8".parse().unwrap())), Ordering::Less);
    }

    #[test]
    fn a_count_beyond_what_the_weight_holds_spills_into_nothing() {
        let many = RankKey { count: u64::MAX, last_ms: Some(i64::MAX), ..QUIET };
        assert!(weight(&many) < weight(&RankKey { outbound: true, count: 0, last_ms: None, ..QUIET }));
        assert!(weight(&many) > weight(&RankKey { count: 1_000_000, ..QUIET }));
    }

    fn key() -> impl Strategy<Value = RankKey> {
        (
            any::<bool>(),
            prop::option::of(0_u8..5),
            any::<bool>(),
            any::<bool>(),
            0_u64..4,
            prop::option::of(0_i64..4),
        )
            .prop_map(|(in_alert, severity, inbound, outbound, count, last_ms)| RankKey {
                in_alert,
                severity,
                inbound,
                outbound,
                count,
                last_ms,
            })
    }

    proptest! {
        #[test]
        fn the_weight_never_contradicts_the_order(a in key(), b in key()) {
            let ip = std::net::Ipv4Addr::LOCALHOST.into();
            let by_weight = weight(&b).cmp(&weight(&a));
            prop_assert!(by_weight.is_eq() || by_weight == worst_first((&a, ip), (&b, ip)));
        }

        #[test]
        fn it_is_a_total_order(a in key(), b in key(), c in key(), ip: [u32; 3]) {
            let ip = ip.map(|bits| IpAddr::from(std::net::Ipv4Addr::from_bits(bits)));
            let (a, b, c) = ((&a, ip[0]), (&b, ip[1]), (&c, ip[2]));
            prop_assert_eq!(worst_first(a, b), worst_first(b, a).reverse());
            if worst_first(a, b).is_le() && worst_first(b, c).is_le() {
                prop_assert!(worst_first(a, c).is_le());
            }
        }
    }
}
