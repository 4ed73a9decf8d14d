//! What is counted, under names as Prometheus wants them: base units, `_total` for what only grows, labels for what is alike.

use crate::status::Status;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use segue_proto::shim::ShimEvent;
use std::sync::atomic::AtomicU64;

/// Bounds of the histogram of delays, seconds: from a round trip in a room to what a person hangs up at.
const DELAYS_S: [f64; 12] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;

/// All handovers since the agent began.
pub(crate) struct Handovers {
    begun: u64,
    failed: u64,
    last_delay_s: Option<f64>,
    delays: Histogram,
}

impl Default for Handovers {
    fn default() -> Self {
        Self {
            begun: 0,
            failed: 0,
            last_delay_s: None,
            delays: Histogram::new(DELAYS_S),
        }
    }
}

impl Handovers {
    /// Something has happened.
    pub fn note(&mut self, event: &ShimEvent) {
        match event {
            ShimEvent::HandoffBegun { .. } => self.begun += 1,
            ShimEvent::HandoffDone { delay, .. } => {
                self.last_delay_s = Some(delay.as_secs_f64());
                self.delays.observe(delay.as_secs_f64());
            }
            ShimEvent::HandoffFailed { .. } => self.failed += 1,
            _ => {}
        }
    }
}

/// Everything that is served at once.
#[derive(Default)]
pub(crate) struct Page {
    registry: Registry,
}

