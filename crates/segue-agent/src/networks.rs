//! What the file says of networks: which of them cost, and what TCP is to know of one that is slow.
//!
//! The remedies are those of Cottingham and Vidales, section 7, with what a stock kernel offers for them: metrics of the routes to
//! the device. They are read when a connection begins. One that exists keeps its timeout and its window whatever its route says
//! (`tcp_rtt_estimator` takes a smaller minimum and no greater one), so that its window is lowered in the segments that pass.

use crate::config::Prefix;
use segue_proto::Duration;
use serde::Deserialize;
use std::net::Ipv6Addr;

/// A `[[network]]` of the file: those on this interface, or with this prefix, or both.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// Name of an interface of the list.
    #[serde(default)]
    pub interface: Option<String>,
    /// A prefix of the agent's address there.
    #[serde(default)]
    pub prefix: Option<Prefix>,
    /// It costs: it is used only where no other network is.
    #[serde(default)]
    pub metered: bool,
    /// Most bytes of a connection that are on their way at once in either direction: the window that both ends are offered.
    #[serde(default)]
    pub window: Option<u32>,
    /// Least retransmission timeout of connections that begin there.
    #[serde(default)]
    pub rto_min: Option<Duration>,
    /// Segments that a connection begins with there, or goes on with after a pause.
    #[serde(default)]
    pub initcwnd: Option<u32>,
    /// Round-trip time that a connection begins with there, until it has measured one.
    #[serde(default)]
    pub rtt_hint: Option<Duration>,
}

/// What TCP is to know of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remedies {
    /// See [`NetworkConfig::window`].
    pub window: Option<u32>,
    /// See [`NetworkConfig::rto_min`].
    pub rto_min: Option<Duration>,
    /// See [`NetworkConfig::initcwnd`].
    pub initcwnd: Option<u32>,
    /// See [`NetworkConfig::rtt_hint`].
    pub rtt_hint: Option<Duration>,
}

/// All that the file says of networks. The first that fits counts.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    listed: Vec<NetworkConfig>,
}

/// A window of less than this is no window.
const LEAST_WINDOW: u32 = 2048;
/// A segment is 1220 bytes at least, and a window 1 GiB at most (RFC 7323 section 2.3).
const MOST_SEGMENTS: u32 = 1 << 19;
const MOST_WINDOW: u32 = 1 << 30;
/// Linux has no longer timeout (`TCP_RTO_MAX`).
const LONGEST: Duration = Duration::from_secs(120);

impl NetworkConfig {
    /// Whether the values make sense, for an agent with these interfaces.
    ///
    /// # Errors
    /// One line that names the key, and what was expected.
    pub fn check(&self, interfaces: &[String]) -> Result<(), String> {
        match (&self.interface, &self.prefix) {
            (None, None) => return Err("interface, prefix: expected one of them, or both".to_owned()),
            (Some(name), _) if !interfaces.contains(name) => {
                return Err(format!("interface: {name}: expected one of agent.interfaces"));
            }
            _ => {}
        }
        if self
            .window
            .is_some_and(|w| !(LEAST_WINDOW..=MOST_WINDOW).contains(&w))
        {
            return Err(format!("window: expected bytes, {LEAST_WINDOW} to {MOST_WINDOW}"));
        }
        if self.initcwnd.is_some_and(|n| !(1..=MOST_SEGMENTS).contains(&n)) {
            return Err(format!("initcwnd: expected segments, 1 to {MOST_SEGMENTS}"));
        }
        let times = [("rto_min", self.rto_min), ("rtt_hint", self.rtt_hint)];
        let short = |d: Duration| d < Duration::from_millis(1) || d > LONGEST;
        match times.into_iter().find(|(_, time)| time.is_some_and(short)) {
            Some((key, _)) => Err(format!("{key}: expected 1 ms to {} s", LONGEST.as_secs_f64())),
            None => Ok(()),
        }
    }

    fn fits(&self, interface: &str, addresses: &[Ipv6Addr]) -> bool {
        let named = self.interface.as_deref().is_none_or(|name| name == interface);
        named
            && self
                .prefix
                .is_none_or(|prefix| addresses.iter().any(|a| prefix.contains(*a)))
    }
}

