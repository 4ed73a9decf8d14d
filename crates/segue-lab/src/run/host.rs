//! A host: a network namespace whose kernel has a TUN device for each interface, or one for its identity under a shim.

use super::owner;
use super::plan::RouteMetrics;
use super::schemes::{Hello, HostScheme, Others};
use anyhow::{Context as _, bail};
use segue_live::{Namespace, Tun};
use segue_proto::InterfaceId;
use segue_proto::contract::LocalAddress;
use segue_sim::realtime::KernelHost;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv6Addr;
use std::process::{Child, Command, Stdio};

/// Added to the metric of the default route of an address that is deprecated: it goes behind all others.
const OF_DEPRECATED: u32 = 1_000_000;

/// The first of the routing tables for packets from the address of an interface.
const FIRST_TABLE: u32 = 100;

/// A host of the lab. Dropping it removes the namespace and what runs there.
pub(super) struct Host {
    namespace: Namespace,
    /// What `ip netns` calls it.
    netns: String,
    /// What was set there, and what the kernel had set: by name.
    settings: BTreeMap<String, String>,
    under_shim: bool,
    tuns: Vec<Tun>,
    /// An ip(8) that does what it is told as addresses come and go.
    ip: Child,
    /// What the next default route has as its metric: the address that was there first goes before others.
    next_metric: u32,
    /// The metrics that its routes have.
    metrics: String,
    /// The metrics of the default routes that there are, by address.
    default_routes: BTreeMap<Ipv6Addr, u32>,
    scheme: Option<HostScheme>,
}

impl Host {
    /// Makes it, with no addresses but the identity.
    pub(super) fn make(
        netns: String,
        host: &KernelHost,
        metrics: &RouteMetrics,
        others: Option<Others>,
    ) -> anyhow::Result<Self> {
        let congestion_control = &metrics.congestion_control;
        let metrics = metrics.words();
        let scheme = others.map(|others| HostScheme::new(others, host.number, host.mtu, congestion_control));
        owner::make(&netns)?;
        let undo = Undo(&netns);
        let namespace = Namespace::new(&netns);
        let mut settings = configure(&namespace)?;
        // not the sysctl: the kernel lets a namespace have as its default only what every user may have
        settings.insert("route".to_owned(), metrics.clone());
        let devices = match host.identity {
            Some(_) => vec![SHIM_DEVICE.to_owned()],
            None => (0..host.interfaces).map(device).collect(),
        };
        let open = |name: &String| Tun::open(name, Some(&namespace));
        let tuns = devices.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut lines = vec!["link set lo up".to_owned()];
        for device in &devices {
            lines.push(format!("link set {device} mtu {} up", host.mtu));
        }
        if let Some(identity) = host.identity {
            lines.push(format!("address add {identity}/128 dev {SHIM_DEVICE} nodad"));
            lines.push(format!("route add default dev {SHIM_DEVICE} {metrics}"));
        }
        lines.extend(scheme.iter().flat_map(HostScheme::lines));
        batch(&netns, &lines)?;
        let ip = Command::new("ip")
            .args(["-6", "-force", "-netns", &netns, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("ip")?;
        core::mem::forget(undo);
        Ok(Self {
            namespace,
            netns,
            settings,
            under_shim: host.identity.is_some(),
            tuns,
            ip,
            next_metric: 1,
            metrics,
            default_routes: BTreeMap::new(),
            scheme,
        })
    }

    /// Who is to hear of it once it has an address, where it is the end of a tunnel.
    pub(super) fn begin_tunnel_by(&mut self, hellos: Vec<Hello>) {
        if let Some(scheme) = &mut self.scheme {
            scheme.begin_tunnel_by(hellos);
        }
    }

    /// Has what its programs send to an address come to itself.
    pub(super) fn stand_in_for(&self, address: Ipv6Addr) -> anyhow::Result<()> {
        batch(&self.netns, &[format!("address add {address}/128 dev lo nodad")])
    }

    /// Where its programs run.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What was set there, and what the kernel had set: by name.
    pub(super) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// What its kernel's TCP has counted: those of `COUNTED` that it has.
    pub(super) fn tcp_counters(&self) -> io::Result<BTreeMap<String, u64>> {
        self.namespace.within(|| {
            let mut text = String::new();
            OpenOptions::new()
                .read(true)
                .open("/proc/thread-self/net/netstat")?
                .read_to_string(&mut text)?;
            Ok(tcp_counters(&text))
        })
    }

    /// Its devices.
    pub(super) fn tuns(&self) -> &[Tun] {
        &self.tuns
    }

    /// The device that packets of an interface go through.
    pub(super) fn tun(&self, interface: InterfaceId) -> Option<&Tun> {
        let number = if self.under_shim {
            0
        } else {
            usize::from(interface.0)
        };
        self.tuns.get(number)
    }

    /// An address of an interface can be used, or no longer. Under a shim that is none of the kernel's business.
    pub(super) fn address(&mut self, local: LocalAddress, usable: bool) -> io::Result<()> {
        if self.under_shim {
            return Ok(());
        }
        let (address, device) = (local.address, device(local.interface.0));
        let with = &self.metrics;
        let table = FIRST_TABLE + u32::from(local.interface.0);
        let scheme = self.scheme.as_mut();
        let lines = if usable {
            let more = scheme.map_or_else(String::new, |s| s.address_is_ready(local));
            let metric = self.next_metric;
            self.next_metric += 1;
            // one that was deprecated, and is no longer
            let former = self.default_routes.insert(address, metric);
            let former = former.map_or_else(String::new, |m| {
                format!("route del default dev {device} metric {m}\n")
            });
            format!(
                "{former}address replace {address}/128 dev {device} nodad\n\
                 route replace default dev {device} src {address} table {table} {with}\n\
                 rule del from {address} lookup {table}\n\
                 rule add from {address} lookup {table}\n\
                 route add default dev {device} src {address} metric {metric} {with}\n\
                 {more}"
            )
        } else {
            let gone = scheme.as_ref().is_some_and(|s| s.forgets_lost_addresses());
            let more = scheme.map_or_else(String::new, |s| s.address_is_lost(local));
            let address = if gone {
                format!("address del {address}/128 dev {device}")
            } else {
                // what has begun with it goes on trying, as it does when a link is lost that the kernel has no news of
                format!("address change {address}/128 dev {device} preferred_lft 0")
            };
            let metric = self.default_routes.remove(&local.address);
            let metric = metric.map_or_else(String::new, |metric| format!(" metric {metric}"));
            format!("{more}route del default dev {device}{metric}\n{address}\n")
        };
        self.tell_ip(&lines)
    }

    /// An address of an interface is for what already uses it: what begins from now on takes another, if there is one.
    pub(super) fn address_deprecated(&mut self, local: LocalAddress) -> io::Result<()> {
        let Some(metric) = self
            .default_routes
            .get_mut(&local.address)
            .filter(|_| !self.under_shim)
        else {
            return Ok(());
        };
        let former = *metric;
        if former >= OF_DEPRECATED {
            return Ok(());
        }
        *metric += OF_DEPRECATED;
        let (address, device) = (local.address, device(local.interface.0));
        let lines = format!(
            "route add default dev {device} src {address} metric {metric} {}\n\
             route del default dev {device} metric {former}\n\
             address change {address}/128 dev {device} preferred_lft 0\n",
            self.metrics
        );
        self.tell_ip(&lines)
    }

    fn tell_ip(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.ip.stdin {
            // not as a broken pipe, which elsewhere is a reader's having had enough
            Some(pipe) => pipe
                .write_all(lines.as_bytes())
                .map_err(|error| io::Error::other(format!("ip(8) has ended: {error}"))),
            None => Ok(()),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.ip.stdin.take());
        let _ = self.ip.kill();
        let _ = self.ip.wait();
        self.tuns.clear();
        owner::remove(&self.netns);
    }
}

/// Removes a namespace that did not become a host.
struct Undo<'a>(&'a str);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        owner::remove(self.0);
    }
}

