//! The providers of one scenario, and what each of them does with a request.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::body::{self, Answer, Face, Failure, ORIGINS};
use super::dialect::{self, Standing};
use super::fault::Trouble;
use super::http::Request;
use super::kind::{KeyPlace, Kind};
use super::ledger::{Arrival, KeyShown, Ledger};
use super::limit::{DAY, Gate};
use super::question::Question;
use super::reply::{Act, HTML, JSON, Reply};
use super::scenario::{Dialect, RetryAfter, Scenario, Settings};
use super::special::is_special;
use super::verdict::{Verdict, judge, mix, mix_address, mix_name};

/// A key header of any provider: none of them may reach `/__trap`.
const KEY_HEADERS: [&str; 8] =
    ["key", "x-apikey", "api-key", "x-otx-api-key", "auth-key", "x-api-key", "ipqs-key", "authorization"];

/// One provider under the scenario's settings.
#[derive(Debug)]
struct Endpoint {
    name: String,
    kind: Kind,
    /// Bits of the seed and the name, from which everything random about it is drawn.
    bits: u64,
    settings: Settings,
    dialect: Dialect,
    retry_after: RetryAfter,
}

/// What changes about a provider from request to request.
#[derive(Debug)]
struct Desk {
    requests: u64,
    gates: Vec<Gate>,
    troubles: Vec<Trouble>,
    closed_until: Duration,
}

/// Everything the connections share. The desks' lock is never held across a wait.
#[derive(Debug)]
pub(super) struct World {
    scenario: Scenario,
    seed: u64,
    addr: SocketAddr,
    host: String,
    start: Instant,
    wall: Timestamp,
    endpoints: Vec<Endpoint>,
    desks: Mutex<Vec<Desk>>,
    /// The last Date header: the second it belongs to, and its text.
    date: Mutex<(i64, Arc<str>)>,
    pub(super) ledger: Arc<Ledger>,
}

/// What to do about one request.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The provider's page in the ledger; `None` for the server's own paths.
    pub page: Option<usize>,
    /// Addresses that this answers.
    pub answered: Vec<IpAddr>,
    /// The wait a 429 announces, from the end of `hold` on.
    pub announced: Option<Duration>,
    pub hold: Duration,
    pub act: Act,
}

impl Exchange {
    fn own(reply: Reply) -> Self {
        Self {
            page: None,
            answered: Vec::new(),
            announced: None,
            hold: Duration::ZERO,
            act: Act::Reply(reply),
        }
    }
}

impl World {
    /// `wall` is the time of day at `start`.
    pub(super) fn new(
        scenario: Scenario,
        seed: u64,
        addr: SocketAddr,
        start: Instant,
        wall: Timestamp,
    ) -> Self {
        let own = scenario.providers.keys().filter(|name| Kind::named(name).is_none());
        let names = Kind::BUILTIN.iter().map(|(_, name)| *name).chain(own.map(String::as_str));
        let endpoints: Vec<Endpoint> = names.map(|name| Endpoint::new(name, &scenario, seed)).collect();
        let pages =
            endpoints.iter().map(|it| (it.name.clone(), it.settings.limits.clone().unwrap_or_default()));
        let ledger = Arc::new(Ledger::new(start, pages.collect()));
        let world = Self {
            host: addr.to_string(),
            wall: scenario.epoch.unwrap_or(wall),
            desks: Mutex::new(Vec::new()),
            date: Mutex::new((i64::MIN, Arc::from(""))),
            scenario,
            seed,
            addr,
            start,
            endpoints,
            ledger,
        };
        world.set_desks(start);
        world
    }

    /// Forgets all requests: limits, ordinals, ledger.
    fn set_desks(&self, now: Instant) {
        let since = now.saturating_duration_since(self.start);
        let midnight = until_midnight(self.wall_at(now));
        *self.desks() = self.endpoints.iter().map(|it| it.desk(since, midnight)).collect();
    }

