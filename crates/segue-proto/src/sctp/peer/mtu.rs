//! The smallest PMTU of all paths, and what follows from it (RFC 9260 section 7.3).

use super::heartbeat::write_info;
use super::pmtu::{LEAST_MTU, TooBig};
use super::{Path, Peer};
use crate::sctp::ids::PathId;
use crate::sctp::lengths::{PACKET_HEADERS, encapsulation_overhead};
use crate::sctp::outbox::{ControlPacket, Outbox};
use crate::sctp::{Config, PathState, PmtuDiscovery};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use segue_wire::sctp::Chunk;
use smallvec::SmallVec;

const PAD_HEADER: u32 = 4;

/// What a router's Packet Too Big came to.
#[derive(Debug, Default)]
pub(in crate::sctp) struct Reduced {
    /// It was news.
    pub is_news: bool,
    /// Paths on which something is under way that may be too big.
    pub paths: SmallVec<[PathId; 2]>,
    /// Bytes of chunks that a packet there holds now.
    pub room: u32,
}

impl Peer {
    /// Chunks that accompany data take so many bytes of a packet.
    pub(in crate::sctp) fn leave_room_for(&mut self, overhead: u32, config: &Config) {
        self.sizes.leave_room_for(config, overhead);
    }

    /// The PMTU towards `destination` with whatever carries SCTP, if it is less than the interface's.
    #[inline]
    pub(in crate::sctp) fn reduced_mtu(&self, destination: Ipv6Addr, config: &Config) -> Option<u32> {
        // asked for every packet, and nearly always of an association whose paths all carry what the interface does
        if !self.sizes.is_reduced() {
            return None;
        }
        let index = self.find(destination)?;
        let to_there = self.paths.values().filter(|p| p.destination() == index);
        let value = to_there.map(Path::pmtu).min()?;
        (value < self.sizes.interface_mtu()).then_some(value + encapsulation_overhead(config))
    }

    /// Everything follows the smallest PMTU of the paths in use: where messages are cut, how much a packet bundles, the
    /// unit of the windows.
    pub(super) fn follow_pmtu(&mut self, config: &Config) {
        let in_use = self.paths.values().filter(|p| !p.is_retired());
        let smallest = in_use.map(Path::pmtu).min().unwrap_or(self.sizes.mtu());
        if !self.sizes.follow_mtu(config, smallest) {
            return;
        }
        self.is_as_listed = false;
        let rules = self.sizes.rules();
        for path in self.paths.values_mut() {
            path.follow_rules(rules);
        }
    }

    /// A router says that packets from `source` to `destination` must not exceed `mtu`; it is known to be about one of
    /// ours. Less than the least MTU of IPv6 is no such limit (RFC 8200 section 5).
    pub(in crate::sctp) fn on_packet_too_big(
        &mut self,
        now: Instant,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        mtu: u32,
        config: &Config,
    ) -> Reduced {
        let mut reduced = Reduced::default();
        let Some(index) = self.find(destination) else {
            return reduced;
        };
        if config.pmtu_discovery == PmtuDiscovery::None || mtu < LEAST_MTU {
            return reduced;
        }
        let mtu = mtu - encapsulation_overhead(config);
        for (id, path) in self.paths.iter_mut() {
            if path.destination() != index || path.source().address != source {
                continue;
            }
            let too_big = path.on_packet_too_big(now, mtu);
            reduced.is_news |= too_big != TooBig::Known;
            if too_big == TooBig::Value {
                reduced.paths.push(id);
            }
        }
        if !reduced.paths.is_empty() {
            self.follow_pmtu(config);
        }
        reduced.room = self.sizes.room_in(mtu);
        reduced
    }

    /// Sends the probes that the search asks for. `auth_len`: what an AUTH chunk takes of a packet with one.
    #[inline(never)]
    pub(in crate::sctp) fn send_pmtu_probes(
        &mut self,
        now: Instant,
        auth_len: u32,
        rng: &mut ChaCha8Rng,
        out: &mut Outbox,
    ) {
        for (id, path) in self.paths.iter_mut() {
            let destination = &self.destinations[path.destination()];
            let usable = !path.is_retired()
                && destination.state() == PathState::Active
                && !destination.is_deactivated()
                && destination.path() == id;
            if !usable {
                continue;
            }
            if let Some(size) = path.next_probe(now, self.sizes.interface_mtu()) {
                let nonce = rng.next_u64();
                path.probe_sent(now, nonce, size);
                let address = destination.address();
                let probe = probe(address, nonce, size, auth_len).sent_from(path.source());
                out.counters.pmtu_probes += 1;
                out.send(probe);
            }
        }
    }

    /// Whether a HEARTBEAT ACK with this nonce answers a probe; what was probed then passes.
    pub(super) fn pmtu_probe_answered(&mut self, nonce: u64, config: &Config) -> bool {
        let answered = self.paths.values_mut().any(|p| p.probe_answered(nonce));
        if answered {
            self.follow_pmtu(config);
        }
        answered
    }

    pub(in crate::sctp) fn on_pmtu_timers(&mut self, now: Instant, config: &Config) {
        let interface_mtu = self.sizes.interface_mtu();
        let mut changed = false;
        for path in self.paths.values_mut() {
            changed |= path.on_pmtu_timers(now, interface_mtu);
        }
        if changed {
            self.follow_pmtu(config);
        }
    }

    /// T3-rtx expired on a path: perhaps packets are too big for it.
    pub(in crate::sctp) fn suspect_black_hole(&mut self, path: PathId, config: &Config) {
        let interface_mtu = self.sizes.interface_mtu();
        if self.paths[path].suspect_black_hole(interface_mtu) {
            self.follow_pmtu(config);
        }
    }
}

/// A HEARTBEAT padded to `size` by a PAD chunk (RFC 4820 section 3, RFC 8899 section 6.2.1.2).
fn probe(address: Ipv6Addr, nonce: u64, size: u32, auth_len: u32) -> ControlPacket {
    let heartbeat = Chunk::Heartbeat(write_info(nonce, address));
    let used = PACKET_HEADERS + auth_len + heartbeat.buffer_len() as u32 + PAD_HEADER;
    let padding = Chunk::Pad(Bytes::from(vec![0; size.saturating_sub(used) as usize]));
    ControlPacket::new(address, SmallVec::from_iter([heartbeat, padding]))
}
