//! Raw sockets and changes of addresses, between two network namespaces joined by two links. Needs root and `ip`.

mod common;

use common::{Running, directory, events, summary};
use segue_capture::pcapng::PcapngFile;
use segue_wire::sctp::{Chunk, SctpPacket};
use std::process::Command;

/// Two namespaces, joined by two links with a prefix each; gone when dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// `None`, with the reason printed, where this cannot be done.
    fn new(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("sg-{test}-{}-{end}", std::process::id()));
        let hosts = Self { names };
        for name in &hosts.names {
            let made = Command::new("ip").args(["netns", "add", name]).output();
            if !made.is_ok_and(|m| m.status.success()) {
                eprintln!(
                    "SKIPPED: network namespaces cannot be made here (they need root and the command ip)"
                );
                return None;
            }
        }
        for (host, name) in hosts.names.iter().enumerate() {
            hosts.ip(host, "link set lo up");
            // no temporary addresses and no duplicate address detection: addresses are there when they are added
            let _ = Command::new("ip")
                .args([
                    "netns",
                    "exec",
                    name,
                    "sysctl",
                    "-qw",
                    "net.ipv6.conf.default.accept_dad=0",
                ])
                .status();
        }
        for link in 1..=2 {
            let [a, b] = &hosts.names;
            let made = Command::new("ip")
                .args(["link", "add", &format!("l{link}"), "netns", a, "type", "veth"])
                .args(["peer", "name", &format!("l{link}"), "netns", b])
                .status()
                .unwrap();
            assert!(made.success());
            for host in 0..2 {
                hosts.ip(host, &format!("link set l{link} up"));
            }
        }
        hosts.add(0, 1);
        hosts.add(1, 1);
        hosts.add(1, 2);
        Some(hosts)
    }

    fn add(&self, host: usize, link: usize) {
        let address = address(host, link);
        self.ip(host, &format!("address add {address}/64 dev l{link} nodad"));
    }

    fn delete(&self, host: usize, link: usize) {
        let address = address(host, link);
        self.ip(host, &format!("address delete {address}/64 dev l{link}"));
    }

    fn ip(&self, host: usize, command: &str) {
        let status = Command::new("ip")
            .args(["-n", &self.names[host]])
            .args(command.split(' '))
            .status()
            .unwrap();
        assert!(status.success(), "ip {command}");
    }

    fn start(&self, host: usize, arguments: &[&str]) -> Running {
        let program = env!("CARGO_BIN_EXE_segue-sctp");
        Running::spawn(
            Command::new("ip")
                .args(["netns", "exec", &self.names[host], program])
                .args(arguments),
        )
    }

    /// What the second host offers to the first, which calls it and has a capture written.
    fn offered_to_a_call(&self, pcap: &std::path::Path) -> String {
        let to = address(1, 1);
        let mut arguments = vec!["connect", &to, "5001", "--raw", "--json", "--bytes", "1 kB"];
        arguments.extend(["--pcap", pcap.to_str().unwrap()]);
        let (output, status) = self.start(0, &arguments).finish();
        assert_eq!(status, 0, "{output}");
        offered(pcap)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

fn address(host: usize, link: usize) -> String {
    format!("2001:db8:{link}::{}", host + 1)
}

#[test]
fn a_handover_over_protocol_132_loses_nothing() {
    let Some(hosts) = Hosts::new("handover") else {
        return;
    };
    let (old, new) = (address(0, 1), address(0, 2));
    let server = hosts.start(1, &["listen", "--raw", "--json", "--once", "--verify"]);
    server.wait_for("listening");
    let script = format!("400ms add {new}; 500ms route {new}; 500ms primary {new}; 700ms delete {old}");
    let client = hosts.start(
        0,
        &[
            "connect",
            &address(1, 1),
            "5001",
            "--raw",
            "--json",
            "--rate",
            "2 Mbit/s",
            "--size",
            "500 B",
            "--duration",
            "1.2 s",
            "--script",
            &script,
        ],
    );
    client.wait_for("connected");
    // the address appears when the association is up: the driver has to notice
    hosts.add(0, 2);
    let (output, status) = client.finish();
    assert_eq!(status, 0, "{output}");
    let appeared = events(&output, "address_appeared");
    assert!(appeared.iter().any(|e| e["address"] == new.as_str()), "{output}");
    let answers = events(&output, "asconf_answered");
    assert_eq!(answers.len(), 3, "{output}");
    assert!(answers.iter().all(|a| a["granted"] == true), "{output}");
    let sent = summary(&output);
    let (output, status) = server.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], sent["sent_bytes"]);
    let deleted = events(&output, "peer_address_deleted");
    assert_eq!(deleted.len(), 1, "{output}");
    assert_eq!(deleted[0]["address"], old.as_str());
    let primaries = events(&output, "primary_changed");
    assert_eq!(primaries[0]["address"], new.as_str(), "{output}");
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a host takes its time between two networks"
)]
fn a_host_that_is_between_two_addresses_goes_on_from_the_second() {
    let Some(hosts) = Hosts::new("break") else { return };
    let server = hosts.start(1, &["listen", "--raw", "--json", "--once", "--verify"]);
    server.wait_for("listening");
    let peer = address(1, 1);
    let stream = ["--rate", "1 Mbit/s", "--size", "500 B", "--duration", "3 s"];
    // the peer has no data to send: the old address is deleted after RTO.Max
    let timers = [
        "--rto-initial",
        "200 ms",
        "--rto-min",
        "100 ms",
        "--rto-max",
        "500 ms",
    ];
    let mut arguments = vec!["connect", &peer, "5001", "--raw", "--json"];
    arguments.extend(stream.iter().chain(&timers));
    let client = hosts.start(0, &arguments);
    client.wait_for("connected");
    std::thread::sleep(std::time::Duration::from_millis(300));
    hosts.delete(0, 1);
    client.wait_for("address_vanished");
    std::thread::sleep(std::time::Duration::from_millis(200));
    hosts.add(0, 2);
    // what a router of the new network would advertise
    hosts.ip(0, &format!("route add 2001:db8:1::/64 via {}", address(1, 2)));
    let (output, status) = client.finish();
    assert_eq!(status, 0, "{output}");
    let sent = summary(&output);
    assert!(sent["sent_bytes"].as_u64() > Some(200_000), "{output}");
    let (output, status) = server.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], sent["sent_bytes"]);
    let added = events(&output, "peer_address_added");
    assert_eq!(added[0]["address"], address(0, 2).as_str(), "{output}");
    let deleted = events(&output, "peer_address_deleted");
    assert_eq!(deleted[0]["address"], address(0, 1).as_str(), "{output}");
}