    fn desks(&self) -> MutexGuard<'_, Vec<Desk>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wall_at(&self, at: Instant) -> Timestamp {
        self.wall.checked_add(at.saturating_duration_since(self.start)).unwrap_or(self.wall)
    }

    /// The Date header's value; rendered once a second.
    pub(super) fn date(&self, at: Instant) -> Arc<str> {
        let wall = self.wall_at(at);
        let mut date = self.date.lock().unwrap_or_else(PoisonError::into_inner);
        if date.0 != wall.as_second() {
            *date = (wall.as_second(), dialect::http_date(wall).into());
        }
        Arc::clone(&date.1)
    }

    /// Decides what becomes of a request, and notes its arrival.
    pub(super) fn receive(&self, request: &Request<'_>, at: Instant) -> Exchange {
        match request.path {
            "/__ledger" => {
                let text = serde_json::to_string(&self.ledger.snapshot()).unwrap_or_default();
                return Exchange::own(Reply::new(200, JSON, text));
            }
            "/__reset" => {
                self.ledger.reset(at);
                self.set_desks(at);
                return Exchange::own(Reply::new(200, JSON, "{}"));
            }
            "/__trap" => return self.trap(request),
            _ => {}
        }
        if let Some(host) = request.header("host").filter(|host| *host != self.host) {
            self.ledger.other_host(host);
        }
        if let Some((page, endpoint, path)) = self.route(request.path) {
            return self.ask(page, endpoint, path, request, at);
        }
        self.ledger.unrouted();
        Exchange::own(Reply::new(404, JSON, "{\"message\":\"the simulator knows no such path\"}"))
    }

    fn trap(&self, request: &Request<'_>) -> Exchange {
        let keys = || self.endpoints.iter().filter_map(|it| self.scenario.key(&it.name));
        let holds_key = |text: &str| keys().any(|key| text.contains(&key));
        let with_key = request.headers().any(|(name, value)| {
            (!value.is_empty() && KEY_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known)))
                || holds_key(value)
        }) || request.parameter("key").or_else(|| request.parameter("token")).is_some()
            || holds_key(request.query);
        self.ledger.trapped(request.header("host").unwrap_or_default(), with_key);
        Exchange::own(Reply::new(200, JSON, "{\"trap\":true}"))
    }

    /// The provider that a path belongs to, and the path without the provider's name.
    fn route<'a>(&self, path: &'a str) -> Option<(usize, &Endpoint, &'a str)> {
        let (first, rest) = split_first(path);
        let named = self.endpoints.iter().enumerate().find(|(_, it)| it.name == first && it.kind.owns(rest));
        if let Some((page, endpoint)) = named {
            return Some((page, endpoint, rest));
        }
        // The built-in ones come first in the list, in the order of `BUILTIN`.
        let builtin = self.endpoints.iter().enumerate().take(Kind::BUILTIN.len());
        builtin.into_iter().find(|(_, it)| it.kind.owns(path)).map(|(page, endpoint)| (page, endpoint, path))
    }

    fn ask(
        &self,
        page: usize,
        endpoint: &Endpoint,
        path: &str,
        request: &Request<'_>,
        at: Instant,
    ) -> Exchange {
        let question = Question::read(endpoint.kind, path, request);
        let asked = question.as_ref().map_or(&[][..], |question| &question.asked);
        let addresses: Vec<IpAddr> = asked.iter().filter_map(|it| it.as_ref().ok().copied()).collect();
        let malformed = (asked.len() - addresses.len()) as u64;
        let key = endpoint.key_shown(path, request);
        self.ledger.arrive(&Arrival { page, at, addresses: &addresses, malformed, special: is_special, key });
        let since = at.saturating_duration_since(self.start);
        let mut desks = self.desks();
        let Some(Desk { requests, gates, troubles, closed_until }) = desks.get_mut(page) else {
            return Exchange::own(Reply::new(500, JSON, "{}"));
        };
        *requests += 1;
        let refusal = endpoint.admit(gates, closed_until, key, since, question.as_ref()).err();
        let trouble = troubles
            .iter_mut()
            .filter(|_| refusal.is_none())
            .find_map(|it| it.strikes(self.seed, endpoint.bits, *requests, &addresses).then_some(&*it));
        let mut answers = false;
        let mut sound = || {
            let answer = match (&refusal, &question) {
                (Some(refusal), _) => refusal.answer(endpoint.kind),
                (None, None) => body::failure(endpoint.kind, Failure::Request),
                (None, Some(question)) => self.answer(endpoint, question),
            };
            answers = answer.answers;
            endpoint.reply(answer, request)
        };
        let mut act = match trouble {
            Some(trouble) => trouble.act(endpoint.kind, self.addr.port(), sound),
            None => Act::Reply(sound()),
        };
        let latency = endpoint.settings.latency.unwrap_or_default().draw(mix(mix(endpoint.bits) ^ *requests));
        let hold = latency + trouble.map_or(Duration::ZERO, Trouble::delay);
        let mut announced = None;
        if let Some(reply) = act.reply() {
            let standings: Vec<Standing> = gates.iter_mut().map(|gate| Standing::of(gate, since)).collect();
            let told = Told { standings: &standings, refusal: refusal.as_ref(), trouble, key, hold };
            announced = endpoint.tell(reply, &told, self.wall_at(at + hold));
        }
        if let Some(trouble) = trouble {
            self.ledger.fault(page, trouble.fault.kind);
        }
        let answered =
            if answers && trouble.is_none_or(Trouble::still_answers) { addresses } else { Vec::new() };
        Exchange { page: Some(page), answered, announced, hold, act }
    }

    fn answer(&self, endpoint: &Endpoint, question: &Question) -> Answer {
        let kind = endpoint.kind;
        let size = endpoint.settings.size.unwrap_or_default();
        if question.is_too_large(kind) {
            return body::failure(kind, Failure::Request);
        }
        match question.asked.as_slice() {
            [Ok(ip)] if kind == Kind::Custom => {
                let template = endpoint.settings.body.as_deref().unwrap_or_default();
                body::fill(template, &self.face(endpoint, *ip), endpoint.settings.not_found)
            }
            [one] if !question.bulk => match one {
                Ok(ip) => body::answer(kind, Ok(&self.face(endpoint, *ip)), question.quick, size),
                Err(text) => body::answer(kind, Err(text), question.quick, size),
            },
            many => {
                let faces: Vec<Result<Face, String>> =
                    many.iter().map(|it| it.clone().map(|ip| self.face(endpoint, ip))).collect();
                body::answer_many(kind, &faces, question.quick)
            }
        }
    }

    fn face(&self, endpoint: &Endpoint, ip: IpAddr) -> Face {
        let special = is_special(ip);
        let verdict = match self.scenario.answers.get(&ip) {
            _ if special => Verdict::Unknown,
            Some(pinned) => *pinned,
            None => judge(&self.scenario.shares, self.seed, endpoint.bits, ip),
        };
        let nth = mix_address(self.seed ^ 1, ip) % ORIGINS.len() as u64;
        let origin = ORIGINS.get(usize::try_from(nth).unwrap_or(0)).unwrap_or(&ORIGINS[0]);
        Face { ip, verdict, bits: mix_address(endpoint.bits ^ 2, ip), special, origin }
    }
}