/// The kernel's device for an identity.
const SHIM_DEVICE: &str = "segue0";

/// The kernel's device for an interface.
pub(super) fn device(number: u8) -> String {
    format!("net{number}")
}

/// Has ip(8) do all these lines, or says which it could not.
fn batch(netns: &str, lines: &[String]) -> anyhow::Result<()> {
    let mut child = Command::new("ip")
        .args(["-6", "-netns", netns, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("ip")?;
    if let Some(mut pipe) = child.stdin.take() {
        // if it ends before it has read them, its status and its words say why
        let _ = lines.iter().try_for_each(|line| writeln!(pipe, "{line}"));
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        bail!("ip: {}", why.trim());
    }
    Ok(())
}

/// Sets what differs between machines, and gives what then holds.
fn configure(namespace: &Namespace) -> anyhow::Result<BTreeMap<String, String>> {
    let set = [
        // addresses come from our machines alone, and are there when they are added
        ("net/ipv6/conf/all/accept_dad", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv6/conf/default/addr_gen_mode", "1"),
        ("net/ipv6/conf/all/accept_ra", "0"),
        ("net/ipv6/conf/default/accept_ra", "0"),
        // no run is to depend on the one before
        ("net/ipv4/tcp_no_metrics_save", "1"),
    ];
    namespace
        .within(|| {
            for (name, value) in set {
                let file = OpenOptions::new().write(true).open(format!("/proc/sys/{name}"));
                file.and_then(|mut file| file.write_all(value.as_bytes()))
                    .map_err(|error| io::Error::new(error.kind(), format!("{name} = {value}: {error}")))?;
            }
            let read = |name: &&str| Some(((*name).to_owned(), setting(name)?));
            Ok(RECORDED.iter().filter_map(read).collect())
        })
        .context("settings of a network namespace")
}

/// What is recorded beside the run: it differs between machines, and figures with it.
const RECORDED: [&str; 9] = [
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_min_tso_segs",
];

/// What is counted of a kernel's TCP, as `nstat -z` names it: expiries of the retransmission timer, those that were for
/// nothing, fast retransmissions and tail loss probes.
const COUNTED: [&str; 4] = [TIMEOUTS, "TCPSpuriousRTOs", "TCPFastRetrans", "TCPLossProbes"];

/// The first of them.
pub(super) const TIMEOUTS: &str = "TCPTimeouts";

/// Those in net/netstat of a process: a line of names, and below it one of values.
fn tcp_counters(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return BTreeMap::new();
    };
    let all = names.split_whitespace().zip(values.split_whitespace());
    all.filter(|(name, _)| COUNTED.contains(name))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

fn setting(name: &str) -> Option<String> {
    let mut value = String::new();
    let mut file = OpenOptions::new()
        .read(true)
        .open(format!("/proc/sys/{name}"))
        .ok()?;
    file.read_to_string(&mut value).ok()?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_the_line_of_names_above_them() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPLossProbes TCPSackFailures\n\
                    TcpExt: 9 3 4 7\n\
                    IpExt: TCPTimeouts\n\
                    IpExt: 8\n";
        let found = tcp_counters(text);
        assert_eq!(found.get(TIMEOUTS), Some(&3));
        assert_eq!(found.get("TCPLossProbes"), Some(&4));
        assert_eq!(found.len(), 2);
        assert!(tcp_counters("IpExt: TCPTimeouts\nIpExt: 8\n").is_empty());
    }
}
