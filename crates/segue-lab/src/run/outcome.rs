//! What a run in real time came to, as JSON and in words.

use super::Real;
use super::directory::Directory;
use super::host::Host;
use segue_capture::analyze::{Input, Options, analyze_inputs};
use segue_capture::record::HandoverRecord;
use segue_lab::lateness::LatenessReport;
use segue_proto::Duration;
use segue_sim::assertion::{Assertion, Verdict};
use segue_sim::junit::{self, Case};
use segue_sim::output::{Metrics, RunOutput};
use segue_sim::population::Spread;
use segue_sim::realtime::KernelHost;
use segue_sim::recorder::FlowMetrics;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// How a host was set up.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HostRecord {
    name: String,
    identity: Option<String>,
    mtu: u32,
    settings: BTreeMap<String, String>,
}

pub(super) fn host_records(kernel: &[KernelHost], hosts: &[Host]) -> Vec<HostRecord> {
    let record = |(kernel, host): (&KernelHost, &Host)| HostRecord {
        name: kernel.name.clone(),
        identity: kernel.identity.map(|a| a.to_string()),
        mtu: kernel.mtu,
        settings: host.settings().clone(),
    };
    kernel.iter().zip(hosts).map(record).collect()
}

/// What there is to tell.
pub(super) struct Outcome {
    real: Real,
    lateness: LatenessReport,
    prediction: Option<RunOutput>,
    captures: Vec<String>,
    /// The captures of the two ends by `segue analyze`, if there are two.
    analysis: Option<Value>,
    /// What the conditions came to.
    verdicts: Vec<Verdict>,
    /// Nobody has said where the captures are to be.
    is_temporary: bool,
}

impl Outcome {
    pub(super) fn new(
        real: Real,
        prediction: Option<RunOutput>,
        directory: &Directory,
        conditions: &[Assertion],
        is_temporary: bool,
    ) -> Self {
        let captures = directory.captures();
        let analysis = (captures.len() == 2).then(|| {
            let inputs: Vec<Input> = captures.iter().cloned().map(Input::File).collect();
            match analyze_inputs(&inputs, &Options::default()) {
                Ok(analysis) => serde_json::to_value(analysis).unwrap_or_default(),
                Err(error) => json!({ "error": error.to_string() }),
            }
        });
        let metrics = &real.output.metrics;
        Self {
            verdicts: conditions.iter().map(|c| c.check(metrics)).collect(),
            lateness: real.lateness,
            real,
            prediction,
            is_temporary,
            captures: captures.iter().map(|path| path.display().to_string()).collect(),
            analysis,
        }
    }

    pub(super) fn too_late(&self) -> bool {
        self.lateness.too_late
    }

    pub(super) fn programs_are_well(&self) -> bool {
        self.real.programs.iter().all(super::Ended::is_well)
    }

