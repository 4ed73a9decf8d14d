//! What scripts set by a shell, as settings of ours.

use crate::drill::files;
use crate::drill::stack::Refusal;
use segue_proto::congestion::Algorithm;
use segue_proto::tcp::{Config, LossDetection};
use std::path::{Path, PathBuf};

/// Settings of the endpoint, until it begins.
#[derive(Debug)]
pub struct Settings {
    config: Config,
    /// Folder of the script.
    folder: PathBuf,
    /// Whether it makes a difference if data is paced.
    pacing_matters: bool,
    /// The endpoint has begun.
    settled: bool,
}

/// IPv6's header is so much longer than IPv4's, which scripts mean.
const LONGER_HEADER: u32 = 20;
/// IPv6 and TCP.
const HEADERS: u32 = 60;

impl Settings {
    pub fn new(config: Config, script: &str, pacing_matters: bool) -> Self {
        let folder = Path::new(script).parent().unwrap_or(Path::new("")).to_owned();
        Self {
            config: Config {
                mtu: 1500 + LONGER_HEADER,
                ..config
            },
            folder,
            pacing_matters,
            settled: false,
        }
    }

    /// What the endpoint begins with.
    pub fn settle(&mut self) -> Config {
        self.settled = true;
        self.config.clone()
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes a setting that `what` names.
    pub fn change(&mut self, what: &str, change: impl FnOnce(&mut Config)) -> Result<(), Refusal> {
        let mut changed = self.config.clone();
        change(&mut changed);
        if self.settled && changed != self.config {
            return Refusal::new(format!("{what} after the connection began"));
        }
        self.config = changed;
        Ok(())
    }

    /// TCP_MAXSEG: what is announced, and no more is sent.
    pub fn set_segment(&mut self, mss: u32) -> Result<(), Refusal> {
        self.change("TCP_MAXSEG", |c| c.mtu = mss + HEADERS)
    }

    /// What is announced in a SYN.
    pub fn announced_mss(&self) -> u32 {
        self.config.mtu - HEADERS
    }

    /// Commands.
    pub fn shell(&mut self, commands: &str) -> Result<(), Refusal> {
        for line in commands.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or_default();
            let line = REDIRECTIONS.iter().fold(line.to_owned(), |l, r| l.replace(r, ""));
            line.split([';', '|', '&']).try_for_each(|c| self.command(c))?;
        }
        Ok(())
    }

