//! The server's configuration file, and key files.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use segue_proto::Duration;
use segue_proto::location::tsig::{Algorithm, Key};
use segue_proto::location::{Grant, KeyConfig, MOST_RECORDS, Room, ServerConfig, ZoneConfig, parse_name};
use serde::Deserialize;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Least length of a secret, bytes: half of what RFC 8945 section 8 recommends for HMAC-SHA-256, and what RFC 2104
/// section 3 would call too short.
const LEAST_SECRET: usize = 16;

/// The file of `segue location serve`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// Addresses and ports to listen on, UDP and TCP. A host with several addresses lists them: answers come from the
    /// address that was asked. `[::]` is for IPv4 too, unless an address of that is listed with the same port.
    pub listen: Vec<SocketAddr>,
    /// Where the zones are kept. Made if it is missing; relative to the file.
    pub directory: PathBuf,
    /// Names that a zone may have; a million if it is left out. Those that are there move in a zone that is full.
    pub most_names: Option<usize>,
    /// Records that a name may have; 64 if it is left out.
    pub most_records_per_name: Option<usize>,
    /// Zones.
    #[serde(default)]
    pub zone: Vec<ZoneEntry>,
    /// Keys.
    #[serde(default)]
    pub key: Vec<KeyEntry>,
}

/// `[[zone]]`: only the name matters once the zone is kept in the directory.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneEntry {
    /// Name.
    pub name: String,
    /// Name of this server; `ns` in the zone if it is left out.
    pub server: Option<String>,
    /// Addresses of this server's name.
    #[serde(default)]
    pub addresses: Vec<Ipv6Addr>,
    /// Time to live of SOA, NS and negative answers: "5 s".
    pub ttl: Option<String>,
}

/// `[[key]]`
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// Key file, relative to this file.
    pub file: PathBuf,
    /// Names that the key may change: `mh.loc.example`, or `*.loc.example` for all below (and that) name.
    pub names: Vec<String>,
}

impl ServerFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// One line: the file, the key, what was expected.
    pub fn load(path: &Path) -> Result<(Self, ServerConfig)> {
        let text = read(path)?;
        let mut file: Self = toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
            anyhow::anyhow!(
                "{}: line {line}: {}",
                path.display(),
                e.message().replace('\n', " ")
            )
        })?;
        let base = path.parent().unwrap_or(Path::new("."));
        file.directory = base.join(&file.directory);
        let config = file
            .server_config(base)
            .with_context(|| path.display().to_string())?;
        Ok((file, config))
    }

    fn server_config(&self, base: &Path) -> Result<ServerConfig> {
        if self.listen.is_empty() {
            bail!("listen: expected at least one address and port");
        }
        let mut zones = Vec::new();
        for entry in &self.zone {
            let name = parse_name(&entry.name)
                .map_err(anyhow::Error::msg)
                .context("zone.name")?;
            let mut zone = ZoneConfig::new(name, entry.addresses.clone()).context("zone.name")?;
            if let Some(server) = &entry.server {
                zone.server = parse_name(server)
                    .map_err(anyhow::Error::msg)
                    .context("zone.server")?;
            }
            if let Some(ttl) = &entry.ttl {
                zone.ttl = seconds(ttl).context("zone.ttl")?;
            }
            zones.push(zone);
        }
        let mut keys = Vec::new();
        for entry in &self.key {
            let grants = entry
                .names
                .iter()
                .map(|n| grant(n))
                .collect::<Result<_>>()
                .context("key.names")?;
            let key = read_key(&base.join(&entry.file))?;
            keys.push(KeyConfig { key, grants });
        }
        let defaults = Room::default();
        let config = ServerConfig {
            journal: true,
            room: Room {
                names: self.most_names.unwrap_or(defaults.names),
                records: self.most_records_per_name.unwrap_or(defaults.records),
                ..defaults
            },
            ..ServerConfig::new(zones, keys)
        };
        if !(1..=MOST_RECORDS).contains(&config.room.records) {
            bail!("most_records_per_name: expected 1 to {MOST_RECORDS}");
        }
        config.check()?;
        Ok(config)
    }
}

