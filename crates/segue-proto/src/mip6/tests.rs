//! The rules that need no network. What the machines do together is in `tests/conformance/tests/rfc6275_*.rs`.

use super::reply::Reply;
use super::*;
use segue_wire::mobility::BindingUpdate;

mod lists;
mod movement;
mod timestamps;

/// Section 9.5.1: "if the last received sequence number was 15, then messages with sequence numbers 0 through 15, as well as
/// 32783 through 65535, would be considered less than or equal".
#[test]
fn sequence_numbers_compare_modulo_2_16() {
    for old in [0, 7, 15, 32783, 32784, 40_000, 65535] {
        assert!(!is_newer(old, 15), "{old}");
    }
    for new in [16, 17, 20_000, 32782] {
        assert!(is_newer(new, 15), "{new}");
    }
    assert!(is_newer(0, 65535));
    assert!(!is_newer(65535, 0));
}

#[test]
fn lifetimes_are_in_units_of_4_s() {
    assert_eq!(lifetime_units(Duration::from_secs(420)), 105);
    assert_eq!(lifetime_units(Duration::from_secs(423)), 105);
    assert_eq!(lifetime_units(Duration::from_secs(3)), 0);
    assert_eq!(lifetime_units(Duration::from_secs(1_000_000)), u16::MAX);
}

#[test]
fn configurations_name_the_key_that_is_wrong() {
    let good = MobileNodeConfig {
        home_address: "2001:db8:1::9".parse().expect("address"),
        home_agent: "2001:db8:1::1".parse().expect("address"),
        security: SecurityAssociation::new(300, "sixteen bytes!!!"),
        ..MobileNodeConfig::default()
    };
    assert_eq!(good.check(), Ok(()));
    let said = |change: fn(&mut MobileNodeConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config.check().expect_err("must be refused")
    };
    assert!(said(|c| c.home_address = Ipv6Addr::UNSPECIFIED).starts_with("home_address = ::"));
    assert!(said(|c| c.home_agent = c.home_address).starts_with("home_agent"));
    assert!(said(|c| c.security.spi = 255).starts_with("spi = 255"));
    assert!(said(|c| c.security.key = "short".to_owned()).starts_with("key:"));
    assert!(said(|c| c.lost_advertisements = 0).starts_with("lost_advertisements"));
    assert!(said(|c| c.home_lifetime = Duration::from_secs(1)).starts_with("home_lifetime"));
    assert!(said(|c| c.correspondent.max_lifetime = Duration::from_secs(421)).starts_with("max_lifetime"));
    let agent = HomeAgentConfig {
        address: good.home_agent,
        mobile_nodes: vec![ServedNode {
            home_address: "2001:db8:2::9".parse().expect("address"),
            security: good.security.clone(),
        }],
        ..HomeAgentConfig::default()
    };
    let said = agent.check().expect_err("another prefix");
    assert!(said.starts_with("mobile_nodes[0].home_address"), "{said}");
    // keys do not show
    assert!(!format!("{good:?} {agent:?}").contains("sixteen"));
}

/// Section 5.2.8: sequence numbers of bindings that ended are kept while their nonces are good, and no more of them than
/// bindings, however many mobile nodes come and go.
#[test]
fn sequence_numbers_of_ended_bindings_are_bounded() {
    let config = CorrespondentConfig {
        max_bindings: 4,
        ..CorrespondentConfig::default()
    };
    let own = "2001:db8:7::7".parse().expect("address");
    let secrets = Box::new(crate::random::Stream::new(1, "correspondent"));
    let mut node = correspondent::Correspondent::new(own, config, secrets);
    let mut counters = Counters::default();
    let mut now = crate::time::Instant::ZERO;
    for n in 0..98_u16 {
        let home = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n);
        assert_eq!(node.binding_cache().get(home), None);
        let care_of_address = "2001:db8:2::5".parse().expect("address");
        let reply = Reply {
            own: node.own(),
            source: care_of_address,
            home_address: home,
            covered: care_of_address,
            sequence: n,
        };
        let update = BindingUpdate {
            sequence: n,
            lifetime: 1,
            ..BindingUpdate::default()
        };
        assert_eq!(node.bind(now, &reply, care_of_address, &update, false), 1);
        now += LIFETIME_UNIT;
        node.handle_timeout(now, &mut counters);
        assert!(
            node.binding_cache().retired() <= 4,
            "{} after {n}",
            node.binding_cache().retired()
        );
    }
    assert_eq!(counters.bindings_expired, 98);
    // one that is old enough goes by itself
    let last = node.binding_cache().retired();
    now += MAX_NONCE_LIFETIME;
    node.forget_retired(now);
    assert!(last > 0 && node.binding_cache().retired() == 0);
}