impl Networks {
    /// In the order of the file.
    #[must_use]
    pub const fn new(listed: Vec<NetworkConfig>) -> Self {
        Self { listed }
    }

    /// Whether one has a window, so that those of connections have to be watched from their beginning.
    #[must_use]
    pub fn have_windows(&self) -> bool {
        self.listed.iter().any(|network| network.window.is_some())
    }

    /// What TCP is to know in the network of an interface on which the agent has these addresses.
    #[must_use]
    pub fn remedies(&self, interface: &str, addresses: &[Ipv6Addr]) -> Remedies {
        self.of(interface, addresses)
            .map_or_else(Remedies::default, |network| Remedies {
                window: network.window,
                rto_min: network.rto_min,
                initcwnd: network.initcwnd,
                rtt_hint: network.rtt_hint,
            })
    }

    /// Whether that network costs.
    #[must_use]
    pub fn is_metered(&self, interface: &str, addresses: &[Ipv6Addr]) -> bool {
        self.of(interface, addresses)
            .is_some_and(|network| network.metered)
    }

    fn of(&self, interface: &str, addresses: &[Ipv6Addr]) -> Option<&NetworkConfig> {
        self.listed.iter().find(|n| n.fits(interface, addresses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<NetworkConfig> {
        #[derive(Deserialize)]
        struct Whole {
            network: Vec<NetworkConfig>,
        }
        toml::from_str::<Whole>(text).unwrap().network
    }

    #[test]
    fn the_first_that_fits_counts() {
        let networks = Networks::new(listed(
            "[[network]]\nprefix = \"2001:db8:1::/48\"\nwindow = 20000\n\
             [[network]]\ninterface = \"wwan0\"\nmetered = true\nrto_min = \"1 s\"\ninitcwnd = 3\nrtt_hint = \"500 ms\"\n",
        ));
        assert!(networks.have_windows());
        let inside: Ipv6Addr = "2001:db8:1:7::1".parse().unwrap();
        let outside: Ipv6Addr = "2001:db8:2:7::1".parse().unwrap();
        let of = |interface: &str, address: Ipv6Addr| networks.remedies(interface, &[outside, address]);
        assert_eq!(of("wlan0", outside), Remedies::default());
        assert_eq!(of("wlan0", inside).window, Some(20_000));
        // the first, although the second fits too
        assert_eq!(of("wwan0", inside).rto_min, None);
        assert!(!networks.is_metered("wwan0", &[inside]));
        let slow = of("wwan0", outside);
        assert_eq!(slow.rto_min, Some(Duration::from_secs(1)));
        assert_eq!((slow.window, slow.initcwnd), (None, Some(3)));
        assert_eq!(slow.rtt_hint, Some(Duration::from_millis(500)));
        assert!(networks.is_metered("wwan0", &[]));
        assert!(!networks.is_metered("wlan0", &[outside]));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let said = |line: &str| {
            let network = &listed(&format!("[[network]]\n{line}\n"))[0];
            network.check(&["wlan0".to_owned()]).unwrap_err()
        };
        assert_eq!(said(""), "interface, prefix: expected one of them, or both");
        assert_eq!(
            said("interface = \"eth7\""),
            "interface: eth7: expected one of agent.interfaces"
        );
        let with = |line: &str| said(&format!("interface = \"wlan0\"\n{line}"));
        assert!(with("window = 1000").starts_with("window: expected bytes, 2048 to"));
        assert!(with("initcwnd = 0").starts_with("initcwnd: expected segments, 1 to"));
        assert_eq!(with("rto_min = \"0 s\""), "rto_min: expected 1 ms to 120 s");
        assert_eq!(with("rtt_hint = \"3 min\""), "rtt_hint: expected 1 ms to 120 s");
        let good = &listed("[[network]]\ninterface = \"wlan0\"\nwindow = 4096\n")[0];
        assert_eq!(good.check(&["wlan0".to_owned()]), Ok(()));
    }
}