/// What decides about the headers of an answer.
struct Told<'a> {
    standings: &'a [Standing],
    refusal: Option<&'a Refusal>,
    trouble: Option<&'a Trouble>,
    key: KeyShown,
    hold: Duration,
}

/// Why a request was not admitted.
#[derive(Debug)]
enum Refusal {
    NoKey,
    WrongKey,
    Limit { gate: Option<usize>, count: u64, window: &'static str, wait: Duration },
}

impl Refusal {
    fn gate(&self) -> Option<usize> {
        match self {
            Self::Limit { gate, .. } => *gate,
            Self::NoKey | Self::WrongKey => None,
        }
    }

    fn wait(&self) -> Duration {
        match self {
            Self::Limit { wait, .. } => *wait,
            Self::NoKey | Self::WrongKey => Duration::ZERO,
        }
    }

    fn answer(&self, kind: Kind) -> Answer {
        let why = match self {
            Self::NoKey => Failure::NoKey,
            Self::WrongKey => Failure::WrongKey,
            Self::Limit { count, window, wait, .. } => {
                Failure::Limit { count: *count, window, seconds: wait.as_secs() + 1 }
            }
        };
        body::failure(kind, why)
    }
}

impl Endpoint {
    fn new(name: &str, scenario: &Scenario, seed: u64) -> Self {
        let settings = scenario.settings(name);
        let kind = settings.like.as_deref().or(Some(name)).and_then(Kind::named).unwrap_or(Kind::Custom);
        let dialect = match settings.headers {
            None | Some(Dialect::Auto) => kind.dialect(),
            Some(dialect) => dialect,
        };
        let retry_after = match settings.retry_after {
            None | Some(RetryAfter::Auto) => kind.retry_after(),
            Some(form) => form,
        };
        Self { name: name.to_owned(), kind, bits: mix_name(seed, name), settings, dialect, retry_after }
    }

