//! A WireGuard tunnel between the ends of each application, by a program in user space: programs use the addresses within, and
//! whoever connects may be anywhere, since the other end answers where it was last heard from (wireguard.com/papers/wireguard.pdf,
//! section 2.1).

use super::super::host::Host;
use crate::link::wait;
use anyhow::{Context as _, bail};
use segue_proto::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::Ipv6Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Programs that make a tunnel, with what they are told besides the device, as found first.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("wireguard-go", &["-f"]),
    ("boringtun-cli", &["-f", "--disable-drop-privileges"]),
];
/// Where such programs are configured, by the name of the device: the same folder for all namespaces.
const SOCKETS: &str = "/var/run/wireguard";
const MARK: &str = "sgw";
/// Of all addresses within.
const PREFIX: &str = "fd53:5347::/64";
const PORT: u16 = 51_820;
/// What is added to a packet of IPv6: headers of IPv6, UDP and WireGuard, and its tag.
const OVERHEAD: u32 = 40 + 8 + 16 + 16;
/// The least that IPv6 takes (RFC 8200 section 5).
const LEAST_MTU: u32 = 1280;
/// Seconds, as wg(8) recommends for who is behind a NAT.
const KEEPALIVE_S: u32 = 25;
/// Ahead of the programs at its ends, so that these wait for packets and not for the tunnel to get its turn.
const PRIORITY: &str = "20";
/// How long a program may take to begin.
const SOON: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);
/// How long a handshake may take before another is begun, the first one, and each after it twice as long: the last four seconds.
const HANDSHAKE: Duration = Duration::from_millis(250);
const HANDSHAKES: u32 = 5;

/// What of it is not installed.
pub(super) fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some(format!(
            "its programs keep sockets in {SOCKETS}: expected to be run by root"
        ));
    }
    let ours = PROGRAMS.map(|(program, _)| program);
    if !ours.into_iter().any(super::is_installed) {
        return Some(format!(
            "{} are missing: expected one of them (Debian package wireguard-go)",
            ours.join(" and ")
        ));
    }
    let other = [("wg", "wireguard-tools"), ("chrt", "util-linux")];
    let (program, package) = other
        .into_iter()
        .find(|(program, _)| !super::is_installed(program))?;
    Some(format!("{program} is missing: expected Debian package {package}"))
}

/// The address of a host within the tunnel.
pub(super) fn inner(host: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd53, 0x5347, 0, 0, 0, 0, 0, host as u16 + 1)
}

/// The longest packet within.
fn mtu(outer: u32) -> u32 {
    outer.saturating_sub(OVERHEAD).max(LEAST_MTU)
}

/// Two ends: who connects, and who is connected to at an address that stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Pair {
    pub(crate) client: u32,
    pub(crate) server: u32,
    pub(crate) address: Ipv6Addr,
}

/// Tunnels between hosts. Dropping them ends their programs.
#[derive(Debug, Default)]
pub(crate) struct Tunnels(Vec<Tunnel>);

#[derive(Debug)]
struct Tunnel {
    program: Child,
    socket: PathBuf,
}

impl Tunnels {
    /// Makes a device at each host that is an end of a pair, and tells it of its peers.
    pub(crate) fn make(hosts: &mut [Host], pairs: &BTreeSet<Pair>) -> anyhow::Result<Self> {
        remove_abandoned(Path::new(SOCKETS));
        let mut all = Self::default();
        let keys: Vec<(String, String)> = hosts.iter().map(|_| key_pair()).collect::<Result<_, _>>()?;
        for (number, host) in hosts.iter_mut().enumerate() {
            let number = number as u32;
            let is_in = |pair: &&Pair| pair.client == number || pair.server == number;
            if !pairs.iter().any(|pair| is_in(&pair)) {
                continue;
            }
            let device = device(number);
            all.0.push(Tunnel::begin(host, &device)?);
            let mut words = vec![
                "set".to_owned(),
                device.clone(),
                "listen-port".to_owned(),
                PORT.to_string(),
                "private-key".to_owned(),
                "/dev/stdin".to_owned(),
            ];
            for pair in pairs.iter().filter(is_in) {
                words.extend(peer(*pair, number, &keys));
            }
            wg(host, &words, &keys[number as usize].0)?;
            host.begin_tunnel_by(hellos(number, pairs, &keys));
        }
        Ok(all)
    }
}

