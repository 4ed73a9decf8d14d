//! What the kernel holds for the agent: addresses that have to be asked for again, routes to the device, rules of routing.

use crate::kernel::{Requests, Routes, Rules, VALID_FOR, add, hold_at_device, mtu_of, remove, set_up_device};
use crate::role::Destinations;
use anyhow::{Context as _, bail};
use nix::net::if_::if_nametoindex;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use segue_agent::locators::{Held, Locators};
use segue_agent::networks::Remedies;
use segue_agent::paths::LEAST_FREE;
use segue_agent::stack::{Role, Stack};
use segue_proto::{Duration, Instant};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd as _, BorrowedFd};
use tracing::{info, warn};

/// The kernel is asked to go on holding addresses so often.
const REFRESH_EVERY: Duration = Duration::from_secs(20);
/// Of interfaces that are not there yet.
const USUAL_MTU: u32 = 1500;
/// RFC 8200 section 5.
const LEAST_MTU: u32 = 1280;

/// What the kernel holds for the agent.
pub(super) struct Holdings {
    requests: Requests,
    /// The number of the device.
    device: u32,
    device_name: String,
    /// Unless somebody has set it down.
    device_is_up: bool,
    /// What applications are known by.
    identity: Option<Ipv6Addr>,
    routes: Routes,
    /// Of routing, while the agent runs.
    rules: Option<Rules>,
    destinations: Destinations,
    refresh_at: Instant,
    /// Goes off then, or when the machine wakes from a sleep in which that passed: what waits for a time span does not count a sleep.
    alarm: TimerFd,
}

impl Holdings {
    /// Sets up the device with the number `device` and the way to it, for packets that grow by so many bytes on their way to
    /// interfaces of these names.
    ///
    /// # Errors
    /// As the kernel has them; one line if there is a mobile node on this machine already.
    pub fn set_up(
        mut requests: Requests,
        (device, device_name): (u32, &str),
        destinations: Destinations,
        stack: &Stack,
        overhead: u32,
        names: &[String],
    ) -> anyhow::Result<Self> {
        let indices = names.iter().filter_map(|name| if_nametoindex(name.as_str()).ok());
        let mtus = indices.filter_map(|index| mtu_of(&mut requests, index));
        let mtu = mtus.min().unwrap_or(USUAL_MTU);
        let mtu = mtu.saturating_sub(overhead.max(LEAST_FREE)).max(LEAST_MTU);
        let identity = stack.identity();
        set_up_device(&mut requests, device, mtu)
            .and_then(|()| {
                let own = identity.map(|own| hold_at_device(&mut requests, device, own));
                own.transpose()
            })
            .with_context(|| format!("TUN device {device_name}"))?;
        let mut routes = Routes::new(device).context("rtnetlink")?;
        match routes.set(&destinations.routes(stack.role())) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && destinations.home_address().is_some() =>
            {
                bail!("mobile-node: its tables have routes already: expected one mobile node on a machine");
            }
            done => done.with_context(|| format!("routes to {device_name}"))?,
        }
        let rules = destinations.home_address().map(Rules::set_up).transpose();
        tracing::debug!(mtu, "set up");
        Ok(Self {
            requests,
            device,
            device_name: device_name.to_owned(),
            device_is_up: true,
            identity,
            routes,
            rules: rules.context("rules of routing")?,
            destinations,
            refresh_at: Instant::ZERO,
            alarm: TimerFd::new(
                ClockId::CLOCK_BOOTTIME,
                TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
            )?,
        })
    }

    /// Gives back what an agent that was killed has left on the interfaces of these names.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn clear(&mut self, locators: &Locators, held: &[Held], names: &[String]) -> anyhow::Result<()> {
        for left in held
            .iter()
            .filter(|h| locators.is_own(h.address, h.prefix_length))
        {
            let name = &names[left.interface];
            info!(interface = name, address = %left.address, "found an address of an agent that was killed: removed");
            remove(&mut self.requests, if_nametoindex(name.as_str())?, left.address)?;
        }
        Ok(())
    }

    /// Has the kernel hold an address on the interface of a number, or hold it for longer.
    pub fn hold(&mut self, index: u32, address: Ipv6Addr, is_held_elsewhere: bool) {
        if let Err(error) = add(&mut self.requests, index, address, is_held_elsewhere) {
            warn!(%address, %error, "the kernel does not hold it");
        }
    }

    /// The number of the device.
    pub const fn device(&self) -> u32 {
        self.device
    }

    /// Whether the device is up now, and what it holds. Somebody may have set it down, which takes its addresses and routes away.
    pub fn handle_device(&mut self, up: bool, held: &[Ipv6Addr]) {
        let was_up = std::mem::replace(&mut self.device_is_up, up);
        if was_up && !up {
            let device = &self.device_name;
            warn!(
                device,
                "set down by somebody: nothing gets to applications or from them until it is up"
            );
        }
        let whole = self.identity.is_none_or(|own| held.contains(&own));
        if !was_up || !whole {
            self.restore();
        }
    }

    /// Has the kernel have again what somebody has taken away. A device that somebody has set down stays so.
    pub fn restore(&mut self) {
        if !self.device_is_up {
            return;
        }
        let missed = self.missed();
        let device = &self.device_name;
        match missed {
            Ok(0) => {}
            Ok(count) => warn!(
                device,
                count, "somebody took addresses, routes or rules away: set up again"
            ),
            Err(error) => warn!(device, %error, "not all is as it was set up"),
        }
    }

    /// How much was not there any more, and is again.
    fn missed(&mut self) -> io::Result<usize> {
        let own = self.identity;
        let own = own.map(|own| hold_at_device(&mut self.requests, self.device, own));
        let rules = self.rules.as_mut().map(Rules::restore).transpose()?;
        Ok(usize::from(own.transpose()?.unwrap_or(false)) + self.routes.restore()? + rules.unwrap_or(0))
    }

    /// The MTU of the interface of a number, if it is there.
    pub fn mtu_of(&mut self, index: u32) -> Option<u32> {
        mtu_of(&mut self.requests, index)
    }

    /// Has the kernel give up an address.
    pub fn release(&mut self, index: u32, address: Ipv6Addr) {
        if let Err(error) = remove(&mut self.requests, index, address) {
            warn!(%address, %error, "not removed: it goes by itself within {VALID_FOR:?}");
        }
    }

    /// All addresses have been asked for: that is due again after a while.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn set_alarm(&mut self, now: Instant) -> io::Result<()> {
        self.refresh_at = now + REFRESH_EVERY;
        let at = std::time::Duration::from_nanos(self.refresh_at.as_nanos());
        let once = Expiration::OneShot(TimeSpec::from_duration(at));
        Ok(self.alarm.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    /// When all addresses are to be asked for again.
    pub const fn poll_timeout(&self) -> Instant {
        self.refresh_at
    }

    /// Readable then.
    pub fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// The network that the device leads to is another, of which TCP is to know this.
    ///
    /// # Errors
    /// As the kernel has them, for the last route that is not as it is to be.
    pub fn fit_routes(&mut self, remedies: Remedies) -> io::Result<()> {
        self.routes.fit(remedies)
    }

    /// What is to come to the device has changed.
    ///
    /// # Errors
    /// As the kernel has them, for the first route that is not as it is to be.
    pub fn set_routes(&mut self, role: &Role) -> io::Result<()> {
        self.routes.set(&self.destinations.routes(role))
    }
}
