//! Messages taken out of the send queue before they are delivered (RFC 3758).

use super::loss::Transmission;
use super::options::Policy;
use super::outbound::{ChunkState, Outbound, Sent};
use super::path::PathId;
use segue_wire::{Data, Tsn};

/// What an abandoned chunk holds.
const NOTHING: Data = Data::Synthetic { offset: 0, len: 0 };

impl Outbound {
    /// Policy of the message at `index` of those of which nothing was sent.
    pub(super) fn unsent_policy(&self, index: usize) -> Option<Policy> {
        Some(self.unsent.get(self.first_untouched() + index)?.policy)
    }

    /// Policy of the next message, if nothing of it was sent.
    pub(super) fn next_unsent(&self) -> Option<Policy> {
        let next = self.unsent.front()?;
        (next.position == 0).then_some(next.policy)
    }

    /// Policy of the message of which some was sent and some was not.
    pub(super) fn partly_sent(&self) -> Option<Policy> {
        let next = self.unsent.front()?;
        (next.position > 0).then_some(next.policy)
    }

    /// Drops the message at `index` of those of which nothing was sent; returns its stream and payload protocol
    /// identifier.
    pub(super) fn remove_unsent(&mut self, index: usize) -> Option<(u16, u32)> {
        let message = self.unsent.remove(self.first_untouched() + index)?;
        self.buffered -= message.data.len();
        Some((message.stream_id, message.options.payload_protocol_id))
    }

    /// Drops what is unsent of the message that is being sent. A TSN that is never sent, abandoned from the start,
    /// ends it: without one there would be nothing to tell the peer if all its other chunks are acknowledged.
    pub(super) fn end_partly_sent(&mut self) -> Option<(u16, u32)> {
        if self.unsent.front()?.position == 0 {
            return None;
        }
        let message = self.unsent.pop_front()?;
        self.buffered -= message.data.len() - message.position;
        self.sent.push_back(Sent {
            data: NOTHING,
            payload_protocol_id: message.options.payload_protocol_id,
            stream_id: message.stream_id,
            ssn: message.ssn,
            unordered: message.options.unordered,
            beginning: false,
            ending: true,
            immediate: false,
            policy: message.policy,
            state: ChunkState::Abandoned,
            path: None,
            transmission: Transmission::NONE,
            retransmissions: 0,
            released: false,
            fast_marked: false,
            moved: false,
        });
        Some((message.stream_id, message.options.payload_protocol_id))
    }

    /// First and last TSN, of those that are not cumulatively acknowledged, of the message that `tsn` belongs to, and
    /// whether all of it was sent.
    pub(super) fn message_around(&self, tsn: Tsn) -> Option<(Tsn, Tsn, bool)> {
        let at = tsn.distance_from(self.base) as usize;
        self.sent.get(at)?;
        let first = self.sent.range(..=at).rposition(|s| s.beginning).unwrap_or(0);
        let ending = self.sent.range(at..).position(|s| s.ending);
        let last = ending.map_or(self.sent.len() - 1, |n| at + n);
        Some((
            self.base.add(first as u32),
            self.base.add(last as u32),
            ending.is_some(),
        ))
    }

    /// Abandons one chunk and frees its data; returns its former state, path, size and user bytes.
    pub(super) fn abandon(&mut self, tsn: Tsn) -> Option<(ChunkState, Option<PathId>, u32, u32)> {
        let (size, len) = self.get(tsn).map(|s| (s.size(), s.len()))?;
        let (former, path, _) = self.set_state(tsn, ChunkState::Abandoned)?;
        let sent = self.get_mut(tsn)?;
        let held = core::mem::replace(&mut sent.data, NOTHING).len();
        if core::mem::take(&mut sent.released) {
            self.released -= held;
        }
        self.buffered -= held;
        Some((former, path, size, len))
    }

    /// User bytes of the messages whose priority is below that of `policy`; `sent`: those among them of which some
    /// was sent, too.
    pub(super) fn bytes_below(&self, policy: Policy, sent: bool) -> usize {
        let waiting = self.unsent.iter().skip(self.first_untouched());
        let waiting = waiting
            .filter(|m| m.policy.priority_below(policy).is_some())
            .map(|m| m.data.len());
        let under_way = self.to_arrive().filter(|_| sent).flat_map(|(_, chunks)| chunks);
        let under_way = under_way.filter(|s| !s.released && s.policy.priority_below(policy).is_some());
        waiting.sum::<usize>() + under_way.map(|s| s.data.len()).sum::<usize>()
    }

    /// The unsent message of the lowest priority below that of `policy`: the oldest, as it is the first to be of no
    /// use.
    pub(super) fn lowest_unsent_below(&self, policy: Policy) -> Option<usize> {
        let waiting = self.unsent.iter().skip(self.first_untouched()).enumerate();
        let candidates = waiting.filter_map(|(i, m)| Some((m.policy.priority_below(policy)?, i)));
        candidates
            .max_by_key(|&(priority, i)| (priority, core::cmp::Reverse(i)))
            .map(|c| c.1)
    }

    /// As [`lowest_unsent_below`](Self::lowest_unsent_below), of the messages of which some was sent and something has not
    /// arrived.
    pub(super) fn lowest_sent_below(&self, policy: Policy) -> Option<Tsn> {
        let candidates = self.to_arrive().filter_map(|(at, mut chunks)| {
            let priority = chunks.next()?.policy.priority_below(policy)?;
            Some((priority, at))
        });
        candidates
            .max_by_key(|&(priority, at)| (priority, core::cmp::Reverse(at)))
            .map(|(_, at)| self.base.add(at as u32))
    }

    /// The messages of which some was sent that have not arrived in whole and are not abandoned, each as the place of its
    /// first chunk and its chunks.
    fn to_arrive(&self) -> impl Iterator<Item = (usize, impl Iterator<Item = &Sent>)> {
        let mut next = 0;
        let messages = core::iter::from_fn(move || {
            let begin = next;
            let len = self.sent.range(begin..).position(|s| s.ending);
            next = len.map_or(self.sent.len(), |len| begin + len + 1);
            (begin < next).then_some((begin, next))
        });
        messages
            .map(|(begin, end)| (begin, self.sent.range(begin..end)))
            .filter(|(_, chunks)| {
                let waits = |s: &Sent| matches!(s.state, ChunkState::Outstanding | ChunkState::Marked);
                let abandoned = chunks.clone().any(|s| s.state == ChunkState::Abandoned);
                let ends = chunks.clone().last().is_some_and(|s| s.ending);
                !abandoned && (!ends || chunks.clone().any(waits))
            })
    }

    /// Index of the first message of which nothing was sent.
    fn first_untouched(&self) -> usize {
        usize::from(self.partly_sent().is_some())
    }
}