#[test]
fn an_address_that_vanishes_is_told() {
    let Some(hosts) = Hosts::new("vanish") else { return };
    let server = hosts.start(1, &["listen", "--json", "--once"]);
    server.wait_for("listening");
    hosts.delete(1, 2);
    server.wait_for("address_vanished");
    hosts.add(1, 2);
    server.wait_for("address_appeared");
    let client = hosts.start(
        0,
        &["connect", &address(1, 1), "5001", "--json", "--bytes", "100 kB"],
    );
    let (output, status) = client.finish();
    assert_eq!(status, 0, "{output}");
    let (output, status) = server.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 100_000);
    assert_eq!(events(&output, "address_vanished")[0]["address"], address(1, 2));
}

/// What the INIT ACKs of a capture name.
#[allow(clippy::disallowed_methods, reason = "a test reads a file")]
fn offered(pcap: &std::path::Path) -> String {
    let file = std::fs::read(pcap).unwrap();
    let packets = PcapngFile::parse(&file).unwrap().packets;
    let parsed = packets.iter().map(|packet| {
        let bytes = bytes::Bytes::from(packet.bytes.to_vec());
        SctpPacket::parse(&bytes.slice(40..)).unwrap()
    });
    let text: Vec<String> = parsed
        .filter(|packet| matches!(packet.chunks.first(), Some(Chunk::InitAck(_))))
        .map(|packet| format!("{packet:?}"))
        .collect();
    text.join("\n")
}

#[test]
fn new_associations_are_offered_no_deprecated_address() {
    let Some(hosts) = Hosts::new("depr") else { return };
    let folder = directory("deprecated");
    let server = hosts.start(1, &["listen", "--raw", "--json"]);
    server.wait_for("listening");
    let call = |name: &str| hosts.offered_to_a_call(&folder.join(name));
    let second = address(1, 2);
    assert!(call("before").contains(&second));
    // one becomes deprecated, another is when it appears (RFC 4862 section 5.5.4)
    hosts.ip(1, &format!("address change {second}/64 dev l2 preferred_lft 0"));
    hosts.ip(1, "address add 2001:db8:9::2/64 dev l2 nodad preferred_lft 0");
    server.wait_for("address_appeared");
    let named = call("deprecated");
    assert!(
        !named.contains(&second) && !named.contains("2001:db8:9::2"),
        "{named}"
    );
    hosts.ip(
        1,
        &format!("address change {second}/64 dev l2 preferred_lft forever"),
    );
    hosts.ip(1, "address add 2001:db8:8::2/64 dev l2 nodad");
    server.wait_for_text("2001:db8:8::2");
    let named = call("after");
    assert!(
        named.contains(&second) && named.contains("2001:db8:8::2"),
        "{named}"
    );
    assert!(!named.contains("2001:db8:9::2"), "{named}");
}

#[test]
fn an_address_of_two_interfaces_stays_with_the_second() {
    let Some(hosts) = Hosts::new("two") else { return };
    let folder = directory("two");
    let twice = address(1, 2);
    let server = hosts.start(1, &["listen", "--raw", "--json"]);
    server.wait_for("listening");
    hosts.ip(1, &format!("address add {twice}/64 dev l1 nodad"));
    server.wait_for("address_appeared");
    hosts.delete(1, 2);
    hosts.ip(1, "address add 2001:db8:9::2/64 dev l1 nodad");
    server.wait_for_text("2001:db8:9::2");
    let named = hosts.offered_to_a_call(&folder.join("pcapng"));
    assert!(named.contains(&twice), "it is still this host's");
    server.terminate();
    let (output, _) = server.finish();
    assert!(events(&output, "address_vanished").is_empty(), "{output}");
    let appeared = events(&output, "address_appeared");
    let by: Vec<_> = appeared
        .iter()
        .map(|e| (&e["address"], &e["interface"]))
        .collect();
    let l1 = serde_json::Value::from("l1");
    assert!(
        by[..2] == [(&twice.clone().into(), &l1), (&twice.into(), &l1)],
        "{output}"
    );
}
