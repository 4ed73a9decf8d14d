//! F-RTO: whether a timeout was spurious, asked of the acknowledgements that follow its one retransmission.
//!
//! - [`FrtoRule::Rfc5682`]: the SACK-enhanced form of RFC 5682 section 3.1, as Linux has it since 3.10. What was sent once
//!   and arrives shows that the timeout was spurious, at the first acknowledgement already, and the window is taken back.
//! - [`FrtoRule::Rfc4138`]: the SACK-enhanced form of RFC 4138 appendix B as Linux 2.6.24 to 3.9 has it (`tcp_enter_frto`,
//!   `tcp_process_frto`). It takes two acknowledgements that go forward, the second for new data; and a spurious timeout
//!   is answered as if the network had said that it is congested (`tcp_frto_response` 0): cwnd comes down to the ssthresh of
//!   the timeout, and nothing is taken back.
//!
//! Here is what it finds; what comes of that is in `losses`.
//!
//! [`FrtoRule::Rfc5682`]: crate::tcp::FrtoRule::Rfc5682
//! [`FrtoRule::Rfc4138`]: crate::tcp::FrtoRule::Rfc4138

use super::report::Report;

/// The acknowledgement that is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    /// The first that goes forward: new data is sent for it.
    First,
    /// The one that tells (RFC 4138).
    Second,
}

/// F-RTO of the last timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frto {
    awaited: Option<Awaited>,
    /// End of what had been sent when the recovery that is under way began (`frto_highmark`). RFC 4138 only.
    high: u64,
    /// New data goes before retransmissions.
    new_data_first: bool,
}

/// How far the sender is when an acknowledgement has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sight {
    /// SND.UNA and SND.NXT.
    pub una: u64,
    pub next: u64,
    /// There is new data, and the peer's window has room for it.
    pub may_send_new: bool,
}

/// What an acknowledgement says of a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Nothing: it is as after any timeout.
    Open,
    /// New data is sent to find out.
    Asks,
    /// It was spurious.
    Spurious,
    /// The same is to be waited for, with cwnd as it is (RFC 4138).
    Waits,
    /// New data is sent to find out: two segments beside what is in the network (RFC 4138).
    AsksWithTwo,
    /// It was right: so many segments are retransmitted at once (RFC 4138).
    Lost { segments: u32 },
    /// It was spurious, and cwnd comes down to ssthresh all the same (RFC 4138).
    SpuriousButReduced,
}

impl Verdict {
    /// Whether cwnd is what F-RTO makes it, and the acknowledgement opens it no further.
    pub fn sets_window(self) -> bool {
        matches!(self, Self::Waits | Self::AsksWithTwo | Self::Lost { .. })
    }
}

impl Frto {
    /// The acknowledgement that is awaited, if any tells of the timeout.
    pub fn awaited(&self) -> Option<Awaited> {
        self.awaited
    }

    /// Whether new data goes before retransmissions.
    #[inline]
    pub fn is_new_data_first(&self) -> bool {
        self.new_data_first
    }

    /// What was retransmitted has been decided upon, or another recovery begins.
    pub fn stop(&mut self) {
        self.awaited = None;
        self.new_data_first = false;
    }

    /// There is no new data that could tell.
    pub fn give_up(&mut self) {
        self.awaited = None;
    }

    /// A timeout. `high` is where the recovery that it belongs to ends.
    pub fn begin(&mut self, high: u64) {
        self.awaited = Some(Awaited::First);
        self.high = high;
        self.new_data_first = false;
    }

    /// New data goes first, for its acknowledgement to tell.
    pub fn send_new_data(&mut self) {
        self.new_data_first = true;
    }

    /// The acknowledgement of a timeout, as RFC 4138 has it.
    pub fn by_rfc_4138(&mut self, awaited: Awaited, report: &Report, sight: Sight) -> Verdict {
        if sight.una >= self.high {
            let segments = if awaited == Awaited::First { 2 } else { 3 };
            return Verdict::Lost { segments };
        }
        match awaited {
            Awaited::First if !report.advanced => Verdict::Waits,
            Awaited::First if sight.may_send_new => {
                self.awaited = Some(Awaited::Second);
                self.new_data_first = true;
                Verdict::AsksWithTwo
            }
            Awaited::First => Verdict::Lost { segments: 2 },
            Awaited::Second => {
                let forward = report.advanced || report.sacked > 0;
                let news_sacked = report.sacked > 0 && !report.arrivals.has_original();
                if !forward && !report.duplicate {
                    Verdict::Waits
                } else if !forward || news_sacked {
                    Verdict::Lost { segments: 3 }
                } else {
                    Verdict::SpuriousButReduced
                }
            }
        }
    }
}
