//! Changes of addresses at given times, so that a handover can be driven from outside.

use crate::address;
use segue_proto::Duration;
use segue_proto::sctp::AddressError;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// ASCONF: Add IP Address.
    Add(Ipv6Addr),
    /// ASCONF: Delete IP Address.
    Delete(Ipv6Addr),
    /// ASCONF: Set Primary IP Address: the peer is to send there.
    Primary(Ipv6Addr),
    /// Send from this address.
    Route(Ipv6Addr),
    /// Send to this address of the peer.
    Peer(Ipv6Addr),
    /// ASCONF: the peer is to send nothing there for now.
    Deactivate(Ipv6Addr),
    /// ASCONF: the peer may send there again.
    Activate(Ipv6Addr),
    /// SHUTDOWN.
    Shutdown,
    /// ABORT.
    Abort,
}

impl fmt::Display for Action {
    /// As a script has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(address) => write!(f, "add {address}"),
            Self::Delete(address) => write!(f, "delete {address}"),
            Self::Primary(address) => write!(f, "primary {address}"),
            Self::Route(address) => write!(f, "route {address}"),
            Self::Peer(address) => write!(f, "peer {address}"),
            Self::Deactivate(address) => write!(f, "deactivate {address}"),
            Self::Activate(address) => write!(f, "activate {address}"),
            Self::Shutdown => f.write_str("shutdown"),
            Self::Abort => f.write_str("abort"),
        }
    }
}

impl Action {
    /// What stands in its way, in words.
    pub(crate) const fn failure(&self, error: AddressError) -> &'static str {
        match (self, error) {
            (Self::Add(_), AddressError::BadAddress) => "it is an address of this end's already",
            (Self::Peer(_), AddressError::BadAddress) => "it is not an address of the peer's",
            (_, AddressError::BadAddress) => "it is not an address of this end's",
            (_, AddressError::LastAddress) => "it is the last address of this end's",
            (_, AddressError::NotPossible) => {
                "the association is not up, or the peer does not support changes of addresses"
            }
        }
    }
}

/// An action and its time after the association came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub at: Duration,
    pub action: Action,
}

/// Steps in the order of their times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Script {
    pub steps: Vec<Step>,
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps = text
            .split(';')
            .map(str::trim)
            .filter(|step| !step.is_empty())
            .map(step);
        let mut steps = steps.collect::<Result<Vec<_>, _>>()?;
        if steps.is_empty() {
            return Err("expected steps such as \"2s add 2001:db8::2\"".to_owned());
        }
        steps.sort_by_key(|step| step.at);
        Ok(Self { steps })
    }
}

fn step(text: &str) -> Result<Step, String> {
    // the time may have a blank before its unit
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_action =
        |word: &str| word.chars().all(|c| c.is_ascii_lowercase()) && action_names().contains(&word);
    let Some(split) = words.iter().position(|word| is_action(word)) else {
        return Err(format!(
            "step `{text}`: expected a time and one of {}",
            action_names().join(", ")
        ));
    };
    let at: Duration = words[..split]
        .join(" ")
        .parse()
        .map_err(|e| format!("step `{text}`: {e}"))?;
    let address = || match words[split + 1..] {
        [address] => address::parse(address).map_err(|e| format!("step `{text}`: `{address}`: {e}")),
        _ => Err(format!(
            "step `{text}`: expected one address after `{}`",
            words[split]
        )),
    };
    let action = match words[split] {
        "add" => Action::Add(address()?),
        "delete" => Action::Delete(address()?),
        "primary" => Action::Primary(address()?),
        "route" => Action::Route(address()?),
        "peer" => Action::Peer(address()?),
        "deactivate" => Action::Deactivate(address()?),
        "activate" => Action::Activate(address()?),
        end if words.len() > split + 1 => return Err(format!("step `{text}`: `{end}` takes no address")),
        "shutdown" => Action::Shutdown,
        _ => Action::Abort,
    };
    Ok(Step { at, action })
}

const fn action_names() -> [&'static str; 9] {
    [
        "add",
        "delete",
        "primary",
        "route",
        "peer",
        "deactivate",
        "activate",
        "shutdown",
        "abort",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_ordered_by_time() {
        let script: Script = "2.1s primary 2001:db8::2; 2 s add 2001:db8::2;300ms route ::1; 3s shutdown"
            .parse()
            .unwrap();
        let two = "2001:db8::2".parse().unwrap();
        let expected = [
            (300, Action::Route(Ipv6Addr::LOCALHOST)),
            (2000, Action::Add(two)),
            (2100, Action::Primary(two)),
            (3000, Action::Shutdown),
        ];
        assert_eq!(
            script.steps,
            expected.map(|(ms, action)| Step {
                at: Duration::from_millis(ms),
                action
            })
        );
    }

    #[test]
    fn what_is_wrong_is_said_of_the_step() {
        for (text, says) in [
            ("", "expected steps"),
            ("2s jump ::1", "one of add, delete"),
            ("2 add ::1", "has no unit"),
            ("2s add 1.2.3.4", "`1.2.3.4`: IPv6 only"),
            ("2s add", "expected one address after `add`"),
            ("2s abort ::1", "`abort` takes no address"),
        ] {
            let error = text.parse::<Script>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
