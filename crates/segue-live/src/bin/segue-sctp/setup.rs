//! From options to a driver, and the signals that end a program.

use crate::keys::KeyFile;
use crate::options::{Authentication, Calling, Common, Pmtu};
use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use segue_live::command_line::is_broken_pipe;
use segue_live::{Capture, Clock, Driver, DriverConfig, OsSecrets, Transport};
use segue_proto::Duration;
use segue_proto::random::SecretRng as _;
use segue_proto::sctp::{AsconfAuth, Config, PmtuDiscovery};
use segue_wire::udp::SCTP_TUNNELING_PORT;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// The port given, or a dynamic one (RFC 6335 section 6): clients of one host that share a port would take each other's
/// association for their own, restarted.
pub(crate) fn local_port(given: Option<u16>) -> Result<u16> {
    match given {
        Some(port) => Ok(port),
        None => Ok(0xc000 | (OsSecrets::new()?.secret_u32() & 0x3fff) as u16),
    }
}

/// Refuses peers that cannot answer.
pub(crate) fn check(calling: &Calling) -> Result<()> {
    for address in &calling.peer {
        if address.is_unspecified() || address.is_multicast() || address.to_ipv4_mapped().is_some() {
            bail!("PEER: {address} is not the IPv6 address of a single host");
        }
    }
    if calling.timeout.is_zero() {
        bail!("--timeout: expected more than 0 s");
    }
    Ok(())
}

/// Whether `path` names the open `file`.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |m: std::fs::Metadata| (m.dev(), m.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(one), Ok(other)) => id(one) == id(other),
        _ => false,
    }
}

/// A driver for what the options say. `listening` has the IANA port by default.
pub(crate) fn driver(common: &Common, port: u16, listening: bool) -> Result<Driver> {
    let mtu = common.mtu.bytes();
    if !(1280..=65_535).contains(&mtu) {
        bail!("--mtu: expected 1280 B to 65535 B (RFC 8200 section 5)");
    }
    for (name, buffer) in [("receive", common.receive_buffer), ("send", common.send_buffer)] {
        if !(4096..=1 << 30).contains(&buffer.bytes()) {
            bail!("--{name}-buffer: expected 4096 B to 1 GiB");
        }
    }
    let mut sctp = Config {
        mtu: mtu as u32,
        pmtu_discovery: match common.pmtu {
            Pmtu::None => PmtuDiscovery::None,
            Pmtu::PacketTooBig => PmtuDiscovery::PacketTooBig,
            Pmtu::Probing => PmtuDiscovery::Probing,
        },
        receive_buffer: common.receive_buffer.bytes() as u32,
        send_buffer: common.send_buffer.bytes() as u32,
        outbound_streams: common.streams,
        address_deactivation: common.deactivation,
        asconf_auth: match common.auth {
            Authentication::On => AsconfAuth::Required,
            Authentication::Off => AsconfAuth::None,
        },
        ..Config::default()
    };
    if common.auth == Authentication::Off && !common.auth_chunks.is_empty() {
        bail!("--auth-chunk: needs --auth on");
    }
    if common.auth == Authentication::Off && !common.auth_keys.is_empty() {
        bail!("--auth-key: needs --auth on");
    }
    sctp.auth.required_chunks.clone_from(&common.auth_chunks);
    let keys = common.auth_keys.iter().map(KeyFile::read);
    sctp.auth.shared_keys = keys.collect::<Result<_>>()?;
    sctp.auth.active_key = common.auth_keys.first().map_or(0, |key| key.id);
    sctp.rto_initial = common.rto_initial.unwrap_or(sctp.rto_initial);
    sctp.rto_min = common.rto_min.unwrap_or(sctp.rto_min);
    sctp.rto_max = common.rto_max.unwrap_or(sctp.rto_max);
    if sctp.rto_min.is_zero() || sctp.rto_min > sctp.rto_max || sctp.rto_initial > sctp.rto_max {
        bail!("--rto-min and --rto-initial: expected more than 0 s and at most --rto-max");
    }
    sctp.path_max_retrans = common.path_max_retrans.unwrap_or(sctp.path_max_retrans);
    sctp.pf_max_retrans = common.pf_max_retrans.or(sctp.pf_max_retrans);
    sctp.sack_frequency = common.sack_frequency.unwrap_or(sctp.sack_frequency);
    sctp.sack_delay = common.sack_delay.unwrap_or(sctp.sack_delay);
    if sctp.sack_delay > Duration::from_millis(500) {
        bail!("--sack-delay: expected at most 500 ms (RFC 9260 section 6.2)");
    }
    sctp.association_max_retrans = common
        .association_max_retrans
        .unwrap_or(sctp.association_max_retrans);
    if let Some(interval) = common.hb_interval {
        sctp.hb_interval = (!interval.is_zero()).then_some(interval);
    }
    if let Some(burst) = common.max_burst {
        sctp.max_burst = (burst > 0).then_some(burst);
    }
    let transport = if common.raw {
        Transport::Raw
    } else {
        let default = if listening { SCTP_TUNNELING_PORT } else { 0 };
        Transport::Udp {
            local_port: common.udp_port.unwrap_or(default),
            remote_port: common.remote_udp_port,
        }
    };
    let mut driver = Driver::new(DriverConfig {
        sctp,
        port,
        transport,
        addresses: common.addresses.clone(),
        ..DriverConfig::default()
    })?;
    if let Some(path) = &common.pcap {
        let out = BufWriter::new(create(path)?);
        let capture = Capture::new(Box::new(out), Clock::new())
            .with_context(|| format!("writing {}", path.display()))?;
        driver.set_capture(capture);
    }
    Ok(driver)
}

