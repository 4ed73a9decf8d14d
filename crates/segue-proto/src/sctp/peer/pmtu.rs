//! Path MTU (RFC 9260 section 7.3): lowered by Packet Too Big, raised by probes (RFC 8899).
//!
//! Each (source, destination) pair has a PMTU. The association cuts messages, bundles and counts windows by the smallest
//! of them, so that every chunk fits every path it may be retransmitted on. A chunk that was cut for a larger one cannot
//! be cut again (section 6.9): it is sent whole, and the host's IPv6 layer fragments the packet
//! (`Endpoint::reduced_mtu`).
//!
//! Sizes are those of the IPv6 packet, without the UDP header where there is one (RFC 6951).

use crate::sctp::lengths::encapsulation_overhead;
use crate::sctp::{Config, PmtuDiscovery};
use crate::time::{Duration, Instant};

/// PMTU of a path, and the search for it.
#[derive(Debug)]
pub(super) struct Pmtu {
    probing: bool,
    /// What the least MTU of IPv6 leaves (RFC 8899 section 5.1.2, BASE_PLPMTU).
    base: u32,
    /// Packets of this size are taken to pass.
    value: u32,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    nonce: u64,
    size: u32,
    expires: Instant,
}

/// What a Packet Too Big changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TooBig {
    /// Nothing: so much is known.
    Known,
    /// Larger packets are not tried.
    Ceiling,
    /// What was sent was too big.
    Value,
}

impl Pmtu {
    /// `interface_mtu`: what the interface carries.
    pub(super) fn new(config: &Config, interface_mtu: u32) -> Self {
        let probing = config.pmtu_discovery == PmtuDiscovery::Probing;
        let base = LEAST_MTU - encapsulation_overhead(config);
        Self {
            probing,
            base,
            value: if probing {
                base.min(interface_mtu)
            } else {
                interface_mtu
            },
            ceiling: interface_mtu,
            ceiling_failed: false,
            searching: probing,
            probe: None,
            lost: 0,
            raise_at: None,
            timeouts: 0,
        }
    }

    pub(super) fn value(&self) -> u32 {
        self.value
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
    #[inline]
    pub(super) fn note_arrival(&mut self) {
        self.timeouts = 0;
    }

    #[inline]
    pub(super) fn timer(&self) -> Option<Instant> {
        match (&self.probe, self.raise_at) {
            (Some(probe), Some(raise_at)) => Some(probe.expires.min(raise_at)),
            (Some(probe), None) => Some(probe.expires),
            (None, raise_at) => raise_at,
        }
    }

    /// A router says that packets must not exceed `mtu`.
    pub(super) fn on_packet_too_big(&mut self, now: Instant, mtu: u32) -> TooBig {
        if mtu >= self.ceiling.max(self.value) {
            return TooBig::Known;
        }
        self.ceiling = mtu;
        self.ceiling_failed = false;
        self.raise_at = Some(now + RAISE_INTERVAL);
        if self.probe.is_some_and(|p| p.size > mtu) {
            self.probe = None;
            self.lost = 0;
        }
        if mtu >= self.value {
            return TooBig::Ceiling;
        }
        self.value = mtu;
        TooBig::Value
    }

    /// The size of the probe that the search asks for now, if any; where it is over, it begins again later.
    pub(super) fn next_probe(&mut self, now: Instant, interface_mtu: u32) -> Option<u32> {
        if !self.searching || self.probe.is_some() {
            return None;
        }
        let size = self.next_size();
        if size.is_none() {
            self.searching = false;
            self.raise_at = (self.value < interface_mtu).then(|| now + RAISE_INTERVAL);
        }
        size
    }

    /// A probe of this size goes out on a path with this RTO.
    pub(super) fn probe_sent(&mut self, now: Instant, nonce: u64, size: u32, rto: Duration) {
        let expires = now + rto.max(PROBE_TIMER);
        self.probe = Some(Probe { nonce, size, expires });
    }

    /// Whether a HEARTBEAT ACK with this nonce answers the probe; what was probed then passes.
    pub(super) fn answered(&mut self, nonce: u64) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.nonce == nonce) else {
            return false;
        };
        self.value = self.value.max(probe.size);
        self.lost = 0;
        true
    }

    /// Probes that are lost, and a search that begins again. Returns whether the PMTU is another one.
    pub(super) fn on_timers(&mut self, now: Instant, interface_mtu: u32) -> bool {
        if let Some(probe) = self.probe.take_if(|p| p.expires <= now) {
            // a lost probe is no sign of congestion, nor of a dead path (RFC 8899 section 3, items 6 and 7)
            self.lost += 1;
            if self.lost >= MAX_PROBES {
                self.lost = 0;
                self.ceiling = probe.size;
                self.ceiling_failed = true;
            }
        }
        if self.raise_at.is_none_or(|at| at > now) {
            return false;
        }
        self.restart(interface_mtu);
        if !self.probing {
            // RFC 8201 section 4: ten minutes after the last Packet Too Big, what the interface carries
            self.searching = false;
            self.value = interface_mtu;
        }
        !self.probing
    }

    /// T3-rtx expired on a path. If that happens again and again to packets larger than the least MTU, it is perhaps
    /// their size (RFC 8899 section 4.3). Returns whether the PMTU is another one.
    pub(super) fn suspect_black_hole(&mut self, interface_mtu: u32) -> bool {
        self.timeouts += 1;
        if !self.probing || self.timeouts < MAX_PROBES || self.value <= self.base {
            return false;
        }
        self.value = self.base;
        self.timeouts = 0;
        self.restart(interface_mtu);
        true
    }
}

