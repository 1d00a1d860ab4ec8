//! The progress of a run, on a terminal.
//!
//! ```text
//! 412 of 1,204 addresses, about 2 h 28 min left
//!   abuseipdb   1,204 of 1,204  done
//!   virustotal  412 of 593, 4/min: next look-up in 12 s
//! ```
//!
//! A thread of its own looks at the lanes' [`Board`] and draws; it neither wakes a lane nor is waited for by one.

use super::args::When;
use super::voice;
use crate::enrich::{Ask, Board, LaneNow, LaneSpec, Wait, spacing};
use crate::extract::Indicators;
use crate::output::thousands;
use crate::plan::{Guard, Plan};
use crate::provider::ErrorType;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// Often enough to seem alive, seldom enough to cost nothing.
const TICK: Duration = Duration::from_millis(200);
/// The rate that is shown is that of this long: at 4 a minute it holds eight look-ups.
const RATE_OVER: Duration = Duration::from_secs(120);
/// A wait for our own pace that is shorter than this is not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// Addresses finished, counted by the writer.
#[derive(Debug, Clone, Default)]
pub(super) struct Done(Arc<AtomicU64>);

impl Done {
    pub(super) fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Draws until it is dropped, and leaves nothing behind.
#[derive(Debug)]
pub(super) struct Progress(Option<(SyncSender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts drawing, where that is wanted.
    pub(super) fn start(
        wanted: When,
        plan: &Plan,
        lanes: &[LaneSpec],
        indicators: &Indicators,
        guard: &Guard,
        board: &Board,
        done: &Done,
    ) -> Self {
        if plan.order.is_empty() || !voice::may_draw(wanted) {
            return Self(None);
        }
        let lanes = lanes.iter().map(|lane| Shown::new(lane, plan, indicators, guard)).collect();
        let total = plan.order.len() as u64;
        let mut view = View { lanes, total, board: board.clone(), done: done.clone() };
        let (stop, stopped) = sync_channel::<()>(0);
        let draw = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                voice::draw(view.lines(Instant::now(), Timestamp::now()));
            }
        };
        // Without a thread there is no progress, and the run goes on.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw);
        Self(thread.ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            let _ = thread.join();
            voice::erase();
        }
    }
}

/// How fast something goes, over the last while.
#[derive(Debug, Default)]
struct Pace(VecDeque<(Instant, u64)>);

impl Pace {
    fn take(&mut self, now: Instant, count: u64) {
        while self.0.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > RATE_OVER)
            && self.0.len() > 1
        {
            self.0.pop_front();
        }
        // One sample a second is enough for any rate that is shown.
        let is_due =
            self.0.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= Duration::from_secs(1));
        if is_due {
            self.0.push_back((now, count));
        }
    }

    /// A second; none before two events were seen.
    fn per_second(&self, now: Instant, count: u64) -> Option<f64> {
        let (at, before) = self.0.front()?;
        let time = now.saturating_duration_since(*at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a count of look-ups is far below 2^52")]
        let events = count.saturating_sub(*before) as f64;
        (events >= 2.0 && time > 0.0).then(|| events / time)
    }
}

/// A lane as it is shown.
#[derive(Debug)]
struct Shown {
    name: String,
    due: u64,
    /// How many are due is not known: the cascade decides.
    is_fed: bool,
    spacing: Duration,
    pace: Pace,
}

impl Shown {
    fn new(lane: &LaneSpec, plan: &Plan, indicators: &Indicators, guard: &Guard) -> Self {
        Self {
            name: lane.definition.name.clone(),
            due: due(lane, plan, indicators, guard),
            is_fed: lane.ask == Ask::Suspicious,
            spacing: pace(lane),
            pace: Pace::default(),
        }
    }

    fn rate(&self, now: Instant, settled: u64) -> Option<f64> {
        let own = (!self.spacing.is_zero()).then(|| 1.0 / self.spacing.as_secs_f64());
        self.pace.per_second(now, settled).or(own)
    }

    /// How long the lane still takes, if that can be told.
    fn left(&self, lane: &LaneNow, now: Instant) -> Option<Duration> {
        if lane.is_done || lane.closed.is_some() || self.is_fed {
            return Some(Duration::ZERO);
        }
        let rate = self.rate(now, lane.settled)?;
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let work = Duration::try_from_secs_f64(self.due.saturating_sub(lane.settled) as f64 / rate).ok()?;
        let wait = match lane.wait {
            Wait::HoldOff | Wait::Breaker => lane.until.map(|until| until.saturating_duration_since(now)),
            Wait::Replies | Wait::Pace | Wait::Retry => None,
        };
        work.checked_add(wait.unwrap_or_default())
    }

