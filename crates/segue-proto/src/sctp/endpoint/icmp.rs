//! ICMPv6 errors about packets of ours (RFC 9260 section 10; RFC 6951 section 5.5 for those in UDP).
//!
//! Whoever sees none of an association's packets cannot have an error taken: it must quote the peer's verification tag,
//! or for an INIT the initiate tag. What that does not let through is counted and forgotten.

use super::Endpoint;
use crate::sctp::association::Association;
use crate::sctp::handshake::State;
use crate::sctp::{AssociationId, Unreachable};
use crate::time::Instant;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::{Invoking, InvokingSctp};

impl Endpoint {
    /// Takes an ICMPv6 error that arrived for this host. Anything else than an error is ignored.
    pub fn handle_icmp(&mut self, now: Instant, error: &Icmpv6) {
        if !error.is_error() {
            return;
        }
        let invoking = error.invoking().and_then(|quoted| Invoking::parse(quoted).ok());
        let Some((invoking, sctp)) = invoking.and_then(|i| i.sctp().ok().map(|sctp| (i, sctp))) else {
            self.counters.icmp.invalid += 1;
            return;
        };
        let Some(id) = self.find_invoked(&invoking, &sctp) else {
            self.counters.icmp.invalid += 1;
            return;
        };
        let taken = self
            .associations
            .command(id, |association| take(association, now, error, &invoking, &sctp));
        if taken == Some(true) {
            self.counters.icmp.taken += 1;
        } else {
            self.counters.icmp.ignored += 1;
        }
    }

    /// The association that sent the packet, if it did.
    fn find_invoked(&mut self, invoking: &Invoking, sctp: &InvokingSctp) -> Option<AssociationId> {
        if sctp.source_port != self.port
            || sctp.udp_ports.map(|ports| ports.0) != self.config.udp_encapsulation.map(|udp| udp.local_port)
                && sctp.udp_ports.is_some()
        {
            return None;
        }
        self.associations.find_invoked(invoking, sctp)
    }
}

/// Whether an error about a packet of `association` tells it something.
fn take(
    association: &mut Association,
    now: Instant,
    error: &Icmpv6,
    invoking: &Invoking,
    sctp: &InvokingSctp,
) -> bool {
    match error {
        // ICMP7
        Icmpv6::PacketTooBig { mtu, .. } => {
            association.on_packet_too_big(now, invoking.source, invoking.destination, *mtu)
        }
        // ICMP8
        Icmpv6::ParameterProblem { code, .. } if *code == UNRECOGNIZED_NEXT_HEADER => {
            let init = sctp.verification_tag == 0;
            if !init || association.state() == State::CookieWait {
                association.on_protocol_unreachable();
                true
            } else {
                false
            }
        }
        // RFC 6951 section 5.5 has it mean the same, of an association that is not set up yet: once it is, the
        // address may have become another host's, which is no reason to end what has other paths or comes back
        Icmpv6::DestinationUnreachable { code, .. }
            if *code == PORT_UNREACHABLE && sctp.udp_ports.is_some() =>
        {
            association.state() == State::CookieWait && association.on_port_unreachable(invoking.destination)
        }
        // ICMP3 and ICMP9
        Icmpv6::DestinationUnreachable { code, .. } if *code != PORT_UNREACHABLE => {
            association.on_unreachable(now, invoking.destination, Unreachable::of_code(*code))
        }
        _ => false,
    }
}

/// Code of a Parameter Problem (RFC 4443 section 3.4).
const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
/// Code of a Destination Unreachable (RFC 4443 section 3.1).
const PORT_UNREACHABLE: u8 = 4;
