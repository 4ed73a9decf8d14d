//! Path MTU (RFC 9260 section 7.3): lowered by Packet Too Big, raised by probes (RFC 8899).
//!
//! Each (source, destination) pair has a PMTU. The association cuts messages, bundles and counts windows by the smallest
//! of them, so that every chunk fits every path it may be retransmitted on. A chunk that was cut for a larger one cannot
//! be cut again (section 6.9): it is sent whole, and the host's IPv6 layer fragments the packet
//! (`Endpoint::reduced_mtu`).
//!
//! Sizes are those of the IPv6 packet, without the UDP header where there is one (RFC 6951).

use super::PathState;
use super::PmtuDiscovery;
use super::association::{Association, ControlPacket, PACKET_HEADERS};
use super::encapsulation::UDP_HEADER;
use super::path::PathId;
use super::sender::Cause;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::sctp::Chunk;
use segue_wire::sctp::chunk_type::{HEARTBEAT, PAD};
use smallvec::SmallVec;

/// PMTU of a path, and the search for it.
#[derive(Debug)]
pub(super) struct Pmtu {
    /// Packets of this size are taken to pass.
    pub value: u32,
    /// Larger ones are known not to, or not worth trying.
    ceiling: u32,
    /// The ceiling itself does not pass.
    ceiling_failed: bool,
    searching: bool,
    probe: Option<Probe>,
    /// Probes of the present size that were lost.
    lost: u32,
    /// When to try again whether more passes.
    raise_at: Option<Instant>,
    /// T3-rtx expiries in a row.
    timeouts: u32,
}

/// A probe that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u64,
    size: u32,
    expires: Instant,
}

impl Pmtu {
    /// `mtu`: what the interface carries.
    pub(super) fn new(discovery: PmtuDiscovery, mtu: u32, base: u32) -> Self {
        let probing = discovery == PmtuDiscovery::Probing;
        Self {
            value: if probing { base.min(mtu) } else { mtu },
            ceiling: mtu,
            ceiling_failed: false,
            searching: probing,
            probe: None,
            lost: 0,
            raise_at: None,
            timeouts: 0,
        }
    }

    /// The size to probe next: the ceiling as long as nothing speaks against it, then the middle of what is left.
    fn next_size(&self) -> Option<u32> {
        let least = self.value + STEP;
        if self.ceiling < least {
            return None;
        }
        if !self.ceiling_failed {
            return Some(self.ceiling & !3);
        }
        let middle = self.value + (self.ceiling - self.value) / 2;
        // chunks are multiples of four bytes
        (least < self.ceiling).then(|| (middle & !3).max(least & !3))
    }

    /// The search begins anew.
    fn restart(&mut self, mtu: u32) {
        self.ceiling = mtu;
        self.ceiling_failed = false;
        self.searching = true;
        self.probe = None;
        self.lost = 0;
        self.raise_at = None;
    }

    /// Something sent on the path was acknowledged.
    pub(super) fn is_good(&mut self) {
        self.timeouts = 0;
    }

    pub(super) fn timer(&self) -> Option<Instant> {
        match (&self.probe, self.raise_at) {
            (Some(probe), Some(raise_at)) => Some(probe.expires.min(raise_at)),
            (Some(probe), None) => Some(probe.expires),
            (None, raise_at) => raise_at,
        }
    }
}

impl Association {
    /// What the least MTU of IPv6 leaves (RFC 8899 section 5.1.2, BASE_PLPMTU).
    fn base_mtu(&self) -> u32 {
        LEAST_MTU - self.encapsulation_overhead()
    }

    fn encapsulation_overhead(&self) -> u32 {
        if self.config.udp_encapsulation.is_some() {
            UDP_HEADER
        } else {
            0
        }
    }

    /// PMTU of a path that begins.
    pub(super) fn new_pmtu(&self) -> Pmtu {
        Pmtu::new(
            self.config.pmtu_discovery,
            self.sizes.interface_mtu(),
            self.base_mtu(),
        )
    }