impl Page {
    /// Of what the agent says of itself.
    pub fn of(status: &Status, handovers: &Handovers) -> Self {
        let mut page = Self {
            registry: Registry::with_prefix("segue_agent"),
        };
        let info = page.gauges("info", "What the agent is: always 1");
        let labels = vec![
            ("role", status.role.clone()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        info.get_or_create(&labels).set(1);
        page.seconds("running_seconds", "Since the agent began", status.running_s);
        page.interfaces(status);
        page.peers(status);
        page.handovers(handovers);
        let counted = Family::<Labels, Counter>::default();
        for (part, counts) in &status.counters {
            for (name, number) in counts {
                let labels = vec![("part", part.clone()), ("name", name.clone())];
                counted.get_or_create(&labels).inc_by(*number);
            }
        }
        page.registry.register(
            "events",
            "What each part of the agent has counted, as status shows it",
            counted,
        );
        page
    }

    /// In the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // a string takes everything
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn gauges(&mut self, name: &str, help: &str) -> Family<Labels, Gauge> {
        let family = Family::<Labels, Gauge>::default();
        self.registry.register(name, help, family.clone());
        family
    }

    fn seconds(&mut self, name: &str, help: &str, value: f64) {
        let gauge = Seconds::default();
        gauge.set(value);
        self.registry.register(name, help, gauge);
    }

    fn interfaces(&mut self, status: &Status) {
        let there = self.gauges("interface_present", "Whether the machine has the interface");
        let up = self.gauges("interface_up", "Whether it is up and has a carrier");
        let used = self.gauges("interface_in_use", "Whether packets leave by it");
        let locators = self.gauges(
            "locators",
            "Addresses of the agent's on an interface, by their state",
        );
        for interface in &status.interfaces {
            let labels = vec![("interface", interface.name.clone())];
            there.get_or_create(&labels).set(interface.is_there.into());
            up.get_or_create(&labels).set(interface.is_up.into());
            used.get_or_create(&labels).set(interface.in_use.into());
            for locator in &interface.locators {
                let mut labels = labels.clone();
                labels.push(("state", locator.state.clone()));
                locators.get_or_create(&labels).inc();
            }
        }
    }

    fn peers(&mut self, status: &Status) {
        let sessions = self.gauges("sessions", "Peers of an ILNPv6 host, by how it speaks with them");
        for mode in ["unresolved", "probing", "ilnp", "plain"] {
            let count = status.sessions.iter().filter(|s| s.mode == mode).count();
            let labels = vec![("mode", mode.to_owned())];
            sessions.get_or_create(&labels).set(count as i64);
        }
        let bindings = self.gauges("bindings", "What mobile nodes have left here");
        bindings
            .get_or_create(&Vec::new())
            .set(status.bindings.len() as i64);
        let correspondents = self.gauges(
            "correspondents",
            "Those that a mobile node sends to, by whether packets take the direct way",
        );
        for direct in [false, true] {
            let count = status.correspondents.iter().filter(|c| c.optimized == direct);
            let labels = vec![("direct", direct.to_string())];
            correspondents.get_or_create(&labels).set(count.count() as i64);
        }
        if let Some(registration) = &status.registration {
            let known = registration.care_of_address.is_some()
                && registration.care_of_address == registration.acknowledged;
            let registered = self.gauges(
                "registered",
                "Whether the home agent has the mobile node's address",
            );
            registered.get_or_create(&Vec::new()).set(known.into());
        }
    }

    fn handovers(&mut self, handovers: &Handovers) {
        let begun: Counter = Counter::default();
        begun.inc_by(handovers.begun);
        self.registry
            .register("handovers", "Handovers that peers were told of", begun);
        let failed: Counter = Counter::default();
        failed.inc_by(handovers.failed);
        self.registry.register(
            "handover_failures",
            "Peers that could not be told of a handover",
            failed,
        );
        if let Some(seconds) = handovers.last_delay_s {
            let help = "Until every peer had acknowledged the last handover that all have";
            self.seconds("handover_last_delay_seconds", help, seconds);
        }
        self.registry.register(
            "handover_delay_seconds",
            "Until every peer had acknowledged a handover",
            handovers.delays.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{InterfaceStatus, LocatorStatus};
    use segue_proto::Duration;
    use std::net::Ipv6Addr;

    fn status() -> Status {
        let locator = |state: &str| LocatorStatus {
            locator: "2001:db8:0:1".to_owned(),
            address: Ipv6Addr::LOCALHOST,
            state: state.to_owned(),
        };
        Status {
            role: "ilnp".to_owned(),
            identity: None,
            device: "segue0".to_owned(),
            running_s: 1.5,
            interfaces: vec![InterfaceStatus {
                name: "wl\"an0".to_owned(),
                is_there: true,
                is_up: false,
                in_use: true,
                locators: vec![locator("active"), locator("active"), locator("valid")],
            }],
            sessions: Vec::new(),
            registration: None,
            correspondents: Vec::new(),
            bindings: Vec::new(),
            networks_without_options: Vec::new(),
            names: None,
            handovers: Vec::new(),
            counters: [("stack".to_owned(), [("sent".to_owned(), 3)].into_iter().collect())]
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn everything_is_on_the_page_under_its_name() {
        let mut handovers = Handovers::default();
        let to = Ipv6Addr::LOCALHOST;
        handovers.note(&ShimEvent::HandoffBegun { from: None, to });
        let delay = Duration::from_millis(30);
        handovers.note(&ShimEvent::HandoffDone { to, delay });
        handovers.note(&ShimEvent::HandoffFailed { peer: to });
        let text = Page::of(&status(), &handovers).text();
        for line in [
            "segue_agent_interface_present{interface=\"wl\\\"an0\"} 1",
            "segue_agent_interface_up{interface=\"wl\\\"an0\"} 0",
            "segue_agent_locators{interface=\"wl\\\"an0\",state=\"active\"} 2",
            "segue_agent_events_total{part=\"stack\",name=\"sent\"} 3",
            "segue_agent_handovers_total 1",
            "segue_agent_handover_failures_total 1",
            "segue_agent_handover_last_delay_seconds 0.03",
            "segue_agent_handover_delay_seconds_bucket{le=\"0.02\"} 0",
            "segue_agent_handover_delay_seconds_bucket{le=\"0.05\"} 1",
            "segue_agent_handover_delay_seconds_count 1",
            "segue_agent_running_seconds 1.5",
            "segue_agent_sessions{mode=\"ilnp\"} 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