    pub(super) fn conditions_hold(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.holds)
    }

    /// Says of each condition whether it holds.
    pub(super) fn say_verdicts(&self) -> io::Result<()> {
        let mut err = io::stderr().lock();
        self.verdicts
            .iter()
            .try_for_each(|verdict| writeln!(err, "segue lab: {}", verdict.text))
    }

    /// Says which programs failed.
    pub(super) fn say_failures(&self) -> io::Result<()> {
        let mut err = io::stderr().lock();
        let mut failures = self.real.programs.iter().filter_map(super::Ended::failure);
        failures.try_for_each(|failure| writeln!(err, "segue lab: {failure}"))
    }

    /// A test case for each condition and program, and one for the emulation.
    pub(super) fn write_junit(&self, path: &Path) -> io::Result<()> {
        let l = &self.lateness;
        let mut cases: Vec<Case> = self.verdicts.iter().map(Case::from).collect();
        cases.extend(self.real.programs.iter().map(|program| {
            let name = program.name();
            match program.failure() {
                None => Case::passed(&name),
                Some(failure) => Case::failed(&name, &failure),
            }
        }));
        let late = format!(
            "{:.3} % of the packets were later than 1 ms, by {:.2} ms at most",
            l.share_late * 100.0,
            l.most_ms
        );
        cases.push(match l.too_late {
            true => Case::error("emulation", &late),
            false => Case::passed("emulation"),
        });
        let m = self.metrics();
        let text = junit::document("segue lab run", &m.scenario, m.duration_s, &cases);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.write_all(text.as_bytes())
    }

    /// Of the handovers of the run's own account, how many the captures show too: with the same interruption, to ten
    /// microseconds, and as many packets lost. The two share no code.
    fn confirmed(&self) -> Option<(usize, usize)> {
        let shown = self.analysis.as_ref()?.get("handovers")?.as_array()?;
        Some(confirmed(&self.metrics().handovers, shown))
    }

    fn metrics(&self) -> &Metrics {
        &self.real.output.metrics
    }

    /// Prints it as one JSON document.
    pub(super) fn print_json(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        // an error of the output as such, not as one of JSON
        serde_json::to_writer_pretty(&mut out, &self.document()?).map_err(io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }

    /// Writes the document and the scenario as run into a folder, where its tables are.
    pub(super) fn write_record(&self, folder: &Path) -> anyhow::Result<()> {
        let directory = Directory::open(folder)?;
        serde_json::to_writer(directory.create("document.json")?, &self.document()?)?;
        let scenario = &self.real.output.scenario_toml;
        directory
            .create("scenario.toml")?
            .write_all(scenario.as_bytes())?;
        Ok(())
    }

    /// The metrics of a run, with what is the lab's own under `lab`.
    fn document(&self) -> anyhow::Result<Value> {
        let mut document = serde_json::to_value(self.metrics())?;
        let counters = self.real.counters;
        document["lab"] = json!({
            "kernel": kernel_release(),
            "emulation": self.lateness,
            "privileges": self.real.privileges.name(),
            "real_time_priority": self.real.real_time_priority,
            "processors_kept_awake": self.real.processors_kept_awake,
            "programs_nice": self.real.programs_nice,
            "steal_s": self.real.steal.map(Duration::as_secs_f64),
            "offloads": "none: devices are TUN without IFF_VNET_HDR",
            "packets": {
                "from_kernels": counters.from_kernels,
                "malformed": counters.malformed,
                "to_kernels": counters.to_kernels,
                "refused_by_kernels": counters.refused,
            },
            "hosts": self.real.hosts,
            "changes": self.real.changes,
            "received": self.real.received,
            "figures": if self.real.is_by_reads { "received" } else { "packets" },
            "left_out": self.real.left_out,
            "counters": self.real.node_counters,
            "tcp_counters": self.real.tcp_counters,
            "programs": self.real.programs,
            "captures": self.captures,
            "analysis": self.analysis,
            "conditions": self.verdicts,
            "handovers_confirmed_by_captures": self.confirmed().map(|(confirmed, _)| confirmed),
            "handovers_to_confirm": self.confirmed().map(|(_, all)| all),
        });
        if let Some(prediction) = &self.prediction {
            document["prediction"] = serde_json::to_value(&prediction.metrics)?;
        }
        Ok(document)
    }

    /// In words.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let m = self.metrics();
        writeln!(
            out,
            "{}, {} s in real time on Linux {}, seed {}",
            m.scenario,
            m.duration_s,
            kernel_release(),
            m.seed
        )?;
        if self.real.is_by_reads {
            writeln!(
                out,
                "  what programs read (the metrics are those of packets: of subflows, of a tunnel, or of an association)"
            )?;
        } else {
            self.print_figures(&mut out)?;
        }
        for program in &self.real.programs {
            writeln!(out, "  program {}", program.describe())?;
        }
        for received in &self.real.received {
            writeln!(out, "  application {}", received.describe())?;
        }
        for warning in &m.warnings {
            writeln!(out, "  warning: {}", warning.text)?;
        }
        let l = &self.lateness;
        writeln!(
            out,
            "  emulation: {} packets, late by {:.2} ms (median), {:.2} ms (99 %), {:.2} ms (99.9 %), {:.2} ms (most); {:.3} % later than 1 ms; longest stall {:.2} ms{}",
            l.packets,
            l.median_ms,
            l.p99_ms,
            l.p999_ms,
            l.most_ms,
            l.share_late * 100.0,
            l.longest_stall_s * 1e3,
            if l.too_late {
                ": too late for these figures to say much"
            } else {
                ""
            },
        )?;
        if let Some(m) = l.machine.filter(|m| m.standstills > 0) {
            writeln!(
                out,
                "  processors of this machine stood still {} times, {:.2} ms at most and {:.2} ms in all; but for that: late by {:.2} ms (99 %), {:.2} ms (99.9 %), {:.2} ms (most); {:.3} % later than 1 ms",
                m.standstills,
                m.longest_ms,
                m.total_ms,
                m.p99_ms,
                m.p999_ms,
                m.most_ms,
                m.share_late * 100.0,
            )?;
        }
        if let Some(steal) = self.real.steal.filter(|steal| !steal.is_zero()) {
            writeln!(
                out,
                "  the machine below this virtual one had {} ms of its processors meanwhile (steal time)",
                steal.as_millis()
            )?;
        }
        if let Some((confirmed, all)) = self.confirmed() {
            writeln!(
                out,
                "  the captures show {confirmed} of {all} handovers with the same interruption and loss"
            )?;
        }
        for capture in &self.captures {
            writeln!(out, "  capture {capture}")?;
        }
        if self.is_temporary {
            writeln!(
                out,
                "  these files stay there until somebody removes them; --out DIR says where they are to be"
            )?;
        }
        for failure in self.real.programs.iter().filter_map(super::Ended::failure) {
            writeln!(out, "  {failure}")?;
        }
        Ok(())
    }

    /// The figures, beside those of the simulator if there are any, and what they are of.
    fn print_figures(&self, out: &mut impl io::Write) -> io::Result<()> {
        let m = self.metrics();
        match &self.prediction {
            None => {
                for (name, value) in figures(m) {
                    writeln!(out, "  {name:<28} {}", shown(name, value))?;
                }
            }
            Some(prediction) => {
                writeln!(
                    out,
                    "  {:<28} {:>12} {:>12} {:>8}",
                    "", "lab", "simulator", "ratio"
                )?;
                for ((name, lab), (_, simulator)) in figures(m).into_iter().zip(figures(&prediction.metrics))
                {
                    let ratio = match (lab, simulator) {
                        (Some(lab), Some(simulator)) if has_ratio(lab, simulator) => {
                            format!("{:.3}", lab.value / simulator.value)
                        }
                        _ => "-".to_owned(),
                    };
                    writeln!(
                        out,
                        "  {name:<28} {:>12} {:>12} {ratio:>8}",
                        shown(name, lab),
                        shown(name, simulator)
                    )?;
                }
            }
        }
        for event in &m.scenario_events {
            let lasts = event.for_s.map_or(String::new(), |s| format!(" for {s:.3} s"));
            let on = event.on.join(", ");
            writeln!(
                out,
                "  event: {} on {on} at {:.3} s{lasts}",
                event.kind, event.at_s
            )?;
        }
        for h in &m.handovers {
            writeln!(
                out,
                "  handover of {} at {:.3} s{}: interruption {}, lost {}",
                h.host,
                h.time,
                h.flow.map_or(String::new(), |flow| format!(", flow {flow}")),
                h.interruption_s
                    .map_or("-".to_owned(), |s| format!("{} ms", in_ms(s, h.censored))),
                h.lost_packets.map_or("-".to_owned(), |n| n.to_string()),
            )?;
        }
        for f in &m.flows {
            writeln!(
                out,
                "  flow {}: {} to {}, {:?} {} to {}: {} B, {}lost {}, {:?}{}",
                f.id,
                f.from,
                f.to,
                f.transport,
                f.source_port,
                f.destination_port,
                f.transferred_bytes,
                rate(f),
                f.counts.lost_packets,
                f.end.state,
                what_happened(f),
            )?;
        }
        Ok(())
    }
}