    /// The PMTU towards `destination` with whatever carries SCTP, if it is less than the interface's.
    pub(super) fn reduced_mtu(&self, destination: Ipv6Addr) -> Option<u32> {
        // asked for every packet, and nearly always of an association whose paths all carry what the interface does
        if !self.sizes.is_reduced() {
            return None;
        }
        let index = self.destination_index(destination)?;
        let value = self
            .paths
            .values()
            .filter(|p| p.destination == index)
            .map(|p| p.pmtu.value)
            .min()?;
        (value < self.sizes.interface_mtu()).then_some(value + self.encapsulation_overhead())
    }

    /// Everything follows the smallest PMTU of the paths in use: where messages are cut, how much a packet bundles, the
    /// unit of the windows.
    pub(super) fn follow_pmtu(&mut self) {
        let smallest = self
            .paths
            .values()
            .filter(|p| !p.retired)
            .map(|p| p.pmtu.value)
            .min()
            .unwrap_or(self.sizes.mtu());
        if !self.sizes.follow_mtu(&self.config, smallest) {
            return;
        }
        self.queue.cut_to(self.sizes.max_data());
        let rules = self.sizes.rules();
        for path in self.paths.values_mut() {
            path.window.set_rules(rules);
        }
    }

    /// A router says that packets from `source` to `destination` must not exceed `mtu`; it is known to be about one of
    /// ours. Less than the least MTU of IPv6 is no such limit (RFC 8200 section 5). Returns whether anything changed.
    pub(super) fn on_packet_too_big(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        mtu: u32,
    ) -> bool {
        let Some(index) = self.destination_index(destination) else {
            return false;
        };
        if self.config.pmtu_discovery == PmtuDiscovery::None || mtu < LEAST_MTU {
            return false;
        }
        let mtu = mtu - self.encapsulation_overhead();
        let mut changed = false;
        for i in self.paths.ids() {
            let path = &mut self.paths[i];
            let concerned = path.destination == index && path.source.address == source;
            if !concerned || mtu >= path.pmtu.ceiling.max(path.pmtu.value) {
                continue;
            }
            changed = true;
            path.pmtu.ceiling = mtu;
            path.pmtu.ceiling_failed = false;
            path.pmtu.raise_at = Some(now + RAISE_INTERVAL);
            if path.pmtu.probe.is_some_and(|p| p.size > mtu) {
                path.pmtu.probe = None;
                path.pmtu.lost = 0;
            }
            if mtu < path.pmtu.value {
                path.pmtu.value = mtu;
                self.follow_pmtu();
                self.repeat_what_was_too_big(i, mtu);
            }
        }
        changed
    }

    /// Chunks outstanding on the path that did not fit are marked for retransmission: they were not lost to congestion,
    /// and T3-rtx need not tell.
    fn repeat_what_was_too_big(&mut self, index: PathId, mtu: u32) {
        let id = index;
        let room = self.sizes.room_in(mtu);
        let left = self.flight.lose(Cause::TooBig, |sent| {
            sent.path() == Some(id) && sent.size() > room
        });
        if left.chunks == 0 {
            return;
        }
        self.credit.give_back(left.bytes);
        self.open_burst();
    }

    /// Sends the probes that the search asks for. Called whenever something may be sent.
    pub(super) fn send_pmtu_probes(&mut self, now: Instant) {
        if self.config.pmtu_discovery != PmtuDiscovery::Probing || !self.may_heartbeat() || self.is_stranded()
        {
            return;
        }
        for i in self.paths.ids() {
            let path = &self.paths[i];
            let destination = &self.destinations[path.destination];
            let usable = !path.retired
                && path.pmtu.searching
                && path.pmtu.probe.is_none()
                && destination.state == PathState::Active
                && !destination.deactivated
                && destination.path == i;
            if !usable {
                continue;
            }
            match path.pmtu.next_size() {
                Some(size) => self.send_pmtu_probe(now, i, size),
                None => {
                    let pmtu = &mut self.paths[i].pmtu;
                    pmtu.searching = false;
                    pmtu.raise_at = (pmtu.value < self.sizes.interface_mtu()).then(|| now + RAISE_INTERVAL);
                }
            }
        }
    }

