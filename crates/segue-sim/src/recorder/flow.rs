//! Data flows: one direction of an association each, told apart by their verification tag.

use super::overlap::Overlaps;
use crate::output::Spread;
use segue_capture::handover::{Handover, HandoverMeter, LossCause};
use segue_proto::Instant;
use segue_wire::sctp::Chunk;
use segue_wire::{Packet, Tsn};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// All data flows of a run.
#[derive(Debug)]
pub struct Flows {
    flows: Vec<Flow>,
    mobile: Vec<u32>,
    /// Data takes all paths at once.
    concurrent: bool,
}

#[derive(Debug)]
struct Flow {
    verification_tag: u32,
    /// Node that sends, once it has.
    sender: Option<u32>,
    meter: HandoverMeter,
    highest_sent: Option<Tsn>,
    received: Received,
    /// New bytes that arrived, by path.
    bytes_by_path: SmallVec<[(Ipv6Addr, u64); 2]>,
    /// Where data takes all paths at once.
    overlaps: Option<Overlaps>,
    /// The mobile host is at the sending end, so that a path is named by the source address.
    sender_moves: bool,
}

/// Which TSNs have been received: all up to one, and some beyond.
#[derive(Debug, Default)]
struct Received {
    cumulative: Option<Tsn>,
    beyond: BTreeSet<u32>,
}

impl Received {
    /// Notes a TSN; whether it is new.
    fn note(&mut self, tsn: Tsn, first: Tsn) -> bool {
        let cumulative = self.cumulative.get_or_insert(first.previous());
        if tsn.at_or_before(*cumulative) {
            return false;
        }
        if tsn != cumulative.next() {
            return self.beyond.insert(tsn.0);
        }
        *cumulative = tsn;
        while !self.beyond.is_empty() && self.beyond.remove(&cumulative.next().0) {
            *cumulative = cumulative.next();
        }
        true
    }
}

/// What all flows together measured.
#[derive(Debug, Default)]
pub struct FlowTotals {
    /// Handovers of the flow that carried most, in order of time.
    pub handovers: Vec<Handover>,
    /// Counts of all flows.
    pub totals: segue_capture::handover::DataTotals,
    /// New bytes that arrived at each address, of the flow that carried most.
    pub bytes_by_path: SmallVec<[(Ipv6Addr, u64); 2]>,
}

impl Flows {
    /// Flows of a run in which these nodes move.
    #[must_use]
    pub fn new(mobile: Vec<u32>) -> Self {
        Self {
            flows: Vec::new(),
            mobile,
            concurrent: false,
        }
    }

    /// Finds handovers where a path is left that others were used beside, if so.
    pub fn follow_overlaps(&mut self, concurrent: bool) {
        self.concurrent = concurrent;
    }

    /// A host made another path its primary.
    pub fn primary_changed(&mut self, sender: u32, path: Ipv6Addr) {
        for flow in self.flows.iter_mut().filter(|f| f.sender == Some(sender)) {
            flow.meter.path_announced(path);
            if let Some(overlaps) = &mut flow.overlaps {
                overlaps.primary_changed(path);
            }
        }
    }

    /// A host sends a packet; whether it is a retransmission of data.
    pub fn sent(&mut self, now: Instant, sender: u32, packet: &Packet) -> bool {
        let Some((tag, chunks)) = data_of(packet) else {
            return false;
        };
        let index = self.index(tag);
        let flow = &mut self.flows[index];
        if flow.sender != Some(sender) {
            flow.sender = Some(sender);
            flow.sender_moves = self.mobile.contains(&sender);
        }
        let mut retransmission = false;
        for data in chunks {
            retransmission = flow.highest_sent.is_some_and(|h| data.tsn.at_or_before(h));
            if !retransmission {
                flow.highest_sent = Some(data.tsn);
                flow.received.cumulative.get_or_insert(data.tsn.previous());
            }
            let path = if flow.sender_moves {
                packet.ip.source
            } else {
                packet.ip.destination
            };
            flow.meter.data_sent(now.as_nanos(), path, data.tsn);
        }
        retransmission
    }

