//! The messages that the chunks of [`Flight`] are of.

use super::Flight;
use crate::sctp::sender::chunk::{ChunkState, Sent};
use segue_wire::Tsn;

impl Flight {
    /// First and last TSN, of those that are not cumulatively acknowledged, of the message that `tsn` belongs to, and
    /// whether all of it was sent.
    pub(in crate::sctp) fn message_around(&self, tsn: Tsn) -> Option<(Tsn, Tsn, bool)> {
        let at = tsn.distance_from(self.base) as usize;
        self.chunks.get(at)?;
        let first = self.chunks.range(..=at).rposition(|s| s.about().beginning);
        let ending = self.chunks.range(at..).position(|s| s.about().ending);
        let last = ending.map_or(self.chunks.len() - 1, |n| at + n);
        let tsn_of = |index: usize| self.base.add(index as u32);
        Some((tsn_of(first.unwrap_or(0)), tsn_of(last), ending.is_some()))
    }

    /// The messages of which some was sent that have not arrived in whole and are not abandoned, each as the TSN of its
    /// first chunk and its chunks.
    pub(in crate::sctp) fn to_arrive(&self) -> impl Iterator<Item = (Tsn, impl Iterator<Item = &Sent>)> {
        let mut next = 0;
        let messages = core::iter::from_fn(move || {
            let begin = next;
            let len = self.chunks.range(begin..).position(|s| s.about().ending);
            next = len.map_or(self.chunks.len(), |len| begin + len + 1);
            (begin < next).then_some((begin, next))
        });
        messages
            .map(|(begin, end)| (self.base.add(begin as u32), self.chunks.range(begin..end)))
            .filter(|(_, chunks)| {
                let abandoned = chunks.clone().any(|s| s.state() == ChunkState::Abandoned);
                let ends = chunks.clone().last().is_some_and(|s| s.about().ending);
                !abandoned && (!ends || chunks.clone().any(Sent::is_awaited))
            })
    }
}