/// The end of a tunnel at a host, until that has an address.
#[derive(Debug)]
pub(crate) struct TunnelEnd {
    /// Lines for ip(8) that bring it up.
    up: String,
    /// Those who are to hear of it then.
    hellos: Vec<Hello>,
}

impl TunnelEnd {
    /// Who is to hear of it when it begins.
    pub(super) fn begin_by(&mut self, hellos: Vec<Hello>) {
        self.hellos = hellos;
    }

    /// At `host`, whose own interfaces take packets up to `outer_mtu`.
    pub(super) fn new(host: u32, outer_mtu: u32, congestion_control: &str) -> Self {
        let device = device(host);
        let up = format!(
            "link set {device} mtu {} up\n\
             address replace {}/128 dev {device} nodad\n\
             route replace {PREFIX} dev {device} congctl {congestion_control}\n",
            mtu(outer_mtu),
            inner(host),
        );
        Self {
            up,
            hellos: Vec::new(),
        }
    }

    /// Begins, once there is an address; further ones change nothing. Gives lines for ip(8).
    pub(super) fn begin(&mut self) -> String {
        for hello in core::mem::take(&mut self.hellos) {
            // packets of others wait for this thread
            std::thread::spawn(move || hello.say());
        }
        core::mem::take(&mut self.up)
    }
}

/// A peer of a device that is to hear of it.
///
/// A handshake is lost if either end is not up yet, and the next one is five seconds later (whitepaper, section 6.1:
/// Rekey-Timeout). So the peer is made anew, and with it that time, until there has been one.
#[derive(Debug)]
pub(crate) struct Hello {
    device: String,
    /// The peer's public key.
    key: String,
    /// What wg(8) is told of it.
    words: Vec<String>,
}

impl Hello {
    fn say(&self) -> anyhow::Result<()> {
        let set = ["set", &self.device];
        for attempt in 0..HANDSHAKES {
            said_by(Command::new("wg").args(set).args(&self.words), "")?;
            wait(&[], Some(HANDSHAKE * (1 << attempt)))?;
            let handshakes = said_by(
                Command::new("wg").args(["show", &self.device, "latest-handshakes"]),
                "",
            )?;
            if has_shaken_hands(&handshakes, &self.key) {
                return Ok(());
            }
            said_by(
                Command::new("wg").args(set).args(["peer", &self.key, "remove"]),
                "",
            )?;
        }
        said_by(Command::new("wg").args(set).args(&self.words), "").map(drop)
    }
}

/// Whether a peer is among those of `wg show DEVICE latest-handshakes` that have: key, tab, seconds of an epoch, or 0.
fn has_shaken_hands(lines: &str, key: &str) -> bool {
    let peers = lines.lines().filter_map(|line| line.split_once('\t'));
    peers
        .into_iter()
        .any(|(peer, at)| peer == key && at.trim() != "0")
}

fn device(host: u32) -> String {
    format!("{MARK}{}n{host}", std::process::id())
}

/// The other end of a pair, for wg(8): who connects knows where that is, and sees to it that it is heard.
fn peer(pair: Pair, number: u32, keys: &[(String, String)]) -> Vec<String> {
    let connects = pair.client == number;
    let other = if connects { pair.server } else { pair.client };
    let mut words = vec![
        "peer".to_owned(),
        keys[other as usize].1.clone(),
        "allowed-ips".to_owned(),
        format!("{}/128", inner(other)),
    ];
    if connects {
        words.extend(["endpoint".to_owned(), format!("[{}]:{PORT}", pair.address)]);
    }
    words
}

/// The other ends of a host that connects: they are to hear of it.
fn hellos(number: u32, pairs: &BTreeSet<Pair>, keys: &[(String, String)]) -> Vec<Hello> {
    let own = pairs.iter().filter(|pair| pair.client == number);
    own.map(|pair| {
        let keep_alive = ["persistent-keepalive".to_owned(), KEEPALIVE_S.to_string()];
        Hello {
            device: device(number),
            key: keys[pair.server as usize].1.clone(),
            words: peer(*pair, number, keys).into_iter().chain(keep_alive).collect(),
        }
    })
    .collect()
}

