//! A sender with a peer to send to.

use super::super::loss_detection::Verdict;
use super::super::progress::Progress;
use super::super::sack::{Impossible, SackOutcome, Via};
use super::super::strategy::Strategy;
use super::super::strategy::lent::{Lent, View};
use super::super::*;
use crate::sctp::MultipathConfig;
use crate::sctp::ids::{DestinationId, PathId};
use crate::sctp::local::LocalAddresses;
use crate::sctp::multipath::Concurrent;
use crate::sctp::outbox::Outbox;
use crate::sctp::testing::{FIRST, address, concurrently, destination, ends, own};
use crate::time::Duration;
use segue_wire::sctp::Sack;

/// A sender, and what it works with. The first chunk has the TSN 1, and the peer's window 100 000 bytes.
pub(in crate::sctp) struct Rig {
    pub config: Config,
    pub local: LocalAddresses,
    pub peer: Peer,
    pub sender: Sender,
    pub out: Outbox,
}

impl Rig {
    /// The peer has so many destinations, all confirmed.
    pub(in crate::sctp) fn new(config: Config, destinations: u16) -> Self {
        let (local, peer) = ends(&config, destinations);
        let mut sender = Sender::new(&config, Tsn(1));
        sender.begin(config.outbound_streams, 100_000);
        sender.open_burst(&config, &peer);
        Self {
            config,
            local,
            peer,
            sender,
            out: Outbox::default(),
        }
    }

    /// The same with concurrent multipath transfer.
    pub(in crate::sctp) fn cmt(multipath: MultipathConfig, destinations: u16) -> Self {
        Self::new(concurrently(multipath), destinations)
    }

    /// The sender, and what it works with at `now`.
    pub(in crate::sctp) fn sending(&mut self, now: Instant) -> (&mut Sender, Context<'_>) {
        let cx = Context {
            now,
            config: &self.config,
            peer: &mut self.peer,
            out: &mut self.out,
            may_forward_tsn: false,
        };
        (&mut self.sender, cx)
    }

    pub(in crate::sctp) fn view(&self) -> View<'_> {
        View {
            config: &self.config,
            peer: &self.peer,
            flight: &self.sender.flight,
        }
    }

    /// Sends a message of `len` bytes in one chunk on `path`, and books it.
    pub(in crate::sctp) fn send_on(&mut self, now: Instant, path: PathId, len: u32) -> Tsn {
        let (sender, mut cx) = self.sending(now);
        sender.send_on(&mut cx, path, len)
    }

    /// A marked chunk is sent again.
    pub(in crate::sctp) fn resend(&mut self, now: Instant, tsn: u32, path: PathId) {
        let Sender { flight, loss, .. } = &mut self.sender;
        let again = |former, moves| loss.on_sent_again(now, former, moves);
        flight
            .resend(now, Tsn(tsn), path, Duration::from_secs(1), again)
            .expect("marked");
    }

    /// A SACK comes over the first path.
    pub(in crate::sctp) fn sack(&mut self, now: Instant, sack: &Sack) -> Result<SackOutcome, Impossible> {
        let via = Via {
            from: address(0),
            to: own().address,
        };
        let (sender, mut cx) = self.sending(now);
        sender.handle_sack(&mut cx, via, sack)
    }

    /// What loss detection found is acted on, and T3-rtx follows.
    pub(super) fn recover(&mut self, now: Instant, verdict: &Verdict) -> Progress {
        let mut progress = Progress::begin(&self.sender.flight);
        let (sender, mut cx) = self.sending(now);
        sender.recover(&mut cx, verdict, &mut progress);
        for (path, _) in self.peer.paths() {
            self.sender.flight.settle(path, None);
        }
        progress
    }

    /// The cumulative TSN ack is `cumulative`: fast recovery may end.
    pub(super) fn leave_fast_recovery(&mut self, cumulative: u32) {
        let view = View {
            config: &self.config,
            peer: &self.peer,
            flight: &self.sender.flight,
        };
        self.sender.strategy.leave_fast_recovery(view, Tsn(cumulative));
        self.sender.recovery.on_acknowledged(Tsn(cumulative));
    }

    /// T3-rtx of the first path expires; returns the destination that did not answer.
    pub(super) fn on_t3(&mut self, now: Instant) -> Option<DestinationId> {
        let (sender, mut cx) = self.sending(now);
        let silent = sender.on_t3(&mut cx, FIRST);
        sender.force_retransmission();
        silent
    }

    /// The strategy, and what it works with while it looks for something to send.
    pub(super) fn strategy<R>(
        &mut self,
        now: Instant,
        uses: impl FnOnce(&mut Strategy, &mut Lent<'_>) -> R,
    ) -> R {
        let mut lent = Lent {
            now,
            config: &self.config,
            peer: &mut self.peer,
            queue: &self.sender.queue,
            flight: &mut self.sender.flight,
            credit: &mut self.sender.credit,
            recovery: &mut self.sender.recovery,
            counters: &mut self.out.counters.multipath,
            may_forward_tsn: false,
            something_goes_first: false,
        };
        uses(&mut self.sender.strategy, &mut lent)
    }

    /// The same of several paths at once.
    pub(in crate::sctp) fn lend<R>(
        &mut self,
        now: Instant,
        uses: impl FnOnce(&mut Concurrent, &mut Lent<'_>) -> R,
    ) -> R {
        self.strategy(now, |strategy, lent| match strategy {
            Strategy::Concurrent(concurrent) => uses(concurrent, lent),
            Strategy::SinglePath(_) => panic!("one path at a time"),
        })
    }

    /// The end of the association's episode of losses, and the packets forced.
    pub(in crate::sctp) fn episode(&self) -> (Option<u32>, u32) {
        self.sender.recovery.episode()
    }
}

/// What tests elsewhere set and look at.
impl Sender {
    /// Sends a message of `len` bytes in one chunk on `path`, and books it.
    pub(in crate::sctp) fn send_on(&mut self, cx: &mut Context<'_>, path: PathId, len: u32) -> Tsn {
        let data = Data::Synthetic { offset: 0, len };
        self.queue.push(cx.now, 0, data, SendOptions::default());
        let max_data = cx.peer.sizes().max_data();
        let content = self.queue.cut(max_data, false).expect("it waits");
        let transmission = self.loss.on_sent(cx.now);
        let rto = cx.peer.rto(path);
        let (tsn, _) = self.flight.send(cx.now, content, path, rto, transmission);
        cx.peer.note_sent(cx.now, path);
        self.strategy.note_sent(path);
        tsn
    }

    pub(in crate::sctp) fn flight_mut(&mut self) -> &mut Flight {
        &mut self.flight
    }

    pub(in crate::sctp) fn credit_mut(&mut self) -> &mut Credit {
        &mut self.credit
    }

    pub(in crate::sctp) fn concurrent(&mut self) -> &mut Concurrent {
        match &mut self.strategy {
            Strategy::Concurrent(concurrent) => concurrent,
            Strategy::SinglePath(_) => panic!("one path at a time"),
        }
    }

    /// A FORWARD TSN is to be answered within `rto`.
    pub(in crate::sctp) fn guard_forward_tsn(&mut self, now: Instant, rto: Duration) {
        self.abandoned.forward_tsn_sent(now, Tsn(1), destination(0), rto);
    }

    /// It was.
    pub(in crate::sctp) fn forget_forward_tsn(&mut self) {
        self.abandoned.clear();
    }
}
