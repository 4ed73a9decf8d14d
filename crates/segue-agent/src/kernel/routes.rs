//! Routes into the TUN device, which go with it, and rules that have those of a home address in tables of their own.
//!
//! A home address is used by applications that do not say where they call from, and by packets that come from it. Everything else of
//! the machine has the routes that it had: the rules, right before the main table, are
//!
//! ```text
//!   from HOME              table 6275: everything into the device
//!   all                    the main table without its default routes: networks on the link, what somebody has set up
//!   from HOME, if chosen   table 6276: the destinations that the file names
//! ```
//!
//! The last one has the flag that the kernel has for Mobile IPv6 (`FIB_RULE_FIND_SADDR`): it holds for a packet without a source
//! if the route that it leads to would make the home address its source. Rules outlive a process; without the device the tables are
//! empty, and they change nothing.

use super::netlink::Requests;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc::{ENOENT, ESRCH};
use segue_agent::networks::Remedies;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use tracing::{info, warn};

/// A table of routes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Table {
    /// The kernel's own.
    Main,
    /// From the home address.
    From,
    /// To the destinations that the home address is chosen for.
    Chosen,
}

impl Table {
    const fn number(self) -> u32 {
        match self {
            Self::Main => RouteHeader::RT_TABLE_MAIN as u32,
            Self::From => 6275,
            Self::Chosen => 6276,
        }
    }
}

/// What is for a prefix goes to the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Route {
    pub table: Table,
    pub prefix: Ipv6Addr,
    pub length: u8,
}

/// The routes to a device.
pub(crate) struct Routes {
    requests: Requests,
    device: u32,
    /// Those that the kernel is to have.
    wanted: BTreeSet<Route>,
    /// What TCP is to know of the network that they lead to.
    remedies: Remedies,
}

impl Routes {
    /// None yet.
    ///
    /// # Errors
    /// If the kernel offers no rtnetlink.
    pub fn new(device: u32) -> io::Result<Self> {
        Ok(Self {
            requests: Requests::new()?,
            device,
            wanted: BTreeSet::new(),
            remedies: Remedies::default(),
        })
    }

    /// Has TCP know these things of the network that the routes lead to now.
    ///
    /// # Errors
    /// As the kernel has them: the last, when all else is done.
    pub fn fit(&mut self, remedies: Remedies) -> io::Result<()> {
        let mut done = Ok(());
        if remedies == self.remedies {
            return done;
        }
        self.remedies = remedies;
        for route in &self.wanted {
            let message = message(*route, self.device, &remedies);
            let replaced = self.requests.order(
                RouteNetlinkMessage::NewRoute(message),
                NLM_F_CREATE | NLM_F_REPLACE,
            );
            done = replaced.and(done);
        }
        done
    }

    /// Has the kernel have these, and no others.
    ///
    /// # Errors
    /// As the kernel has them: the last, when all else is done.
    pub fn set(&mut self, wanted: &BTreeSet<Route>) -> io::Result<()> {
        let mut done = Ok(());
        for route in self.wanted.difference(wanted) {
            let message = message(*route, self.device, &self.remedies);
            let removed = self.requests.order(RouteNetlinkMessage::DelRoute(message), 0);
            done = gone(removed, ESRCH).and(done);
        }
        for route in wanted.difference(&self.wanted) {
            let message = message(*route, self.device, &self.remedies);
            let flags = NLM_F_CREATE | NLM_F_EXCL;
            let added = self.requests.order(RouteNetlinkMessage::NewRoute(message), flags);
            done = added.and(done);
        }
        self.wanted.clone_from(wanted);
        done
    }

    /// Has the kernel have again what somebody has taken away; says how many these were.
    ///
    /// # Errors
    /// As the kernel has them: the first.
    pub fn restore(&mut self) -> io::Result<usize> {
        let mut missed = 0;
        for route in &self.wanted {
            let message = message(*route, self.device, &self.remedies);
            missed += usize::from(self.requests.add(RouteNetlinkMessage::NewRoute(message))?);
        }
        Ok(missed)
    }
}

/// The rules of a home address, while this lives.
pub(crate) struct Rules {
    requests: Requests,
    home_address: Ipv6Addr,
}

