//! `segue-agent man`: the manual page, segue-agent(8). The commands are those of the command line; the file is described here.

use crate::options::Options;
use clap::{Arg, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use std::io::{self, Write};

/// Prints the page.
pub(crate) fn show() -> anyhow::Result<u8> {
    let mut out = Vec::new();
    write(&mut out)?;
    io::stdout().write_all(&out)?;
    Ok(0)
}

/// The page in roff.
fn write(out: &mut Vec<u8>) -> io::Result<()> {
    let mut command = Options::command();
    command.build();
    let page = Man::new(command.clone())
        .title("SEGUE-AGENT")
        .section("8")
        .manual("System Administration")
        .source(concat!("segue ", env!("CARGO_PKG_VERSION")));
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    let mut rest = Roff::default();
    rest.text([roman(
        "What connects to the identity of another host (ILNPv6, RFC 6740 to 6744) or from a home address (Mobile IPv6, RFC 6275) goes \
         on when the machine changes its network. The kernel keeps its addresses, routes, neighbours and firewall; the agent has \
         addresses beside them, a TUN device, and a filter for what is its own.",
    )]);
    rest.control("SH", ["COMMANDS"]);
    for shown in command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
    {
        describe(&mut rest, shown);
    }
    for (table, about, keys) in &TABLES {
        rest.control("SH", [&*format!("TABLE [{table}] OF THE FILE")]);
        rest.text([roman(*about)]);
        for (key, says) in *keys {
            rest.control("TP", []);
            rest.text([bold(*key)]);
            rest.text([roman(*says)]);
        }
    }
    rest.control("SH", ["FILES"]);
    for (file, says) in &FILES {
        rest.control("TP", []);
        rest.text([italic(*file)]);
        rest.text([roman(*says)]);
    }
    rest.control("SH", ["EXIT STATUS"]);
    rest.text([roman("0 done, 1 it failed, 2 wrong input or not permitted.")]);
    rest.control("SH", ["ENVIRONMENT"]);
    rest.control("TP", []);
    rest.text([bold("SEGUE_LOG")]);
    rest.text([roman(
        "What is logged to standard error: a level (warn, info, debug, trace), or levels by part.",
    )]);
    rest.control("SH", ["SEE ALSO"]);
    rest.text([bold("ip-address"), roman("(8), "), bold("nft"), roman("(8), ")]);
    rest.text([bold("systemd.service"), roman("(5)")]);
    rest.to_writer(out)
}

/// A command, with its words and options.
fn describe(page: &mut Roff, command: &Command) {
    let mut head = vec![bold(format!("segue-agent {}", command.get_name()))];
    for argument in command.get_positionals() {
        head.push(roman(" "));
        head.push(italic(value_of(argument)));
    }
    page.control("TP", []);
    page.text(head);
    page.text([roman(format!("{}.", text_of(command.get_about())))]);
    let options = command
        .get_arguments()
        .filter(|a| !a.is_positional() && !matches!(a.get_id().as_str(), "help" | "version"));
    for option in options {
        let mut head = vec![bold(format!("--{}", option.get_long().unwrap_or_default()))];
        if option.get_action().takes_values() {
            head.push(roman(" "));
            head.push(italic(value_of(option)));
        }
        let mut says = text_of(option.get_help());
        if let [default] = option.get_default_values()
            && option.get_action().takes_values()
        {
            says = format!("{says} (default {})", default.to_string_lossy());
        }
        head.push(roman(format!(": {says}.")));
        page.control("br", []);
        page.text(head);
    }
}

fn value_of(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    names
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn text_of(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// A table of the file: what it is, and its keys with what they say.
type Table = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const TABLES: [Table; 8] = [
    (
        "agent",
        "What the agent uses of the machine, and when it moves. One of the other tables says what it is there.",
        &[
            (
                "interfaces = [\"wlan0\", \"eth0\"]",
                "Ethernet interfaces, Wi-Fi included, the one to use first where there is a choice. One that is not there yet is waited for.",
            ),
            ("device = \"segue0\"", "The TUN device."),
            (
                "socket = \"/run/segue-agent.sock\"",
                "The control socket. Who may write to it may use it: it is made for the agent's user alone.",
            ),
            (
                "user = \"nobody\"",
                "Who the agent is once it is set up, with CAP_NET_ADMIN and CAP_NET_RAW; who started it if there is none.",
            ),
            (
                "metrics = \"[::1]:9477\"",
                "Where numbers for Prometheus are served: a loopback address and port, or the whole path of a socket. Nowhere if there is none.",
            ),
            (
                "udp_port = 56740",
                "Where nonces travel in UDP, at both ends, in networks that drop destination options; 0 for never.",
            ),
            (
                "seccomp = true",
                "Whether the agent confines itself to the system calls that it needs, once it is set up.",
            ),
            (
                "fast_path = true",
                "An ILNPv6 host's: whether the kernel carries packets of established flows by itself, where it can (Linux 6.6).",
            ),
            (
                "hold_down = \"2 s\"",
                "A better interface is moved to once it has been usable for so long.",
            ),
            (
                "identifier = \"2aa:0:0:7\"",
                "A mobile node's: interface identifier of its care-of addresses; that of the home address if there is none.",
            ),
            (
                "destinations = [\"2000::/3\"]",
                "A mobile node's: where applications that name no source call from the home address; everywhere if there is none.",
            ),
        ],
    ),
    (
        "[network]",
        "What is known of networks: a table for each, the first that fits counts. The agent applies it when it moves there.",
        &[
            (
                "interface = \"wwan0\"",
                "Those on this interface, one of the list.",
            ),
            (
                "prefix = \"2001:db8::/32\"",
                "Those in which the agent's address has this prefix; with an interface, both are to fit.",
            ),
            (
                "metered = true",
                "It costs: used only where no other network can be.",
            ),
            (
                "window = 20000",
                "Most bytes of a TCP connection on their way at once in either direction, of those that there are too.",
            ),
            (
                "rto_min = \"1 s\"",
                "Least retransmission timeout of connections that begin there.",
            ),
            ("initcwnd = 4", "Segments that connections begin with there."),
            (
                "rtt_hint = \"800 ms\"",
                "Round-trip time that connections begin with there, until they have measured one.",
            ),
        ],
    ),
    (
        "ilnp",
        "A host that speaks ILNPv6. The other keys are those of ilnp in a scenario of segue.",
        &[
            (
                "nid = \"2aa:0:0:1\"",
                "The node identifier: any 64 bits that nobody else has.",
            ),
            (
                "identity_prefix = \"fd53:6567:7565:1\"",
                "The prefix of identities, which applications use and which are never on the wire.",
            ),
            (
                "detect_silence = true",
                "Whether a network that is up and lets nothing through is left.",
            ),
            (
                "[[ilnp.peers]] nid, locators",
                "A peer, and the prefixes of the networks that it may be in.",
            ),
        ],
    ),
    (
        "names",
        "Of an ILNPv6 host: a resolver for the applications of this machine, and a directory of its peers.",
        &[
            (
                "listen = [\"[::1]:53\"]",
                "Loopback addresses and ports where applications ask, over UDP and TCP.",
            ),
            (
                "upstream = [\"2001:db8::53\"]",
                "Resolvers that are asked, in this order. Without one only names of the file are answered.",
            ),
        ],
    ),
    (
        "names.publish",
        "What is published of this host by dynamic updates (RFC 2136): its NID and L64 records. The file has a key then.",
        &[
            ("name = \"laptop.example.org\"", "The name."),
            (
                "zone = \"example.org\"",
                "The zone that it is in: what is behind its first dot if there is none.",
            ),
            ("server = \"2001:db8::53\"", "The primary server of the zone."),
            (
                "key = { name = \"laptop\", secret = \"...\" }",
                "Signs the updates (TSIG, RFC 8945), as tsig-keygen makes it.",
            ),
            (
                "ttl = \"5 s\"",
                "For so long others may go on looking where the host was.",
            ),
            (
                "addresses = true",
                "Whether the kernel's own addresses are published too, as AAAA records.",
            ),
        ],
    ),
    (
        "mobile-node",
        "A mobile node of Mobile IPv6. A file with it is refused if others can read it.",
        &[
            (
                "home_address = \"2001:db8:f::1:7\"",
                "What its applications are known by.",
            ),
            (
                "home_agent = \"2001:db8:f::a\"",
                "Who has a binding for it while it is away.",
            ),
            (
                "security = { spi = 256, key = \"16 bytes or more\" }",
                "Authenticates home registrations (RFC 4285). replay_protection = \"timestamp\" in it, at both ends, refuses old ones after a restart.",
            ),
            (
                "home_lifetime = \"120 s\"",
                "Of a binding; it is made anew when three quarters are over.",
            ),
        ],
    ),
    (
        "home-agent",
        "A router to which the home network is routed. A file with it is refused if others can read it. [correspondent] may stand beside it.",
        &[
            (
                "address = \"2001:db8:f::a\"",
                "Its address, of the home network, which the agent has the kernel hold.",
            ),
            (
                "[[home-agent.mobile_nodes]] home_address, security",
                "A mobile node, and its key.",
            ),
        ],
    ),
    (
        "correspondent",
        "A machine that mobile nodes talk to, to which packets take the direct way then.",
        &[(
            "address = \"2001:db8:3::7\"",
            "Where it is one; at every global address of the kernel's if there is none.",
        )],
    ),
];

const FILES: [(&str, &str); 3] = [
    ("/etc/segue/agent.toml", "The file of the service."),
    (
        "/run/segue/agent.sock",
        "The control socket of the service, as its file has it.",
    ),
    (
        "/usr/share/doc/segue-agent/examples",
        "A file for each role, where the Debian package is installed.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use segue_agent::config::Config;

    fn page() -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The keys that a table of the file may have, as its parser names them.
    fn keys_of(table: &str) -> Vec<String> {
        // what is one of several is in brackets of its own
        let said = Config::parse(&format!("[{table}]\nnone_such = 1\n")).unwrap_err();
        let keys = said.split_once("expected one of ").expect("a list").1;
        keys.split(", ")
            .map(|key| key.trim_matches('`').to_owned())
            .collect()
    }

    #[test]
    fn every_key_of_the_machine_is_described() {
        let (_, _, described) = TABLES.into_iter().find(|t| t.0 == "agent").unwrap();
        let names: Vec<&str> = described
            .iter()
            .filter_map(|(key, _)| key.split_whitespace().next())
            .collect();
        let keys = keys_of("agent");
        assert!(keys.len() > 5, "{keys:?}");
        for key in &keys {
            assert!(
                names.contains(&key.as_str()),
                "{key} is missing in the manual page"
            );
        }
        for name in names {
            assert!(keys.iter().any(|key| key == name), "{name} is no key any more");
        }
    }

    #[test]
    fn keys_that_are_described_of_the_roles_are_theirs() {
        for (table, _, described) in TABLES.into_iter().filter(|t| t.0 != "agent") {
            let keys = keys_of(table);
            if table == "[network]" {
                assert_eq!(keys.len(), described.len(), "{keys:?}");
            }
            for (key, _) in described {
                let first = key.trim_start_matches("[[").split([' ', ']']).next().unwrap();
                let name = first.rsplit('.').next().unwrap();
                assert!(keys.iter().any(|key| key == name), "[{table}] {name}");
            }
        }
    }

    #[test]
    fn every_command_is_described() {
        let page = page();
        for command in Options::command().get_subcommands() {
            let name = format!("segue\\-agent {}", command.get_name());
            assert_eq!(page.contains(&name), !command.is_hide_set(), "{name}");
        }
        assert!(page.contains(".TH"), "{page}");
        assert!(page.contains("SEGUE_LOG"), "{page}");
    }
}
