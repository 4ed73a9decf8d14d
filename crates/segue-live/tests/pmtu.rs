//! Paths that carry less than the interface at their beginning, in network namespaces. Needs root and `ip`.

mod common;

use common::{Running, summary};
use std::process::Command;

const SENDER: &str = "2001:db8:1::1";
const RECEIVER: &str = "2001:db8:2::1";
/// What the narrow link carries, bytes.
const NARROW: u32 = 1400;

/// Where on the way from the sender to the receiver the MTU is less than 1500 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Narrow {
    /// At the sender's own interface.
    Interface,
    /// Behind a router, which sends Packet Too Big.
    Told,
    /// Behind the router's interface, where longer frames vanish.
    BlackHole,
}

/// A sender, a router and a receiver; gone when dropped.
struct Network {
    names: [String; 3],
}

impl Network {
    /// `None`, with the reason printed, where this cannot be done.
    fn new(test: &str, narrow: Narrow) -> Option<Self> {
        let names = ["a", "r", "b"].map(|end| format!("sg-{test}-{}-{end}", std::process::id()));
        let network = Self { names };
        for name in &network.names {
            let made = Command::new("ip").args(["netns", "add", name]).output();
            if !made.is_ok_and(|m| m.status.success()) {
                eprintln!(
                    "SKIPPED: network namespaces cannot be made here (they need root and the command ip)"
                );
                return None;
            }
        }
        let [a, r, b] = &network.names;
        for (end, link) in [(a, "l1"), (b, "l2")] {
            let made = Command::new("ip")
                .args(["link", "add", link, "netns", end, "type", "veth"])
                .args(["peer", "name", link, "netns", r])
                .status();
            assert!(made.unwrap().success());
        }
        // a veth device drops what is longer than the MTU of the other end, without a word
        let narrow_ends: &[(usize, &str)] = match narrow {
            Narrow::Interface => &[(0, "l1")],
            Narrow::Told => &[(1, "l2"), (2, "l2")],
            Narrow::BlackHole => &[(2, "l2")],
        };
        for &(host, link) in narrow_ends {
            network.ip(host, &format!("link set {link} mtu {NARROW}"));
        }
        for (host, link, address) in [
            (0, "l1", SENDER),
            (1, "l1", "2001:db8:1::2"),
            (1, "l2", "2001:db8:2::2"),
            (2, "l2", RECEIVER),
        ] {
            network.ip(host, &format!("link set {link} up"));
            network.ip(host, &format!("address add {address}/64 dev {link} nodad"));
        }
        network.ip(0, "route add default via 2001:db8:1::2");
        network.ip(2, "route add default via 2001:db8:2::2");
        let forward = network
            .within(1, "sysctl")
            .args(["-qw", "net.ipv6.conf.all.forwarding=1"])
            .status();
        assert!(forward.unwrap().success());
        Some(network)
    }

    fn ip(&self, host: usize, command: &str) {
        let status = Command::new("ip")
            .args(["-6", "-n", &self.names[host]])
            .args(command.split(' '))
            .status()
            .unwrap();
        assert!(status.success(), "ip {command}");
    }

    fn within(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], program]);
        command
    }

    /// Fragments that the sender's kernel has made.
    fn fragments(&self) -> u64 {
        let output = self.within(0, "cat").arg("/proc/net/snmp6").output().unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        let line = table.lines().find(|l| l.starts_with("Ip6FragCreates")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Carries a megabyte from the sender to the receiver; the sender's summary.
    fn carry(&self, transport: &[&str], pmtu: &str) -> serde_json::Value {
        let program = env!("CARGO_BIN_EXE_segue-sctp");
        let server = Running::spawn(
            self.within(2, program)
                .args(["listen", "--json", "--once", "--verify"])
                .args(transport),
        );
        server.wait_for("listening");
        let client = Running::spawn(
            self.within(0, program)
                .args([
                    "connect", RECEIVER, "5001", "--json", "--bytes", "1 MB", "--size", "10 kB",
                ])
                .args(["--pmtu", pmtu, "--rto-initial", "300 ms", "--rto-min", "200 ms"])
                .args(transport),
        );
        let (output, status) = client.finish();
        assert_eq!(status, 0, "{output}");
        let sent = summary(&output);
        let (output, status) = server.finish();
        assert_eq!(status, 0, "{output}");
        assert_eq!(summary(&output)["received_bytes"], 1_000_000);
        sent
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

fn over_udp_and_raw(narrow: Narrow, pmtu: &str, check: impl Fn(u64, &serde_json::Value)) {
    for (name, transport) in [("udp", &[][..]), ("raw", &["--raw"])] {
        let Some(network) = Network::new(&format!("{name}-{narrow:?}-{pmtu}"), narrow) else {
            return;
        };
        let sent = network.carry(transport, pmtu);
        check(network.fragments(), &sent);
    }
}

#[test]
fn a_path_that_tells_is_followed() {
    over_udp_and_raw(Narrow::Told, "packet-too-big", |fragments, sent| {
        assert!(sent["icmp_errors"].as_u64() > Some(0), "{sent}");
        // what was cut before the first Packet Too Big came, and nothing later
        assert!((1..100).contains(&fragments), "{fragments}");
    });
}

#[test]
fn a_narrow_interface_tells_itself() {
    over_udp_and_raw(Narrow::Interface, "packet-too-big", |fragments, _| {
        assert!((1..100).contains(&fragments), "{fragments}");
    });
}

#[test]
fn probes_find_what_a_silent_path_carries() {
    over_udp_and_raw(Narrow::BlackHole, "probing", |fragments, sent| {
        assert_eq!(fragments, 0);
        assert_eq!(sent["icmp_errors"], 0, "{sent}");
    });
}

#[test]
fn probes_are_not_fragmented_by_a_narrow_interface() {
    over_udp_and_raw(Narrow::Interface, "probing", |fragments, _| {
        assert_eq!(fragments, 0)
    });
}

#[test]
fn without_discovery_the_kernel_fragments() {
    over_udp_and_raw(Narrow::Interface, "none", |fragments, _| {
        assert!(fragments > 1000, "{fragments}");
    });
}
