//! TUN devices: an interface of the kernel whose other end is this process.
//!
//! What the kernel sends over the interface is received here, a packet per call from the IPv6 header on, and what is sent
//! here the kernel receives over it. A [`Tun`] is made without `IFF_VNET_HDR`, so the kernel segments and sums by itself:
//! packets are no longer than the interface's MTU and have their checksums. With a [`SuperTun`] it leaves both to whoever sends
//! the packet on, and one call carries up to 64 kB of TCP.
//!
//! Addresses, routes and MTU are for whoever sets up the namespace (`ip -n NAMESPACE address add ... dev NAME`); the device is
//! there once [`Tun::open`] has returned, and is gone when it is dropped.

use crate::vnet::{Offload, VNET_HEADER_LEN};
use crate::{Buffers, Namespace};
use bytes::{Buf as _, Bytes};
use nix::errno::Errno;
use nix::libc::{
    IFF_NO_PI, IFF_TUN, IFF_VNET_HDR, TUNSETIFF, TUNSETOFFLOAD, c_int, c_short, c_ulong, ifreq, ioctl, read,
};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read as _, Write as _};
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
            Some(namespace) => namespace.within(|| open_here(name, 0)),
            None => open_here(name, 0),
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
        receive(&self.file, buffer)
    }

    /// Has the kernel receive a packet; `false` if it takes none (the interface is down, or its memory is short).
    ///
    /// # Errors
    /// As the kernel has them otherwise; `InvalidInput` for what is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        taken((&self.file).write(packet), packet.len())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A TUN device whose packets may be super-packets of TCP, or of UDP where the kernel has that (Linux 6.2), and may have checksums that are to be finished.
#[derive(Debug)]
pub struct SuperTun {
    file: File,
}

impl SuperTun {
    /// Makes the device `name` in this thread's namespace. Needs `CAP_NET_ADMIN` there.
    ///
    /// # Errors
    /// If the name is too long or taken, or the kernel refuses.
    pub fn open(name: &str) -> io::Result<Self> {
        let context = |error: io::Error| io::Error::new(error.kind(), format!("TUN device {name}: {error}"));
        let file = open_here(name, IFF_VNET_HDR).map_err(context)?;
        leave_to_us(&file).map_err(context)?;
        Ok(Self { file })
    }

    /// Receives a packet into one of `buffers`; `None` if there is none, or the interface is down. Never waits.
    ///
    /// # Errors
    /// As the kernel has them.
    #[allow(unsafe_code, reason = "read(2) takes a pointer")]
    pub fn receive(&self, buffers: &mut Buffers) -> io::Result<Option<(Offload, Bytes)>> {
        let received = buffers.receive(|space| {
            // SAFETY: the kernel writes at most as many bytes as there is space.
            let length = unsafe { read(self.file.as_raw_fd(), space.as_mut_ptr().cast(), space.len()) };
            match Errno::result(length) {
                Ok(length) => Ok(Some(length as usize)),
                Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        Ok(received.map(|mut packet| {
            let offload = Offload::parse(&packet, 0);
            packet.advance(VNET_HEADER_LEN.min(packet.len()));
            (offload, packet.freeze())
        }))
    }

    /// Has the kernel receive a packet that is in two parts, its headers and the rest; `false` if it takes none (the interface
    /// is down, or its memory is short) or not this one: a super-packet of a kind that it has no use for, or what is no IP
    /// packet.
    ///
    /// # Errors
    /// As the kernel has them otherwise.
    pub fn send(&self, offload: Offload, packet: [&[u8]; 2]) -> io::Result<bool> {
        let header = offload.emit(0);
        let slices = [
            IoSlice::new(&header),
            IoSlice::new(packet[0]),
            IoSlice::new(packet[1]),
        ];
        let length = header.len() + packet[0].len() + packet[1].len();
        match taken((&self.file).write_vectored(&slices), length) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
            sent => sent,
        }
    }
}

impl AsFd for SuperTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn receive(mut file: &File, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match file.read(buffer) {
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

/// Whether the kernel took a packet of so many bytes.
fn taken(written: io::Result<usize>, length: usize) -> io::Result<bool> {
    match written {
        Ok(written) => Ok(written == length),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EIO | Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Opens the device in the namespace of this thread: it is the opening of `/dev/net/tun` that ties it there.
fn open_here(name: &str, flags: c_int) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    attach(&file, name, flags)?;
    Ok(file)
}

#[allow(unsafe_code, reason = "TUNSETIFF takes a pointer to an ifreq")]
fn attach(file: &File, name: &str, flags: c_int) -> io::Result<()> {
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
    request.ifr_ifru.ifru_flags = (IFF_TUN | IFF_NO_PI | flags) as c_short;
    // SAFETY: the descriptor is open and the kernel reads and writes one ifreq, which lives throughout the call.
    let result = unsafe { ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
    Errno::result(result)?;
    Ok(())
}

/// Checksums and the segmentation of TCP and UDP over IPv6 are no longer the kernel's business.
#[allow(unsafe_code, reason = "TUNSETOFFLOAD takes a number")]
fn leave_to_us(file: &File) -> io::Result<()> {
    const TUN_F_CSUM: c_ulong = 0x01;
    const TUN_F_TSO6: c_ulong = 0x04;
    // UDP's are only to be had for both versions of IP
    const TUN_F_USO: c_ulong = 0x20 | 0x40;
    let tcp = TUN_F_CSUM | TUN_F_TSO6;
    // SAFETY: the descriptor is open, and the kernel takes a number.
    let set = |offloads: c_ulong| unsafe { ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, offloads) };
    Errno::result(set(tcp | TUN_F_USO)).or_else(|_| Errno::result(set(tcp)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::process::Command;

    #[test]
    fn a_packet_that_the_kernel_has_no_use_for_is_refused_and_the_next_is_not() {
        let tried = std::thread::spawn(|| {
            let new = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            let Ok(tun) = new.and_then(|()| SuperTun::open("segue-test")) else {
                eprintln!("SKIPPED: no namespace or no TUN device here (they need root)");
                return;
            };
            // one that is down takes nothing at all
            let up = Command::new("ip")
                .args(["link", "set", "segue-test", "up"])
                .status();
            if !up.is_ok_and(|status| status.success()) {
                eprintln!("SKIPPED: the command ip is missing");
                return;
            }
            let mut header = vec![0; 40];
            (header[0], header[6]) = (0x60, 17);
            let datagrams = Offload {
                segment_size: Some(0),
                datagrams: true,
                ..Offload::default()
            };
            assert!(matches!(tun.send(datagrams, [&header, &[0; 100]]), Ok(false)));
            assert!(matches!(tun.send(Offload::default(), [&[0], &[]]), Ok(false)));
            assert!(matches!(
                tun.send(Offload::default(), [&header, &[0; 100]]),
                Ok(true)
            ));
        });
        tried.join().unwrap();
    }
}
