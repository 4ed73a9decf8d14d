//! Multipath TCP (RFC 8684), as the kernel has it: an endpoint for each address (ip-mptcp(8)), of which its path manager makes
//! a subflow.

use crate::app::mptcp_socket;
use segue_sim::scenario::Scenario;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The program that has others use MPTCP sockets.
const WRAPPER: &str = "mptcpize";
/// Subflows of a connection, and addresses of a peer that are taken: the most that the kernel allows.
const LIMIT: u8 = 8;

/// The endpoints of a host.
#[derive(Debug)]
pub(crate) struct Endpoints {
    deletes: bool,
    /// Identifiers that they have been given: an endpoint is deleted by that.
    identifiers: BTreeMap<Ipv6Addr, u8>,
}

impl Endpoints {
    pub(super) fn new(deletes: bool) -> Self {
        Self {
            deletes,
            identifiers: BTreeMap::new(),
        }
    }

    pub(super) fn limits() -> Vec<String> {
        vec![format!(
            "mptcp limits set subflow {LIMIT} add_addr_accepted {LIMIT}"
        )]
    }

    /// An address that comes is one; that it was one before and has not been deleted is no harm.
    pub(super) fn add(&mut self, address: Ipv6Addr, device: &str) -> String {
        let next = self.identifiers.len() as u8 + 1;
        let id = *self.identifiers.entry(address).or_insert(next);
        format!("mptcp endpoint add {address} id {id} dev {device} subflow\n")
    }

    /// An address that goes, if that is to be told: subflows from it end, and the peer hears of it (REMOVE_ADDR, RFC 8684
    /// section 3.4.2).
    pub(super) fn remove(&mut self, address: Ipv6Addr) -> String {
        match self.identifiers.get(&address) {
            Some(id) if self.deletes => format!("mptcp endpoint delete id {id}\n"),
            _ => String::new(),
        }
    }
}

/// What of the kernel's or of programs is not there.
pub(super) fn missing(scenario: &Scenario) -> Option<(String, String)> {
    if let Err(error) = mptcp_socket() {
        let why = format!(
            "this kernel opens no MPTCP sockets ({error}): expected CONFIG_MPTCP and net.mptcp.enabled = 1"
        );
        return Some(("scheme".to_owned(), why));
    }
    let programs = scenario.file().application.iter().enumerate();
    let (number, a) = programs
        .filter(|(_, a)| a.transport == segue_proto::app::Transport::Tcp)
        .find(|(_, a)| a.command.first().is_some_and(|word| word != WRAPPER))?;
    (!super::is_installed(WRAPPER)).then(|| {
        let key = format!("application[{number}].command");
        let why = format!(
            "`{}` runs over MPTCP by `{WRAPPER} run`, which is missing (Debian package {WRAPPER}): expected that, or no command",
            a.command[0]
        );
        (key, why)
    })
}

/// A command with MPTCP in the place of TCP.
pub(super) fn wrapped(command: Vec<String>) -> Vec<String> {
    match command.first() {
        Some(first) if first != WRAPPER => {
            let mut all = vec![WRAPPER.to_owned(), "run".to_owned()];
            all.extend(command);
            all
        }
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_comes_again_has_the_identifier_that_it_had() {
        let (one, two) = ("2001:db8:2::9".parse().unwrap(), "2001:db8:3::9".parse().unwrap());
        let mut endpoints = Endpoints::new(true);
        let first = endpoints.add(one, "net0");
        assert_eq!(first, "mptcp endpoint add 2001:db8:2::9 id 1 dev net0 subflow\n");
        assert!(endpoints.add(two, "net0").contains("id 2 "));
        assert_eq!(endpoints.remove(one), "mptcp endpoint delete id 1\n");
        assert_eq!(endpoints.add(one, "net0"), first);
    }

    #[test]
    fn without_deletion_an_endpoint_stays() {
        let one = "2001:db8:2::9".parse().unwrap();
        let mut endpoints = Endpoints::new(false);
        endpoints.add(one, "net0");
        assert_eq!(endpoints.remove(one), "");
    }

    #[test]
    fn a_program_is_wrapped_once() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(wrapped(words("iperf3 -s")), words("mptcpize run iperf3 -s"));
        assert_eq!(
            wrapped(words("mptcpize run iperf3")),
            words("mptcpize run iperf3")
        );
    }
}
