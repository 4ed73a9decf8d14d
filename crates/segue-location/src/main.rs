//! `segue-location`: the location manager on the command line.
//!
//! Exit status: 0 done, 1 the server said no or nothing, or it could not go on, 2 wrong input.

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use segue_location::{ask, config, serve};
use segue_proto::Duration;
use segue_proto::location::{ClientConfig, ClientEvent, Identity, PORT, parse_name};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Where a mobile host is: dynamic DNS (RFC 2136) with TSIG (RFC 8945).
#[derive(Debug, Parser)]
#[command(name = "segue location", version, about)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Be an authoritative server that keeps its zones in a directory.
    Serve {
        /// The configuration (TOML): listen, directory, [[zone]], [[key]].
        #[arg(long)]
        config: PathBuf,
    },
    /// Tell a server an identity's address.
    Update {
        #[command(flatten)]
        asked: Asked,
        /// Time that others may keep the address: whole seconds, as in "5 s".
        #[arg(long, default_value = "5 s")]
        ttl: String,
        /// Take the address away.
        #[arg(long, conflicts_with = "address")]
        delete: bool,
        /// Take an address that only this host can use: loopback or link-local.
        #[arg(long)]
        any_scope: bool,
        /// The address: an IPv6 address of a single host that others can reach.
        #[arg(required_unless_present = "delete")]
        address: Option<Ipv6Addr>,
    },
    /// Ask for an identity's address.
    Lookup {
        #[command(flatten)]
        asked: Asked,
    },
}

#[derive(Debug, Args)]
struct Asked {
    /// Server, with its port if that is not 53; may be repeated.
    #[arg(long, required = true)]
    server: Vec<String>,
    /// Zone of the identity: needed for updates, home addresses and keys.
    #[arg(long)]
    zone: Option<String>,
    /// Key file, as tsig-keygen writes it; only its owner may read it.
    #[arg(long)]
    key: Option<PathBuf>,
    /// Times that a request is sent.
    #[arg(long, default_value_t = 4)]
    attempts: u32,
    /// Time until it is sent again; doubled each time.
    #[arg(long, default_value = "1 s")]
    retry: Duration,
    /// Seconds to add to this machine's clock for signatures.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    clock_offset: i64,
    /// The result as JSON.
    #[arg(long)]
    json: bool,
    /// A domain name, `home:` and a home address, or `key:` and the SHA-256 hash of a public key.
    identity: String,
}

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(e) if !e.use_stderr() => {
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
        Err(e) => return wrong(&first_paragraph(&e.to_string())),
    };
    match carry_out(options.command) {
        Ok(status) => status,
        Err(e) => wrong(&format!("{e:#}")),
    }
}

fn carry_out(command: Command) -> Result<ExitCode> {
    match command {
        Command::Serve { config } => {
            let (file, config) = config::ServerFile::load(&config)?;
            let mut is_serving = false;
            let served = serve::serve(&file, config, |bound| {
                is_serving = true;
                let lines: Vec<String> = bound.iter().map(|a| format!("listening on {a}")).collect();
                // who is asked for locations does not end because nobody reads that
                let _ = print(&lines.join("\n"));
            });
            match served {
                // a disk that is full by now is no wrong input
                Err(error) if is_serving => {
                    say(&one_line(&format!("{error:#}")));
                    Ok(ExitCode::FAILURE)
                }
                served => served.map(|()| ExitCode::SUCCESS),
            }
        }
        Command::Update {
            asked,
            ttl,
            address,
            any_scope,
            ..
        } => {
            if let Some(address) = address {
                reachable(address, any_scope)?;
            }
            let ttl = Duration::from_secs(u64::from(config::seconds(&ttl).context("--ttl")?));
            let zone = asked
                .zone
                .as_deref()
                .context("--zone: expected the zone of the identity")?;
            let zone = parse_name(zone).map_err(anyhow::Error::msg).context("--zone")?;
            let name = Identity::parse(&asked.identity)?.name(&zone)?;
            let shown = name.to_string();
            let client = ClientConfig {
                record: Some((zone, name)),
                ttl,
                ..asked.client()?
            };
            let event = ask::ask(client, asked.clock_offset, |client, now| match address {
                Some(address) => client.update(now, address),
                None => client.withdraw(now),
            })?;
            report(&asked, &shown, &event)
        }
        Command::Lookup { asked } => {
            let identity = Identity::parse(&asked.identity)?;
            let name = match (&asked.zone, &identity) {
                (Some(zone), _) => {
                    identity.name(&parse_name(zone).map_err(anyhow::Error::msg).context("--zone")?)?
                }
                (None, Identity::Domain(name)) => name.clone(),
                (None, _) => anyhow::bail!("--zone: expected the zone of the identity"),
            };
            let event = ask::ask(asked.client()?, asked.clock_offset, |client, now| {
                client.look_up(now, &name);
            })?;
            report(&asked, &name.to_string(), &event)
        }
    }
}

impl Asked {
    fn client(&self) -> Result<ClientConfig> {
        let servers = self
            .server
            .iter()
            .map(|s| server(s))
            .collect::<Result<Vec<_>>>()?;
        let key = self.key.as_ref().map(|path| config::read_key(path)).transpose()?;
        Ok(ClientConfig {
            key,
            attempts: Some(self.attempts),
            retry_initial: self.retry,
            retry_max: self.retry * 16,
            ..ClientConfig::new(servers)
        })
    }
}

