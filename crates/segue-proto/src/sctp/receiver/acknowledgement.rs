//! The acknowledgement owed: whether, when (RFC 9260 section 6.2), and where to (section 6.4).
//!
//! # DAC, delayed acks for CMT (Iyengar et al. 2006, section V): the receiver's part
//! RFC 9260 section 6.7 has a SACK sent at once for every packet while there is a gap. With data on several paths there is
//! one nearly always, and no SACK would be delayed. So a gap alone is no reason any more: every second packet is
//! acknowledged, or the delay passes. What asks for a SACK at once still does: the I bit, a duplicate, data that has no
//! room.
//!
//! So that the sender does not miss the reports that a delayed SACK leaves out, the SACK says in two bits of its flags (6
//! and 7, as usrsctp has them) how many packets it stands for. No RFC defines these bits; a peer that does not know them
//! ignores them (RFC 9260 section 3.3.4 has the flags set to zero and ignored). The sender's part is in `loss`.

use crate::sctp::Config;
use crate::time::Instant;
use core::net::Ipv6Addr;
use segue_wire::sctp::Sack;

/// When an acknowledgement is sent by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    /// As soon as a packet can leave.
    Now,
    /// After the delay.
    At(Instant),
}

/// What is owed to the peer for the packets with DATA that have come.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    /// Packets with DATA since the last acknowledgement.
    packets: u32,
    /// Never, where something is owed, while no packet can leave.
    due: Option<Due>,
    /// So many packets with DATA, from the first on, are still to be acknowledged one by one.
    quick: u32,
}

impl Acknowledgement {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            packets: 0,
            due: None,
            quick: config.quick_sacks,
        }
    }

    /// A packet with DATA has come. Section 6.2: every second one is acknowledged at once, any other within the delay. The
    /// first of an association is too (section 5.1; RFC 2960 and 4960 section 5.1 say the same), and more from there on if
    /// so configured.
    pub(super) fn on_packet(&mut self, now: Instant, immediate: bool, config: &Config) {
        let immediate = immediate || self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        self.packets += 1;
        if immediate || self.packets >= config.sack_frequency {
            self.due = Some(Due::Now);
        } else if self.due.is_none() {
            self.due = Some(Due::At(now + config.sack_delay));
        }
    }

    /// Whether anything is.
    pub(super) fn is_owed(&self) -> bool {
        self.packets > 0 || self.is_due()
    }

    /// Whether it is to be sent by itself.
    pub(super) fn is_due(&self) -> bool {
        self.due == Some(Due::Now)
    }

    /// When it will be due.
    pub(super) fn timer(&self) -> Option<Instant> {
        match self.due {
            Some(Due::At(at)) => Some(at),
            _ => None,
        }
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.timer().is_some_and(|at| at <= now) {
            self.due = Some(Due::Now);
        }
    }

    /// One is sent at once, whatever has come.
    pub(super) fn hurry(&mut self) {
        self.due = Some(Due::Now);
    }

    /// No packet can leave: the delay does not run.
    pub(super) fn suspend(&mut self) {
        if self.timer().is_some() {
            self.due = None;
        }
    }

    /// Packets can leave again: what is owed is sent at once.
    pub(super) fn resume(&mut self) {
        if self.packets > 0 {
            self.due = Some(Due::Now);
        }
    }

    /// What has come is acknowledged. Returns how many packets that were.
    pub(super) fn settle(&mut self) -> u32 {
        self.due = None;
        core::mem::take(&mut self.packets)
    }
}

/// Where acknowledgements go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Route {
    /// Where the last DATA came from (section 6.4).
    to: Ipv6Addr,
    /// Where it came to; nothing has come yet if nowhere.
    arrived_at: Option<Ipv6Addr>,
    /// Bytes of SCTP that a packet there may have, if they are limited: no more than came from there.
    limit: Option<usize>,
}

impl Route {
    pub(super) fn new(to: Ipv6Addr) -> Self {
        Self {
            to,
            arrived_at: None,
            limit: None,
        }
    }

    pub(super) fn to(self) -> Ipv6Addr {
        self.to
    }

    pub(super) fn arrived_at(self) -> Option<Ipv6Addr> {
        self.arrived_at
    }

    pub(super) fn limit(self) -> Option<usize> {
        self.limit
    }

