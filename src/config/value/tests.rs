use proptest::prelude::*;

use super::*;

#[test]
fn times_and_sizes_as_people_write_them() {
    for (text, seconds) in
        [("10s", 10), ("2m", 120), ("90min", 5400), ("1h30m", 5400), ("7d", 604_800), ("0s", 0)]
    {
        assert_eq!(parse_time(text), Some(Duration::from_secs(seconds)), "{text}");
    }
    for text in
        ["", "10", "s", "-1s", "1.5h", "10 parsecs", "99999999999s", "4000000000d4000000000d4000000000d"]
    {
        assert!(
            parse_time(text).is_none_or(|time| time > Duration::from_secs(u64::from(u32::MAX))),
            "{text}"
        );
    }
    for (text, bytes) in
        [("1MiB", 1 << 20), ("64 KiB", 65_536), ("10kB", 10_000), ("1_000", 1_000), ("2gib", 2 << 30)]
    {
        assert_eq!(size(&Written::Typed(text.to_owned())), Some(bytes), "{text}");
    }
    for text in ["", "MiB", "-1", "1 parsec", "99999999999999GiB"] {
        assert_eq!(size(&Written::Typed(text.to_owned())), None, "{text}");
    }
}

#[test]
fn numbers_in_a_file_are_no_texts_but_in_a_variable_they_are() {
    assert!(Kind::Count(1, 9).read(&Written::Text("5".into())).is_err());
    assert!(Kind::Count(1, 9).read(&Written::Typed("5".into())).is_ok());
    for out_of_bounds in [0, 10, -1] {
        assert!(Kind::Count(1, 9).read(&Written::Integer(out_of_bounds)).is_err());
    }
}

#[test]
fn a_share_is_from_0_to_1() {
    for (written, fits) in [
        (Written::Float(0.0), true),
        (Written::Integer(1), true),
        (Written::Float(1.01), false),
        (Written::Integer(20), false),
        (Written::Float(f64::NAN), false),
        (Written::Typed("0.5".into()), true),
    ] {
        assert_eq!(Kind::Share.read(&written).is_ok(), fits);
    }
}

#[test]
fn a_time_has_bounds_and_may_be_below_a_second() {
    let read = |text: &str| Kind::Time(1, 600).read(&Written::Text(text.into())).is_ok();
    assert!(read("500ms") && read("600s") && read("10m"));
    assert!(!read("601s") && !read("0s"));
}

#[test]
fn an_empty_list_is_written_in_a_variable_as_in_a_file() {
    for empty in ["[]", " [] ", ""] {
        let written = Written::Typed(empty.to_owned());
        assert!(matches!(Kind::Quotas.read(&written), Ok(Value::Rates(none)) if none.is_empty()), "{empty}");
        assert!(matches!(Kind::Texts.read(&written), Ok(Value::Texts(none)) if none.is_empty()), "{empty}");
        let networks = Kind::Networks.read(&written);
        assert!(matches!(networks, Ok(Value::Networks(none)) if none.is_empty()), "{empty}");
    }
    let brackets = Written::Typed("[]".to_owned());
    assert_eq!(Kind::Rates.read(&brackets).unwrap_err(), "must name at least one rate");
    assert!(matches!(Kind::Text.read(&brackets), Ok(Value::Text(text)) if text == "[]"));
}

proptest! {
    #[test]
    fn what_is_shown_is_read_again(millis in 0..10_000_000_000_u64, bytes in any::<u32>()) {
        let time = Duration::from_millis(millis);
        prop_assert_eq!(parse_time(&show_time(time)), Some(time));
        let bytes = u64::from(bytes);
        prop_assert_eq!(size(&Written::Typed(show_size(bytes))), Some(bytes));
    }

    #[test]
    fn no_text_makes_it_fail_badly(text in any::<String>()) {
        let _ = parse_time(&text);
        let _ = size(&Written::Typed(text.clone()));
        let _ = parse_network(&text);
    }
}
