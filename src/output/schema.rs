//! JSON Schema (draft 2020-12) of what `sift` writes.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::record::Record;
use super::summary::Summary;
use super::verdict::Rule;

/// What a schema can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaOf {
    /// One line of NDJSON.
    Record,
    /// The run's summary.
    Summary,
}

/// The schema of what is written.
#[must_use]
pub fn schema_for(what: SchemaOf) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = match what {
        SchemaOf::Record => root::<Record>(generator),
        SchemaOf::Summary => root::<Summary>(generator),
    };
    schema.to_value()
}

fn root<T: JsonSchema>(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<T>()
}

/// Adds to the record's schema what no single field can say: a verdict belongs to an answer.
pub(super) fn forbid_verdict_without_answer(schema: &mut Schema) {
    let silent = |status: &str, key: &str| {
        serde_json::json!({
            "properties": {
                "status": { "const": status },
                "verdict": { "type": "null" }, "score": { "type": "null" }, "found": { "type": "null" },
                "rule": false, "conflict": false,
            },
            "required": [key],
        })
    };
    schema.insert(
        "oneOf".to_owned(),
        serde_json::json!([
            {
                "properties": {
                    "status": { "const": "ok" },
                    "verdict": { "type": "string" }, "found": { "type": "boolean" },
                    "error": false, "reason": false,
                },
                "required": ["rule"],
            },
            silent("error", "error"),
            silent("skipped", "reason"),
        ]),
    );
}

pub(super) fn ip(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] })
}

pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(super) fn rule(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Rule::ALL.map(Rule::name) })
}

pub(super) fn seen(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "count": { "type": "integer", "minimum": 0, "description": "Events with this address" },
            "first": { "type": "string", "format": "date-time" },
            "last": { "type": "string", "format": "date-time" },
            "fields": { "type": "array", "items": { "type": "string" }, "description": "eve.json keys that held it" },
            "severity": { "type": "integer", "minimum": 0, "maximum": 255, "description": "Most severe alert (1 is worst)" },
            "signatures": {
                "type": "array",
                "description": "Most frequent first, bounded",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "integer", "minimum": 0 },
                        "name": { "type": "string" },
                        "count": { "type": "integer", "minimum": 0 },
                    },
                    "required": ["name", "count"],
                },
            },
            "ports": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 65535 } },
            "protos": { "type": "array", "items": { "type": "string" } },
            "peers": { "type": "array", "items": { "type": "string" }, "description": "The other ends, bounded" },
        },
        "required": ["count"],
    })
}

#[cfg(test)]
mod tests;
