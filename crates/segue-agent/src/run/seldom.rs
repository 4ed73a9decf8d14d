//! What is waited for all the time and comes seldom: one descriptor stands for all of it, so that the wait before a packet does
//! not grow with what else might happen.

use super::{Source, Sources};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// So many are told of at once; the others stay readable.
const AT_ONCE: usize = 16;

/// Descriptors that stay open for as long as this is used.
pub(super) struct Seldom {
    epoll: Epoll,
    sources: Vec<Source>,
}

impl Seldom {
    /// Of all these.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn new<'a>(all: impl IntoIterator<Item = (Source, BorrowedFd<'a>)>) -> io::Result<Self> {
        let mut seldom = Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            sources: Vec::new(),
        };
        for (source, fd) in all {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, seldom.sources.len() as u64);
            seldom.epoll.add(fd, event)?;
            seldom.sources.push(source);
        }
        Ok(seldom)
    }

    /// Readable if one of them is.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Adds those that are.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn add_ready(&self, ready: &mut Sources) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); AT_ONCE];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO)?;
        let numbers = events.iter().take(count).map(|event| event.data() as usize);
        ready.extend(numbers.filter_map(|number| self.sources.get(number).copied()));
        Ok(())
    }
}
