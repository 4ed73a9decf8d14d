//! How long web pages took.

use crate::population::{Sample, Spread, Worst};
use segue_capture::record::HandoverRecord;
use segue_proto::Instant;
use segue_proto::app::Page;
use serde::Serialize;

/// The pages of a reader.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WebMetrics {
    /// Pages that were asked for.
    pub pages: u64,
    /// Of them, those that were there before the end of the run.
    pub loaded_pages: u64,
    /// Objects of these.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// From the request for the main object until the last byte of the last embedded one, seconds. One that was not there
    /// when the connection or the run ended is a lower bound.
    pub load_time_s: Option<Spread>,
    /// The same of pages that were on their way while others were told of the new address, from `begin_s` to `end_s` of a
    /// handover of their data: one that waits for data since the old path was lost is so, too.
    pub load_time_during_handovers_s: Option<Spread>,
}

/// The pages of `reader`, with the handovers of their data.
pub(super) fn metrics(
    reader: &str,
    pages: &[Page],
    handovers: &[&HandoverRecord],
    end: Instant,
) -> WebMetrics {
    let seconds = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
    let until = |number: usize| {
        let page = pages[number];
        // without a connection nothing is on its way: a page that was not there by the next never was
        let lost = pages.get(number + 1).map_or(end, |next| next.begun);
        page.loaded.unwrap_or(lost)
    };
    let sample = |number: usize| Sample {
        value: until(number).since(pages[number].begun).as_secs_f64(),
        censored: pages[number].loaded.is_none(),
        of: Worst {
            host: reader.to_owned(),
            flow: None,
            time: seconds(pages[number].begun),
        },
    };
    let meets_handover = |number: &usize| {
        let (begun, there) = (seconds(pages[*number].begun), seconds(until(*number)));
        let told = |h: &&HandoverRecord| (h.begin_s.unwrap_or(h.time), h.end_s.unwrap_or(h.time));
        // who reads needs no data: what an interruption says of such a flow is how long the reading took
        handovers
            .iter()
            .map(told)
            .any(|(from, until)| from <= there && until >= begun)
    };
    let loaded = || pages.iter().filter(|page| page.loaded.is_some());
    WebMetrics {
        pages: pages.len() as u64,
        loaded_pages: loaded().count() as u64,
        objects: loaded().map(|page| u64::from(page.objects)).sum(),
        bytes: loaded().map(|page| page.bytes).sum(),
        load_time_s: Spread::of((0..pages.len()).map(sample)),
        load_time_during_handovers_s: Spread::of((0..pages.len()).filter(meets_handover).map(sample)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::Duration;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn pages_that_never_were_there_are_lower_bounds_and_those_of_handovers_stand_apart() {
        let page = |begun, loaded: Option<u64>| Page {
            begun: at(begun),
            objects: 3,
            bytes: 1000,
            loaded: loaded.map(at),
        };
        let pages = [
            page(10, Some(11)),
            page(20, Some(23)),
            page(30, None),
            page(40, Some(42)),
            page(50, None),
        ];
        let mut moved = super::super::tests::handover();
        (moved.time, moved.interruption_s) = (22.5, Some(11.5));
        (moved.begin_s, moved.end_s) = (Some(21.0), Some(22.0));
        let m = metrics("mn", &pages, &[&moved], at(58));
        assert_eq!((m.pages, m.loaded_pages, m.objects, m.bytes), (5, 3, 9, 3000));
        let all = m.load_time_s.expect("pages");
        assert_eq!((all.median, all.max, all.censored), (3.0, 10.0, 2));
        assert_eq!(
            (all.max_censored, all.median_censored, all.worst.time),
            (true, false, 30.0)
        );
        let met = m.load_time_during_handovers_s.expect("one");
        assert_eq!((met.count, met.median), (1, 3.0));
    }
}