/// How many moves of a run's `own` handovers are among those `shown` by captures, of how many. Each that is shown stands for one,
/// the nearest in time.
fn confirmed(own: &[HandoverRecord], shown: &[Value]) -> (usize, usize) {
    let (ways, moves): (Vec<_>, Vec<_>) = own.iter().partition(|h| is_change_of_way(h));
    let mut left: Vec<&Value> = shown.iter().collect();
    let mut is_shown = |h: &HandoverRecord| {
        let same = |a: f64, b: f64| (a - b).abs() < 1e-5;
        // captures may show when packets left the tunnel in its place, which is one handover with it
        let own = ways.iter().filter(|way| way.flow == h.flow && follows(h, way));
        let last: Vec<f64> = own.filter_map(|way| way.interruption_s).collect();
        let fits = |other: &Value| {
            let interruption = match (h.interruption_s, other["interruption_s"].as_f64()) {
                (Some(a), Some(b)) => same(a, b) || last.iter().any(|a| same(*a, b)),
                (a, b) => a.is_none() && b.is_none(),
            };
            interruption && (other["lost_packets"].as_u64() == h.lost_packets)
        };
        let distance = |other: &Value| (other["time"].as_f64().unwrap_or(f64::INFINITY) - h.time).abs();
        let fitting = (0..left.len()).filter(|&place| fits(left[place]));
        let nearest = fitting.min_by(|&a, &b| distance(left[a]).total_cmp(&distance(left[b])));
        nearest.map(|place| left.swap_remove(place)).is_some()
    };
    (moves.iter().filter(|h| is_shown(h)).count(), moves.len())
}