    /// A HEARTBEAT padded to `size` by a PAD chunk (RFC 4820 section 3, RFC 8899 section 6.2.1.2).
    fn send_pmtu_probe(&mut self, now: Instant, index: PathId, size: u32) {
        let nonce = self.secret_u64();
        let overhead = self.auth.overhead(&[HEARTBEAT, PAD]);
        let path = &mut self.paths[index];
        let address = self.destinations[path.destination].address;
        let heartbeat = Chunk::Heartbeat(super::heartbeat::write_info(nonce, address));
        let used = PACKET_HEADERS + overhead + heartbeat.buffer_len() as u32 + PAD_HEADER;
        let padding = Chunk::Pad(Bytes::from(vec![0; size.saturating_sub(used) as usize]));
        path.pmtu.probe = Some(Probe {
            nonce,
            size,
            expires: now + path.rtt.rto().max(PROBE_TIMER),
        });
        let source = path.source;
        self.out.counters.pmtu_probes += 1;
        let chunks = SmallVec::from_iter([heartbeat, padding]);
        self.out
            .send(ControlPacket::new(address, chunks).sent_from(source));
    }

    /// Whether a HEARTBEAT ACK with this nonce answers a probe; what was probed then passes.
    pub(super) fn on_pmtu_probe_answered(&mut self, nonce: u64) -> bool {
        let answered = |p: &super::path::Path| p.pmtu.probe.is_some_and(|probe| probe.nonce == nonce);
        let Some((index, _)) = self.paths.iter().find(|(_, p)| answered(p)) else {
            return false;
        };
        let pmtu = &mut self.paths[index].pmtu;
        if let Some(probe) = pmtu.probe.take() {
            pmtu.value = pmtu.value.max(probe.size);
            pmtu.lost = 0;
        }
        self.follow_pmtu();
        true
    }

    pub(super) fn on_pmtu_timers(&mut self, now: Instant) {
        let mtu = self.sizes.interface_mtu();
        let probing = self.config.pmtu_discovery == PmtuDiscovery::Probing;
        let mut changed = false;
        for path in self.paths.values_mut() {
            let pmtu = &mut path.pmtu;
            if let Some(probe) = pmtu.probe.filter(|p| p.expires <= now) {
                // a lost probe is no sign of congestion, nor of a dead path (RFC 8899 section 3, items 6 and 7)
                pmtu.probe = None;
                pmtu.lost += 1;
                if pmtu.lost >= MAX_PROBES {
                    pmtu.lost = 0;
                    pmtu.ceiling = probe.size;
                    pmtu.ceiling_failed = true;
                }
            }
            if pmtu.raise_at.is_some_and(|at| at <= now) {
                pmtu.restart(mtu);
                if !probing {
                    // RFC 8201 section 4: ten minutes after the last Packet Too Big, what the interface carries
                    pmtu.searching = false;
                    pmtu.value = mtu;
                    changed = true;
                }
            }
        }
        if changed {
            self.follow_pmtu();
        }
    }

    /// T3-rtx expired on a path. If that happens again and again to packets larger than the least MTU, it is perhaps
    /// their size (RFC 8899 section 4.3).
    pub(super) fn suspect_black_hole(&mut self, index: PathId) {
        let (base, mtu) = (self.base_mtu(), self.sizes.interface_mtu());
        let pmtu = &mut self.paths[index].pmtu;
        pmtu.timeouts += 1;
        if self.config.pmtu_discovery != PmtuDiscovery::Probing
            || pmtu.timeouts < MAX_PROBES
            || pmtu.value <= base
        {
            return;
        }
        pmtu.value = base;
        pmtu.timeouts = 0;
        pmtu.restart(mtu);
        self.follow_pmtu();
    }
}

