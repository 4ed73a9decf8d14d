//! TUN devices: an interface of the kernel whose other end is this process.
//!
//! What the kernel sends over the interface is received here, a packet per call from the IPv6 header on, and what is sent
//! here the kernel receives over it. The device is made without `IFF_VNET_HDR`, so the kernel segments and sums by itself:
//! packets are no longer than the interface's MTU and have their checksums.
//!
//! Addresses, routes and MTU are for whoever sets up the namespace (`ip -n NAMESPACE address add ... dev NAME`); the device is
//! there once [`Tun::open`] has returned, and is gone when it is dropped.

use crate::Namespace;
use nix::errno::Errno;
use nix::libc::{IFF_NO_PI, IFF_TUN, TUNSETIFF, c_short, ifreq, ioctl};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

/// A TUN device.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes the device `name` in `namespace`, or in this process's own. Needs `CAP_NET_ADMIN` there.
    ///
    /// # Errors
    /// If the name is too long or taken, or the kernel refuses.
    pub fn open(name: &str, namespace: Option<&Namespace>) -> io::Result<Self> {
        let context = |error: io::Error| io::Error::new(error.kind(), format!("TUN device {name}: {error}"));
        let file = match namespace {
            Some(namespace) => namespace.within(|| open_here(name)),
            None => open_here(name),
        };
        Ok(Self {
            file: file.map_err(context)?,
            name: name.to_owned(),
        })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Receives a packet into `buffer`, and gives its length; `None` if there is none, or the interface is down. Never waits.
    ///
    /// # Errors
    /// As the kernel has them. A packet longer than `buffer` is cut.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Has the kernel receive a packet; `false` if it takes none (the interface is down, or its memory is short).
    ///
    /// # Errors
    /// As the kernel has them otherwise; `InvalidInput` for what is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        match (&self.file).write(packet) {
            Ok(written) => Ok(written == packet.len()),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EIO | Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens the device in the namespace of this thread: it is the opening of `/dev/net/tun` that ties it there.
fn open_here(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    attach(&file, name)?;
    Ok(file)
}

#[allow(unsafe_code, reason = "TUNSETIFF takes a pointer to an ifreq")]
fn attach(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: an ifreq is made of integers and addresses, for which all zeros are values.
    let mut request: ifreq = unsafe { core::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || !name.is_ascii() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name of an interface has at most 15 ASCII characters",
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as nix::libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (IFF_TUN | IFF_NO_PI) as c_short;
    // SAFETY: the descriptor is open and the kernel reads and writes one ifreq, which lives throughout the call.
    let result = unsafe { ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
    Errno::result(result)?;
    Ok(())
}