    fn command(&mut self, command: &str) -> Result<(), Refusal> {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(()),
            ["sysctl", rest @ ..] => {
                let mut settings = rest.iter().filter(|word| !word.starts_with('-'));
                settings.try_for_each(|word| self.assignment(word))
            }
            [script, rest @ ..] if script.ends_with("set_sysctls.py") => {
                rest.iter().try_for_each(|word| self.assignment(word))
            }
            [script] if script.starts_with("/tmp/sysctl_restore_") => Ok(()),
            [script] if script.ends_with(".sh") => self.source(script),
            // segments are sent one by one, without help from the interface
            ["ethtool", "-K", _, features @ ..] if features.iter().all(|f| OFFLOADS.contains(f)) => Ok(()),
            ["ip", "tcp_metrics", "flush", ..] => Ok(()),
            ["tc", "qdisc", "add" | "replace", "dev", _, "root", "pfifo"] => Ok(()),
            ["tc", "qdisc", "add" | "replace", "dev", _, "root", "fq"] if !self.pacing_matters => Ok(()),
            ["tc", "qdisc", "add" | "replace", "dev", _, "root", "fq"] => {
                Refusal::new("a qdisc that paces (fq)")
            }
            ["tc", ..] => Refusal::new(format!("a qdisc: {command}")),
            [
                "echo",
                "3",
                ">",
                "/sys/module/tcp_cubic/parameters/hystart_detect",
            ] => Ok(()),
            _ => Refusal::new(format!("the command `{}`", command.trim())),
        }
    }

    /// Commands of a file beside the script. Where links could not be made, a file holds the name of the one it stands for.
    fn source(&mut self, name: &str) -> Result<(), Refusal> {
        let mut path = self.folder.join(name);
        for _ in 0..MOST_LINKS {
            let text = files::read(&path).map_err(|error| Refusal(format!("{}: {error}", path.display())))?;
            match text.lines().collect::<Vec<_>>().as_slice() {
                [target] if target.ends_with(".sh") && !target.contains(' ') => {
                    path = path.parent().unwrap_or(Path::new("")).join(target);
                }
                _ => return self.shell(&text),
            }
        }
        Refusal::new(format!("{name}: links without end"))
    }

    /// `net.ipv4.name=value`, or the same as a path.
    fn assignment(&mut self, word: &str) -> Result<(), Refusal> {
        let Some((name, value)) = word.split_once('=') else {
            return Refusal::new(format!("sysctl {word}"));
        };
        let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
        let refusal = || Refusal(format!("sysctl {name} = {value}"));
        let numbers: Option<Vec<u64>> = value.split_whitespace().map(product).collect();
        let numbers = numbers.unwrap_or_default();
        let first = numbers.first().copied();
        let on = first.is_some_and(|n| n > 0);
        let Some(key) = name.strip_prefix("net.ipv4.") else {
            return Err(refusal());
        };
        let in_words = ["tcp_congestion_control", "tcp_fastopen", "tcp_fastopen_key"];
        if first.is_none() && !in_words.contains(&key) {
            return Err(refusal());
        }
        match key {
            // nothing of ours: how much is sent in one piece, and what no script of ours does
            "tcp_tso_win_divisor"
            | "tcp_min_tso_segs"
            | "tcp_pacing_ss_ratio"
            | "tcp_pacing_ca_ratio"
            | "tcp_notsent_lowat"
            | "tcp_fastopen"
            | "tcp_fastopen_key"
            | "tcp_syncookies"
            | "tcp_ecn_option" => Ok(()),
            // no more is done by Linux 4.15 and later
            "tcp_fack" => Ok(()),
            "tcp_rmem" if numbers.len() == 3 => self.change(&name, |c| c.receive_buffer = numbers[2] as u32),
            "tcp_wmem" if numbers.len() == 3 => self.change(&name, |c| c.send_buffer = numbers[2] as u32),
            "tcp_timestamps" => self.change(&name, |c| c.timestamps = on),
            "tcp_window_scaling" => self.change(&name, |c| c.window_scaling = on),
            "tcp_sack" => self.change(&name, |c| c.sack = on),
            "tcp_dsack" => self.change(&name, |c| c.dsack = on),
            "tcp_frto" => self.change(&name, |c| c.frto = on),
            "tcp_syn_retries" | "tcp_synack_retries" => {
                self.change(&name, |c| c.max_syn_retransmits = first.unwrap_or(0) as u32)
            }
            "tcp_slow_start_after_idle" => self.change(&name, |c| {
                c.idle_restart = on;
                c.cwnd_validation = on;
            }),
            "tcp_early_retrans" => self.change(&name, |c| {
                c.tail_loss_probe = matches!(first, Some(3 | 4));
                c.early_retransmit &= matches!(first, Some(1..=3));
            }),
            "tcp_recovery" if matches!(first, Some(0 | 1)) => self.change(&name, |c| {
                if first == Some(0) && c.loss_detection == LossDetection::Rack {
                    c.loss_detection = LossDetection::Rfc6675;
                }
            }),
            "tcp_congestion_control" if value == "cubic" => {
                self.change(&name, |c| c.congestion_control = Algorithm::Cubic)
            }
            "tcp_congestion_control" if value == "reno" => {
                self.change(&name, |c| c.congestion_control = Algorithm::Reno)
            }
            "tcp_reordering" if first == Some(3) => Ok(()),
            "tcp_ecn" | "tcp_mtu_probing" if !on => Ok(()),
            "tcp_ecn" => Refusal::new(format!("ECN (sysctl {name} = {value})")),
            "tcp_mtu_probing" | "tcp_base_mss" => {
                Refusal::new(format!("MTU probing (sysctl {name} = {value})"))
            }
            _ => Err(refusal()),
        }
    }
}

const OFFLOADS: [&str; 4] = ["tso", "gso", "gro", "off"];
const MOST_LINKS: usize = 8;

/// Where output goes that nobody reads.
const REDIRECTIONS: [&str; 3] = ["2>&1", "2>/dev/null", "> /dev/null"];

/// Words, with what is quoted or between `$((` and `))` in one.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => {
                if let Some(last) = words.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `5`, or `$((15*1024*1024))`.
fn product(text: &str) -> Option<u64> {
    let factors = text
        .strip_prefix("$((")
        .and_then(|t| t.strip_suffix("))"))
        .unwrap_or(text);
    let mut factors = factors.split('*').map(|f| f.trim().parse::<u64>().ok());
    factors.try_fold(1u64, |product, factor| product.checked_mul(factor?))
}