/// Whether nobody has moved: packets take another way between the same two addresses, as when a correspondent of Mobile IPv6
/// has the binding and they leave the tunnel.
fn is_change_of_way(h: &HandoverRecord) -> bool {
    h.from.is_some() && h.from == h.to
}

/// Whether one comes of the other: within a second, as long as the analysis of captures waits for a handover to be over.
fn follows(h: &HandoverRecord, way: &HandoverRecord) -> bool {
    (h.time..h.time + 1.0).contains(&way.time)
}

/// A figure, which may be a lower bound.
#[derive(Clone, Copy)]
struct Figure {
    value: f64,
    is_bound: bool,
}

impl Figure {
    fn exact(value: f64) -> Option<Self> {
        let is_bound = false;
        Some(Self { value, is_bound })
    }
}

/// The figures that are compared.
fn figures(m: &Metrics) -> Vec<(&'static str, Option<Figure>)> {
    let lost = m.packets_lost_to_handover + m.packets_lost_to_queue + m.packets_lost_otherwise;
    let spread = |s: &Spread| Figure {
        value: s.max * 1e3,
        is_bound: s.max_censored,
    };
    let around = m.flows.iter().filter_map(|f| f.around_events.as_ref());
    let around = around.map(|gap| Figure {
        value: gap.duration_s * 1e3,
        is_bound: gap.censored,
    });
    let mut figures = vec![
        ("handovers, one per flow", Figure::exact(m.handovers.len() as f64)),
        ("interruption, ms", m.interruption_s.as_ref().map(spread)),
        ("handover latency, ms", m.handover_latency_s.as_ref().map(spread)),
        (
            "longest gap, ms",
            Some(Figure {
                value: m.longest_gap_s * 1e3,
                is_bound: m.longest_gap_is_bound(),
            }),
        ),
        ("throughput, Mbit/s", Figure::exact(m.throughput_bps / 1e6)),
        ("data packets sent", Figure::exact(m.packets_sent as f64)),
        ("lost", Figure::exact(lost as f64)),
        (
            "lost to handover",
            Figure::exact(m.packets_lost_to_handover as f64),
        ),
        ("retransmitted", Figure::exact(m.packets_retransmitted as f64)),
    ];
    if !m.scenario_events.is_empty() {
        let longest = around.reduce(|a, b| Figure {
            value: a.value.max(b.value),
            is_bound: a.is_bound || b.is_bound,
        });
        figures.insert(2, ("around events, ms", longest));
    }
    figures
}

