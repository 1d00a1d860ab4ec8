use super::super::{body, engine::Engine};
use super::*;
use proptest::prelude::*;

fn value(json: &str) -> Val {
    match body::parse(json.as_bytes()) {
        body::Body::Json(value) => value,
        other => panic!("{json}: {other:?}"),
    }
}

/// What the filter gives here.
fn direct(filter: &str, input: &str) -> Result<Option<Val>, Odd> {
    translate(filter).ok_or(Odd)?.run(&value(input))
}

/// What jaq alone gives: its only output, none, or anything else.
fn by_jaq(filter: &str, input: &str) -> Result<Val, super::super::engine::Outcome> {
    Engine::compile_here(filter).unwrap().by_jaq(value(input))
}

fn assert_same(filter: &str, input: &str) {
    let jaq = by_jaq(filter, input);
    match direct(filter, input) {
        Err(Odd) => {}
        Ok(None) => assert_eq!(jaq, Err(super::super::engine::Outcome::NotOne), "{filter} on {input}"),
        // Written out, so that the order of keys counts too.
        Ok(Some(value)) => {
            assert_eq!(jaq.map(|jaq| jaq.to_string()), Ok(value.to_string()), "{filter} on {input}");
        }
    }
}

#[test]
fn the_plain_part_is_run_here() {
    for (filter, input, output) in [
        (".a.b", r#"{"a":{"b":3}}"#, "3"),
        (".a.b?.c", "{}", "null"),
        (".[0].x", r#"[{"x":"y"}]"#, r#""y""#),
        ("[.a[]?.b | strings]", r#"{"a":[{"b":"x"},{"b":2}]}"#, r#"["x"]"#),
        ("{a, \"b\": 1, (.k): .a, a: 2}", r#"{"a":1,"k":"z"}"#, r#"{"a":2,"b":1,"z":1}"#),
        ("if .a == 1 then \"one\" elif .a > 1 then \"more\" else empty end", r#"{"a":5}"#, r#""more""#),
        (".a // .b // 7", r#"{"a":false}"#, "7"),
        (".a as $x | .b as $y | {$x, y: ($x + $y)}", r#"{"a":1,"b":2}"#, r#"{"x":1,"y":3}"#),
        (r#""<\(.a)>\n""#, r#"{"a":"é"}"#, r#""<é>\n""#),
        ("def f: .a; def g: f | not; {f: f, g: g}", r#"{"a":1}"#, r#"{"f":1,"g":false}"#),
        ("({malicious: 90, benign: 0}[.w])", r#"{"w":"benign"}"#, "0"),
        ("[if .t == true then \"tor\" else empty end]", r#"{"t":true}"#, r#"["tor"]"#),
        ("(.a | type) == \"object\" and (.a.b | type) != \"null\"", r#"{"a":{"b":""}}"#, "true"),
    ] {
        let here = direct(filter, input).unwrap_or_else(|Odd| panic!("{filter} is left to jaq"));
        assert_eq!(here.map(|value| value.to_string()).as_deref(), Some(output), "{filter}");
        assert_same(filter, input);
    }
}

#[test]
fn what_is_not_plain_is_left_to_jaq() {
    for filter in [
        "map(.a)",
        "def f(x): x; f(.a)",
        "def f: f; f",
        "try .a catch 1",
        "reduce .[] as $x (0; . + $x)",
        ".a |= 1",
        "..",
        ".[1:]",
        "1.5",
        "@base64",
        ". as [$a] | $a",
        "def not: 1; def f: not; f",
    ] {
        let plain = translate(filter).is_some();
        assert_eq!(plain, filter.starts_with("def not"), "{filter}");
    }
    // Errors, several values, numbers in a text.
    for (filter, input) in
        [(".a", "3"), (".[]", "[1,2]"), (r#""\(.)""#, "1"), ("-.a", "{}"), ("1 - \"a\"", "0")]
    {
        assert_eq!(direct(filter, input), Err(Odd), "{filter}");
    }
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    assert!(translate(&deep).is_some());
    assert!(translate(&format!("1{}", "+1".repeat(4_000))).is_none());
}

#[test]
fn the_filter_that_is_run_most_is_plain() {
    let table = crate::provider::Table::builtin().unwrap();
    assert!(translate(&table.get("abuseipdb").unwrap().filter).is_some());
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        (-3_i64..200).prop_map(|number| number.to_string()),
        Just("1.5".to_owned()),
        prop::sample::select(vec!["\"a\"", "\"\"", "\"malicious\"", "\"é\\n\""]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let member = (prop::sample::select(vec!["a", "b", "c", "body", "data", "é"]), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| {
                let members: Vec<_> =
                    members.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn filter() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        ".",
        ".a",
        ".b.c",
        ".a?",
        ".data.a?",
        ".[]?",
        ".[]",
        ".[0]",
        ".[0]?",
        ".a[]?.b?",
        ".[\"b\"]",
        "null",
        "true",
        "false",
        "1",
        "75",
        "\"a\"",
        "\"x\\ny\"",
        "type",
        "not",
        "empty",
        "strings",
        "objects",
        "values",
        "numbers",
        "\"<\\(.a)>\"",
        "[]",
        "{}",
        "{a}",
        "{a, b: .b}",
        "error",
        "length",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let op = prop::sample::select(vec![
            "|", ",", "//", "and", "or", "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=",
        ]);
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), op).prop_map(|((left, right), op)| format!("({left}) {op} ({right})")),
            pair.clone().prop_map(|(left, right)| format!("({left}) as $x | {{x: $x, y: ({right})}}")),
            pair.clone().prop_map(|(left, right)| format!("({left}) as $x | ({right}) as $x | [$x]")),
            pair.clone().prop_map(|(left, right)| format!("({left})[{right}]")),
            pair.clone().prop_map(|(left, right)| format!("({left}).a?[{right}]")),
            (pair.clone(), inner.clone())
                .prop_map(|((a, b), c)| format!("if {a} then {b} elif {c} then 1 else {b} end")),
            pair.clone().prop_map(|(a, b)| format!("if {a} then {b} end")),
            inner.clone().prop_map(|inner| format!("[{inner}]")),
            inner.clone().prop_map(|inner| format!("select({inner})")),
            pair.prop_map(|(a, b)| format!("{{a: ({a}), (\"k\"): ({b}), b: 1}}")),
            inner.clone().prop_map(|inner| format!("def f: {inner}; [f, (.a | f)]")),
            inner.prop_map(|inner| format!("\"<\\({inner})>\"")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]
    #[test]
    fn gives_what_jaq_gives_or_leaves_it_to_jaq(filter in filter(), input in json()) {
        assert_same(&filter, &input);
    }
}
