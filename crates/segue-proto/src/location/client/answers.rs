//! What the client makes of answers.

use super::event::{ClientEvent, Failure, LookupId, time_refused};
use super::{Client, Target, Transaction};
use crate::location::Name;
use crate::location::ilnp_records;
use crate::location::message::{Received, Record};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use domain::base::iana::{Class, Rcode, Rtype};

impl Client {
    pub(super) fn on_update_answered(
        &mut self,
        now: Instant,
        target: Target,
        mut t: Transaction,
        received: &Received,
    ) {
        if self.authenticate(&mut t, received).is_err() {
            self.update = Some((target, t));
            return;
        }
        if received.message.header.rcode == Rcode::NOERROR {
            let (latency, sent) = (now - t.started, t.sent);
            self.events.push_back(match target {
                Target::Address(address) => ClientEvent::Updated {
                    address,
                    latency,
                    sent,
                },
                Target::Locators(_, locators, _) => ClientEvent::LocatorsUpdated {
                    locators,
                    latency,
                    sent,
                },
            });
            return;
        }
        match self.on_refusal(now, &mut t, received) {
            Some(failure) => self.events.push_back(target.failed(failure)),
            None => self.update = Some((target, t)),
        }
    }

    pub(super) fn on_lookup_answered(
        &mut self,
        now: Instant,
        id: LookupId,
        name: Name,
        mut t: Transaction,
        received: &Received,
    ) {
        if self.authenticate(&mut t, received).is_err() {
            self.lookups.insert(id, (name, t));
            return;
        }
        let message = &received.message;
        let failure = match message.header.rcode {
            Rcode::NOERROR if message.header.truncated => Failure::Truncated,
            Rcode::NOERROR if t.asks_for(Rtype::L64) || t.asks_for(Rtype::LP) => {
                match self.on_locators(now, id, &name, t, &message.answer) {
                    Some(failure) => failure,
                    None => return,
                }
            }
            Rcode::NOERROR => {
                let (addresses, ttl) = addresses_of(&name, &message.answer);
                if !addresses.is_empty() {
                    if self.config.cache && !ttl.is_zero() {
                        self.keep(now, name, addresses.clone(), ttl);
                    }
                    let latency = now - t.started;
                    self.events.push_back(ClientEvent::Resolved {
                        id,
                        addresses,
                        ttl,
                        latency,
                    });
                    return;
                }
                Failure::NoAddress
            }
            Rcode::NXDOMAIN => Failure::NoSuchName,
            _ => match self.on_refusal(now, &mut t, received) {
                Some(failure) => failure,
                None => {
                    self.lookups.insert(id, (name, t));
                    return;
                }
            },
        };
        self.events.push_back(ClientEvent::LookupFailed { id, failure });
    }

    /// Locators, or where there are none the name of those that have them (RFC 6742 section 2.4). Failure if there is
    /// neither.
    pub(super) fn on_locators(
        &mut self,
        now: Instant,
        id: LookupId,
        name: &Name,
        t: Transaction,
        answer: &[Record],
    ) -> Option<Failure> {
        if t.asks_for(Rtype::LP) {
            let pointers = records_of(name, answer, Rtype::LP);
            let mut pointers: Vec<_> = pointers
                .iter()
                .filter_map(|r| ilnp_records::read_lp(&r.rdata))
                .collect();
            pointers.sort_by_key(|(_, preference)| *preference);
            let Some((target, _)) = pointers.into_iter().next() else {
                return Some(Failure::NoAddress);
            };
            let mut next = self.ask(now, &target, Rtype::L64);
            next.started = t.started;
            next.pointed = true;
            self.lookups.insert(id, (target, next));
            return None;
        }
        let found = records_of(name, answer, Rtype::L64);
        let ttl = found.iter().map(|r| r.ttl).min().unwrap_or(0);
        let mut locators: Vec<_> = found
            .iter()
            .filter_map(|r| ilnp_records::read_l64(&r.rdata))
            .collect();
        locators.sort_by_key(|(_, preference)| *preference);
        if locators.is_empty() {
            if t.pointed {
                return Some(Failure::NoAddress);
            }
            let mut next = self.ask(now, name, Rtype::LP);
            next.started = t.started;
            self.lookups.insert(id, (name.clone(), next));
            return None;
        }
        self.events.push_back(ClientEvent::LocatorsFound {
            id,
            locators,
            ttl: Duration::from_secs(u64::from(ttl)),
            latency: now - t.started,
        });
        None
    }

    /// A server cannot or does not want to: the next one is asked at once, if there is one that has not refused. The
    /// failure if there is none.
    pub(super) fn on_refusal(
        &mut self,
        now: Instant,
        t: &mut Transaction,
        received: &Received,
    ) -> Option<Failure> {
        let rcode = received.message.header.rcode;
        t.failure = match received.tsig.as_ref().and_then(|tsig| tsig.server_time()) {
            Some(server_time) => time_refused(server_time, t.time_signed),
            None => Failure::Refused(u16::from(rcode.to_int())),
        };
        t.refusals += 1;
        let exhausted = self.config.attempts.is_some_and(|most| t.sent >= most);
        if t.refusals < self.config.servers.len() && !exhausted {
            t.server = (t.server + 1) % self.config.servers.len();
            self.send(now, t);
            return None;
        }
        // A server that failed may have recovered by the next time.
        (rcode != Rcode::SERVFAIL || exhausted).then_some(t.failure)
    }
}

/// Aliases followed in one answer (a loop would be a server's fault).
const MOST_ALIASES: usize = 8;

/// Addresses of `name` in an answer, and the least time to live on the way.
fn addresses_of(name: &Name, answer: &[Record]) -> (Vec<Ipv6Addr>, Duration) {
    let found = records_of(name, answer, Rtype::AAAA);
    let ttl = found.iter().map(|r| r.ttl).min().unwrap_or(0);
    let addresses: Vec<Ipv6Addr> = found
        .iter()
        .filter_map(|r| <[u8; 16]>::try_from(&r.rdata.bytes[..]).ok())
        .map(Ipv6Addr::from)
        .collect();
    (addresses, Duration::from_secs(u64::from(ttl)))
}

/// Records of `name` in an answer, through aliases (RFC 1034 section 3.6.2), none with more time to live than there was on
/// the way.
fn records_of(name: &Name, answer: &[Record], rtype: Rtype) -> Vec<Record> {
    let (mut name, mut ttl) = (name.clone(), u32::MAX);
    for _ in 0..MOST_ALIASES {
        let of = |rtype| {
            let in_class = answer
                .iter()
                .filter(move |r| r.rtype == rtype && r.class == Class::IN);
            in_class.filter(|r| r.name == name)
        };
        let found: Vec<Record> = of(rtype)
            .map(|r| Record {
                ttl: r.ttl.min(ttl),
                ..r.clone()
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
        let alias = of(Rtype::CNAME).next();
        let Some((alias, target)) =
            alias.and_then(|r| Some((r, Name::from_octets(r.rdata.bytes.clone()).ok()?)))
        else {
            break;
        };
        ttl = ttl.min(alias.ttl);
        name = target;
    }
    Vec::new()
}
