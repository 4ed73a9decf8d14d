//! Identifiers of associations.

use super::*;
use crate::random::Stream;

/// An identifier that came again would be looked for among those before it.
#[test]
fn identifiers_go_on_after_four_thousand_million_associations() {
    let mut endpoint = Endpoint::new(Config::default(), 5000, Box::new(Stream::new(1, "sctp")));
    endpoint.add_local_address(LocalAddress {
        interface: InterfaceId(0),
        address: Ipv6Addr::from_bits(1 << 64),
    });
    endpoint.next_id = u64::from(u32::MAX);
    let mut connect = |n| {
        endpoint
            .connect(Instant::ZERO, &[Ipv6Addr::from_bits(n)], 5000)
            .expect("a peer")
    };
    let (first, second) = (connect(2 << 64), connect(3 << 64));
    assert!(first < second);
    assert_eq!(
        (endpoint.slot_of(first), endpoint.slot_of(second)),
        (Some(0), Some(1))
    );
}
