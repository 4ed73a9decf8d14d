//! Prefixes that are replaced by others (RFC 4192), and addresses by others of the same prefix (RFC 8981).

use super::*;

const NEW: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x8000, 0, 0, 0, 0, 0);
const IDENTIFIER: [u8; 8] = [0x12, 0, 0, 0, 0, 0, 0, 0x34];

fn fixed(latency: u64) -> Method {
    Method::Fixed {
        latency: ms(latency),
        solicit: true,
        lifetime: None,
        retain: false,
    }
}

fn slaac() -> Method {
    Method::Slaac { nd: prompt_nd(1) }
}

fn stale(valid: Duration) -> AdvertisedPrefix {
    AdvertisedPrefix {
        valid_lifetime: Some(valid),
        preferred_lifetime: Some(Duration::ZERO),
        ..AdvertisedPrefix::new(PREFIX)
    }
}

/// A link on which all is settled, and whose router then advertises another prefix, and the first as not to be used any more.
fn renumbered(method: &Method, at_ms: u64) -> Link {
    let mut link = Link::new(method, ServerConfig::default());
    link.run(at(at_ms), nothing_lost);
    link.log.clear();
    link.now = at(at_ms);
    link.router.advertise(
        at(at_ms),
        vec![AdvertisedPrefix::new(NEW), stale(Duration::from_secs(2))],
    );
    link
}

#[test]
fn another_prefix_brings_another_address_and_the_old_one_is_deprecated() {
    let [old, new] = [PREFIX, NEW].map(|prefix| form_address(prefix, MAC));
    for (method, ready_after) in [(slaac(), 1000), (fixed(20), 20)] {
        // MIN_DELAY_BETWEEN_RAS is over
        let mut link = renumbered(&method, 8050);
        link.run(at(14_000), nothing_lost);
        let said: Vec<(u64, &str)> = link
            .log
            .iter()
            .map(|(time, text)| (time.since(at(8050)).as_millis(), text.as_str()))
            .collect();
        let told = said[0].0;
        assert!(told <= 3000, "{said:?}");
        assert_eq!(said[0].1, format!("deprecated {old}"));
        assert_eq!(said[1], (told + ready_after, &*format!("ready {new}")));
        // the two hours of RFC 4862 section 5.5.3 e: no advertisement takes it away sooner
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(link.host.owns(old) && link.host.owns(new));
    }
}

#[test]
fn who_comes_later_has_no_address_of_a_prefix_that_is_withdrawn() {
    let mut link = Link::new(&fixed(20), ServerConfig::default());
    let withdrawn = stale(Duration::ZERO);
    link.router
        .advertise(at(0), vec![withdrawn, AdvertisedPrefix::new(NEW)]);
    link.run(at(5000), nothing_lost);
    assert!(link.host.owns(form_address(NEW, MAC)));
    assert!(!link.host.owns(form_address(PREFIX, MAC)));
}

#[test]
fn an_address_that_is_replaced_is_kept_as_long_as_it_is_said() {
    let old = form_address(PREFIX, MAC);
    let new = crate::nd::form_address_with(PREFIX, IDENTIFIER);
    for (method, ready_after) in [(slaac(), 1000), (fixed(20), 20)] {
        for keep in [0, 500] {
            let mut link = Link::new(&method, ServerConfig::default());
            link.run(at(3000), nothing_lost);
            link.log.clear();
            link.now = at(3000);
            link.host.replace_addresses(at(3000), IDENTIFIER, Some(ms(keep)));
            link.run(at(6000), nothing_lost);
            let mut expected = vec![
                (at(3000 + keep), format!("lost {old}")),
                (at(3000 + keep), format!("expired {old}")),
                (at(3000 + ready_after), format!("ready {new}")),
            ];
            if keep > 0 {
                expected.push((at(3000), format!("deprecated {old}")));
            }
            expected.sort();
            link.log.sort();
            assert_eq!(link.log, expected);
            assert!(link.host.owns(new) && !link.host.owns(old));
        }
    }
}

/// What was said, but for the loss of what the link had before it went.
fn words_but_lost(link: &Link) -> Vec<String> {
    let words = link.log.iter().map(|(_, text)| text.clone());
    words.filter(|text| !text.starts_with("lost")).collect()
}

#[test]
fn a_deprecated_address_that_was_kept_while_its_link_was_away_is_deprecated_when_it_is_back() {
    let [old, new] = [PREFIX, NEW].map(|prefix| form_address(prefix, MAC));
    let method = Method::Fixed {
        latency: ms(20),
        solicit: true,
        lifetime: None,
        retain: true,
    };
    let mut link = renumbered(&method, 8050);
    link.run(at(14_000), nothing_lost);
    link.now = at(14_000);
    link.host.handle_link_down(at(14_000));
    link.log.clear();
    link.now = at(14_500);
    link.host.handle_link_up(at(14_500));
    link.run(at(20_000), nothing_lost);
    let said = words_but_lost(&link);
    let expected = [
        format!("ready {new}"),
        format!("ready {old}"),
        format!("deprecated {old}"),
    ];
    assert_eq!(said, expected);
}

#[test]
fn who_comes_to_a_link_forms_no_address_of_a_prefix_that_is_not_to_be_used() {
    let new = form_address(NEW, MAC);
    for method in [slaac(), fixed(20)] {
        let mut link = renumbered(&method, 8050);
        link.host.handle_link_down(at(8050));
        link.now = at(8060);
        link.host.handle_link_up(at(8060));
        link.log.clear();
        // solicited advertisements too have both prefixes
        link.run(at(14_000), nothing_lost);
        let said = words_but_lost(&link);
        assert_eq!(said, [format!("ready {new}")], "{method:?}");
    }
}
