//! Loss detection: what missing reports (RFC 9260 section 7.2.4) count for, by order of sending.
//!
//! A chunk that a SACK leaves out is missing only if something that was sent *later* is newly acknowledged. For chunks
//! sent once on one path that is the HTNA rule of the RFC, since TSNs are in the order of sending. It is not for a chunk
//! that was sent again: its TSN is lower than that of everything that was in flight before, and what comes back of that
//! says nothing of it. A mobile host's data is sent again with every address that is deleted, while the SACKs of the flight
//! over the old one are still on their way. So every transmission has a number ([`Transmission`]), and the numbers
//! are compared.
//!
//! An acknowledgement of a chunk that was sent again may be for the earlier transmission: it is, if it comes within the
//! shortest round trip of the path (RFC 8985 section 6.2, step 2), and then says nothing of when it was sent. Where no data
//! has told the round trip, that of heartbeats does (RFC 9260 section 8.3). Where nothing has, it counts as in section 7.2.4,
//! which makes no difference, unless the chunk was sent on another path before, whose answers may be on their way. What it
//! does say, that a retransmission has arrived before what was sent earlier, takes the place of the RFC's rule that in
//! fast recovery all that a SACK leaves out is missing when it advances the cumulative TSN ack.
//!
//! # Rules
//! | rule | a chunk is missing by |
//! |---|---|
//! | RFC 9260 | what was sent later, newly acknowledged; if it was sent again, on the path that it was last sent on |
//! | RFC 2960 | the same, newly acknowledged or not: every SACK that reports it counts |
//! | SFR, split fast retransmit (Iyengar et al. 2006, section III) | only what was sent later on its own path: what overtook it on another says nothing. As published, and so without MFR, later is what has a higher TSN where the chunk was sent once |
//! | MFR, multiple fast retransmit (Caro, Amer and Stewart 2004) | the same, although it was fast retransmitted before |
//! | DAC (Iyengar et al. 2006, section V) | so many packets as the SACK says, if all that it newly acknowledges was sent later, on one path |
//!
//! Without SFR a first transmission is missing by what went over another path, too, as the RFC has it: where the path of a
//! single-path association changes, what was lost on the old path is found by what arrives over the new one.
//!
//! Without MFR (Caro, Amer and Stewart, "Retransmission schemes for end-to-end failover with transport layer
//! multihoming", GLOBECOM 2004) a fast retransmission that is lost waits for T3-rtx, as RFC 9260 section 7.2.4 has it: in a
//! queue of 1.6 s, for seconds. The authors compare TSNs with the highest one outstanding at the time of the
//! retransmission; numbers of transmissions do as well where a path sends nothing but retransmissions.

use super::chunk::Transmission;
use super::flight::Flight;
use crate::sctp::ids::PathId;
use crate::sctp::per_path::PerPath;
use crate::sctp::{Config, Profile};
use crate::time::{Duration, Instant};
use segue_wire::Tsn;
use segue_wire::sctp::GapAckBlock;
use smallvec::SmallVec;

/// Which missing reports count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rules {
    /// A SACK need not acknowledge anything newly (RFC 2960 section 7.2.4).
    repeated: bool,
    split: bool,
    multiple: bool,
    delayed_acks: bool,
}

impl Rules {
    fn new(config: &Config) -> Self {
        let multipath = config.multipath;
        Self {
            repeated: config.profile == Profile::Rfc2960 && multipath.is_none(),
            split: multipath.is_some_and(|m| m.sfr),
            multiple: multipath.is_some_and(|m| m.mfr),
            delayed_acks: multipath.is_some_and(|m| m.dac),
        }
    }
}

/// Numbers of the latest transmission that was acknowledged: by the SACK at hand, and by any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Latest {
    newly: u64,
    ever: u64,
    /// The highest TSN newly acknowledged (HTNA), whenever it was sent.
    highest_newly: Option<Tsn>,
}

impl Latest {
    fn note(&mut self, number: u64) {
        self.newly = self.newly.max(number);
        self.ever = self.ever.max(number);
    }

    fn note_tsn(&mut self, tsn: Tsn) {
        if self.highest_newly.is_none_or(|h| h.before(tsn)) {
            self.highest_newly = Some(tsn);
        }
    }

    fn begin_sack(&mut self) {
        self.newly = 0;
        self.highest_newly = None;
    }
}

/// What the SACK at hand newly acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Newly {
    /// Packets that the SACK stands for, as the receiver counted them.
    packets: u8,
    highest: Option<Tsn>,
    lowest: Option<Tsn>,
    /// Number of the earliest transmission, 0 if that of one is not known.
    earliest: u64,
    /// Whether one of them was sent more than once: what it overtook may have a higher TSN.
    again: bool,
    /// The path of all of them, or none if there are several.
    path: Option<PathId>,
}

impl Newly {
    fn nothing(packets: u8) -> Self {
        Self {
            packets,
            highest: None,
            lowest: None,
            earliest: u64::MAX,
            again: false,
            path: None,
        }
    }
}

/// Tells by what is acknowledged, and by when it was sent, which chunks are lost.
#[derive(Debug)]
pub(in crate::sctp) struct LossDetector {
    rules: Rules,
    transmissions: u64,
    paths: PerPath<Latest>,
    all: Latest,
    newly: Newly,
}

/// A chunk that is taken for lost: there are reports enough that it is missing (RFC 9260 section 7.2.4, RFC 5827).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Lost {
    pub tsn: Tsn,
    /// It had been fast retransmitted before (MFR).
    pub again: bool,
}