    fn desk(&self, now: Duration, midnight: Duration) -> Desk {
        let limits = self.settings.limits.iter().flatten().map(|limit| Gate::new(*limit, now));
        let daily = self.settings.daily.map(|daily| Gate::daily(daily, midnight, now));
        Desk {
            requests: 0,
            gates: limits.chain(daily).collect(),
            troubles: self.settings.faults.iter().cloned().map(Trouble::new).collect(),
            closed_until: Duration::ZERO,
        }
    }

    /// Writes what the provider tells of its limits, and gives the wait that a 429 announces.
    fn tell(&self, reply: &mut Reply, told: &Told<'_>, wall: Timestamp) -> Option<Duration> {
        if reply.content_type == JSON {
            let anonymous = told.key == KeyShown::None;
            let refused_by = told.refusal.and_then(Refusal::gate);
            dialect::write(&mut reply.headers, self.dialect, told.standings, refused_by, anonymous, wall);
        }
        let wished = told.trouble.and_then(|it| it.fault.retry_after);
        if wished.is_none() && reply.status != 429 {
            return None;
        }
        let form = match wished {
            Some(RetryAfter::Auto) | None => self.retry_after,
            Some(form) => form,
        };
        let wait = told.refusal.map_or(Duration::from_secs(1), Refusal::wait).saturating_sub(told.hold);
        let announced = dialect::write_retry_after(&mut reply.headers, form, wait, wall);
        announced.filter(|_| reply.status == 429)
    }

    /// Key, then limits. What is refused costs nothing.
    fn admit(
        &self,
        gates: &mut [Gate],
        closed_until: &mut Duration,
        key: KeyShown,
        now: Duration,
        question: Option<&Question>,
    ) -> Result<(), Refusal> {
        match key {
            KeyShown::Wrong => return Err(Refusal::WrongKey),
            KeyShown::None if self.kind.requires_key() || self.settings.key_header.is_some() => {
                return Err(Refusal::NoKey);
            }
            _ => {}
        }
        if now < *closed_until {
            let wait = closed_until.saturating_sub(now);
            return Err(Refusal::Limit { gate: None, count: 0, window: "hour", wait });
        }
        let cost = question.map_or(1, |question| self.cost(question));
        let waits = gates.iter_mut().map(|gate| gate.wait(now, cost)).enumerate();
        if let Some((nth, wait)) = waits.filter(|(_, wait)| !wait.is_zero()).max_by_key(|(_, wait)| *wait) {
            let penalty = self.settings.penalty.map_or(Duration::ZERO, |span| span.0);
            if !penalty.is_zero() {
                *closed_until = now + penalty;
            }
            let shown = gates.get_mut(nth).map(|gate| Standing::of(gate, now));
            let (count, window) = shown.map_or((0, "minute"), |shown| (shown.count, shown.window()));
            return Err(Refusal::Limit { gate: Some(nth), count, window, wait: wait.max(penalty) });
        }
        for gate in gates {
            gate.take(now, cost);
        }
        Ok(())
    }

