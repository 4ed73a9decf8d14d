//! What can be set.

use super::*;

#[test]
fn configurations_that_cannot_be_are_refused() {
    let good = Config::new(Nid(1));
    assert_eq!(good.check(), Ok(()));
    let peer = |nid, locators| PeerConfig {
        nid,
        locators,
        name: None,
    };
    let bad = [
        ("nid", Config::default()),
        (
            "identity_prefix",
            Config {
                identity_prefix: Locator(0),
                ..good.clone()
            },
        ),
        (
            "lu_timeout",
            Config {
                lu_timeout: ms(0),
                ..good.clone()
            },
        ),
        (
            "lu_max_timeout",
            Config {
                lu_max_timeout: ms(1),
                ..good.clone()
            },
        ),
        (
            "locator_lifetime",
            Config {
                locator_lifetime: ms(1500),
                ..good.clone()
            },
        ),
        (
            "lu_attempts",
            Config {
                lu_attempts: 0,
                ..good.clone()
            },
        ),
        (
            "fallback_after",
            Config {
                fallback_after: Some(0),
                ..good.clone()
            },
        ),
        (
            "locator_timeout",
            Config {
                locator_timeout: Some(ms(0)),
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(1), vec![locator(1)])],
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(2), vec![])],
                ..good.clone()
            },
        ),
        (
            "peers",
            Config {
                peers: vec![peer(Nid(2), vec![Locator(0xff02 << 48)])],
                ..good.clone()
            },
        ),
        (
            "ephemeral_pool",
            Config {
                ephemeral_pool: 0,
                identifiers: Identifiers::Ephemeral,
                ..good
            },
        ),
    ];
    for (key, config) in bad {
        let error = config.check().expect_err(key);
        assert!(error.starts_with(&format!("{key}: ")), "{error}");
    }
}
