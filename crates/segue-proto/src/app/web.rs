//! Somebody who reads web pages: the HTTP traffic model of NGMN ("Radio Access Performance Evaluation Methodology", 2008,
//! annex A) and 3GPP2 (C.R1002-B section 4.3.1).
//!
//! A page is a main object, the time that a browser needs to read it (parsing), and the objects embedded in it, all of which
//! are asked for at once over the one connection and come in their order (pipelining). Its load time is from the request
//! for the main object until the last byte of the last embedded one. Then it is read, and the next one begins. A connection
//! that is lost loses the page, and the next connection begins with another.
//!
//! | | distribution | parameters | as the model states it |
//! |---|---|---|---|
//! | main object | lognormal, 100 B to 2 MB | sigma 1.37, mu 8.37 | mean 10,710 B, standard deviation 25,032 B |
//! | embedded object | lognormal, 50 B to 2 MB | sigma 2.36, mu 6.17 | mean 7,758 B, standard deviation 126,168 B |
//! | embedded objects | Pareto less 2, up to 53 | shape 1.1, scale 2 | mean 5.64 |
//! | reading time | exponential | | mean 30 s |
//! | parsing time | exponential | | mean 0.13 s |
//!
//! Sizes beyond their limits are drawn again. The mean of embedded objects, which the model states without limits, becomes
//! 8.2 kB by that.

use super::account::Account;
use super::connection::Connection;
use super::distribution::Holding;
use super::object::Requests;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Somebody who reads web pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Mean time between a page that is there and the next.
    pub reading: Duration,
    /// Mean time between a main object that is there and the requests for what is embedded in it.
    pub parsing: Duration,
}

/// A page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// When it was asked for.
    pub begun: Instant,
    /// Its objects, the main one too.
    pub objects: u32,
    /// Bytes of them.
    pub bytes: u64,
    /// When all of it was there; nothing if it never was.
    pub loaded: Option<Instant>,
}

/// The reader.
#[derive(Debug)]
pub(super) struct Web {
    config: WebConfig,
    random: Stream,
    pages: Vec<Page>,
    state: State,
    requests: Requests,
    /// Sizes of the objects embedded in the page at hand that have yet to be asked for.
    embedded: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// There is no connection.
    Away,
    /// The last page is read until then.
    Reading(Instant),
    /// The main object is on its way.
    Main,
    /// It is parsed until then.
    Parsing(Instant),
    /// Embedded objects are on their way.
    Embedded,
}

impl Web {
    pub fn new(config: WebConfig, random: Stream) -> Self {
        Self {
            config,
            random,
            pages: Vec::new(),
            state: State::Away,
            requests: Requests::default(),
            embedded: Vec::new(),
        }
    }

    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    pub fn on_connected(&mut self, now: Instant) {
        self.requests = Requests::default();
        self.state = State::Reading(now);
    }

    pub fn on_closed(&mut self) {
        self.state = State::Away;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Reading(until) | State::Parsing(until) => Some(until),
            State::Away | State::Main | State::Embedded => None,
        }
    }

    /// Asks for what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        match self.state {
            State::Reading(until) if until <= now => self.begin_page(now),
            State::Parsing(until) if until <= now => {
                for size in self.embedded.drain(..) {
                    self.requests.ask(self.config.request_bytes, size);
                }
                self.state = State::Embedded;
            }
            _ => {}
        }
    }

    /// Sends requests that there is room for.
    pub fn flush(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        self.requests.flush(now, connection, account);
    }

    /// So much has been received over this connection. Gives the load time of a page that is there now.
    pub fn on_received(&mut self, now: Instant, account: &mut Account) -> Option<Duration> {
        account.stats.responses += self.requests.answered(account.position.received) as u64;
        if !self.requests.is_empty() {
            return None;
        }
        match self.state {
            State::Main if !self.embedded.is_empty() => {
                let mean = self.config.parsing;
                self.state = State::Parsing(now + Holding::Exponential { mean }.draw(&mut self.random));
                None
            }
            State::Main | State::Embedded => {
                let mean = self.config.reading;
                self.state = State::Reading(now + Holding::Exponential { mean }.draw(&mut self.random));
                let page = self.pages.last_mut()?;
                page.loaded = Some(now);
                let took = now.since(page.begun);
                account.stats.response_time += took;
                Some(took)
            }
            State::Away | State::Reading(_) | State::Parsing(_) => None,
        }
    }

    fn begin_page(&mut self, now: Instant) {
        let main = MAIN.draw(&mut self.random);
        let objects = embedded_objects(&mut self.random);
        let random = &mut self.random;
        self.embedded.clear();
        self.embedded.extend((0..objects).map(|_| EMBEDDED.draw(random)));
        self.pages.push(Page {
            begun: now,
            objects: objects + 1,
            bytes: main + self.embedded.iter().sum::<u64>(),
            loaded: None,
        });
        self.requests.ask(self.config.request_bytes, main);
        self.state = State::Main;
    }
}

/// A lognormal distribution of sizes, within limits.
struct Size {
    mu: f64,
    sigma: f64,
    least: f64,
    most: f64,
}

