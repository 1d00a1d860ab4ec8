//! What a filter may name.
//!
//! A list of what is allowed, not of what is not: a new version of jaq adds nothing by itself. Left out on purpose:
//! the environment (`env`, `$ENV`: keys), the process (`halt`, `halt_error`), its streams (`input`, `inputs`,
//! `debug`, `stderr`), the clock and the time zone (`now`, `localtime`, `strflocaltime`: the same reply must always
//! read the same), and modules. `fromjson` is ours, through serde_json, because jaq's own parser overflows the stack
//! on deeply nested text.

use jaq_core::{
    DataT, Error, RunPtr,
    load::parse::Def,
    native::{Filter, Fun, bome, run, v},
};
use jaq_json::Val;

use super::body;

/// Filters that definitions may call, whatever their number of arguments.
pub(super) const ALLOWED: &[&str] = &[
    "@base64",
    "@base64d",
    "@html",
    "@htmld",
    "@json",
    "@sh",
    "@text",
    "@uri",
    "@urid",
    "abs",
    "add",
    "address",
    "all",
    "any",
    "arrays",
    "ascii_downcase",
    "ascii_upcase",
    "booleans",
    "bsearch",
    "capture",
    "ceil",
    "contains",
    "del",
    "delpaths",
    "empty",
    "endswith",
    "error",
    "exp",
    "explode",
    "fabs",
    "false",
    "finites",
    "first",
    "flatten",
    "floor",
    "from_entries",
    "fromdate",
    "fromdateiso8601",
    "fromjson",
    "getpath",
    "gmtime",
    "group_by",
    "gsub",
    "has",
    "implode",
    "in",
    "index",
    "indices",
    "infinite",
    "inside",
    "isarray",
    "isboolean",
    "isempty",
    "isfinite",
    "isinfinite",
    "isnan",
    "isnormal",
    "isnumber",
    "isobject",
    "isstring",
    "iterables",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "length",
    "limit",
    "log",
    "log10",
    "log2",
    "ltrim",
    "ltrimstr",
    "map",
    "map_values",
    "match",
    "max",
    "max_by",
    "min",
    "min_by",
    "mktime",
    "nan",
    "normals",
    "not",
    "nth",
    "null",
    "nulls",
    "numbers",
    "objects",
    "path",
    "paths",
    "pick",
    "pow",
    "range",
    "recurse",
    "repeat",
    "reverse",
    "rindex",
    "round",
    "rtrim",
    "rtrimstr",
    "scalars",
    "scan",
    "select",
    "setpath",
    "skip",
    "sort",
    "sort_by",
    "split",
    "splits",
    "startswith",
    "strftime",
    "strings",
    "strptime",
    "sub",
    "test",
    "to_entries",
    "toboolean",
    "todate",
    "todateiso8601",
    "tojson",
    "tonumber",
    "tostring",
    "transpose",
    "trim",
    "true",
    "trunc",
    "type",
    "unique",
    "unique_by",
    "until",
    "utf8bytelength",
    "values",
    "walk",
    "while",
    "with_entries",
];

/// Pieces that the allowed ones are made of.
const INNER: &[&str] = &[
    "capture_of_match",
    "decode_base64",
    "decode_uri",
    "encode_base64",
    "encode_uri",
    "error_empty",
    "escape_html",
    "escape_sh",
    "key_values",
    "matches",
    "max_by_or_empty",
    "min_by_or_empty",
    "path_value",
    "scan_",
    "split_",
    "split_matches",
    "totype",
    "unescape_html",
];

fn is_allowed(name: &str) -> bool {
    ALLOWED.contains(&name) || INNER.contains(&name)
}

/// Filters of ours: `address` because 2001:DB8:0::7 is 2001:db8::7, `fromjson` for safety, the others for speed, since jaq
/// writes them in jq (`type` is six comparisons, `true` is `0 == 0`) and every filter here calls them many times.
const OWN: &[&str] = &[
    "address",
    "false",
    "fromjson",
    "isarray",
    "isboolean",
    "isnumber",
    "isobject",
    "isstring",
    "not",
    "null",
    "true",
    "type",
];

/// Allowed filters that are written in jq.
pub(super) fn definitions() -> impl Iterator<Item = Def<&'static str>> {
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| is_allowed(def.name) && !OWN.contains(&def.name))
}

/// Allowed filters that are written in Rust.
pub(super) fn functions<D: for<'a> DataT<V<'a> = Val>>() -> impl Iterator<Item = Fun<D>> {
    jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, _, _)| is_allowed(name) && !OWN.contains(name))
        .chain(own().into_vec().into_iter().map(run))
}

fn own<D: for<'a> DataT<V<'a> = Val>>() -> Box<[Filter<RunPtr<D>>]> {
    Box::new([
        ("address", v(0), |cv| bome(Ok(address(cv.1)))),
        ("false", v(0), |_| bome(Ok(Val::Bool(false)))),
        ("fromjson", v(0), |cv| bome(from_json(&cv.1))),
        ("isarray", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::Arr(_)))))),
        ("isboolean", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::Bool(_)))))),
        ("isnumber", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::Num(_)))))),
        ("isobject", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::Obj(_)))))),
        ("isstring", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::TStr(_) | Val::BStr(_)))))),
        ("not", v(0), |cv| bome(Ok(Val::Bool(matches!(cv.1, Val::Null | Val::Bool(false)))))),
        ("null", v(0), |_| bome(Ok(Val::Null))),
        ("true", v(0), |_| bome(Ok(Val::Bool(true)))),
        ("type", v(0), |cv| bome(Ok(body::text(kind(&cv.1))))),
    ])
}

pub(super) const fn kind(value: &Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Bool(_) => "boolean",
        Val::Num(_) => "number",
        Val::TStr(_) | Val::BStr(_) => "string",
        Val::Arr(_) => "array",
        Val::Obj(_) => "object",
    }
}

/// An address as `.ip` has it, however it was spelled; whatever is none stays as it is.
fn address(value: Val) -> Val {
    let named = match &value {
        Val::TStr(bytes) => std::str::from_utf8(bytes).ok().and_then(body::address),
        _ => None,
    };
    named.map_or(value, |ip| body::text(&ip.to_string()))
}

fn from_json(text: &Val) -> Result<Val, Error<Val>> {
    match text {
        Val::TStr(bytes) | Val::BStr(bytes) => match body::parse(bytes) {
            body::Body::Json(value) => Ok(value),
            _ => Err(Error::str("cannot parse as JSON")),
        },
        other => Err(Error::typ(other.clone(), "string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_every_name_exists() {
        assert!(ALLOWED.is_sorted());
        assert!(INNER.is_sorted());
        let there: Vec<&str> = definitions()
            .map(|def| def.name)
            .chain(functions::<jaq_core::data::JustLut<Val>>().map(|(name, _, _)| name))
            .collect();
        for name in ALLOWED.iter().chain(INNER) {
            assert!(there.contains(name), "{name}");
        }
    }
}