impl Rules {
    /// Has the kernel look a home address up in tables of its own. Rules that an agent has left who was killed go first.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn set_up(home_address: Ipv6Addr) -> io::Result<Self> {
        let mut rules = Self {
            requests: Requests::new()?,
            home_address,
        };
        let left = rules.remove()?;
        if left > 0 {
            info!(left, "found rules of an agent that was killed: removed");
        }
        rules.restore()?;
        Ok(rules)
    }

    /// Has the kernel have again what somebody has taken away; says how many these were. If one is missing all are set up anew:
    /// those of one place are in the order in which they came.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn restore(&mut self) -> io::Result<usize> {
        let missed = ALL_RULES - self.ours()?.len().min(ALL_RULES);
        if missed > 0 {
            self.remove()?;
            for rule in of_home(self.home_address) {
                self.requests
                    .order(RouteNetlinkMessage::NewRule(rule), NLM_F_CREATE)?;
            }
        }
        Ok(missed)
    }

    fn ours(&mut self) -> io::Result<Vec<RuleMessage>> {
        let mut ours = Vec::new();
        let mut all = RuleMessage::default();
        all.header.family = AddressFamily::Inet6;
        self.requests.dump(RouteNetlinkMessage::GetRule(all), |message| {
            if let RouteNetlinkMessage::NewRule(rule) = message
                && rule.attributes.contains(&RuleAttribute::Protocol(OURS))
            {
                ours.push(rule);
            }
        })?;
        Ok(ours)
    }

    /// How many there were.
    fn remove(&mut self) -> io::Result<usize> {
        let ours = self.ours()?;
        let count = ours.len();
        for rule in ours {
            gone(self.requests.order(RouteNetlinkMessage::DelRule(rule), 0), ENOENT)?;
        }
        Ok(count)
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            warn!(%error, "rules are left, of tables that are empty: the next agent removes them");
        }
    }
}

fn gone(done: io::Result<()>, missing: i32) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(missing) => Ok(()),
        done => done,
    }
}

fn message(route: Route, device: u32, remedies: &Remedies) -> RouteMessage {
    let table = route.table.number();
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet6;
    message.header.destination_prefix_length = route.length;
    // the attribute has the number that no byte holds
    message.header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet6(route.prefix)),
        RouteAttribute::Oif(device),
        // before what others have for the same prefix, and beside it
        RouteAttribute::Priority(1),
        RouteAttribute::Table(table),
    ];
    let metrics = metrics(remedies);
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    message
}

/// As linux/rtnetlink.h has them (`RTAX_`): milliseconds, but eighths of one for the round trip. A least timeout counts only where
/// it is locked (`tcp_rto_min`).
fn metrics(remedies: &Remedies) -> Vec<RouteMetric> {
    const RTAX_RTO_MIN: u32 = 13;
    let ms = |duration: segue_proto::Duration| (duration.as_nanos() / 1_000_000) as u32;
    let mut metrics = Vec::new();
    metrics.extend(remedies.window.map(RouteMetric::Window));
    metrics.extend(remedies.initcwnd.map(RouteMetric::InitCwnd));
    metrics.extend(remedies.rtt_hint.map(|rtt| RouteMetric::Rtt(8 * ms(rtt))));
    if let Some(least) = remedies.rto_min {
        metrics.push(RouteMetric::RtoMin(ms(least)));
        metrics.push(RouteMetric::Lock(1 << RTAX_RTO_MIN));
    }
    metrics
}

const ALL_RULES: usize = 3;

fn of_home(home_address: Ipv6Addr) -> [RuleMessage; ALL_RULES] {
    let rule = |table: Table, from: bool, flags: RuleFlags| {
        let mut rule = RuleMessage::default();
        rule.header.family = AddressFamily::Inet6;
        rule.header.action = RuleAction::ToTable;
        rule.header.table = u8::try_from(table.number()).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        rule.header.flags = flags;
        rule.attributes = vec![
            RuleAttribute::Priority(PRIORITY),
            RuleAttribute::Table(table.number()),
            RuleAttribute::Protocol(OURS),
        ];
        if from {
            rule.header.src_len = 128;
            rule.attributes
                .push(RuleAttribute::Source(IpAddr::V6(home_address)));
        }
        rule
    };
    let mut without_default = rule(Table::Main, false, RuleFlags::empty());
    without_default
        .attributes
        .push(RuleAttribute::SuppressPrefixLen(0));
    [
        rule(Table::From, true, RuleFlags::empty()),
        without_default,
        rule(
            Table::Chosen,
            true,
            RuleFlags::from_bits_retain(FIB_RULE_FIND_SADDR),
        ),
    ]
}

/// Right before the main table's, and behind those of the same place that somebody has set up.
const PRIORITY: u32 = 32_765;
/// By which our rules are known: a number that nobody else has (linux/rtnetlink.h, `RTPROT_`; /etc/iproute2/rt_protos).
const OURS: RouteProtocol = RouteProtocol::Other(75);
/// linux/fib_rules.h
const FIB_RULE_FIND_SADDR: u32 = 0x0001_0000;
