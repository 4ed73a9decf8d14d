//! What its applications were to people: how calls sounded, how long pages took, how often films stood still.

pub mod e_model;
pub mod playout;
pub mod video;
pub mod voice;
pub mod web;

use crate::build;
use crate::network::{Network, Node};
use crate::recorder::FlowMetrics;
use crate::scenario::model::{ApplicationEntry, ApplicationKind, ScenarioFile};
use segue_capture::record::HandoverRecord;
use segue_proto::app::{HeardCall, Record, VoiceCall};
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
                for (from, to) in &there_and_back[..if section.two_way { 2 } else { 1 }] {
                    let own = calls.of_application(s, number, record(), (from, to));
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

/// The calls of a run by the node and their sources.
#[derive(Default)]
struct Calls<'a> {
    made: BTreeMap<(usize, u32), &'a VoiceCall>,
    heard: BTreeMap<(usize, u32), &'a HeardCall>,
}

impl<'a> Calls<'a> {
    fn of(network: &'a Network) -> Self {
        let mut all = Self::default();
        for (node, it) in network.nodes.iter().enumerate() {
            let Node::Host(it) = it else { continue };
            for number in 0..it.host.applications().count() {
                if let Some(Record::Calls { made, heard }) = it.host.record_of(number) {
                    all.made
                        .extend(made.iter().map(|call| ((node, call.source), call)));
                    all.heard
                        .extend(heard.iter().map(|call| ((node, call.source), call)));
                }
            }
        }
        all
    }

    /// Those of an application in this direction, by the `record` of the end that opened it; the other is known by what they
    /// said to each other.
    fn of_application(
        &self,
        s: &ScenarioFile,
        number: usize,
        record: Option<Record<'a>>,
        (from, to): (&str, &str),
    ) -> Vec<(&'a VoiceCall, Option<&'a HeardCall>)> {
        let opener = build::opener(s, &s.application[number]);
        let node = |name: &str| s.host.number(name);
        let (Some(sends), Some(hears), Some(by)) = (node(from), node(to), node(opener)) else {
            return Vec::new();
        };
        let Some(Record::Calls { made, heard }) = record else {
            return Vec::new();
        };
        if by == sends {
            let heard = |call: &VoiceCall| self.heard.get(&(hears, call.source)).copied();
            made.iter().map(|call| (call, heard(call))).collect()
        } else {
            let made = |heard: &'a HeardCall| Some((*self.made.get(&(sends, heard.source))?, Some(heard)));
            heard.iter().filter_map(made).collect()
        }
    }
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
