//! Flows of which nothing is said, because a snap length cut off what their headers say.

use crate::analyze::cuts::CutOff;
use crate::analyze::flows::conn::Conn;
use crate::analyze::flows::item::Settings;
use crate::analyze::model::{CutFlow, Endpoint};

/// Flows that are kept.
const MAX_CUT: usize = 1000;

/// Flows of which nothing more is said, as many as are kept.
#[derive(Default)]
pub(in crate::analyze) struct CutFlows {
    kept: Vec<CutFlow>,
    beyond: u64,
}

impl CutFlows {
    /// So much was cut off of a flow that has ended.
    pub(super) fn add(&mut self, conn: &Conn, cut: CutOff, settings: &Settings) {
        let seconds = |ns: u64| ns.saturating_sub(settings.start_ns) as f64 / 1e9;
        let (shown, ports) = (conn.parties().shown(), conn.parties().ports());
        let end = |number: usize| Endpoint {
            address: shown[number].ip(),
            port: ports[number],
        };
        let (begin_ns, last_ns) = conn.heard_ns();
        self.keep(CutFlow {
            protocol: conn.protocol(),
            a: end(0),
            b: end(1),
            begin_s: seconds(begin_ns),
            end_s: seconds(last_ns),
            cut_packets: cut.packets + cut.acknowledgements,
            needed_bytes: cut.needed_bytes,
        });
    }

    /// Takes over what was found elsewhere.
    pub(super) fn absorb(&mut self, other: Self) {
        self.beyond += other.beyond;
        other.kept.into_iter().for_each(|cut| self.keep(cut));
    }

    fn keep(&mut self, cut: CutFlow) {
        if self.kept.len() < MAX_CUT {
            self.kept.push(cut);
        } else {
            self.beyond += 1;
        }
    }

    /// Those that were too many to be kept.
    pub(in crate::analyze) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Those with most packets first.
    pub(in crate::analyze) fn finish(mut self) -> Vec<CutFlow> {
        self.kept.sort_by_key(|c| core::cmp::Reverse(c.cut_packets));
        self.kept
    }
}