/// A key from a file as `tsig-keygen` writes it: `key "name" { algorithm hmac-sha256; secret "..."; };`.
///
/// # Errors
/// One line: the file, and what was expected. A file that others may read, or write, is refused: whoever has the key can
/// say where its host is.
pub fn read_key(path: &Path) -> Result<Key> {
    let cannot = || format!("{}: cannot be read", path.display());
    let mut file = OpenOptions::new().read(true).open(path).with_context(cannot)?;
    let mode = file.metadata().with_context(cannot)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        bail!(
            "{}: its mode is {mode:03o}, so that others than its owner have the key: expected 600 (chmod 600)",
            path.display()
        );
    }
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(cannot)?;
    parse_key(&text).with_context(|| path.display().to_string())
}

fn parse_key(text: &str) -> Result<Key> {
    let source: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ");
    let spaced = source.replace(['{', '}', ';'], " ");
    let words: Vec<&str> = spaced.split_whitespace().map(|w| w.trim_matches('"')).collect();
    let ["key", name, rest @ ..] = &words[..] else {
        bail!("expected a key as tsig-keygen writes it: key \"name\" {{ algorithm ...; secret ...; }};");
    };
    let (mut algorithm, mut secret) = (None, None);
    for pair in rest.chunks(2) {
        match pair {
            ["algorithm", value] => {
                let known = Algorithm::from_name(value);
                algorithm = Some(known.with_context(|| {
                    format!("algorithm {value}: expected hmac-sha256, hmac-sha384 or hmac-sha512")
                })?);
            }
            ["secret", value] => {
                secret = Some(STANDARD.decode(value).ok().context("secret: expected base64")?);
            }
            _ => bail!("expected one key with an algorithm and a secret"),
        }
    }
    let name = parse_name(name).map_err(anyhow::Error::msg)?;
    let (Some(algorithm), Some(secret)) = (algorithm, secret) else {
        bail!("expected an algorithm and a secret");
    };
    if secret.len() < LEAST_SECRET {
        bail!("secret: expected at least {LEAST_SECRET} bytes");
    }
    Ok(Key::new(name, algorithm, secret))
}

/// Whole seconds from a quantity with its unit.
///
/// # Errors
/// What was expected.
pub fn seconds(text: &str) -> Result<u32> {
    let duration = text.parse::<Duration>()?;
    let seconds = duration.as_nanos() / 1_000_000_000;
    if duration.as_nanos() % 1_000_000_000 != 0 {
        bail!("`{text}`: expected whole seconds");
    }
    u32::try_from(seconds)
        .ok()
        .filter(|s| *s <= i32::MAX.unsigned_abs())
        .context("expected at most 2147483647 s")
}

fn grant(text: &str) -> Result<Grant> {
    let (below, text) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
    Ok(Grant {
        name: parse_name(text).map_err(anyhow::Error::msg)?,
        below,
    })
}

fn read(path: &Path) -> Result<String> {
    #[expect(clippy::disallowed_methods, reason = "a driver reads its configuration")]
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("segue-tsig-{}", std::process::id()));
        let secret = STANDARD.encode([7; 32]);
        let text = format!("key mh-key {{ algorithm hmac-sha256; secret {secret}; }};");
        let mut file = OpenOptions::new();
        let mut file = file
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)
            .expect("a file");
        std::io::Write::write_all(&mut file, text.as_bytes()).expect("written");
        let read_with = |mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("changed");
            read_key(&path).map_err(|e| e.to_string())
        };
        for mode in [0o644, 0o640, 0o604, 0o622] {
            let error = read_with(mode).expect_err("refused");
            assert!(error.contains(&format!("its mode is {mode:o}")), "{error}");
        }
        for mode in [0o600, 0o400] {
            assert!(read_with(mode).is_ok(), "{mode:o}");
        }
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn keys_are_read_as_tsig_keygen_writes_them() {
        let secret = STANDARD.encode([0xff; 32]);
        let key = parse_key(&format!(
            "key \"mh-key\" {{\n\talgorithm hmac-sha256;\n\tsecret \"{secret}\";\n}};\n"
        ));
        let expected = Key::new(
            parse_name("mh-key").expect("a name"),
            Algorithm::HmacSha256,
            vec![0xff; 32],
        );
        assert_eq!(key.expect("a key"), expected);
        for bad in [
            String::new(),
            "key x {}".to_owned(),
            format!("key x {{ algorithm hmac-md5; secret {secret}; }};"),
            "key x { algorithm hmac-sha256; secret \"c2hvcnQ=\"; };".to_owned(),
            "key x { algorithm hmac-sha256; secret \"!\"; };".to_owned(),
            format!("key x {{ algorithm hmac-sha256; secret {secret}; }}; key y {{}};"),
        ] {
            assert!(parse_key(&bad).is_err(), "{bad}");
        }
    }
}
