//! How much data a segment has: what the peer takes, the path carries, and is left beside headers and options.

use super::config::Config;
use segue_wire::tcp::HEADER_LEN;

/// The size of the segments of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentSize {
    /// MSS that the peer announced.
    peer_mss: u32,
    path_mtu: u32,
    /// Bytes by which a shim makes packets longer on their way down.
    overhead: u32,
    /// Bytes of options that every segment has.
    options: u32,
    /// Data per segment.
    mss: u32,
}

impl SegmentSize {
    pub fn new(config: &Config, overhead: u32) -> Self {
        let mss = config.mtu.saturating_sub(HEADERS + overhead).max(LEAST_MSS);
        Self {
            peer_mss: mss,
            path_mtu: config.mtu,
            overhead,
            options: 0,
            mss,
        }
    }

    /// Bytes of data per segment.
    #[inline]
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Bytes of data per segment that the peer is told to send at most.
    pub fn announced(&self, config: &Config) -> u32 {
        config
            .mtu
            .saturating_sub(HEADERS + self.overhead)
            .min(u32::from(u16::MAX))
    }

    /// What the peer's SYN says; whether every segment has `timestamps`.
    pub fn negotiate(&mut self, config: &Config, mss: Option<u16>, timestamps: bool) {
        self.peer_mss = mss.map_or(DEFAULT_MSS, u32::from).max(LEAST_MSS);
        self.options = if timestamps { TIMESTAMPS_LEN } else { 0 };
        self.update(config);
    }

    /// A packet was too big for a link of the path, which carries at most so many bytes. Whether that is news: one from a path
    /// that was left, or from another branch of it, never raises what is known (RFC 8201 section 4).
    pub fn on_path_mtu(&mut self, config: &Config, mtu: u32) -> bool {
        let mtu = mtu.clamp(LEAST_MTU, config.mtu);
        let news = mtu < self.path_mtu;
        if news {
            self.path_mtu = mtu;
            self.update(config);
        }
        news
    }

    /// A shim makes packets so much longer on their way down.
    pub fn on_overhead(&mut self, config: &Config, overhead: u32) {
        self.overhead = overhead;
        self.update(config);
    }

    /// RFC 9293 section 3.7.1, Eff.snd.MSS, less the options of every segment (RFC 6691).
    fn update(&mut self, config: &Config) {
        let path = self.path_mtu.saturating_sub(HEADERS + self.overhead);
        let most = config.max_segment.unwrap_or(u32::MAX);
        let room = self.peer_mss.min(path).saturating_sub(self.options);
        self.mss = room.min(most).max(LEAST_MSS);
    }
}

/// IPv6 and TCP headers without options.
const HEADERS: u32 = 40 + HEADER_LEN as u32;
/// Timestamps with their padding.
const TIMESTAMPS_LEN: u32 = 12;
/// RFC 9293 section 3.7.1: without an MSS option, over IPv6.
const DEFAULT_MSS: u32 = 1220;
/// Less is not believed: as Linux, against peers that want to be sent single bytes.
pub(super) const LEAST_MSS: u32 = 48;
/// RFC 8200 section 5.
const LEAST_MTU: u32 = 1280;
