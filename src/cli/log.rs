//! The log: how much of it, and never a URL.

use super::args::Global;
use super::voice::{self, Level};
use crate::config::LogConfig;
use serde_json::Value;
use std::fmt;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// What the HTTP stack may say at the most, whatever was asked for: its own debug log holds whole URLs, and Shodan's key is
/// in the URL (seanmonstar/reqwest#2971).
const CAPPED: &str = "reqwest=warn,hyper=warn,hyper_util=warn,h2=warn,rustls=warn";

/// The filter in force, to be replaced once the configuration is read.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts the log. `-v` tells each wait, `-vv` each request; `SIFT_LOG` is tracing's filter syntax.
pub(super) fn start(global: &Global) {
    let wanted = std::env::var("SIFT_LOG").unwrap_or_default();
    let level = level(global, &wanted);
    let filter = filter(&level).unwrap_or_else(|_| EnvFilter::new(format!("warn,{CAPPED}")));
    let (filter, handle) = reload::Layer::new(filter);
    // A second start (a test in this process) keeps the first.
    if tracing_subscriber::registry().with(filter).with(Spoken).try_init().is_ok() {
        let _ = FILTER.set(handle);
    }
}

/// Takes over what the configuration says of the log.
pub(super) fn settle(global: &Global, config: &LogConfig) {
    voice::settle(config.format);
    let level = level(global, &config.level);
    match (filter(&level), FILTER.get()) {
        // A log that cannot be changed any more goes on as it was.
        (Ok(filter), Some(handle)) => drop(handle.reload(filter)),
        (Ok(_), None) => {}
        (Err(error), _) => voice::warn(format!("log.level cannot be read, and is left aside: {error}")),
    }
}

fn level(global: &Global, wanted: &str) -> String {
    match (global.quiet, global.verbose) {
        (2.., _) => "error".to_owned(),
        (_, 1) => "sift=info,warn".to_owned(),
        (_, 2..) => "sift=debug,warn".to_owned(),
        (_, 0) if wanted.trim().is_empty() => "warn".to_owned(),
        (_, 0) => wanted.to_owned(),
    }
}

fn filter(level: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(format!("{level},{CAPPED}"))
}

/// Hands events on to standard error's one voice.
struct Spoken;

impl<S: Subscriber> Layer<S> for Spoken {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warning,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => Level::Debug,
        };
        voice::event(level, &said.message, &said.fields);
    }
}

#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(String, Value)>,
}

impl Said {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            ("message", Value::String(text)) => self.message.clone_from(text),
            (name, _) => self.fields.push((name.to_owned(), value)),
        }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, ((value * 1e3).round() / 1e3).into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}