impl Tunnel {
    /// The program, once it can be configured.
    fn begin(host: &Host, device: &str) -> anyhow::Result<Self> {
        let installed = |(program, _): &&(&str, &[&str])| super::is_installed(program);
        let (program, words) = PROGRAMS.iter().find(installed).context("WireGuard")?;
        let spawned = host.namespace().within(|| {
            Command::new("chrt")
                .args(["-f", PRIORITY, program])
                .args(*words)
                .arg(device)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        });
        let mut tunnel = Self {
            program: spawned.with_context(|| (*program).to_owned())?,
            socket: Path::new(SOCKETS).join(format!("{device}.sock")),
        };
        let mut waited = Duration::ZERO;
        while !tunnel.socket.exists() {
            if let Some(status) = tunnel.program.try_wait()? {
                bail!("{program} ended at once, {status}");
            }
            if waited >= SOON {
                bail!("{program} did not begin in {} s", SOON.as_secs_f64());
            }
            wait(&[], Some(LOOK))?;
            waited += LOOK;
        }
        Ok(tunnel)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

/// Removes what programs of killed runs were configured by. The process that a name has may be one of another PID namespace (a
/// container that shares the folder), of which nothing is known here: then somebody listens.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let is_gone = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
    let is_silent = |path: &Path| {
        UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(MARK).and_then(|rest| rest.split('n').next());
        let process = owner.and_then(|text| text.parse::<u32>().ok());
        if process.is_some_and(is_gone) && is_silent(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A private and a public key.
fn key_pair() -> anyhow::Result<(String, String)> {
    let private = said_by(Command::new("wg").arg("genkey"), "")?;
    let public = said_by(Command::new("wg").arg("pubkey"), &private)?;
    Ok((private, public))
}

fn wg(host: &Host, words: &[String], input: &str) -> anyhow::Result<()> {
    let done = host.namespace().within(|| {
        said_by(Command::new("wg").args(words), input)
            .map_err(|error| std::io::Error::other(error.to_string()))
    });
    done.map(|_| ()).context("WireGuard")
}

/// What a program says to an input.
fn said_by(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("wg")?;
    if let Some(mut pipe) = child.stdin.take() {
        // if it ends before it has read that, its status and its words say why
        let _ = pipe.write_all(input.as_bytes());
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        bail!("wg: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_connects_knows_where_its_peer_is_and_who_is_connected_to_learns_it() {
        let pair = Pair {
            client: 1,
            server: 0,
            address: "2001:db8:ff00::1".parse().unwrap(),
        };
        let keys = [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        assert_eq!(
            peer(pair, 1, &keys).join(" "),
            "peer A allowed-ips fd53:5347::1/128 endpoint [2001:db8:ff00::1]:51820"
        );
        assert_eq!(
            peer(pair, 0, &keys).join(" "),
            "peer B allowed-ips fd53:5347::2/128"
        );
    }

    #[test]
    fn a_peer_has_shaken_hands_once_there_is_a_time_beside_its_key() {
        let said = "A=\t0\nB=\t1763900000";
        assert!(!has_shaken_hands(said, "A="));
        assert!(has_shaken_hands(said, "B="));
        assert!(!has_shaken_hands(said, "C="));
    }

    #[test]
    fn a_socket_that_somebody_listens_at_stays_whatever_its_process_is_called_here() {
        use std::os::unix::net::UnixListener;
        let folder = std::env::temp_dir().join(format!("segue-wireguard-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // no process has such a number, and one has this
        let far = folder.join("sgw4194305n0.sock");
        let here = folder.join(format!("sgw{}n0.sock", std::process::id()));
        let others = folder.join("wg0.sock");
        let listener = UnixListener::bind(&far).unwrap();
        for path in [&here, &others] {
            drop(UnixListener::bind(path).unwrap());
        }
        remove_abandoned(&folder);
        assert!(far.exists() && here.exists() && others.exists());
        drop(listener);
        remove_abandoned(&folder);
        assert!(!far.exists() && here.exists() && others.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_packet_within_fits_into_one_without() {
        assert_eq!(mtu(1500), 1420);
        assert_eq!(mtu(1280), 1280);
    }
}