fn has_ratio(lab: Figure, simulator: Figure) -> bool {
    simulator.value != 0.0 && !lab.is_bound && !simulator.is_bound
}

fn shown(name: &str, figure: Option<Figure>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(figure) if name.ends_with("Mbit/s") => format!("{:.3}", figure.value),
        Some(figure) if name.ends_with("ms") => in_ms(figure.value / 1e3, figure.is_bound),
        Some(figure) => format!("{:.0}", figure.value),
    }
}

/// Milliseconds; a lower bound has "≥" before it, and is never rounded up.
fn in_ms(seconds: f64, is_bound: bool) -> String {
    match is_bound {
        false => format!("{:.1}", seconds * 1e3),
        true => format!("≥ {:.1}", (seconds * 1e4 + 1e-6).floor() / 10.0),
    }
}

/// Of a packet alone there is no rate.
fn rate(flow: &FlowMetrics) -> String {
    match flow.counts.packets_sent {
        0 | 1 => String::new(),
        _ => format!("{:.3} Mbit/s, ", flow.throughput_bps / 1e6),
    }
}

/// For how long a flow was without new data where something happened, and when it is dead.
fn what_happened(flow: &FlowMetrics) -> String {
    let around = flow.around_events.as_ref();
    let around = around.map_or_else(String::new, |gap| {
        let lasted = in_ms(gap.duration_s, gap.censored);
        format!(", {lasted} ms without data around an event")
    });
    let silent = flow.end.silence_s;
    let silent = silent.map_or_else(String::new, |s| format!(", silent for {} ms", in_ms(s, true)));
    format!("{silent}{around}")
}

fn kernel_release() -> String {
    let name = nix::sys::utsname::uname();
    name.map_or_else(|_| String::new(), |n| n.release().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handover(time: f64, interruption_s: f64, to: &str) -> HandoverRecord {
        HandoverRecord {
            host: "mn".to_owned(),
            flow: Some(0),
            layer: None,
            from: Some("2001:db8:1::1".parse().unwrap()),
            to: Some(to.parse().unwrap()),
            time,
            interruption_s: Some(interruption_s),
            censored: false,
            latency_s: None,
            handoff_delay_s: None,
            begin_s: None,
            end_s: None,
            failed: Vec::new(),
            parts: None,
            lost_packets: Some(0),
            retransmissions: None,
            spurious_retransmissions: None,
        }
    }

    #[test]
    fn a_handover_that_captures_show_stands_for_one() {
        let shown = |time: f64, interruption_s: f64| json!({ "time": time, "interruption_s": interruption_s, "lost_packets": 0 });
        let there = "2001:db8:2::1";
        // three of an interruption as long as its pacing
        let own = [1.0, 5.0, 9.0].map(|time| handover(time, 0.02, there));
        assert_eq!(confirmed(&own, &[shown(5.0, 0.02)]), (1, 3));
        assert_eq!(confirmed(&own, &[shown(5.0, 0.02), shown(5.1, 0.03)]), (1, 3));
        let all = [shown(9.0, 0.02), shown(1.0, 0.02), shown(5.0, 0.02)];
        assert_eq!(confirmed(&own, &all), (3, 3));
        // in the place of the second, captures show when its packets left the tunnel
        let own = [
            handover(1.0, 0.02, there),
            handover(5.0, 0.05, there),
            handover(5.5, 0.02, "2001:db8:1::1"),
        ];
        assert_eq!(confirmed(&own, &[shown(5.5, 0.02)]), (1, 2));
        assert_eq!(confirmed(&own, &[shown(5.5, 0.02), shown(1.0, 0.02)]), (2, 2));
    }
}
