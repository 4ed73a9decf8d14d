//! Whether interfaces have a carrier, over rtnetlink: layer 2 as far as every kind of interface shows it.

use crate::Namespace;
use crate::addresses::for_each_message;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Multicast group of changes to interfaces (`RTNLGRP_LINK`), as a bit.
const GROUP_LINK: u32 = 1;

/// A change of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CarrierChange {
    /// Number of the interface.
    pub index: u32,
    /// Whether it is up and has a carrier.
    pub up: bool,
}

/// Watches the interfaces of a namespace.
pub struct CarrierWatch {
    socket: Socket,
    up: BTreeMap<u32, bool>,
    /// Those that were named since all were asked for, until all have been.
    named: BTreeSet<u32>,
}

impl CarrierWatch {
    /// Begins to watch. The first [`changes`](Self::changes) are the interfaces that there are.
    ///
    /// # Errors
    /// If the kernel offers no rtnetlink.
    pub fn new(namespace: Option<&Namespace>) -> io::Result<Self> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, GROUP_LINK))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = match namespace {
            Some(namespace) => namespace.within(open)?,
            None => open()?,
        };
        let mut watch = Self {
            socket,
            up: BTreeMap::new(),
            named: BTreeSet::new(),
        };
        watch.ask()?;
        Ok(watch)
    }

    /// What has changed since the last call. Never waits.
    ///
    /// # Errors
    /// If reading fails; messages that were lost are made up for by asking for all interfaces again.
    pub fn changes(&mut self) -> io::Result<Vec<CarrierChange>> {
        let mut changes = Vec::new();
        let mut lost = false;
        loop {
            match self.socket.recv_from_full() {
                // older than the answer to what is asked then
                Ok(_) if lost => {}
                Ok((bytes, from)) if from.port_number() == 0 => {
                    if for_each_message(&bytes, |message| self.apply(&message, &mut changes))? {
                        self.take_down_others(&mut changes);
                    }
                }
                // only the kernel is believed
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && lost => {
                    lost = false;
                    self.ask()?;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(changes),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => lost = true,
                Err(e) => return Err(e),
            }
        }
    }

    /// Asks for all interfaces; the answer comes with the changes.
    fn ask(&mut self) -> io::Result<()> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut request = NetlinkMessage::from(request);
        request.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.named.clear();
        self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        Ok(())
    }

    /// All that there are have been named: the others are gone.
    fn take_down_others(&mut self, changes: &mut Vec<CarrierChange>) {
        let named = core::mem::take(&mut self.named);
        self.up.retain(|&index, up| {
            let is_there = named.contains(&index);
            if !is_there && *up {
                changes.push(CarrierChange { index, up: false });
            }
            is_there
        });
    }

    fn apply(&mut self, message: &RouteNetlinkMessage, changes: &mut Vec<CarrierChange>) {
        let (index, up) = match message {
            RouteNetlinkMessage::NewLink(link) => {
                let flags = link.header.flags;
                let up = flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
                (link.header.index, up)
            }
            RouteNetlinkMessage::DelLink(link) => (link.header.index, false),
            _ => return,
        };
        self.named.insert(index);
        if self.up.insert(index, up) != Some(up) {
            changes.push(CarrierChange { index, up });
        }
    }
}

impl AsFd for CarrierWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::tests::{alone, ip};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn the_interfaces_that_there_are_come_first() {
        let mut watch = CarrierWatch::new(None).unwrap();
        let mut fds = [PollFd::new(watch.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut fds, PollTimeout::from(5000u16)), Ok(1));
        let changes = watch.changes().unwrap();
        // the loopback interface is number 1 everywhere
        assert!(changes.iter().any(|c| c.index == 1), "{changes:?}");
        assert_eq!(watch.changes().unwrap(), []);
    }

    #[test]
    fn an_interface_that_went_while_messages_were_lost_is_down() {
        alone(|| {
            let mut watch = CarrierWatch::new(None).unwrap();
            ip("link add one type veth peer name two\nlink set one up\nlink set two up\n");
            let index = nix::net::if_::if_nametoindex("one").unwrap();
            let mut changes = Vec::new();
            while !changes.contains(&CarrierChange { index, up: true }) {
                let mut fds = [PollFd::new(watch.as_fd(), PollFlags::POLLIN)];
                assert_eq!(poll(&mut fds, PollTimeout::from(5000u16)), Ok(1), "{changes:?}");
                changes.extend(watch.changes().unwrap());
            }
            // more than the kernel keeps for who does not read; what comes after that is lost
            watch.socket.set_rx_buf_sz(4096_i32).unwrap();
            let churn = "link set lo up\nlink set lo down\n".repeat(100);
            ip(&(churn + "link delete one\nlink set lo up\n"));
            let changes = watch.changes().unwrap();
            assert!(
                changes.contains(&CarrierChange { index, up: false }),
                "{changes:?}"
            );
            // the loopback interface is number 1 everywhere
            assert!(
                changes.contains(&CarrierChange { index: 1, up: true }),
                "{changes:?}"
            );
            assert_eq!(watch.changes().unwrap(), []);
        });
    }
}
