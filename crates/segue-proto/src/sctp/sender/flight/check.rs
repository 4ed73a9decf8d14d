//! Every count of [`Flight`] beside a recount, and what tests look at.

use super::find::is_under_way;
use super::{Flight, InFlight};
#[cfg(test)]
use crate::sctp::ids::PathId;
use crate::sctp::sender::cuc::UnderWay;
#[cfg(test)]
use crate::sctp::{Config, multipath::Cuc};
#[cfg(test)]
use crate::time::Instant;
#[cfg(test)]
use segue_wire::Tsn;

impl Flight {
    /// Checks every count against a recount.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub(in crate::sctp) fn check_invariants(&self) -> Result<(), String> {
        let (mut outstanding, mut marked, mut held, mut released) = (InFlight::default(), 0, 0, 0);
        for sent in &self.chunks {
            held += sent.len() as usize;
            released += usize::from(sent.is_released()) * sent.len() as usize;
            marked += u32::from(sent.is_marked());
            if sent.is_outstanding() {
                outstanding.count(sent.len());
            }
        }
        let same = |what: &str, counted: String, is: String| {
            let text = format!("{what}: {is}, counted as {counted}");
            (counted == is).then_some(()).ok_or(text)
        };
        same(
            "outstanding",
            format!("{:?}", self.outstanding),
            format!("{outstanding:?}"),
        )?;
        same("marked", self.marked.to_string(), marked.to_string())?;
        same("held", self.held.to_string(), held.to_string())?;
        same("released", self.released.to_string(), released.to_string())?;
        let mut booked = 0;
        for (path, book) in self.books.iter() {
            let own = self
                .iter()
                .filter(|(_, s)| s.is_outstanding() && s.path() == Some(path));
            let size: u32 = own.clone().map(|(_, s)| s.size()).sum();
            let name = format!("bytes in flight on path {path:?}");
            same(&name, book.size().to_string(), size.to_string())?;
            let name = format!("T3-rtx of path {path:?}");
            same(&name, book.t3_rtx().is_some().to_string(), (size > 0).to_string())?;
            if let Some(tsn) = book.watched() {
                let is_own = own.clone().any(|(other, _)| other == tsn);
                same("earliest is under way", "true".into(), is_own.to_string())?;
            }
            let mut under_way = UnderWay::default();
            own.clone()
                .for_each(|(_, s)| under_way.enter(s.transmission().is_again()));
            let name = format!("chunks outstanding on path {path:?}");
            same(&name, format!("{:?}", book.under_way()), format!("{under_way:?}"))?;
            if self.by_order {
                let first = own.clone().min_by_key(|(_, s)| s.transmission().number());
                let known = book
                    .clone()
                    .first_sent(is_under_way((self.base, &self.chunks), path));
                let name = format!("what was sent first on path {path:?}");
                same(
                    &name,
                    format!("{known:?}"),
                    format!("{:?}", first.map(|(tsn, _)| tsn)),
                )?;
            }
            booked += under_way.chunks();
        }
        same(
            "chunks outstanding on no path",
            booked.to_string(),
            outstanding.chunks.to_string(),
        )
    }
}

/// What tests look at.
#[cfg(test)]
impl Flight {
    /// One with these rules, whatever configuration they would come from.
    pub(in crate::sctp) fn with(initial_tsn: Tsn, by_order: bool, cuc: Cuc) -> Self {
        Self {
            by_order,
            cuc,
            ..Self::new(initial_tsn, &Config::default())
        }
    }

    /// The TSN that T3-rtx of a path runs for, and when it expires.
    pub(in crate::sctp) fn watched(&self, path: PathId) -> Option<(u32, Instant)> {
        let book = self.books.get(path)?;
        Some((book.last_watched()?.0, book.t3_rtx()?))
    }

    /// The TSN whose round trip is measured on a path, and when it was sent.
    pub(in crate::sctp) fn timed(&self, path: PathId) -> Option<(u32, Instant)> {
        let (tsn, at) = self.books.get(path)?.timed()?;
        Some((tsn.0, at))
    }

    /// What CUC waits for on a path, of what was sent once and of what was sent again.
    pub(in crate::sctp) fn awaited(&self, path: PathId) -> [Option<u32>; 2] {
        self.books.get(path).map_or([None; 2], |book| book.awaited())
    }

    /// Bytes and chunks outstanding, and chunks marked.
    pub(in crate::sctp) fn counts(&self) -> (u32, u32, u32) {
        (self.outstanding.bytes, self.outstanding.chunks, self.marked)
    }
}
