//! What a connection tells its user, and what it shows of itself.

use crate::time::Duration;

/// A connection of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// What a connection tells its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// Data can be received. Not repeated until `recv` has returned `None`.
    Readable,
    /// There is room in the send buffer again after `send` did not take everything.
    Writable,
    /// Everything sent so far has been acknowledged.
    SendersDry,
    /// The peer has closed its direction: after what can still be received there is no more.
    PeerClosed,
    /// Both directions are closed, and everything sent has arrived.
    Closed,
    /// The peer answered the SYN by a RST: nobody listens.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer does not answer.
    TimedOut,
    /// This end aborted the connection.
    Aborted,
}

impl Event {
    /// Whether the connection is over.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(
            self,
            Self::Closed | Self::Refused | Self::Reset | Self::TimedOut | Self::Aborted
        )
    }
}

/// State of a connection (RFC 9293 section 3.3.2). LISTEN is the endpoint's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// SYN sent, nothing received.
    SynSent,
    /// SYN sent and received.
    SynReceived,
    /// Data flows.
    Established,
    /// This end closed first; its FIN is not acknowledged.
    FinWait1,
    /// This end closed first; its FIN is acknowledged.
    FinWait2,
    /// The peer closed first.
    CloseWait,
    /// Both closed at once; the FIN of this end is not acknowledged.
    Closing,
    /// The peer closed first, then this end; its FIN is not acknowledged.
    LastAck,
    /// Both are closed; a retransmitted FIN would still be answered.
    TimeWait,
    /// It is over.
    Closed,
}

/// Where loss recovery is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// All is well.
    Open,
    /// Something was SACKed or acknowledged twice.
    Disorder,
    /// Fast retransmit.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Why data was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; an [`Event::Writable`] follows.
    #[error("send buffer full")]
    BufferFull,
    /// The connection is closing or closed.
    #[error("connection is closing")]
    Closing,
}

/// How a connection does now: for traces, figures and status output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Snapshot {
    /// State.
    pub state: State,
    /// Where loss recovery is.
    pub phase: Phase,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
    /// Bytes outstanding.
    pub flightsize: u32,
    /// Window of the peer, bytes.
    pub snd_wnd: u32,
    /// Bytes of data per segment.
    pub mss: u32,
    /// Smoothed round-trip time, if measured.
    pub srtt: Option<Duration>,
    /// Shortest round-trip time, if measured.
    pub shortest_rtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Bytes taken from the user and not yet acknowledged.
    pub send_queue: u64,
    /// DupThresh: segments of reordering that are put up with.
    pub reordering: u32,
}

/// Segments that were sent and not acknowledged in order, and what is known of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outstanding {
    /// All of them.
    pub segments: u32,
    /// Reported by SACK blocks; without SACK, duplicate acknowledgements.
    pub sacked: u32,
    /// Taken for lost, retransmitted or not.
    pub lost: u32,
    /// Retransmitted, the retransmission under way.
    pub retransmitted: u32,
}
