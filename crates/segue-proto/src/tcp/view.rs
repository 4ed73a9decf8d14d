//! What a connection shows of itself.

use super::connection::{Connection, HEADERS};
use super::counters::Counters;
use super::event::{Outstanding, Snapshot, State};
use crate::contract::LocalAddress;
use core::net::Ipv6Addr;

impl Connection {
    /// State.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Local address.
    #[must_use]
    pub fn local(&self) -> LocalAddress {
        self.local
    }

    /// Local port.
    #[must_use]
    pub fn local_port(&self) -> u16 {
        self.local_port
    }

    /// Address and port of the peer.
    #[must_use]
    pub fn remote(&self) -> (Ipv6Addr, u16) {
        (self.remote, self.remote_port)
    }

    /// How it does now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state,
            phase: self.recovery.phase,
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
            flightsize: self.board.flightsize(),
            snd_wnd: self.snd_wnd,
            mss: self.mss,
            srtt: self.rtt.srtt(),
            shortest_rtt: self.rtt.shortest(),
            rto: self.rtt.rto(),
            send_queue: self.buffer.len(),
            reordering: self.recovery.dup_thresh,
        }
    }

    /// Bytes of data per segment that the peer was told to send at most.
    #[must_use]
    pub fn announced_mss(&self) -> u32 {
        self.config
            .mtu
            .saturating_sub(HEADERS + self.overhead)
            .min(u32::from(u16::MAX))
    }

    /// What is outstanding, by segment; each is looked at.
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        let (lost, retransmitted) = self.board.lost_and_retransmitted();
        Outstanding {
            segments: self.board.segments(),
            sacked: self.board.sacked_segments() + self.recovery.duplicates,
            lost,
            retransmitted,
        }
    }

    /// Bytes that [`recv`](Self::recv) would give.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.reassembly.ready_bytes()
    }
}