    /// What a question costs of the quota: batches by the item, but GreyNoise's quick form, MISP and urlscan by the
    /// request.
    fn cost(&self, question: &Question) -> u64 {
        match self.kind {
            Kind::Greynoise if question.quick => 1,
            Kind::Greynoise | Kind::Ipinfo | Kind::Crowdsec if question.bulk => {
                question.asked.len().max(1) as u64
            }
            _ => 1,
        }
    }

    fn key_shown(&self, path: &str, request: &Request<'_>) -> KeyShown {
        let header = |name: &str| request.header(name).map(Cow::Borrowed);
        let parameter = |name: &str| if name.is_empty() { None } else { request.parameter(name) };
        let shown = match (&self.settings.key_header, self.kind.key_place()) {
            (Some(name), _) => header(name),
            (None, KeyPlace::None) => return KeyShown::NotRead,
            (None, KeyPlace::Header(name, query)) => header(name).or_else(|| parameter(query)),
            (None, KeyPlace::Query(name)) => parameter(name),
            (None, KeyPlace::Bearer) => request
                .header("authorization")
                .and_then(|value| value.strip_prefix("Bearer "))
                .map(Cow::Borrowed)
                .or_else(|| parameter("token")),
        };
        // IPQualityScore also takes its key from the path: /api/json/ip/KEY/ADDRESS.
        let in_path =
            || path.split('/').nth(4).filter(|_| self.kind == Kind::Ipqualityscore).map(Cow::Borrowed);
        match (shown.or_else(in_path), &self.settings.key) {
            (None, _) => KeyShown::None,
            (Some(key), _) if key.is_empty() => KeyShown::None,
            (Some(key), Some(right)) if key != right.as_str() => KeyShown::Wrong,
            (Some(_), _) => KeyShown::Right,
        }
    }

    fn reply(&self, answer: Answer, request: &Request<'_>) -> Reply {
        let wants_json = || request.header("accept").is_some_and(|accept| accept.contains("json"));
        // Without that Accept, AbuseIPDB's errors come as HTML.
        if self.kind == Kind::AbuseIpdb && answer.status >= 400 && !wants_json() {
            let words = super::http::reason(answer.status);
            let page = format!("<!DOCTYPE html>\n<html><body>{} | {words}</body></html>\n", answer.status);
            return Reply::new(answer.status, HTML, page);
        }
        let plain = !answer.text.starts_with(['{', '[']);
        let content_type =
            if plain && self.kind != Kind::Custom { "text/plain; charset=utf-8" } else { JSON };
        let mut reply = Reply::new(answer.status, content_type, answer.text);
        if self.kind == Kind::InternetDb && answer.status == 200 {
            reply.headers.push_str("Cache-Control: public, max-age=432000\r\n");
        }
        reply
    }
}

/// `/first/rest` as `first` and `/rest`.
fn split_first(path: &str) -> (&str, &str) {
    let inner = path.strip_prefix('/').unwrap_or(path);
    match inner.find('/') {
        Some(slash) => inner.split_at(slash),
        None => (inner, ""),
    }
}

fn until_midnight(wall: Timestamp) -> Duration {
    let second = wall.as_second().rem_euclid(86_400);
    DAY.saturating_sub(Duration::from_secs(second.unsigned_abs()))
}

#[cfg(test)]
mod tests;