/// Ends the capture, if one was asked for.
pub(crate) fn end_capture(driver: &mut Driver, common: &Common) -> Result<()> {
    let Some(path) = &common.pcap else {
        return Ok(());
    };
    let ended = driver
        .take_capture()
        .map_or(Ok(()), |capture| capture.and_then(Capture::finish));
    ended.with_context(|| format!("writing {}", path.display()))
}

/// What came of it all, and then of ending its files: what happened first is told.
pub(crate) fn first_failure(done: Result<u8>, files_ended: Result<()>) -> Result<u8> {
    match done {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        done => files_ended.and(done),
    }
}

/// A file that the user named, written to in passing.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Output {
    /// Creates it.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(create(path)?),
        })
    }

    /// Has something written, or what is buffered flushed.
    pub(crate) fn write(
        &mut self,
        what: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<()> {
        what(&mut self.out).with_context(|| format!("writing {}", self.path.display()))
    }
}

/// The log of received messages, with its header.
pub(crate) fn log(common: &Common) -> Result<Option<Output>> {
    use std::io::Write as _;
    let Some(path) = &common.log else {
        return Ok(None);
    };
    let mut log = Output::new(path)?;
    log.write(|out| writeln!(out, "time_ns,stream,message,offset,bytes"))?;
    Ok(Some(log))
}

/// Creates a file that the user named.
#[expect(clippy::disallowed_methods, reason = "this program's purpose is I/O")]
pub(crate) fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Opens a file that the user named.
#[expect(clippy::disallowed_methods, reason = "this program's purpose is I/O")]
pub(crate) fn open(path: &Path) -> Result<File> {
    if path.is_dir() {
        bail!("{} is a directory, expected a file", path.display());
    }
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Opens one that may be a pipe or a terminal, and is read as there is something in it: without a writer, too, it does not wait.
pub(crate) fn open_without_waiting(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    if path.is_dir() {
        bail!("{} is a directory, expected a file", path.display());
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// What a signal asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// SIGTERM.
    Terminated,
    /// Ctrl-C.
    Interrupted,
}

impl Ending {
    /// Exit status.
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Terminated => 0,
            Self::Interrupted => 130,
        }
    }
}

/// SIGINT and SIGTERM as something to wait for.
pub(crate) fn signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None).context("signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).context("signals")
}

/// The signal that has arrived, if one has.
pub(crate) fn pending(signals: &SignalFd) -> Option<Ending> {
    let info = signals.read_signal().ok()??;
    if info.ssi_signo == Signal::SIGTERM as u32 {
        Some(Ending::Terminated)
    } else {
        Some(Ending::Interrupted)
    }
}
