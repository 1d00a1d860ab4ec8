use super::*;
use crate::provider::ErrorType;

pub(super) fn all<G: Ground>(ground: &impl Fn() -> G) {
    a_look_up_in_flight_elsewhere_is_not_repeated(&ground());
    an_answer_that_came_meanwhile_is_not_asked_for_again(&ground());
    a_claim_frees_itself(&ground());
    a_closed_store_frees_its_claims(&ground());
    one_process_may_try_again(&ground());
}

fn a_look_up_in_flight_elsewhere_is_not_repeated(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = ask(&["10/day"]);
    assert_eq!(going(&admit(&mine, &ask, [1, 2], 0.0)), 2);
    let admitted = admit(&theirs, &ask, [1, 2, 3], 1.0);
    let until = Admission::Elsewhere(at(120.0));
    assert_eq!(admitted.verdicts, [until, until, Admission::Go]);
    assert_eq!(admitted.blocked, None);
    settle(&mine, 1, End::Answered(stored(ip(1), 2.0)));
    settle(&mine, 2, End::Nothing(ErrorType::Timeout));
    assert_eq!(admit(&theirs, &ask, [1, 2], 2.5).verdicts, [Admission::Answered, Admission::Go]);
    assert_eq!(get(mine.quota(at(3.0)))[0].used, 4);
}

fn an_answer_that_came_meanwhile_is_not_asked_for_again(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = Arc::new(ask(&["10/day"]));
    get(theirs.keep(&account(), vec![stored(ip(1), 5.0)]));
    let verdict = |known| {
        let looks = vec![Look { ip: ip(1), known }];
        let admitted = get(mine.admit(Arc::clone(&ask), looks, true, at(6.0)));
        if going(&admitted) > 0 {
            settle(&mine, 1, End::NotSent);
        }
        admitted.verdicts[0]
    };
    assert_eq!(verdict(None), Admission::Answered);
    assert_eq!(verdict(Some(at(4.0))), Admission::Answered);
    // It is this one that the caller found too old.
    assert_eq!(verdict(Some(at(5.0))), Admission::Go);
    assert_eq!(verdict(Some(at(5.000_000_1))), Admission::Go);
}

fn a_claim_frees_itself(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = Ask { keep_claim: Duration::from_secs(30), ..ask(&[]) };
    assert_eq!(going(&admit(&mine, &ask, [1], 0.0)), 1);
    assert_eq!(going(&admit(&theirs, &ask, [1], 29.9)), 0);
    assert_eq!(going(&admit(&theirs, &ask, [1], 30.0)), 1);
    // Whoever lost it keeps what he paid for, and does not free the other's.
    settle(&mine, 1, End::Answered(stored(ip(1), 31.0)));
    assert!(get(mine.answers(&account(), vec![ip(1)], false))[0].is_some());
    let again = Look { ip: ip(1), known: Some(at(31.0)) };
    let admitted = get(mine.admit(Arc::new(ask), vec![again], true, at(32.0)));
    assert_eq!(admitted.verdicts, [Admission::Elsewhere(at(60.0))]);
}

fn a_closed_store_frees_its_claims(ground: &impl Ground) {
    let (mine, theirs) = (ground.open(), ground.open());
    let ask = ask(&[]);
    assert_eq!(going(&admit(&mine, &ask, [1], 0.0)), 1);
    drop(mine);
    assert_eq!(going(&admit(&theirs, &ask, [1], 1.0)), 1);
}

fn one_process_may_try_again(ground: &impl Ground) {
    let store = ground.open();
    let ask = ask(&["3/day"]);
    assert_eq!(going(&admit(&store, &ask, [1], 0.0)), 1);
    assert_eq!(going(&admit(&store, &ask, [1], 1.0)), 1);
    settle(&store, 1, End::Nothing(ErrorType::ServerError));
    assert_eq!(going(&admit(&store, &ask, [1], 2.0)), 1);
    assert_eq!(get(store.quota(at(2.0)))[0].used, 3);
}