    /// A packet with DATA has come to `at`, and from an address of the peer's if `from` says so, with what may go there.
    pub(super) fn on_packet(&mut self, from: Option<(Ipv6Addr, Option<usize>)>, at: Ipv6Addr) {
        if let Some((from, limit)) = from {
            (self.to, self.limit) = (from, limit);
        }
        self.arrived_at = Some(at);
    }

    /// What went to `gone` goes to `other`.
    pub(super) fn leave(&mut self, gone: Ipv6Addr, other: Ipv6Addr) {
        if self.to == gone {
            self.to = other;
        }
    }
}

/// What acknowledgements are made like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::sctp) struct SackForm {
    /// They are NR-SACKs.
    pub non_renegable: bool,
    /// Bytes of an IPv6 packet.
    pub mtu: u32,
    /// Bytes that an AUTH chunk takes beside a SACK and a SHUTDOWN.
    pub auth_len: u32,
}

/// Bytes of a SACK chunk without gap ack blocks and duplicates.
const SACK_HEADER: u32 = 16;
/// Bytes by which an NR-SACK is longer.
const NR_SACK_MORE: u32 = 4;
const SHUTDOWN_LEN: u32 = 8;
const IPV6_HEADER: u32 = 40;
const COMMON_HEADER: u32 = 12;

impl SackForm {
    /// Bytes of a chunk of so many gap ack blocks and duplicates.
    pub(super) fn len(self, entries: usize) -> u32 {
        SACK_HEADER + if self.non_renegable { NR_SACK_MORE } else { 0 } + 4 * entries as u32
    }

    /// Gap ack blocks and duplicates that fit a packet of at most `limit` bytes of SCTP, with a SHUTDOWN beside them
    /// (section 9.2).
    pub(super) fn most_entries(self, limit: Option<usize>) -> usize {
        let limit = limit.and_then(|l| u32::try_from(l).ok());
        let most = limit.map_or(self.mtu, |l| self.mtu.min(l.saturating_add(IPV6_HEADER)));
        let others = IPV6_HEADER + COMMON_HEADER + self.auth_len + SHUTDOWN_LEN;
        (most.saturating_sub(others + self.len(0)) / 4) as usize
    }
}

/// Whether acknowledgements are delayed though there is a gap.
pub(super) fn delays_with_gap(config: &Config) -> bool {
    config.multipath.is_some_and(|m| m.dac)
}

