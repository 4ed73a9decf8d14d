//! What the file says of the network in use, and of those that might be.

use super::Running;
use std::net::Ipv6Addr;
use tracing::{info, warn};

impl Running {
    /// Which interfaces are in a network that costs.
    pub(super) fn metered(&self) -> Vec<bool> {
        let names = self.interfaces.names().enumerate();
        names
            .map(|(number, name)| self.networks.is_metered(name, &self.addresses_at(number)))
            .collect()
    }

    /// TCP is to know of the network in use what the file says: by the routes what begins, by its windows what there is.
    pub(super) fn fit_network(&mut self) {
        let Some(number) = self.moves.in_use() else { return };
        let name = self.interfaces.name(number);
        let remedies = self.networks.remedies(name, &self.addresses_at(number));
        if remedies == self.remedies {
            return;
        }
        info!(interface = name, ?remedies, "what TCP is to know of its network");
        self.remedies = remedies;
        self.stack.limit_windows(remedies.window);
        if let Err(error) = self.holdings.fit_routes(remedies) {
            warn!(%error, "not all routes have the metrics of the network");
        }
    }

    /// The agent's addresses on the interface at a place.
    fn addresses_at(&self, number: usize) -> Vec<Ipv6Addr> {
        let there = self.locators.wanted();
        let there = there.filter(|local| usize::from(local.interface.0) == number);
        there.map(|local| local.address).collect()
    }
}
