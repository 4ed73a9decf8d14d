//! Links that a station has to itself in a cell.

use super::cell_prefixes;
use crate::link::{Link, LinkConfig, Service, Silence};
use crate::loss::LossModel;
use crate::network::LinkEnd;
use crate::network::bearers::{Bearer, Bearers};
use crate::network::cells::{Attachment, Cell};
use crate::network::routers::prefix_of;
use crate::scenario::events;
use crate::scenario::model::{CellEntry, ScenarioFile};
use crate::scenario::remedy::greatest_window;
use crate::scenario::technology::DirectionSection;
use segue_proto::random::Stream;
use segue_proto::tcp::WindowClamp;
use segue_proto::{Instant, InterfaceId};

/// A pair of links for every radio and cell with bearers that it can hear, behind those of the wires: the even one leads
/// to the host.
pub(super) fn all(
    s: &ScenarioFile,
    cells: &[Cell],
    attachments: &[Attachment],
    links: &mut Vec<Link>,
    ends: &mut Vec<LinkEnd>,
    stream: &impl Fn(&str) -> Stream,
) -> Bearers {
    let first_link = links.len() as u32;
    let mut bearers = Vec::new();
    for (number, entry) in s.cell.iter().enumerate() {
        let Some(section) = &entry.bearer else { continue };
        for (at, attachment) in attachments.iter().enumerate() {
            if !attachment.hears(&cells[number]) {
                continue;
            }
            let ways = [
                (&section.down, "down", attachment.node, attachment.interface),
                (&section.up, "up", cells[number].router, InterfaceId::default()),
            ];
            for (direction_section, name, node, interface) in ways {
                let name = format!("bearer of attachment {at} in cell {number}/{name}");
                let service = if s.signalling_priority {
                    Service::HeadOfLine
                } else {
                    Service::Fifo
                };
                let config = direction(direction_section, &plain(service));
                let link = Link::new(links.len() as u32, config, stream(&name));
                let trace = direction_section.trace.as_ref().and_then(|t| t.trace.clone());
                links.push(
                    link.with_jitter_held(direction_section.jitter_hold)
                        .with_set_up(direction_section.set_up, direction_section.set_up_hold)
                        .with_silences(silences(&direction_section.silences, None))
                        .with_trace(trace),
                );
                ends.push(LinkEnd { node, interface });
            }
            bearers.push(Bearer {
                cell: number as u32,
                attachment: at as u32,
            });
        }
    }
    Bearers::new(first_link, bearers)
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
