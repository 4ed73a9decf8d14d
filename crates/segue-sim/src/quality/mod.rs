//! What its applications were to people: how calls sounded, how long pages took, how often films stood still.

mod calls;
pub mod e_model;
pub mod playout;
pub mod video;
pub mod voice;
pub mod web;

use crate::build;
use crate::network::{Network, Node};
use crate::recorder::FlowMetrics;
use crate::scenario::model::{ApplicationEntry, ApplicationKind, ScenarioFile};
use calls::Calls;
use segue_capture::record::HandoverRecord;
use segue_proto::app::Record;
use serde::Serialize;
use std::collections::BTreeMap;
use video::VideoMetrics;
use voice::VoiceMetrics;
use web::WebMetrics;

/// What an application was to people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ApplicationMetrics {
    /// Its number in the scenario.
    pub application: usize,
    /// Who sends, or asks.
    pub from: String,
    /// Who receives, or answers.
    pub to: String,
    /// By its kind.
    #[serde(flatten)]
    pub experience: Experience,
}

/// What an application was to people, by its kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Experience {
    /// How one direction of a call sounded.
    Voice(VoiceMetrics),
    /// How long web pages took.
    Web(WebMetrics),
    /// How a film was seen.
    Video(VideoMetrics),
}

/// What those applications of a run were to people whose kind says. `carried` has the application of each flow.
pub(crate) fn of_applications(
    s: &ScenarioFile,
    network: &Network,
    carried: &BTreeMap<u64, usize>,
    flows: &[FlowMetrics],
    handovers: &[HandoverRecord],
) -> Vec<ApplicationMetrics> {
    let people = |a: &ApplicationEntry| {
        matches!(
            a.kind,
            ApplicationKind::Voice | ApplicationKind::Web | ApplicationKind::Video
        )
    };
    if !s.application.iter().any(people) {
        return Vec::new();
    }
    let calls = Calls::of(network);
    let parts = build::opening_parts(s);
    let sender: BTreeMap<u64, &str> = flows.iter().map(|f| (f.id, f.from.as_str())).collect();
    // of each application, those of what `from` sends and those of what `to` does
    let mut moves: BTreeMap<(usize, bool), Vec<&HandoverRecord>> = BTreeMap::new();
    for record in handovers {
        let of = |flow: u64| {
            let number = *carried.get(&flow)?;
            Some((number, *sender.get(&flow)? == s.application[number].from))
        };
        if let Some(direction) = record.flow.and_then(of) {
            moves.entry(direction).or_default().push(record);
        }
    }
    let mut all = Vec::new();
    for (number, a) in s.application.iter().enumerate() {
        let mut add = |from: &str, to: &str, experience: Experience| {
            all.push(ApplicationMetrics {
                application: number,
                from: from.to_owned(),
                to: to.to_owned(),
                experience,
            });
        };
        let of_data = |sender: &String| moves.get(&(number, *sender == a.from)).map_or(&[][..], |m| m);
        let record = || record_of(s, network, number, parts[number]);
        match (a.kind, record()) {
            (ApplicationKind::Voice, _) => {
                let section = a.voice.clone().unwrap_or_default();
                let there_and_back = [(&a.from, &a.to), (&a.to, &a.from)];
                let opener = s.host.number(build::opener(s, a));
                for (from, to) in &there_and_back[..if section.two_way { 2 } else { 1 }] {
                    let ends = (s.host.number(from), s.host.number(to));
                    let own = match (ends, opener) {
                        ((Some(from), Some(to)), Some(by)) => calls.between(from, to, (by, parts[number])),
                        _ => Vec::new(),
                    };
                    let own = voice::metrics(&section, &own, of_data(from), network.end);
                    add(from, to, Experience::Voice(own));
                }
            }
            (ApplicationKind::Web, Some(Record::Pages(pages))) => {
                let own = web::metrics(&a.from, pages, of_data(&a.to), network.end);
                add(&a.from, &a.to, Experience::Web(own));
            }
            (ApplicationKind::Video, Some(Record::Viewing(viewing))) => {
                let own = video::metrics(viewing, network.end);
                add(&a.from, &a.to, Experience::Video(own));
            }
            _ => {}
        }
    }
    all
}

/// What the end of an application that opened it keeps an account of: that `part` of its host.
fn record_of<'a>(s: &ScenarioFile, network: &'a Network, number: usize, part: usize) -> Option<Record<'a>> {
    let by = s.host.number(build::opener(s, &s.application[number]))?;
    let Node::Host(opening) = network.nodes.get(by)? else {
        return None;
    };
    opening.host.record_of(part)
}

#[cfg(test)]
mod tests {
    use segue_capture::record::HandoverRecord;

    /// A handover of which nothing is known.
    pub(super) fn handover() -> HandoverRecord {
        HandoverRecord {
            host: "mn".to_owned(),
            flow: Some(0),
            layer: None,
            from: None,
            to: None,
            time: 0.0,
            interruption_s: None,
            censored: false,
            latency_s: None,
            handoff_delay_s: None,
            begin_s: None,
            end_s: None,
            failed: Vec::new(),
            parts: None,
            lost_packets: None,
            retransmissions: None,
            spurious_retransmissions: None,
        }
    }
}