/// What an acknowledgement says of the packets that it stands for.
pub(super) fn data_packets(packets: u32, config: &Config) -> u8 {
    if delays_with_gap(config) {
        packets.min(u32::from(Sack::MOST_DATA_PACKETS)) as u8
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::MultipathConfig;
    use super::*;
    use crate::sctp::testing::ms;
    use crate::time::Duration;

    /// What happens, with when, ms.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Packet(u64),
        /// One that asks for a SACK at once.
        Urgent(u64),
        Timeout(u64),
        Hurry,
        Suspend,
        Resume,
        /// An acknowledgement goes out; it stands for so many packets.
        Sent(u32),
    }

    /// What is owed then.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Owed {
        Nothing,
        Later(u64),
        /// Something, when packets can leave again.
        Suspended,
        Now,
    }

    fn owed(a: &Acknowledgement) -> Owed {
        match (a.is_owed(), a.is_due(), a.timer()) {
            (false, false, None) => Owed::Nothing,
            (true, false, None) => Owed::Suspended,
            (true, true, None) => Owed::Now,
            (true, false, Some(at)) => Owed::Later(at.since(Instant::ZERO).as_nanos() / 1_000_000),
            other => panic!("{other:?}"),
        }
    }

    fn play(quick_sacks: u32, sack_frequency: u32, steps: &[(Step, Owed)]) {
        let config = Config {
            quick_sacks,
            sack_frequency,
            sack_delay: Duration::from_millis(200),
            ..Config::default()
        };
        let mut a = Acknowledgement::new(&config);
        for (i, &(step, expected)) in steps.iter().enumerate() {
            match step {
                Step::Packet(at) => a.on_packet(ms(at), false, &config),
                Step::Urgent(at) => a.on_packet(ms(at), true, &config),
                Step::Timeout(at) => a.on_timeout(ms(at)),
                Step::Hurry => a.hurry(),
                Step::Suspend => a.suspend(),
                Step::Resume => a.resume(),
                Step::Sent(packets) => assert_eq!(a.settle(), packets, "step {i} of {steps:?}"),
            }
            assert_eq!(owed(&a), expected, "step {i} of {steps:?}");
        }
    }

    #[test]
    fn every_second_packet_is_acknowledged_at_once_and_any_other_within_the_delay() {
        use Owed::{Later, Nothing, Now};
        use Step::{Packet, Sent, Timeout, Urgent};
        // the first at once (RFC 9260 section 5.1)
        play(
            1,
            2,
            &[(Packet(0), Now), (Sent(1), Nothing), (Packet(10), Later(210))],
        );
        play(
            0,
            2,
            &[(Packet(0), Later(200)), (Packet(150), Now), (Sent(2), Nothing)],
        );
        // the delay begins with the first of them, and a new one with the next
        let steps = [
            (Packet(0), Later(200)),
            (Packet(30), Later(200)),
            (Timeout(199), Later(200)),
            (Timeout(200), Now),
            (Packet(210), Now),
            (Sent(3), Nothing),
            (Packet(220), Later(420)),
        ];
        play(0, 4, &steps);
        // so many of the first as are configured, one by one, whatever asked for the acknowledgement
        let steps = [
            (Urgent(0), Now),
            (Sent(1), Nothing),
            (Packet(1), Now),
            (Sent(1), Nothing),
            (Packet(2), Later(202)),
        ];
        play(2, 2, &steps);
        play(0, 1, &[(Packet(0), Now), (Sent(1), Nothing), (Packet(1), Now)]);
        // one that asks for it does so however few there are
        play(
            0,
            9,
            &[
                (Packet(0), Later(200)),
                (Urgent(1), Now),
                (Sent(2), Nothing),
                (Timeout(300), Nothing),
            ],
        );
    }

    #[test]
    fn what_nothing_has_come_for_is_owed_only_if_it_is_hurried() {
        use Owed::{Later, Nothing, Now, Suspended};
        use Step::{Hurry, Packet, Resume, Sent, Suspend, Timeout};
        play(0, 2, &[(Timeout(0), Nothing), (Hurry, Now), (Sent(0), Nothing)]);
        play(0, 2, &[(Resume, Nothing), (Suspend, Nothing)]);
        // the delay does not run while nothing can leave, until more comes; then it all goes at once
        let steps = [
            (Packet(0), Later(200)),
            (Suspend, Suspended),
            (Timeout(900), Suspended),
            (Resume, Now),
            (Suspend, Now),
            (Sent(1), Nothing),
        ];
        play(0, 3, &steps);
        play(
            0,
            3,
            &[
                (Packet(0), Later(200)),
                (Suspend, Suspended),
                (Packet(50), Later(250)),
            ],
        );
    }

    #[test]
    fn a_packet_has_room_for_fewer_entries_beside_what_else_is_in_it() {
        let form = |non_renegable, mtu, auth_len| SackForm {
            non_renegable,
            mtu,
            auth_len,
        };
        // 40 of IPv6, 12 of the common header, 16 of the SACK, 8 of a SHUTDOWN
        let table = [
            (form(false, 1500, 0), None, 356),
            (form(true, 1500, 0), None, 355),
            (form(false, 1500, 28), None, 349),
            (form(false, 79, 0), None, 0),
            (form(false, 80, 0), None, 1),
            (form(false, 10, 0), None, 0),
            // to an address that nobody has answered from
            (form(false, 1500, 0), Some(39), 0),
            (form(false, 1500, 0), Some(40), 1),
            (form(false, 100, 0), Some(1000), 6),
            (form(false, 1500, 0), Some(usize::MAX), 356),
        ];
        for (form, limit, entries) in table {
            assert_eq!(form.most_entries(limit), entries, "{form:?}, {limit:?}");
        }
        assert_eq!((form(false, 0, 9).len(0), form(true, 0, 9).len(3)), (16, 32));
    }

    #[test]
    fn with_dac_a_gap_is_no_reason_and_packets_are_counted_as_far_as_two_bits_go() {
        let with = |dac| Config {
            multipath: Some(MultipathConfig {
                dac,
                ..MultipathConfig::default()
            }),
            ..Config::default()
        };
        assert!(delays_with_gap(&with(true)));
        assert!(!delays_with_gap(&with(false)) && !delays_with_gap(&Config::default()));
        for (packets, said) in [(0, 0), (1, 1), (3, 3), (4, 3), (u32::MAX, 3)] {
            assert_eq!(data_packets(packets, &with(true)), said);
            assert_eq!(data_packets(packets, &with(false)), 0);
        }
    }
}
