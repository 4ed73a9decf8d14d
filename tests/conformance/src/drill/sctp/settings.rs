//! Settings of a script as a [`Config`].
//!
//! An association of ours has the settings of its endpoint from its beginning on. A script may make them at any time, so they
//! are read ahead from the whole of it; one that is set to different values at different times is refused.

use super::addresses::Family;
use crate::drill::arguments::{Members, flags, members, number, numbers};
use crate::drill::ast::{Action, Call, Expression, Script, Shell};
use crate::drill::stack::Refusal;
use segue_proto::Duration;
use segue_proto::sctp::{
    AuthConfig, Config, HmacIdentifier, MultipathConfig, PmtuDiscovery, Profile, SharedKey,
};
use std::collections::BTreeMap;

/// The settings of a script, each with its line.
#[derive(Default)]
struct Settings(BTreeMap<&'static str, (i64, usize)>);

/// The configuration that a script asks for.
///
/// # Errors
/// With the line, if it asks for what cannot be set, or cannot be set to two values.
pub fn config(script: &Script, family: Family, profile: Profile) -> Result<Config, (usize, Refusal)> {
    let mut settings = Settings::default();
    let mut auth = AuthConfig::default();
    for shell in script.setup.iter().chain(&script.cleanup) {
        settings.shell(shell).map_err(|r| (shell.line, r))?;
    }
    let mut opened = false;
    for event in &script.events {
        let done = match &event.action {
            Action::Shell(shell) => settings.shell(shell),
            Action::Call(call) if call.name == "setsockopt" => {
                let done = settings.option(event.line, call);
                match (done, opened) {
                    (Ok(false), false) => keys(call, &mut auth),
                    (done, _) => done.map(|_| ()),
                }
            }
            Action::Call(call) => {
                opened |= ["listen", "connect", "sctp_connectx"].contains(&call.name.as_str());
                Ok(())
            }
            Action::Packet(_) | Action::Code(_) => Ok(()),
        };
        done.map_err(|refusal| (event.line, refusal))?;
    }
    let mut config = Config {
        auth,
        ..Config::new(profile)
    };
    config.mtu += family.longer_header();
    for option in &script.options {
        if option.name == "mtu" {
            let mtu = option.value.as_deref().and_then(|v| v.parse::<u32>().ok());
            let mtu = mtu.ok_or_else(|| (option.line, Refusal("an MTU that is no number".to_owned())))?;
            config.mtu = mtu + family.longer_header();
        }
    }
    settings.apply(&mut config, family).map_err(|refusal| {
        (
            settings.0.values().map(|(_, line)| *line).max().unwrap_or(1),
            refusal,
        )
    })?;
    Ok(config)
}

impl Settings {
    fn set(&mut self, key: &'static str, value: i64, line: usize) -> Result<(), Refusal> {
        match self.0.insert(key, (value, line)) {
            Some((before, at)) if before != value => Refusal::new(format!(
                "{key} set to {value}, and to {before} in line {at}: an association keeps what its endpoint had"
            )),
            _ => Ok(()),
        }
    }

    /// As `set`, where zero leaves things as they are.
    fn set_unless_zero(&mut self, key: &'static str, value: i64, line: usize) -> Result<(), Refusal> {
        if value == 0 {
            return Ok(());
        }
        self.set(key, value, line)
    }

    /// Commands of a shell: `sysctl` with what is known of it.
    fn shell(&mut self, shell: &Shell) -> Result<(), Refusal> {
        for command in shell.commands.split(['\n', ';']) {
            let mut words = command.split_whitespace();
            match words.next() {
                None => continue,
                Some("sysctl") => {}
                Some(other) => return Refusal::new(format!("the command {other}")),
            }
            for word in words.filter(|w| !w.starts_with('-')) {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                let value = value.parse().map_err(|_| Refusal(format!("{word}: no number")))?;
                let known = SYSCTLS.iter().find(|(n, _)| *n == name);
                let Some((_, key)) = known else {
                    return Refusal::new(format!("the setting {name}"));
                };
                match *key {
                    "auth_disable" => self.set("auth", i64::from(value == 0), shell.line)?,
                    key => self.set(key, value, shell.line)?,
                }
            }
        }
        Ok(())
    }

    /// A socket option. Returns whether it is one of those that are read ahead.
    fn option(&mut self, line: usize, call: &Call) -> Result<bool, Refusal> {
        let [_, level, name, value, ..] = &call.arguments[..] else {
            return Refusal::new("setsockopt with fewer than four arguments");
        };
        let (Expression::Name(level), Expression::Name(name)) = (level, name) else {
            return Refusal::new("a socket option that is not named");
        };
        let single = || match value {
            Expression::Array(values) if values.len() == 1 => number(&values[0]),
            Expression::Struct(_) => members(value)?.number("assoc_value"),
            other => number(other),
        };
        match (level.as_str(), name.as_str()) {
            ("SOL_SOCKET", "SO_REUSEADDR") => {}
            ("SOL_SOCKET", "SO_RCVBUF") => self.set("receive_buffer", single()?, line)?,
            ("SOL_SOCKET", "SO_SNDBUF") => self.set("send_buffer", single()?, line)?,
            ("SOL_SOCKET", "SO_LINGER") => return Ok(false),
            ("IPPROTO_SCTP", name) => return self.sctp_option(line, name, value, &single),
            (level, name) => return Refusal::new(format!("the socket option {level}, {name}")),
        }
        Ok(true)
    }

    fn sctp_option(
        &mut self,
        line: usize,
        name: &str,
        value: &Expression,
        single: &dyn Fn() -> Result<i64, Refusal>,
    ) -> Result<bool, Refusal> {
        let mut each = |names: &[(&'static str, &str)]| -> Result<(), Refusal> {
            let members = members(value)?;
            for (key, member) in names {
                if let Some(value) = members.optional(member)? {
                    self.set_unless_zero(key, value, line)?;
                }
            }
            Ok(())
        };
        match name {
            "SCTP_RTOINFO" => each(&[
                ("rto_initial", "srto_initial"),
                ("rto_max", "srto_max"),
                ("rto_min", "srto_min"),
            ])?,
            "SCTP_INITMSG" => each(&[
                ("outbound_streams", "sinit_num_ostreams"),
                ("max_inbound_streams", "sinit_max_instreams"),
                ("max_init_attempts", "sinit_max_attempts"),
                ("max_init_timeout", "sinit_max_init_timeo"),
            ])?,
            "SCTP_ASSOCINFO" => each(&[
                ("association_max_retrans", "sasoc_asocmaxrxt"),
                ("valid_cookie_life", "sasoc_cookie_life"),
            ])?,
            "SCTP_DELAYED_SACK" => each(&[("sack_delay", "sack_delay"), ("sack_frequency", "sack_freq")])?,
            "SCTP_PEER_ADDR_THLDS" => {
                let members = members(value)?;
                let thresholds = [
                    ("path_max_retrans", "spt_pathmaxrxt"),
                    ("pf_max_retrans", "spt_pathpfthld"),
                    ("primary_switchover_max_retrans", "spt_pathcpthld"),
                ];
                for (key, member) in thresholds {
                    if let Some(value) = members.optional(member)? {
                        self.set(key, value, line)?;
                    }
                }
            }
            "SCTP_PEER_ADDR_PARAMS" => self.peer_address_parameters(line, &members(value)?)?,
            "SCTP_MAX_BURST" => self.set("max_burst", single()?, line)?,
            "SCTP_MAXSEG" => self.set("max_chunk_data", single()?, line)?,
            "SCTP_AUTO_ASCONF" => self.set("auto_asconf", single()?, line)?,
            "SCTP_CMT_ON_OFF" => self.set("multipath", single()?, line)?,
            "SCTP_ECN_SUPPORTED" => self.set("ecn", single()?, line)?,
            "SCTP_PR_SUPPORTED" => self.set("partial_reliability", single()?, line)?,
            "SCTP_ASCONF_SUPPORTED" => self.set("asconf", single()?, line)?,
            "SCTP_AUTH_SUPPORTED" => self.set("auth", single()?, line)?,
            "SCTP_RECONFIG_SUPPORTED" => self.set("reconfiguration", single()?, line)?,
            "SCTP_NRSACK_SUPPORTED" => self.set("nr_sack", single()?, line)?,
            "SCTP_NODELAY" if single()? != 0 => {}
            "SCTP_AUTH_CHUNK"
            | "SCTP_HMAC_IDENT"
            | "SCTP_AUTH_KEY"
            | "SCTP_AUTH_ACTIVE_KEY"
            | "SCTP_PRIMARY_ADDR"
            | "SCTP_SET_PEER_PRIMARY_ADDR" => return Ok(false),
            other => return Refusal::new(format!("the socket option {other}")),
        }
        Ok(true)
    }

    fn peer_address_parameters(&mut self, line: usize, members: &Members<'_>) -> Result<(), Refusal> {
        let set = match members.value("spp_flags") {
            Some(expression) => flags(expression)?,
            None => Vec::new(),
        };
        let interval = members.optional("spp_hbinterval")?.unwrap_or(0);
        for flag in set {
            match flag {
                "SPP_HB_DISABLE" => self.set("hb_interval", 0, line)?,
                "SPP_HB_ENABLE" if interval > 0 => self.set("hb_interval", interval, line)?,
                "SPP_HB_ENABLE" | "SPP_PMTUD_ENABLE" => {}
                "SPP_PMTUD_DISABLE" => {
                    self.set("pmtu_discovery", 0, line)?;
                    let mtu = members.optional("spp_pathmtu")?.unwrap_or(0);
                    self.set_unless_zero("mtu", mtu, line)?;
                }
                other => return Refusal::new(format!("the flag {other}")),
            }
        }
        let retrans = members.optional("spp_pathmaxrxt")?.unwrap_or(0);
        self.set_unless_zero("path_max_retrans", retrans, line)
    }

    fn apply(&self, config: &mut Config, family: Family) -> Result<(), Refusal> {
        let at = |key: &str| self.0.get(key).map(|(value, _)| *value);
        for (key, (value, _)) in &self.0 {
            let value = *value;
            if value.unsigned_abs() > LONGEST_MS {
                return Refusal::new(format!("{key} of {value}"));
            }
            let ms = Duration::from_millis(value.unsigned_abs());
            let narrow = u32::try_from(value).map_err(|_| Refusal(format!("{key} of {value}")))?;
            match *key {
                "rto_initial" => config.rto_initial = ms,
                "rto_min" => config.rto_min = ms,
                "rto_max" => config.rto_max = ms,
                "outbound_streams" => config.outbound_streams = narrow as u16,
                "max_inbound_streams" => config.max_inbound_streams = narrow as u16,
                // attempts, the first one included (RFC 6458 section 5.3.1)
                "max_init_attempts" => config.max_init_retransmits = narrow.saturating_sub(1),
                "max_init_retransmits" => config.max_init_retransmits = narrow,
                "max_init_timeout" => config.max_init_timeout = Some(ms),
                "association_max_retrans" => config.association_max_retrans = narrow,
                "path_max_retrans" => config.path_max_retrans = narrow,
                "pf_max_retrans" => config.pf_max_retrans = (value < 65_535).then_some(narrow),
                "primary_switchover_max_retrans" => {
                    config.primary_switchover_max_retrans = (value < 65_535).then_some(narrow);
                }
                "valid_cookie_life" => config.valid_cookie_life = ms,
                "hb_interval" => config.hb_interval = (value > 0).then_some(ms),
                "sack_delay" => config.sack_delay = ms,
                "sack_frequency" => config.sack_frequency = narrow,
                "pmtu_discovery" => config.pmtu_discovery = PmtuDiscovery::None,
                "mtu" => config.mtu = narrow + family.longer_header(),
                "max_burst" => config.max_burst = (value > 0).then_some(narrow),
                "max_chunk_data" => config.max_chunk_data = (value > 0).then_some(narrow),
                "receive_buffer" => config.receive_buffer = narrow,
                "send_buffer" => config.send_buffer = narrow,
                "auto_asconf" => config.auto_asconf = value != 0,
                "partial_reliability" => config.partial_reliability = value != 0,
                "reconfiguration" => config.stream_reconfiguration = value != 0,
                "multipath" | "nr_sack" => {}
                "ecn" | "packet_drop" if value != 0 => return Refusal::new(*key),
                "ecn" | "packet_drop" => {}
                "asconf" => config.dynamic_addresses = value != 0,
                // it is offered for ASCONF, and for the chunks that ask for it
                "auth" if value == 0 && at("asconf") != Some(0) => {
                    return Refusal::new("ASCONF without authentication");
                }
                "auth" => {}
                other => unreachable!("{other}"),
            }
        }
        if config.rto_min > config.rto_max {
            return Refusal::new(format!(
                "RTO.Min of {} with RTO.Max of {}",
                config.rto_min, config.rto_max
            ));
        }
        // RFC 8200 section 5; RFC 9260 section 3.3.2
        if config.mtu < LEAST_MTU || config.receive_buffer < LEAST_WINDOW {
            return Refusal::new("an MTU of less than 1280 bytes, or a receive buffer of less than 1500");
        }
        if config.outbound_streams == 0 || config.max_inbound_streams == 0 {
            return Refusal::new("no streams");
        }
        let nr_sack = at("nr_sack").is_some_and(|on| on != 0);
        if at("multipath").is_some_and(|on| on != 0) || nr_sack {
            config.multipath = Some(MultipathConfig {
                nr_sack,
                ..MultipathConfig::default()
            });
        }
        Ok(())
    }
}

const LEAST_MTU: u32 = 1280;
const LEAST_WINDOW: u32 = 1500;

/// Settings of the kernels, and what they set here.
const SYSCTLS: &[(&str, &str)] = &[
    ("net.inet.sctp.ecn_enable", "ecn"),
    ("net.inet.sctp.pr_enable", "partial_reliability"),
    ("net.inet.sctp.asconf_enable", "asconf"),
    ("net.inet.sctp.pktdrop_enable", "packet_drop"),
    ("net.inet.sctp.reconfig_enable", "reconfiguration"),
    ("net.inet.sctp.auth_enable", "auth"),
    ("net.inet.sctp.auth_disable", "auth_disable"),
    ("net.inet.sctp.nrsack_enable", "nr_sack"),
    ("net.inet.sctp.nrsack_on_off", "nr_sack"),
    ("net.inet.sctp.cmt_on_off", "multipath"),
    ("net.sctp.rto_initial", "rto_initial"),
    ("net.sctp.rto_min", "rto_min"),
    ("net.sctp.rto_max", "rto_max"),
    ("net.sctp.max_burst", "max_burst"),
    ("net.sctp.hb_interval", "hb_interval"),
    ("net.sctp.sack_timeout", "sack_delay"),
    ("net.sctp.valid_cookie_life", "valid_cookie_life"),
    ("net.sctp.max_init_retransmits", "max_init_retransmits"),
    ("net.sctp.association_max_retrans", "association_max_retrans"),
    ("net.sctp.path_max_retrans", "path_max_retrans"),
    ("net.sctp.pf_retrans", "pf_max_retrans"),
    ("net.sctp.addip_enable", "asconf"),
    ("net.sctp.auth_enable", "auth"),
    ("net.sctp.prsctp_enable", "partial_reliability"),
    ("net.sctp.reconf_enable", "reconfiguration"),
];

/// Options of authentication, which an endpoint has from the beginning.
fn keys(call: &Call, auth: &mut AuthConfig) -> Result<(), Refusal> {
    let (Expression::Name(name), value) = (&call.arguments[2], &call.arguments[3]) else {
        return Ok(());
    };
    match name.as_str() {
        "SCTP_AUTH_CHUNK" => {
            let members = members(value)?;
            auth.required_chunks.push(members.number("sauth_chunk")? as u8);
        }
        "SCTP_HMAC_IDENT" => {
            let members = members(value)?;
            let identifiers = members.value("shmac_idents").map(numbers).transpose()?;
            auth.hmac_identifiers.clear();
            for identifier in identifiers.unwrap_or_default() {
                auth.hmac_identifiers.push(match identifier {
                    1 => HmacIdentifier::Sha1,
                    3 => HmacIdentifier::Sha256,
                    other => return Refusal::new(format!("the HMAC {other}")),
                });
            }
        }
        "SCTP_AUTH_KEY" => auth.shared_keys.push(shared_key(value)?),
        "SCTP_AUTH_ACTIVE_KEY" => auth.active_key = members(value)?.number("scact_keynumber")? as u16,
        _ => {}
    }
    Ok(())
}

/// The key of SCTP_AUTH_KEY.
pub fn shared_key(value: &Expression) -> Result<SharedKey, Refusal> {
    let members = members(value)?;
    let key = members.value("sca_key").map(numbers).transpose()?;
    Ok(SharedKey {
        id: members.number("sca_keynumber")? as u16,
        key: key.unwrap_or_default().iter().map(|b| *b as u8).collect(),
    })
}

/// The greatest value of any setting; as a time, in milliseconds, 49 days.
const LONGEST_MS: u64 = u32::MAX as u64;