/// RFC 8200 section 5.
const LEAST_MTU: u32 = 1280;
/// The search ends when less than this is left, bytes.
const STEP: u32 = 4;
/// Probes of a size, and timeouts, until it counts as too large (RFC 8899 section 5.1.2, MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// RFC 8899 section 5.1.1: PROBE_TIMER is at least a second.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// PMTU_RAISE_TIMER (RFC 8899 section 5.1.1), and the ten minutes of RFC 8201 section 4.
const RAISE_INTERVAL: Duration = Duration::from_secs(600);
const PAD_HEADER: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::UdpEncapsulation;
    use super::super::tests::{FIRST, address, ms, own, send_on, up};
    use super::*;
    use crate::sctp::slots::Id;

    fn search(value: u32, ceiling: u32, ceiling_failed: bool) -> Pmtu {
        Pmtu {
            value,
            ceiling_failed,
            ..Pmtu::new(PmtuDiscovery::Probing, ceiling, value)
        }
    }

    fn probing(destinations: u16) -> Association {
        let config = Config {
            pmtu_discovery: PmtuDiscovery::Probing,
            ..Config::default()
        };
        up(config, destinations)
    }

    #[test]
    fn the_search_goes_to_the_ceiling_and_then_to_the_middle_in_steps_of_four() {
        for (value, ceiling, failed, size) in [
            (1280, 1500, false, Some(1500)),
            (1280, 1503, false, Some(1500)),
            (1280, 1284, false, Some(1284)),
            (1280, 1283, false, None),
            (1280, 1500, true, Some(1388)),
            (1388, 1500, true, Some(1444)),
            (1492, 1500, true, Some(1496)),
            (1496, 1500, true, None),
            (1280, 1285, true, Some(1284)),
            (1280, 1284, true, None),
            (1500, 1500, false, None),
        ] {
            let pmtu = search(value, ceiling, failed);
            assert_eq!(pmtu.next_size(), size, "{value} {ceiling} {failed}");
        }
        let least = Pmtu::new(PmtuDiscovery::Probing, 1200, 1280);
        assert_eq!((least.value, least.searching), (1200, true));
        let told = Pmtu::new(PmtuDiscovery::PacketTooBig, 1500, 1280);
        assert_eq!((told.value, told.searching), (1500, false));
    }

    #[test]
    fn its_timer_is_the_earlier_of_the_two() {
        let probe = |at| {
            Some(Probe {
                nonce: 1,
                size: 1500,
                expires: ms(at),
            })
        };
        for (probe, raise_at, timer) in [
            (None, None, None),
            (probe(5), None, Some(ms(5))),
            (None, Some(ms(6)), Some(ms(6))),
            (probe(5), Some(ms(6)), Some(ms(5))),
            (probe(7), Some(ms(6)), Some(ms(6))),
        ] {
            let pmtu = Pmtu {
                probe,
                raise_at,
                ..search(1280, 1500, false)
            };
            assert_eq!(pmtu.timer(), timer);
        }
    }

    #[test]
    fn the_udp_header_is_taken_off_the_base() {
        assert_eq!(probing(1).paths[0].pmtu.value, 1280);
        let config = Config {
            pmtu_discovery: PmtuDiscovery::Probing,
            udp_encapsulation: Some(UdpEncapsulation::default()),
            ..Config::default()
        };
        let a = up(config, 1);
        assert_eq!((a.paths[0].pmtu.value, a.sizes.mtu()), (1272, 1272));
        assert_eq!(a.reduced_mtu(address(0)), Some(1280));
    }

    #[test]
    fn the_third_loss_of_a_probe_lowers_the_ceiling_and_an_answer_raises_the_value() {
        let mut a = probing(1);
        for lost in 1..=3 {
            a.paths[0].pmtu.probe = Some(Probe {
                nonce: 9,
                size: 1500,
                expires: ms(1000),
            });
            a.on_pmtu_timers(ms(999));
            assert!(a.paths[0].pmtu.probe.is_some());
            a.on_pmtu_timers(ms(1000));
            let pmtu = &a.paths[0].pmtu;
            assert!(pmtu.probe.is_none());
            assert_eq!((pmtu.lost, pmtu.ceiling_failed), (lost % 3, lost == 3));
        }
        a.send_pmtu_probes(ms(1000));
        let probe = a.paths[0].pmtu.probe.expect("the next");
        assert_eq!((probe.size, probe.expires), (1388, ms(2000)));
        let packet = a.out.packets().next_back().expect("probe");
        let chunks: usize = packet.chunks.iter().map(Chunk::buffer_len).sum();
        assert_eq!(chunks + PACKET_HEADERS as usize, 1388);
        assert_eq!(a.out.counters.pmtu_probes, 1);
        a.send_pmtu_probes(ms(1001));
        assert_eq!(a.out.counters.pmtu_probes, 1, "one at a time");
        a.paths[0].pmtu.lost = 2;
        assert!(!a.on_pmtu_probe_answered(probe.nonce ^ 1));
        assert!(a.on_pmtu_probe_answered(probe.nonce));
        let pmtu = &a.paths[0].pmtu;
        assert_eq!((pmtu.value, pmtu.lost, a.sizes.mtu()), (1388, 0, 1388));
        // at the end of the search, ten minutes
        a.paths[0].pmtu.ceiling = 1390;
        a.send_pmtu_probes(ms(2000));
        let pmtu = &a.paths[0].pmtu;
        assert_eq!(
            (pmtu.searching, pmtu.raise_at),
            (false, Some(ms(2000) + RAISE_INTERVAL))
        );
        a.on_pmtu_timers(ms(602_000));
        let pmtu = &a.paths[0].pmtu;
        assert_eq!((pmtu.searching, pmtu.ceiling, pmtu.value), (true, 1500, 1388));
        assert_eq!(pmtu.raise_at, None);
    }

    #[test]
    fn packet_too_big_marks_what_does_not_fit() {
        let mut a = up(Config::default(), 2);
        // with headers: 1400 and 1404 bytes, and on the other path
        for (path, len) in [(FIRST, 1332), (FIRST, 1336), (PathId::first_at(1), 1336)] {
            send_on(&mut a, ms(0), path, len);
        }
        let told = |a: &mut Association, mtu| a.on_packet_too_big(ms(5), own().address, address(0), mtu);
        assert!(!told(&mut a, 1500) && !told(&mut a, 1279));
        assert!(!a.on_packet_too_big(ms(5), address(9), address(0), 1400));
        assert!(told(&mut a, 1400));
        assert_eq!((a.paths[0].pmtu.value, a.paths[1].pmtu.value), (1400, 1500));
        assert_eq!(a.paths[0].pmtu.raise_at, Some(ms(600_005)));
        assert_eq!((a.flight.marked(), a.flight.size_on(FIRST)), (1, 1348));
        assert_eq!(a.peer_rwnd(), 100_000 - 1332 - 1336);
        assert_eq!(
            (a.sizes.mtu(), a.flight.watched(FIRST)),
            (1400, Some((1, ms(1000))))
        );
        assert_eq!(a.reduced_mtu(address(0)), Some(1400));
        assert_eq!(a.reduced_mtu(address(1)), None);
        assert!(!told(&mut a, 1400), "known");
        assert!(told(&mut a, 1280));
        assert_eq!((a.flight.size_on(FIRST), a.flight.t3_rtx(FIRST)), (0, None));
        a.on_pmtu_timers(ms(600_004));
        assert_eq!(a.paths[0].pmtu.value, 1280);
        a.on_pmtu_timers(ms(600_005));
        assert_eq!((a.paths[0].pmtu.value, a.sizes.mtu()), (1500, 1500));
    }

    #[test]
    fn the_third_timeout_in_a_row_brings_a_path_back_to_the_base() {
        let mut a = probing(1);
        a.paths[0].pmtu.value = 1500;
        a.follow_pmtu();
        a.suspect_black_hole(Id::first_at(0));
        a.suspect_black_hole(Id::first_at(0));
        a.paths[0].pmtu.is_good();
        a.suspect_black_hole(Id::first_at(0));
        a.suspect_black_hole(Id::first_at(0));
        assert_eq!(a.sizes.mtu(), 1500);
        a.suspect_black_hole(Id::first_at(0));
        assert_eq!((a.paths[0].pmtu.value, a.sizes.mtu()), (1280, 1280));
        assert_eq!(a.paths[0].pmtu.timeouts, 0);
    }
}
