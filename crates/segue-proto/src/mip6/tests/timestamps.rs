//! RFC 4285 section 6: Binding Updates of before are known by their time, and so is one of before the last boot.

use super::*;
use crate::mip6::return_routability::mn_ha_code;
use crate::time::Instant;
use segue_wire::Packet;
use segue_wire::mobility::{MobilityHeader, MobilityMessage, MobilityOption};

const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 9);
const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
/// The 1st of January 2026, and the seconds of NTP then.
const NEW_YEAR_S: u64 = 1_767_225_600;
const NEW_YEAR_NTP: u64 = 3_976_214_400;

fn security() -> SecurityAssociation {
    SecurityAssociation {
        replay_protection: ReplayProtection::Timestamp,
        ..SecurityAssociation::new(300, "sixteen bytes!!!")
    }
}

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

/// A home agent that was started when its machine's time was zero, so many seconds of Unix; or that nobody has told.
fn booted(unix_s: Option<u64>) -> HomeAgent {
    let mut agent = HomeAgent::new(HomeAgentConfig {
        address: HOME_AGENT,
        mobile_nodes: vec![ServedNode {
            home_address: HOME,
            security: security(),
        }],
        ..HomeAgentConfig::default()
    });
    if let Some(s) = unix_s {
        agent.handle_clock(s * 1_000_000_000);
    }
    agent
}

/// What the mobile node sends at so many seconds of NTP.
fn update(ntp_s: u64, sequence: u16) -> Packet {
    let update = BindingUpdate {
        sequence,
        acknowledge: true,
        home_registration: true,
        lifetime: 100,
        ..BindingUpdate::default()
    };
    let options = vec![
        MobilityOption::ReplayProtection(ntp_s << 32),
        MobilityOption::blank_authentication(300),
    ];
    let mut header = MobilityHeader::new(MobilityMessage::BindingUpdate(update), options);
    let covered = header.authenticated_bytes().expect("an authentication option");
    header.authenticate(mn_ha_code(security().key.as_bytes(), CARE_OF, HOME, &covered));
    let mut packet = mobility_packet(CARE_OF, HOME_AGENT, header);
    packet.extensions.push(ExtensionHeader::home_address(HOME));
    packet
}

/// Whether it is taken, after the time that a home agent takes.
fn is_taken(agent: &mut HomeAgent, s: u64, packet: Packet) -> bool {
    let before = agent.counts().bindings_accepted;
    agent.handle_packet(at(s), packet);
    while agent.poll_transmit().is_some() {}
    agent.handle_timeout(at(s + 5));
    while agent.poll_transmit().is_some() {}
    agent.counts().bindings_accepted > before
}

#[test]
fn an_update_of_before_the_last_boot_is_a_replay() {
    let recorded = update(NEW_YEAR_NTP + 100, 7);
    assert!(is_taken(&mut booted(Some(NEW_YEAR_S)), 100, recorded.clone()));
    // a day later the home agent is started again, and up as long as it was then
    let mut agent = booted(Some(NEW_YEAR_S + 86_400));
    assert!(!is_taken(&mut agent, 100, recorded));
    assert_eq!(agent.counts().bad_timestamp, 1);
    assert!(is_taken(&mut agent, 110, update(NEW_YEAR_NTP + 86_510, 7)));
    // times of a driver's own are the same after each boot, which is why it is to be told
    for _ in 0..2 {
        assert!(is_taken(&mut booted(None), 100, update(100, 7)));
    }
}

#[test]
fn a_calendar_that_is_set_forward_is_followed_and_one_that_is_set_back_is_not() {
    let mut agent = booted(Some(NEW_YEAR_S));
    assert!(is_taken(&mut agent, 100, update(NEW_YEAR_NTP + 100, 1)));
    agent.handle_clock((NEW_YEAR_S - 1000) * 1_000_000_000);
    assert!(is_taken(&mut agent, 110, update(NEW_YEAR_NTP + 110, 2)));
    agent.handle_clock((NEW_YEAR_S + 1000) * 1_000_000_000);
    assert!(!is_taken(&mut agent, 120, update(NEW_YEAR_NTP + 120, 3)));
    assert!(is_taken(&mut agent, 130, update(NEW_YEAR_NTP + 1130, 4)));
}

#[test]
fn times_go_on_where_the_seconds_of_ntp_begin_anew() {
    // the 7th of February 2036, 06:28:16
    const ANEW_S: u64 = (1 << 32) - 2_208_988_800;
    let mut agent = booted(Some(ANEW_S - 100));
    assert!(is_taken(&mut agent, 95, update((1 << 32) - 5, 1)));
    assert!(is_taken(&mut agent, 105, update(5, 2)));
    assert!(!is_taken(&mut agent, 106, update((1 << 32) - 5, 3)));
}