/// What a SACK says of what it leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::sctp) struct Verdict {
    /// In order of TSN.
    pub lost: SmallVec<[Lost; 4]>,
    /// Missing reports that did not count, because nothing that was sent later is acknowledged.
    pub withheld: u64,
}

impl LossDetector {
    pub(in crate::sctp) fn new(config: &Config) -> Self {
        Self {
            rules: Rules::new(config),
            transmissions: 0,
            paths: PerPath::default(),
            all: Latest::default(),
            newly: Newly::nothing(0),
        }
    }

    /// A chunk is sent for the first time.
    pub(in crate::sctp) fn on_sent(&mut self, now: Instant) -> Transmission {
        self.transmissions += 1;
        Transmission::first(self.transmissions, now)
    }

    /// A chunk is sent again; `moves`: on another path than it was last.
    pub(in crate::sctp) fn on_sent_again(
        &mut self,
        now: Instant,
        former: Transmission,
        moves: bool,
    ) -> Transmission {
        former.again(self.on_sent(now), moves)
    }

    /// A SACK arrives that stands for so many packets.
    pub(in crate::sctp) fn begin_sack(&mut self, packets: u8) {
        self.newly = Newly::nothing(packets);
        self.all.begin_sack();
        self.paths.values_mut().for_each(Latest::begin_sack);
    }

    /// It acknowledges `tsn` for the first time, last sent on `path`, whose shortest round trip is `least`, if one is known.
    pub(in crate::sctp) fn on_newly_acked(
        &mut self,
        now: Instant,
        tsn: Tsn,
        path: Option<PathId>,
        transmission: Transmission,
        least: Option<Duration>,
    ) {
        let first = self.newly.highest.is_none();
        self.newly.path = path.filter(|_| first || self.newly.path == path);
        if self.newly.highest.is_none_or(|h| h.before(tsn)) {
            self.newly.highest = Some(tsn);
        }
        if self.newly.lowest.is_none_or(|l| tsn.before(l)) {
            self.newly.lowest = Some(tsn);
        }
        let may_be_of_former = least.map_or(transmission.has_moved(), |least| {
            now.since(transmission.at()) < least
        });
        let is_known = !(transmission.is_again() && may_be_of_former);
        if let Some(path) = path {
            let own = self.paths.open(path);
            own.note_tsn(tsn);
            if is_known {
                own.note(transmission.number());
            }
        }
        if is_known {
            self.newly.earliest = self.newly.earliest.min(transmission.number());
            self.newly.again |= transmission.is_again();
            self.all.note(transmission.number());
        } else {
            self.newly.earliest = 0;
        }
    }

    /// Counts what the SACK leaves out, whose `blocks` have been applied to `flight`; `threshold` reports make a chunk
    /// lost.
    #[inline(never)]
    pub(in crate::sctp) fn step(
        &self,
        flight: &mut Flight,
        blocks: &[GapAckBlock],
        threshold: u8,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let cumulative = flight.cumulative_tsn_ack();
        let reach = self.reach(cumulative, blocks);
        let mut hole = 1;
        for block in blocks {
            let (start, end) = (u32::from(block.start), u32::from(block.end));
            for offset in hole..start.min(reach) {
                let tsn = cumulative.add(offset);
                let Some(sent) = flight.get(tsn) else { break };
                let transmission = sent.transmission();
                let again = transmission.is_fast_retransmitted() && !self.rules.multiple;
                if !sent.is_outstanding() || again {
                    continue;
                }
                let reports = self.reports(tsn, transmission, sent.path());
                if reports == 0 {
                    verdict.withheld += 1;
                } else if flight.report_missing(tsn, reports) >= threshold {
                    let again = flight.note_fast_retransmission(tsn);
                    verdict.lost.push(Lost { tsn, again });
                }
            }
            if end >= reach {
                break;
            }
            hole = end + 1;
        }
        verdict
    }

    /// The offset up to which something may be missing: what was sent once was sent before all that has a higher TSN.
    fn reach(&self, cumulative: Tsn, blocks: &[GapAckBlock]) -> u32 {
        if self.rules.repeated || self.newly.again {
            return blocks.last().map_or(0, |b| u32::from(b.end));
        }
        let highest = self.newly.highest.filter(|h| cumulative.before(*h));
        highest.map_or(0, |h| h.distance_from(cumulative))
    }

    /// How many reports the SACK at hand is that chunk `tsn` is missing, whose last transmission on `path` this was.
    fn reports(&self, tsn: Tsn, transmission: Transmission, path: Option<PathId>) -> u8 {
        let own = path.and_then(|path| self.paths.get(path));
        let own = own.copied().unwrap_or_default();
        let (overtaken, by_all) = if self.rules.split && !self.rules.multiple && !transmission.is_again() {
            let before = |other: Option<Tsn>| other.is_some_and(|other| tsn.before(other));
            (before(own.highest_newly), before(self.newly.lowest))
        } else {
            let latest = if self.rules.split || transmission.is_again() {
                own
            } else {
                self.all
            };
            let latest = if self.rules.repeated {
                latest.ever
            } else {
                latest.newly
            };
            (
                latest > transmission.number(),
                self.newly.earliest > transmission.number(),
            )
        };
        match overtaken {
            false => 0,
            true if self.rules.delayed_acks && by_all && self.newly.path.is_some() => {
                self.newly.packets.max(1)
            }
            true => 1,
        }
    }
}

#[cfg(test)]
mod tests;