const MAIN: Size = Size {
    mu: 8.37,
    sigma: 1.37,
    least: 100.0,
    most: 2e6,
};

const EMBEDDED: Size = Size {
    mu: 6.17,
    sigma: 2.36,
    least: 50.0,
    most: 2e6,
};

impl Size {
    fn draw(&self, random: &mut Stream) -> u64 {
        loop {
            let size = libm::exp(self.mu + self.sigma * random.normal());
            if (self.least..=self.most).contains(&size) {
                return size as u64;
            }
        }
    }
}

/// How many objects a page has beside the main one: from 2 on Pareto of shape 1.1, no more than 55, less 2, and rounded.
fn embedded_objects(random: &mut Stream) -> u32 {
    let u = 1.0 - random.uniform();
    let pareto = 2.0 * libm::pow(u, -1.0 / 1.1);
    libm::round(pareto.min(55.0) - 2.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::SendRefused;
    use segue_wire::Data;

    struct Wide;

    impl Connection for Wide {
        fn send(&mut self, _now: Instant, _data: Data) -> Result<(), SendRefused> {
            Ok(())
        }
        fn max_message(&self) -> u32 {
            1000
        }
        fn recv(&mut self, _take: impl FnOnce(&[Data], bool)) -> bool {
            false
        }
        fn close(&mut self, _now: Instant) {}
    }

    const CONFIG: WebConfig = WebConfig {
        request_bytes: 350,
        reading: Duration::from_secs(30),
        parsing: Duration::from_millis(130),
    };

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn sizes_and_numbers_are_those_of_the_model() {
        let mut random = Stream::new(1, "web");
        let main = mean((0..200_000).map(|_| MAIN.draw(&mut random) as f64));
        assert!((main / 10_710.0 - 1.0).abs() < 0.04, "{main}");
        // 7,744 B without limits; within them exp(mu + sigma^2 / 2) (P(1.173) - P(-3.317)) / (P(3.534) - P(-0.957)), where P is
        // the standard normal distribution
        let embedded = mean((0..2_000_000).map(|_| EMBEDDED.draw(&mut random) as f64));
        assert!((embedded / 8_199.0 - 1.0).abs() < 0.05, "{embedded}");
        let objects: Vec<u32> = (0..200_000).map(|_| embedded_objects(&mut random)).collect();
        let number = mean(objects.iter().map(|n| f64::from(*n)));
        assert!((number - 5.64).abs() < 0.12, "{number}");
        assert_eq!(
            (objects.iter().min(), objects.iter().max()),
            (Some(&0), Some(&53))
        );
    }

    #[test]
    fn a_page_is_there_with_its_last_byte_and_read_before_the_next() {
        let mut web = Web::new(CONFIG, Stream::new(1, "web"));
        let mut account = Account::default();
        let (mut now, mut read, mut parsed) = (Instant::ZERO, Vec::new(), Vec::new());
        web.on_connected(now);
        for _ in 0..3000 {
            web.on_timeout(now);
            let page = *web.pages().last().expect("a page");
            assert_eq!((page.begun, page.loaded), (now, None));
            web.flush(now, &mut Wide, &mut account);
            let main = page.bytes - web.embedded.iter().sum::<u64>();
            now += Duration::from_millis(40);
            if page.objects > 1 {
                account.position.received += main - 1;
                assert_eq!(web.on_received(now, &mut account), None);
                assert_eq!(web.poll_timeout(), None);
                account.position.received += 1;
                assert_eq!(web.on_received(now, &mut account), None);
                let until = web.poll_timeout().expect("it is parsed");
                parsed.push(until.since(now).as_secs_f64());
                now = until;
                web.on_timeout(now);
                web.flush(now, &mut Wide, &mut account);
                account.position.received += page.bytes - main;
            } else {
                account.position.received += main;
            }
            assert_eq!(web.on_received(now, &mut account), Some(now.since(page.begun)));
            let next = web.poll_timeout().expect("it is read");
            read.push(next.since(now).as_secs_f64());
            now = next;
        }
        let (read, parsed) = (mean(read.into_iter()), mean(parsed.into_iter()));
        assert!(
            (read - 30.0).abs() < 1.7 && (parsed - 0.13).abs() < 0.01,
            "{read} {parsed}"
        );
        let objects: u32 = web.pages().iter().map(|page| page.objects).sum();
        assert_eq!(account.stats.messages_sent, u64::from(objects));
        assert_eq!(account.stats.responses, u64::from(objects));
    }

    #[test]
    fn a_connection_that_is_lost_loses_the_page() {
        let mut web = Web::new(CONFIG, Stream::new(1, "web"));
        web.on_connected(Instant::ZERO);
        web.on_timeout(Instant::ZERO);
        web.on_closed();
        assert_eq!(web.poll_timeout(), None);
        let later = Instant::ZERO + Duration::from_secs(9);
        web.on_connected(later);
        web.on_timeout(later);
        let [lost, next] = web.pages() else {
            panic!("two pages")
        };
        assert_eq!((lost.loaded, next.begun), (None, later));
    }
}
