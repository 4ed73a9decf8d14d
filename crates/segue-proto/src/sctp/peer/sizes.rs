//! How long packets are, and what follows from that: where messages are cut, and the unit of the windows.

use crate::congestion::WindowRules;
use crate::sctp::Config;
use crate::sctp::lengths::{DATA_HEADER, PACKET_HEADERS};

/// The sizes that the smallest PMTU of all paths leaves, and the chunks that accompany data.
#[derive(Clone, Debug)]
pub(in crate::sctp) struct PacketSizes {
    /// `Config::mtu`: what the interfaces carry.
    interface_mtu: u32,
    /// The smallest PMTU of the paths.
    mtu: u32,
    /// Bytes that other chunks, AUTH for one, take from a packet with data.
    overhead: u32,
    /// Largest user data of a DATA chunk.
    max_data: u32,
    rules: WindowRules,
}

impl PacketSizes {
    /// Those of an association that begins.
    pub(in crate::sctp) fn new(config: &Config) -> Self {
        let (max_data, rules) = chunk_sizes(config, config.mtu, 0);
        Self {
            interface_mtu: config.mtu,
            mtu: config.mtu,
            overhead: 0,
            max_data,
            rules,
        }
    }

    /// What the interfaces carry, bytes.
    pub(in crate::sctp) fn interface_mtu(&self) -> u32 {
        self.interface_mtu
    }

    /// Bytes of the longest packet that is made.
    pub(in crate::sctp) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether some path carries less than the interfaces do.
    pub(in crate::sctp) fn is_reduced(&self) -> bool {
        self.mtu != self.interface_mtu
    }

    /// Largest user data of a DATA chunk.
    pub(in crate::sctp) fn max_data(&self) -> u32 {
        self.max_data
    }

    /// By which windows are counted.
    pub(in crate::sctp) fn rules(&self) -> WindowRules {
        self.rules
    }

    /// Bytes of chunks that a packet with data holds.
    pub(in crate::sctp) fn room(&self) -> u32 {
        self.room_in(self.mtu)
    }

    /// The same of a packet of `mtu` bytes.
    pub(in crate::sctp) fn room_in(&self, mtu: u32) -> u32 {
        mtu.saturating_sub(PACKET_HEADERS + self.overhead)
    }

    /// The smallest PMTU is `mtu`; returns whether that is news.
    pub(in crate::sctp) fn follow_mtu(&mut self, config: &Config, mtu: u32) -> bool {
        let is_news = mtu != self.mtu;
        if is_news {
            self.mtu = mtu;
            (self.max_data, self.rules) = chunk_sizes(config, mtu, self.overhead);
        }
        is_news
    }

    /// Packets with data give so many bytes to other chunks.
    pub(in crate::sctp) fn leave_room_for(&mut self, config: &Config, overhead: u32) {
        self.overhead = overhead;
        (self.max_data, self.rules) = chunk_sizes(config, self.mtu, overhead);
    }
}

/// Largest user data of a DATA chunk, and the rules of the window, in packets of `mtu` bytes that give `overhead` to other
/// chunks.
fn chunk_sizes(config: &Config, mtu: u32, overhead: u32) -> (u32, WindowRules) {
    let room = mtu.saturating_sub(PACKET_HEADERS + overhead);
    let max_in_mtu = (room.saturating_sub(DATA_HEADER) & !3).max(4);
    let max_data = config
        .max_chunk_data
        .map_or(max_in_mtu, |m| m.clamp(1, max_in_mtu));
    let rules =
        WindowRules::new(config.profile, mtu, DATA_HEADER + max_in_mtu).with_initial(config.initial_cwnd);
    (max_data, rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_fill_what_headers_and_other_chunks_leave_in_words_of_four_bytes() {
        let config = Config::default();
        let mut sizes = PacketSizes::new(&config);
        assert_eq!((sizes.mtu(), sizes.max_data(), sizes.room()), (1500, 1432, 1448));
        assert!(!sizes.is_reduced() && !sizes.follow_mtu(&config, 1500));
        assert!(sizes.follow_mtu(&config, 1283));
        assert_eq!((sizes.max_data(), sizes.is_reduced()), (1212, true));
        sizes.leave_room_for(&config, 40);
        assert_eq!(
            (sizes.max_data(), sizes.room(), sizes.room_in(1500)),
            (1172, 1191, 1408)
        );
        // however little there is, and no more than asked for
        assert!(sizes.follow_mtu(&config, 60));
        assert_eq!(sizes.max_data(), 4);
        let small = Config {
            max_chunk_data: Some(100),
            ..Config::default()
        };
        assert_eq!(PacketSizes::new(&small).max_data(), 100);
    }
}