/// Refuses an address at which nobody finds the identity.
fn reachable(address: Ipv6Addr, any_scope: bool) -> Result<()> {
    let what = if address.is_unspecified() {
        "the unspecified address"
    } else if address.is_multicast() {
        "a multicast address"
    } else if address.to_ipv4_mapped().is_some() {
        "an IPv4 address"
    } else if !any_scope && address.is_loopback() {
        "the loopback address (see --any-scope)"
    } else if !any_scope && address.is_unicast_link_local() {
        "a link-local address (see --any-scope)"
    } else {
        return Ok(());
    };
    anyhow::bail!("{address}: is {what}, expected the IPv6 address of a single host that others can reach")
}

fn server(text: &str) -> Result<(Ipv6Addr, u16)> {
    let socket = text.parse::<SocketAddr>().ok();
    let bare = text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT));
    let address = socket.or(bare);
    let address = address
        .with_context(|| format!("--server {text}: expected an address, as in 192.0.2.1:53 or [::1]:53"))?;
    if let IpAddr::V6(a) = address.ip()
        && socket.is_none()
        && let Some((host, port)) = with_port(text)
    {
        anyhow::bail!(
            "--server {text}: is it [{host}]:{port}, or [{a}]:{PORT}? expected brackets around the address"
        );
    }
    if address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0 {
        anyhow::bail!("--server {text}: expected the address of a single host, and a port from 1 to 65535");
    }
    Ok(match address.ip() {
        IpAddr::V4(a) => (a.to_ipv6_mapped(), address.port()),
        IpAddr::V6(a) => (a, address.port()),
    })
}

/// `::1:5300` is an address, but what was meant may be another with a port.
fn with_port(text: &str) -> Option<(Ipv6Addr, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.len() > 1)?;
    Some((host.parse().ok()?, port))
}

fn report(asked: &Asked, name: &str, event: &ClientEvent) -> Result<ExitCode> {
    let seconds = |d: &Duration| d.as_secs_f64();
    let (json, text, ok) = match event {
        ClientEvent::Updated {
            address,
            latency,
            sent,
        } => (
            serde_json::json!({"name": name, "address": address, "latency_s": seconds(latency), "sent": sent}),
            match address {
                Some(address) => format!("{name} is at {address}"),
                None => format!("{name} is nowhere"),
            },
            true,
        ),
        ClientEvent::Resolved {
            addresses,
            ttl,
            latency,
            ..
        } => {
            let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            (
                serde_json::json!({"name": name, "addresses": list, "ttl_s": seconds(ttl), "latency_s": seconds(latency)}),
                format!("{name} is at {}", list.join(", ")),
                true,
            )
        }
        ClientEvent::LocatorsUpdated { locators, .. } | ClientEvent::LocatorsFound { locators, .. } => {
            let list: Vec<String> = locators.iter().map(|(l, _)| l.to_string()).collect();
            (
                serde_json::json!({"name": name, "locators": list}),
                format!("{name} is at {}", list.join(", ")),
                true,
            )
        }
        ClientEvent::UpdateFailed { failure, .. }
        | ClientEvent::LocatorsUpdateFailed { failure }
        | ClientEvent::LookupFailed { failure, .. } => (
            serde_json::json!({"name": name, "failure": failure.to_string()}),
            format!("{name}: {failure}"),
            false,
        ),
    };
    if !ok {
        say(&text);
    }
    if asked.json {
        print(&json.to_string())?;
    } else if ok {
        print(&text)?;
    }
    Ok(ExitCode::from(u8::from(!ok)))
}

/// Prints a line. A reader who has had enough (a broken pipe) is no error.
fn print(line: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Says it on standard error, whether or not somebody reads that.
fn say(message: &str) {
    let _ = writeln!(io::stderr(), "segue location: {message}");
}

fn wrong(message: &str) -> ExitCode {
    say(&one_line(message));
    ExitCode::from(2)
}

/// The message in one line, without the numbers that the operating system has for its errors.
fn one_line(message: &str) -> String {
    let mut line = message.replace('\n', " ");
    while let Some(begin) = line.find(" (os error ") {
        let end = line[begin..].find(')').map_or(line.len(), |n| begin + n + 1);
        line.replace_range(begin..end, "");
    }
    line
}

/// What is wrong, without the usage that follows it.
fn first_paragraph(message: &str) -> String {
    let text = message.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_may_have_a_port_at_its_end_needs_brackets() {
        for text in ["::1:5300", "2001:db8::53:53", "fe80::1:53"] {
            let error = server(text).unwrap_err().to_string();
            assert!(error.contains("expected brackets around the address"), "{error}");
        }
        let expected = |text: &str, ip: &str, port| {
            assert_eq!(server(text).expect(text), (ip.parse().expect("an address"), port));
        };
        expected("[::1]:5300", "::1", 5300);
        expected("::1", "::1", 53);
        expected("2001:db8::1", "2001:db8::1", 53);
        expected("[::1:5300]:53", "::1:5300", 53);
        expected("192.0.2.1:5300", "::ffff:192.0.2.1", 5300);
        for text in ["::", "ff02::1", "[::1]:0", "0.0.0.0", "ns.example"] {
            assert!(server(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_that_nobody_reaches_are_not_published() {
        for (address, says) in [
            ("::", "the unspecified address"),
            ("ff02::1", "a multicast address"),
            ("::1", "the loopback address"),
            ("fe80::1", "a link-local address"),
            ("::ffff:192.0.2.1", "an IPv4 address"),
        ] {
            let parsed = address.parse().expect("an address");
            let error = reachable(parsed, false).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{address}: is {says}")), "{error}");
            let told = ["::1", "fe80::1"].contains(&address);
            assert_eq!(reachable(parsed, true).is_ok(), told, "{address}");
        }
        assert!(reachable("2001:db8::1".parse().expect("an address"), false).is_ok());
    }
}
