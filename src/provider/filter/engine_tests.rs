use super::{
    super::program::{About, Ask, Found, Program, Source, Trusted},
    *,
};

fn run(source: &str, body: &str) -> Outcome {
    let headers = vec![("x-rate-limit-window".to_owned(), "day".to_owned())];
    let about = About::One(Some("198.51.100.7".parse().unwrap()));
    let program = Program::new(&Source { filter: source.to_owned(), split: None }, Engine::compile).unwrap();
    match program.read(&Trusted, &Ask { about, status: 200, headers }, body.as_bytes()).found {
        Found::Whole(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_filter_sees_status_headers_and_body() {
    let seen = run(".", "{\"a\": [1, 2.5, 18446744073709551615, true, null, \"\u{e9}\"]}");
    let expected = serde_json::json!({
        "ip": "198.51.100.7",
        "status": 200,
        "headers": {"x-rate-limit-window": "day"},
        "body": {"a": [1, 2.5, 18_446_744_073_709_551_615.0, true, null, "\u{e9}"]},
    });
    assert_eq!(seen, Outcome::Output(expected));
    assert_eq!(run(".body", "<html>"), Outcome::Output(Value::Null));
}

#[test]
fn exactly_one_output_within_bounds() {
    let cases = [
        ("empty", Outcome::NotOne),
        ("1, 2", Outcome::NotOne),
        ("1, error(\"late\")", Outcome::Raised("\"late\"".into())),
        ("error(\"no\")", Outcome::Raised("\"no\"".into())),
        ("\"x\" * 65535", Outcome::Unfit),
        ("[range(40000)]", Outcome::Unfit),
        ("reduce range(40) as $n (1; [.])", Outcome::Unfit),
        ("nan", Outcome::Output(Value::Null)),
        ("\"[1,{}]\" | fromjson", Outcome::Output(serde_json::json!([1, {}]))),
        ("\"2026-01-14T21:17:06Z\" | fromdate", Outcome::Output(Value::from(1_768_425_426))),
        ("\"AS64500\" | test(\"^as\"; \"i\")", Outcome::Output(Value::Bool(true))),
    ];
    for (source, expected) in cases {
        assert_eq!(run(source, "{}"), expected, "{source}");
    }
    // Deep text inside a text would overflow the stack of jaq's own parser.
    let deep = serde_json::to_string(&"[".repeat(1_000_000)).unwrap();
    assert!(matches!(run(".body | fromjson", &deep), Outcome::Raised(_)));
    assert!(matches!(run(".body | tonumber", &deep), Outcome::Raised(_)));
}

#[test]
fn an_error_that_holds_the_body_is_cut_short() {
    let body = serde_json::to_string(&"x".repeat(1_000_000)).unwrap();
    let Outcome::Raised(why) = run(".body + 1", &body) else { panic!() };
    assert!(why.len() <= MAX_ERROR_BYTES + 4);
}
