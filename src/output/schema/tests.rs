use std::path::Path;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::output::verdict::tests::any_parts;

const EXAMPLES: &str = include_str!("../../../fixtures/records.ndjson");

fn validator(what: SchemaOf) -> jsonschema::Validator {
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema_for(what)).unwrap()
}

/// `SIFT_UPDATE_FIXTURES=1` rewrites the file; the change is then seen in review.
#[test]
fn the_published_schema_is_the_one_in_the_fixtures() {
    for (what, name) in [(SchemaOf::Record, "record"), (SchemaOf::Summary, "summary")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/{name}.schema.json"));
        let ours = format!("{:#}\n", schema_for(what));
        if std::env::var_os("SIFT_UPDATE_FIXTURES").is_some() {
            crate::output::write_whole(&path, ours.as_bytes(), 0o644).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), ours, "{}", path.display());
    }
}

#[test]
fn every_example_is_valid_and_comes_back_as_it_was() {
    let validator = validator(SchemaOf::Record);
    for line in EXAMPLES.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&value).map(|e| format!("{} {e}", e.instance_path())).collect();
        assert!(faults.is_empty(), "{line}\n{faults:?}");
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn a_verdict_without_an_answer_is_invalid() {
    let validator = validator(SchemaOf::Record);
    for line in EXAMPLES.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        if value["status"] == "ok" {
            continue;
        }
        for (key, wrong) in [
            ("verdict", json!("unknown")),
            ("score", json!(0)),
            ("found", json!(false)),
            ("rule", json!("conflict")),
        ] {
            let mut value = value.clone();
            value[key] = wrong;
            assert!(!validator.is_valid(&value), "{value}");
        }
    }
}

#[test]
fn an_answer_without_a_verdict_is_invalid() {
    let validator = validator(SchemaOf::Record);
    let mut value: Value = serde_json::from_str(EXAMPLES.lines().next().unwrap()).unwrap();
    assert!(validator.is_valid(&value));
    for key in ["verdict", "found"] {
        let mut value = value.clone();
        value[key] = Value::Null;
        assert!(!validator.is_valid(&value), "{key}");
    }
    value["providers"]["abuseipdb"]["verdict"] = Value::Null;
    assert!(!validator.is_valid(&value));
}

#[test]
fn the_summary_of_the_fixtures_is_valid() {
    let summary: Value = serde_json::from_str(include_str!("../../../fixtures/summary.json")).unwrap();
    let validator = validator(SchemaOf::Summary);
    let faults: Vec<String> =
        validator.iter_errors(&summary).map(|e| format!("{} {e}", e.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn an_answer_as_it_came_is_valid_and_comes_back() {
    let mut record: Record = serde_json::from_str(EXAMPLES.lines().next().unwrap()).unwrap();
    record.attach_raw("abuseipdb", json!({ "data": { "ipAddress": "203.0.113.7", "reports": [1, null] } }));
    record.attach_raw("nobody", json!(1));
    let value = serde_json::to_value(&record).unwrap();
    assert!(validator(SchemaOf::Record).is_valid(&value));
    assert_eq!(serde_json::from_value::<Record>(value).unwrap(), record);
}

proptest! {
    #[test]
    fn whatever_is_joined_is_valid_and_comes_back(parts in any_parts()) {
        let record = Record::joined("2001:db8::7".parse().unwrap(), None, parts, Timestamp::UNIX_EPOCH);
        let line = serde_json::to_string(&record).unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        thread_local!(static VALIDATOR: jsonschema::Validator = validator(SchemaOf::Record));
        VALIDATOR.with(|validator| assert!(validator.is_valid(&value), "{line}"));
        prop_assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
