//! Links that a station has to itself in a cell.

use super::cell_prefixes;
use crate::link::{LinkConfig, Service, Silence};
use crate::loss::LossModel;
use crate::network::bearers::{Bearers, Direction};
use crate::network::routes::prefix_of;
use crate::network::sharing::SharedCell;
use crate::scenario::events;
use crate::scenario::model::{CellEntry, ScenarioFile};
use crate::scenario::remedy::greatest_window;
use crate::scenario::technology::DirectionSection;
use segue_proto::Instant;
use segue_proto::tcp::WindowClamp;

/// What bearers are made of, whose links come behind those of the wires.
pub(super) fn all(s: &ScenarioFile, first_link: usize, seed: u64) -> Bearers {
    let service = if s.signalling_priority {
        Service::HeadOfLine
    } else {
        Service::Fifo
    };
    let way = |section: &DirectionSection, is_shared| Direction {
        config: direction(section, &plain(service)),
        jitter_hold: section.jitter_hold,
        set_up: (section.set_up, section.set_up_hold),
        silences: silences(&section.silences, None),
        trace: section.trace.as_ref().and_then(|t| t.trace.clone()),
        is_shared,
    };
    let both = |cell: &CellEntry| {
        let ways = cell.bearer.as_ref().map(|b| [&b.down, &b.up]);
        ways.map(|ways| ways.map(|section| way(section, cell.sharing.is_some())))
    };
    Bearers::new(first_link as u32, s.cell.iter().map(both).collect(), seed)
}

/// Of each cell, what its bearers share, if they do.
pub(super) fn shared_cells(s: &ScenarioFile) -> Vec<Option<SharedCell>> {
    let shared = |cell: &CellEntry| {
        let (sharing, bearer) = (cell.sharing.as_ref()?, cell.bearer.as_ref()?);
        let edge_snr_db = sharing.edge_snr.map(|snr| snr.db());
        let rates = [bearer.down.rate, bearer.up.rate];
        Some(SharedCell::new(sharing.scheduler(), edge_snr_db, rates))
    };
    s.cell.iter().map(shared).collect()
}

/// The silences of a way that leads to this node, or to wherever it does.
pub(super) fn silences(all: &[events::Silence], to: Option<&str>) -> Vec<Silence> {
    let heard = |s: &&events::Silence| match (&s.towards, to) {
        (Some(towards), Some(to)) => towards == to,
        _ => true,
    };
    let silence = |s: &events::Silence| Silence {
        from: Instant::ZERO + s.from,
        until: s.to.map(|to| Instant::ZERO + to),
        loss: s.loss,
    };
    all.iter().filter(heard).map(silence).collect()
}

/// The proxy on a router, if there is one.
pub(super) fn window_clamp(s: &ScenarioFile, router: &str) -> Option<Box<WindowClamp>> {
    let clamp = s.remedy.window_clamp.as_ref().filter(|c| c.router == router)?;
    let limits = |(number, cell): (usize, &CellEntry)| {
        let window = cell.bearer.as_ref().map(|bearer| greatest_window(clamp, bearer));
        let prefixes = cell_prefixes(s, number).collect::<Vec<_>>().into_iter();
        prefixes.filter_map(move |prefix| Some((prefix_of(prefix), window?)))
    };
    let limits = s.cell.iter().enumerate().flat_map(limits).collect();
    Some(Box::new(WindowClamp::new(limits)))
}

/// A direction of a link with what `otherwise` has beside.
pub(super) fn direction(d: &DirectionSection, otherwise: &LinkConfig) -> LinkConfig {
    LinkConfig {
        rate: d.rate,
        delay: d.delay,
        queue: d.queue,
        jitter: d.jitter,
        loss: d.loss,
        ..otherwise.clone()
    }
}

fn plain(service: Service) -> LinkConfig {
    LinkConfig {
        rate: segue_proto::units::BitRate::from_bits_per_second(1),
        delay: segue_proto::Duration::ZERO,
        queue: segue_proto::units::QueueLimit::Packets(segue_proto::units::Packets::new(1)),
        loss: LossModel::None,
        jitter: segue_proto::Duration::ZERO,
        reorder: false,
        duplicate: 0.0,
        corrupt: 0.0,
        service,
        mtu: None,
    }
}
