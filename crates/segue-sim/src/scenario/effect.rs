//! Keys that are right and that nothing reads: a table of another scheme, of a transport that no application has, of a
//! method that is not chosen.
//!
//! What is set from outside is warned of always. What a file has is where it is run as it stands: one that has `cases`, or
//! whose `scheme` is set from outside, has tables for more than the run at hand.

use super::model::{AddressMethod, ScenarioFile};
use super::overrides;
use super::schemes::Scheme;
use crate::warnings::{Warning, WarningKind};
use segue_proto::app::Transport;
use toml::Table;

/// Tables that belong to schemes.
const OF_SCHEMES: [&str; 4] = ["handover", "mip6", "ilnp", "cmt"];

/// Warns of keys without effect in `s`, whose text was `file`, which `set` has changed, and of which `whole` came; `alone` is
/// what the file is without `set`: what something from outside made useless is not the file's fault.
pub(super) fn warnings(
    s: &ScenarioFile,
    file: &Table,
    set: &[(String, String)],
    whole: &Table,
    alone: impl FnOnce() -> Option<ScenarioFile>,
) -> Vec<Warning> {
    let mut found = Vec::new();
    for (key, value) in set {
        if let Some(reader) = missing_reader(s, &overrides::with_dots(key)) {
            let text = format!("--set {key}={value} has no effect: {reader}");
            found.push(Warning::new(WarningKind::KeyWithoutEffect, None, text));
        }
    }
    let mut alone = Some(alone);
    let mut unchanged: Option<ScenarioFile> = None;
    let for_more = file.contains_key("cases") || set.iter().any(|(key, _)| key == "scheme");
    for (table, keys) in file.iter().filter(|_| !for_more) {
        let Some(keys) = keys.as_table() else { continue };
        let unread: Vec<(String, String)> = keys
            .keys()
            .map(|key| format!("{table}.{key}"))
            .filter_map(|key| missing_reader(s, &key).map(|reader| (key, reader)))
            .filter(|(key, _)| says_something(whole, key))
            .filter(|(key, _)| {
                if let Some(read) = alone.take() {
                    unchanged = if set.is_empty() { None } else { read() };
                }
                unchanged
                    .as_ref()
                    .is_none_or(|file| missing_reader(file, key).is_some())
            })
            .collect();
        let told = match missing_reader(s, table) {
            Some(reader) if !unread.is_empty() => vec![format!("[{table}] has no effect: {reader}")],
            _ => unread
                .iter()
                .map(|(key, reader)| format!("{key} has no effect: {reader}"))
                .collect(),
        };
        let warning = |text| Warning::new(WarningKind::KeyWithoutEffect, None, text);
        found.extend(told.into_iter().map(warning));
    }
    found
}

/// Whether the scenario would be another without this `table.key`: a scenario as it was run has every key there is.
fn says_something(whole: &Table, key: &str) -> bool {
    let mut without = whole.clone();
    if let Some((table, key)) = key.split_once('.')
        && let Some(keys) = without.get_mut(table).and_then(toml::Value::as_table_mut)
    {
        keys.remove(key);
    }
    let [with, without] = [whole, &without].map(|table| {
        let model = super::model(table).ok()?;
        toml::Value::try_from(model).ok()
    });
    with != without
}

/// What would have to be for the dotted `key` to be read, if it is not.
fn missing_reader(s: &ScenarioFile, key: &str) -> Option<String> {
    let scheme = s.scheme;
    let over = |transport| s.application.iter().any(|a| a.transport == transport);
    let mut parts = key.split('.');
    let (table, within) = (parts.next()?, parts.next().unwrap_or_default());
    let (is_read, by) = match (table, within) {
        ("handover", _) => (
            scheme.changes_addresses(),
            "schemes \"sigma\", \"failover\", \"msctp-best\", \"msctp-worst\" and \"cmt\" read it",
        ),
        ("cmt", _) => (scheme == Scheme::Cmt, "scheme \"cmt\" reads it"),
        ("mip6", "correspondent") => (scheme == Scheme::Mip6Ro, "scheme \"mip6-ro\" reads it"),
        ("mip6", _) => (scheme.is_mip6(), "schemes \"mip6\" and \"mip6-ro\" read it"),
        ("ilnp", "preferences" | "sharing") if scheme.is_ilnp() => (
            scheme == Scheme::IlnpMultihomed,
            "scheme \"ilnp-multihomed\" reads it",
        ),
        ("ilnp", "trigger") if scheme.is_ilnp() => (
            scheme != Scheme::IlnpMultihomed,
            "schemes \"ilnp-hard\" and \"ilnp-soft\" read it",
        ),
        ("ilnp" | "directory", _) => (
            scheme.is_ilnp(),
            "schemes \"ilnp-hard\", \"ilnp-soft\" and \"ilnp-multihomed\" read it",
        ),
        ("tcp" | "remedy", _) => (
            over(Transport::Tcp),
            "it needs an application with transport = \"tcp\"",
        ),
        ("sctp", _) => (
            over(Transport::Sctp),
            "it needs an application with transport = \"sctp\"",
        ),
        ("l2", _) => (!s.cell.is_empty(), "it needs a [[cell]]"),
        ("radio", _) => (
            s.cell.iter().any(|c| c.bearer.is_none() && c.radio.is_none()),
            "it needs a [[cell]] without `radio`, `bearer` or `technology` of its own",
        ),
        ("address", "resolution") => (
            s.address.method == AddressMethod::Fixed && !s.cell.is_empty(),
            "method \"fixed\" reads it",
        ),
        ("address", "dad_transmits" | "retrans_timer") => (
            s.address.method == AddressMethod::Slaac && !s.cell.is_empty(),
            "method \"slaac\" reads it",
        ),
        ("address", "server_delay" | "rapid_commit") => (
            s.address.method == AddressMethod::Dhcpv6 && !s.cell.is_empty(),
            "method \"dhcpv6\" reads it",
        ),
        _ => return None,
    };
    let of_scheme = OF_SCHEMES.contains(&table) || table == "directory";
    let named = toml::Value::try_from(scheme).map_or_else(|_| String::new(), |v| v.to_string());
    let run = if of_scheme {
        format!(", and this is {named}")
    } else {
        String::new()
    };
    (!is_read).then(|| format!("{by}{run}"))
}