/// RFC 8200 section 5.
pub(super) const LEAST_MTU: u32 = 1280;
/// The search ends when less than this is left, bytes.
const STEP: u32 = 4;
/// Probes of a size, and timeouts, until it counts as too large (RFC 8899 section 5.1.2, MAX_PROBES).
const MAX_PROBES: u32 = 3;
/// RFC 8899 section 5.1.1: PROBE_TIMER is at least a second.
const PROBE_TIMER: Duration = Duration::from_secs(1);
/// PMTU_RAISE_TIMER (RFC 8899 section 5.1.1), and the ten minutes of RFC 8201 section 4.
const RAISE_INTERVAL: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::super::tests::Rig;
    use super::*;
    use crate::sctp::UdpEncapsulation;
    use crate::sctp::lengths::PACKET_HEADERS;
    use crate::sctp::testing::{FIRST, address, ms};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;
    use segue_wire::sctp::Chunk;

    /// Of packets of `mtu` bytes.
    fn with(pmtu_discovery: PmtuDiscovery, mtu: u32) -> Pmtu {
        let config = Config {
            pmtu_discovery,
            ..Config::default()
        };
        Pmtu::new(&config, mtu)
    }

    fn search(value: u32, ceiling: u32, ceiling_failed: bool) -> Pmtu {
        Pmtu {
            value,
            ceiling_failed,
            ..with(PmtuDiscovery::Probing, ceiling)
        }
    }

    fn probing() -> Rig {
        let config = Config {
            pmtu_discovery: PmtuDiscovery::Probing,
            ..Config::default()
        };
        Rig::new(config, 1)
    }

    fn pmtu(rig: &mut Rig) -> &mut Pmtu {
        rig.peer.path_mut(FIRST).pmtu_mut()
    }

    fn send_probes(rig: &mut Rig, at: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(at);
        rig.peer.send_pmtu_probes(ms(at), 0, &mut rng, &mut rig.out);
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
        let least = with(PmtuDiscovery::Probing, 1200);
        assert_eq!((least.value, least.searching), (1200, true));
        let told = with(PmtuDiscovery::PacketTooBig, 1500);
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
        assert_eq!(pmtu(&mut probing()).value, 1280);
        let config = Config {
            pmtu_discovery: PmtuDiscovery::Probing,
            udp_encapsulation: Some(UdpEncapsulation::default()),
            ..Config::default()
        };
        let mut a = Rig::new(config, 1);
        assert_eq!((pmtu(&mut a).value, a.peer.sizes.mtu()), (1272, 1272));
        assert_eq!(a.peer.reduced_mtu(address(0), &a.config), Some(1280));
    }

    #[test]
    fn the_third_loss_of_a_probe_lowers_the_ceiling_and_an_answer_raises_the_value() {
        let mut a = probing();
        for lost in 1..=3 {
            pmtu(&mut a).probe = Some(Probe {
                nonce: 9,
                size: 1500,
                expires: ms(1000),
            });
            a.peer.on_pmtu_timers(ms(999), &a.config);
            assert!(pmtu(&mut a).probe.is_some());
            a.peer.on_pmtu_timers(ms(1000), &a.config);
            let pmtu = pmtu(&mut a);
            assert!(pmtu.probe.is_none());
            assert_eq!((pmtu.lost, pmtu.ceiling_failed), (lost % 3, lost == 3));
        }
        send_probes(&mut a, 1000);
        let probe = pmtu(&mut a).probe.expect("the next");
        assert_eq!((probe.size, probe.expires), (1388, ms(2000)));
        let packet = a.out.packets().next_back().expect("probe");
        let chunks: usize = packet.chunks.iter().map(Chunk::buffer_len).sum();
        assert_eq!(chunks + PACKET_HEADERS as usize, 1388);
        assert_eq!(a.out.counters.pmtu_probes, 1);
        send_probes(&mut a, 1001);
        assert_eq!(a.out.counters.pmtu_probes, 1, "one at a time");
        pmtu(&mut a).lost = 2;
        assert!(!a.peer.pmtu_probe_answered(probe.nonce ^ 1, &a.config));
        assert!(a.peer.pmtu_probe_answered(probe.nonce, &a.config));
        let mtu = a.peer.sizes.mtu();
        let path = pmtu(&mut a);
        assert_eq!((path.value, path.lost, mtu), (1388, 0, 1388));
        // at the end of the search, ten minutes
        path.ceiling = 1390;
        send_probes(&mut a, 2000);
        let path = pmtu(&mut a);
        assert_eq!(
            (path.searching, path.raise_at),
            (false, Some(ms(2000) + RAISE_INTERVAL))
        );
        a.peer.on_pmtu_timers(ms(602_000), &a.config);
        let path = pmtu(&mut a);
        assert_eq!((path.searching, path.ceiling, path.value), (true, 1500, 1388));
        assert_eq!(path.raise_at, None);
    }

    #[test]
    fn the_third_timeout_in_a_row_brings_a_path_back_to_the_base() {
        let mut a = probing();
        pmtu(&mut a).value = 1500;
        a.peer.follow_pmtu(&a.config);
        a.peer.suspect_black_hole(FIRST, &a.config);
        a.peer.suspect_black_hole(FIRST, &a.config);
        a.peer.note_arrival(FIRST);
        a.peer.suspect_black_hole(FIRST, &a.config);
        a.peer.suspect_black_hole(FIRST, &a.config);
        assert_eq!(a.peer.sizes.mtu(), 1500);
        a.peer.suspect_black_hole(FIRST, &a.config);
        assert_eq!((pmtu(&mut a).value, a.peer.sizes.mtu()), (1280, 1280));
        assert_eq!(pmtu(&mut a).timeouts, 0);
    }
}