    fn line(&self, widest: usize, lane: &LaneNow, now: Instant, wall: Timestamp) -> String {
        let of = if self.is_fed { "asked".to_owned() } else { format!("of {}", thousands(self.due)) };
        let mut text = format!("  {:widest$}  {} {of}", self.name, thousands(lane.settled));
        if let (Some(rate), false) = (self.pace.per_second(now, lane.settled), lane.is_done) {
            text = text + ", " + &shown_rate(rate);
        }
        match waits_for(lane, now, wall) {
            Some(word) => text + ": " + &word,
            None => text,
        }
    }
}

/// Time between two look-ups that the lane's rates allow; zero where it has none.
pub(super) fn pace(lane: &LaneSpec) -> Duration {
    let settings = &lane.settings;
    settings.rates.iter().map(|rate| spacing(rate, settings.burst)).max().unwrap_or_default()
}

/// The addresses that a lane is asked about.
pub(super) fn due(lane: &LaneSpec, plan: &Plan, indicators: &Indicators, guard: &Guard) -> u64 {
    let definition = &lane.definition;
    let takes = |id: &&u32| {
        let ip = indicators.ip(**id);
        definition.accepts.accepts(ip) && guard.clear(ip, definition.is_loopback()).is_ok()
    };
    plan.order.iter().filter(takes).count() as u64
}

fn shown_rate(per_second: f64) -> String {
    if per_second >= 1.0 { format!("{per_second:.0}/s") } else { format!("{:.1}/min", per_second * 60.0) }
}

/// What keeps the lane from asking, in words.
fn waits_for(lane: &LaneNow, now: Instant, wall: Timestamp) -> Option<String> {
    if let Some((why, retry_at)) = lane.closed {
        let back = retry_at.map(|at| clock(at, wall));
        return Some(match (why, back) {
            (ErrorType::QuotaExhausted, Some(back)) => format!("quota back at {back}"),
            (ErrorType::QuotaExhausted, None) => "quota used up".to_owned(),
            (ErrorType::Unauthorized | ErrorType::Forbidden, _) => "refuses the key".to_owned(),
            (ErrorType::Cancelled, _) => "stopping".to_owned(),
            (ErrorType::Deadline, _) => "out of time".to_owned(),
            (_, Some(back)) => format!("left alone until {back}"),
            (_, None) => "left alone".to_owned(),
        });
    }
    if lane.is_done {
        return Some("done".to_owned());
    }
    let wait = lane.until?.saturating_duration_since(now);
    let seconds = wait.as_secs_f64().ceil();
    let is_ours = matches!(lane.wait, Wait::Pace | Wait::Replies);
    let worth = if is_ours { WORTH_A_WORD } else { Duration::from_millis(1) };
    (wait >= worth).then(|| match lane.wait {
        Wait::HoldOff => format!("it asked for a pause, {seconds} s more"),
        Wait::Breaker => format!("it fails, next trial in {seconds} s"),
        Wait::Retry => format!("tries again in {seconds} s"),
        Wait::Pace | Wait::Replies => format!("next look-up in {seconds} s"),
    })
}

/// The hour, and the day where it is another.
pub(super) fn clock(at: Timestamp, now: Timestamp) -> String {
    let form = if at.duration_since(now).as_secs() >= 86_400 { "%Y-%m-%d %H:%M UTC" } else { "%H:%M UTC" };
    TimeZone::UTC.to_datetime(at).strftime(form).to_string()
}

/// A time as people say it, to two units.
pub(super) fn rough(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// All that is looked at.
#[derive(Debug)]
struct View {
    lanes: Vec<Shown>,
    total: u64,
    board: Board,
    done: Done,
}

impl View {
    fn lines(&mut self, now: Instant, wall: Timestamp) -> Vec<String> {
        let done = self.done.get();
        let mut left = Some(Duration::ZERO);
        let widest = self.lanes.iter().map(|lane| lane.name.len()).max().unwrap_or(0);
        let mut lines = vec![String::new()];
        for (number, shown) in self.lanes.iter_mut().enumerate() {
            let lane = self.board.lane(number);
            shown.pace.take(now, lane.settled);
            // One lane whose time cannot be told yet leaves the whole untold.
            left = left.zip(shown.left(&lane, now)).map(|(a, b)| a.max(b));
            lines.push(shown.line(widest, &lane, now, wall));
        }
        let left = left
            .filter(|left| left.as_secs() > 0)
            .map_or_else(String::new, |left| format!(", about {} left", rough(left)));
        if let Some(first) = lines.first_mut() {
            *first = format!("{} of {} addresses{left}", thousands(done), thousands(self.total));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