    /// A host receives a packet.
    pub fn received(&mut self, now: Instant, packet: &Packet) {
        let Some((tag, chunks)) = data_of(packet) else {
            return;
        };
        let flow = self.flow(tag);
        for data in chunks {
            let new = flow.received.note(data.tsn, data.tsn);
            let useful = if new { data.data.len() as u32 } else { 0 };
            let path = if flow.sender_moves {
                packet.ip.source
            } else {
                packet.ip.destination
            };
            flow.meter.data_received(now.as_nanos(), path, data.tsn, useful);
            if new && let Some(overlaps) = &mut flow.overlaps {
                overlaps.received(now.as_nanos(), path);
            }
            match flow.bytes_by_path.iter_mut().find(|(p, _)| *p == path) {
                Some((_, bytes)) => *bytes += u64::from(useful),
                None => flow.bytes_by_path.push((path, u64::from(useful))),
            }
        }
    }

    /// A packet is lost.
    pub fn lost(&mut self, now: Instant, packet: &Packet, cause: LossCause) {
        let Some((tag, chunks)) = data_of(packet) else {
            return;
        };
        let flow = self.flow(tag);
        let path = if flow.sender_moves {
            packet.ip.source
        } else {
            packet.ip.destination
        };
        for _ in chunks {
            flow.meter.data_lost(now.as_nanos(), path, cause);
            if cause == LossCause::Handover
                && let Some(overlaps) = &mut flow.overlaps
            {
                overlaps.lost(path);
            }
        }
    }

    /// Ends the measurement. Handovers are those of the flow that carried most: each direction of an association sees
    /// the same ones.
    #[must_use]
    pub fn finish(self) -> FlowTotals {
        let mut all = FlowTotals::default();
        let mut most = 0;
        for flow in self.flows {
            let report = flow.meter.finish();
            let (sum, t) = (&mut all.totals, report.totals);
            if t.useful_bytes > most || all.handovers.is_empty() {
                most = t.useful_bytes;
                all.handovers = match &flow.overlaps {
                    // there is no moment at which all data moves from one path to the other
                    Some(overlaps) => overlaps.finish(),
                    None => report.handovers,
                };
                all.bytes_by_path = flow.bytes_by_path;
                sum.longest_gap_ns = t.longest_gap_ns;
            }
            sum.packets_sent += t.packets_sent;
            sum.packets_retransmitted += t.packets_retransmitted;
            sum.packets_received += t.packets_received;
            sum.duplicate_packets += t.duplicate_packets;
            sum.useful_bytes += t.useful_bytes;
            sum.lost_to_handover += t.lost_to_handover;
            sum.lost_to_queue += t.lost_to_queue;
            sum.lost_otherwise += t.lost_otherwise;
        }
        all
    }

    fn flow(&mut self, verification_tag: u32) -> &mut Flow {
        let index = self.index(verification_tag);
        &mut self.flows[index]
    }

    #[inline]
    fn index(&mut self, verification_tag: u32) -> usize {
        let known = self
            .flows
            .iter()
            .position(|f| f.verification_tag == verification_tag);
        known.unwrap_or_else(|| self.begin(verification_tag))
    }

    fn begin(&mut self, verification_tag: u32) -> usize {
        self.flows.push(Flow {
            verification_tag,
            sender: None,
            meter: HandoverMeter::new(),
            highest_sent: None,
            received: Received::default(),
            bytes_by_path: SmallVec::new(),
            overlaps: self.concurrent.then(Overlaps::default),
            sender_moves: false,
        });
        self.flows.len() - 1
    }
}

/// Verification tag and DATA chunks of a packet that carries data.
fn data_of(packet: &Packet) -> Option<(u32, impl Iterator<Item = &segue_wire::sctp::DataChunk>)> {
    let sctp = packet.payload.sctp()?;
    let any = match sctp.chunks.as_slice() {
        [Chunk::Data(_), ..] => true,
        [Chunk::Sack(_)] => false,
        all => all.iter().any(|c| matches!(c, Chunk::Data(_))),
    };
    if !any {
        return None;
    }
    let data = sctp.chunks.iter().filter_map(|c| match c {
        Chunk::Data(d) => Some(d),
        _ => None,
    });
    Some((sctp.verification_tag, data))
}

impl Spread {
    /// Of any number of values; `None` of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Self {
            median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
            min,
            max,
        })
    }
}
