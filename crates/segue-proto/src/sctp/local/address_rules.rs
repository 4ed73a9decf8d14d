//! Which addresses a peer may name as its own, in INIT, INIT ACK and ASCONF, and which of ours it is told of (RFC 9260
//! sections 5.1.2 and 8.4; scopes by RFC 4007 and RFC 4291 section 2.5).

use crate::contract::LocalAddress;
use core::net::Ipv6Addr;
use smallvec::SmallVec;

/// How far an address reaches. Unique local addresses (RFC 4193) have global scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::sctp) enum Scope {
    Loopback,
    LinkLocal,
    Global,
}

impl Scope {
    pub(in crate::sctp) fn of(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            Self::Loopback
        } else if address.is_unicast_link_local() {
            Self::LinkLocal
        } else {
            Self::Global
        }
    }
}

/// Whether `address`, named by a packet that came from `from`, can be an address of the peer's. `own` says which
/// addresses are ours.
///
/// It cannot be one if it is no single host's. Neither if it reaches less far than `from`: a loopback address means
/// another host here than there, and a link-local one may be of another link. An IPv4 address in IPv6 form (RFC 4291
/// section 2.5.5) has no place in a packet that is not itself from one. Nor may a peer call ours its own, unless it
/// speaks from one of them, that is from this very host.
pub(in crate::sctp) fn may_be_of_peer(
    address: Ipv6Addr,
    from: Ipv6Addr,
    own: impl Fn(Ipv6Addr) -> bool,
) -> bool {
    if address == from {
        return true;
    }
    let single_host = !(address.is_multicast() || address.is_unspecified());
    single_host
        && Scope::of(address) >= Scope::of(from)
        && (!is_ipv4(address) || is_ipv4(from))
        && (!own(address) || own(from))
}

/// The addresses of ours that a peer at `to` is told of and is sent to from: those that reach it. A link-local one
/// only over its own link.
pub(in crate::sctp) fn offered(
    local: impl IntoIterator<Item = LocalAddress>,
    to: Ipv6Addr,
) -> SmallVec<[LocalAddress; 4]> {
    let local: SmallVec<[LocalAddress; 4]> = local.into_iter().collect();
    let fitting: SmallVec<[LocalAddress; 4]> = local
        .iter()
        .copied()
        .filter(|l| Scope::of(l.address) >= Scope::of(to))
        .collect();
    // none fits: better an address that may not do than no packet
    if fitting.is_empty() { local } else { fitting }
}

/// Of addresses that are offered to a peer at `to`, the one to begin with: of the same scope (RFC 6724 section 5,
/// rule 2), else the first.
pub(in crate::sctp) fn first_source(offered: &[LocalAddress], to: Ipv6Addr) -> Option<LocalAddress> {
    offered
        .iter()
        .find(|l| Scope::of(l.address) == Scope::of(to))
        .or(offered.first())
        .copied()
}

/// IPv4-mapped, or IPv4-compatible and deprecated (RFC 4291 sections 2.5.5.1 and 2.5.5.2).
fn is_ipv4(address: Ipv6Addr) -> bool {
    let [.., high, low] = address.segments();
    let upper = address.segments()[..6] == [0; 6];
    address.to_ipv4_mapped().is_some() || (upper && (high != 0 || low > 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterfaceId;

    fn a(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_peer_may_name_depends_on_where_it_speaks_from() {
        let own = |address| address == a("2001:db8::1");
        for (address, from, may) in [
            ("2001:db8::2", "2001:db8::9", true),
            ("fd00::2", "2001:db8::9", true),
            ("ff02::1", "2001:db8::9", false),
            ("::", "2001:db8::9", false),
            ("::1", "2001:db8::9", false),
            ("::1", "::1", true),
            ("2001:db8::2", "::1", true),
            ("fe80::2", "2001:db8::9", false),
            ("fe80::2", "fe80::9", true),
            ("2001:db8::2", "fe80::9", true),
            ("::1", "fe80::9", false),
            ("::ffff:192.0.2.1", "2001:db8::9", false),
            ("::192.0.2.1", "2001:db8::9", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", true),
            ("2001:db8::1", "2001:db8::9", false),
            ("2001:db8::1", "2001:db8::1", true),
        ] {
            assert_eq!(
                may_be_of_peer(a(address), a(from), own),
                may,
                "{address} from {from}"
            );
        }
    }

    #[test]
    fn a_peer_is_told_only_of_addresses_that_reach_it() {
        let local = ["fe80::1", "2001:db8::1", "::1"].map(|text| LocalAddress {
            interface: InterfaceId(0),
            address: a(text),
        });
        let told = |to: &str| {
            offered(local, a(to))
                .iter()
                .map(|l| l.address)
                .collect::<Vec<_>>()
        };
        let from = |to: &str| first_source(&offered(local, a(to)), a(to)).unwrap().address;
        assert_eq!(told("2001:db8::2"), [a("2001:db8::1")]);
        assert_eq!(told("fe80::2"), [a("fe80::1"), a("2001:db8::1")]);
        assert_eq!(told("::1").len(), 3);
        assert_eq!(from("2001:db8::2"), a("2001:db8::1"));
        assert_eq!(from("fe80::2"), a("fe80::1"));
        assert_eq!(from("::1"), a("::1"));
        let only = offered(local[..1].iter().copied(), a("2001:db8::2"));
        assert_eq!(only[0].address, a("fe80::1"));
    }
}
