//! A filter at the ingress of interfaces (nftables, family netdev): what is the agent's ([`Select`]) is dropped before the
//! kernel sees it. The kernel would answer an option that it does not know, the ILNP nonce, or a mobility header by a
//! parameter problem (RFC 8200 section 4.2), and TCP of which it knows nothing by a reset.
//!
//! The agent has seen these packets by then: its socket is for all protocols, and served before. The table has an owner
//! (`NFT_TABLE_F_OWNER`, Linux 5.12): nobody else changes it, and the kernel removes it when the socket that made it is closed,
//! by whatever end of the process. Messages are those of linux/netfilter/nf_tables.h.

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SndBufForce};
use segue_live::Select;
use std::io;

/// The table, while this lives.
pub(crate) struct Guard {
    socket: Socket,
    name: String,
    sequence: u32,
}

impl Guard {
    /// Makes the table. No interface is guarded yet.
    ///
    /// # Errors
    /// As the kernel has them; one that has no nftables, or whose tables have no owners, says that the operation is not
    /// supported.
    pub fn new(name: &str) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // a batch is one message to the kernel, and a correspondent has seven rules of half a kilobyte for each of its addresses;
        // without the privilege, what the machine allows everybody has to do
        let _ = setsockopt(&socket, SndBufForce, &BUFFER);
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER);
        let mut guard = Self {
            socket,
            name: name.to_owned(),
            sequence: 0,
        };
        let mut table = Attributes::default();
        table.text(TABLE_NAME, name);
        table.number(TABLE_FLAGS, TABLE_OWNED);
        guard.order(&[(NEW_TABLE, CREATE | EXCLUSIVE, table)])?;
        Ok(guard)
    }

    /// Keeps what these select at an interface from the kernel, and nothing else from now on. An interface that goes takes its chain
    /// with it, and has to be guarded again when it is back.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn watch(&mut self, interface: &str, selected: &[Select]) -> io::Result<()> {
        let mut chain = Attributes::default();
        chain.text(CHAIN_TABLE, &self.name);
        chain.text(CHAIN_NAME, interface);
        chain.nested(CHAIN_HOOK, |hook| {
            hook.number(HOOK_NUMBER, INGRESS);
            hook.number(HOOK_PRIORITY, FIRST as u32);
            hook.text(HOOK_DEVICE, interface);
        });
        chain.number(CHAIN_POLICY, ACCEPT);
        chain.text(CHAIN_TYPE, "filter");
        // what was selected before goes: in one batch with what comes, no packet slips through
        let mut all = Attributes::default();
        all.text(RULE_TABLE, &self.name);
        all.text(RULE_CHAIN, interface);
        let mut messages = vec![(NEW_CHAIN, CREATE, chain), (DELETE_RULE, 0, all)];
        for select in selected {
            let rules = self.rules(interface, *select).into_iter();
            messages.extend(rules.map(|rule| (NEW_RULE, CREATE | APPEND, rule)));
        }
        self.order(&messages)
    }

    fn rules(&self, interface: &str, select: Select) -> Vec<Attributes> {
        let to = move |rule: &mut Attributes| {
            rule.load_protocol();
            rule.compare(EQUAL, &ETHERTYPE_IPV6.to_be_bytes());
            match select {
                Select::Identifier(identifier) => {
                    rule.load(IDENTIFIER_AT, 8);
                    rule.compare(EQUAL, &identifier.to_be_bytes());
                }
                Select::Address(address) | Select::Mobility(address) => {
                    rule.load(DESTINATION_AT, 16);
                    rule.compare(EQUAL, &address.octets());
                }
            }
        };
        let dropped = |tests: &[(u32, u8)]| {
            self.rule(interface, |rule| {
                to(rule);
                for (at, value) in tests {
                    rule.load(*at, 1);
                    rule.compare(EQUAL, &[*value]);
                }
                rule.expression("counter", |_| {});
                rule.verdict(DROP);
            })
        };
        if let Select::Mobility(_) = select {
            let options = (NEXT_HEADER_AT, DESTINATION_OPTIONS);
            let places = OPTION_AT.map(|at| dropped(&[options, (at, HOME_ADDRESS_OPTION)]));
            // RFC 4443 section 3: types 1 to 4
            let errors = (1..=4).map(|kind| {
                dropped(&[
                    (NEXT_HEADER_AT, ICMPV6),
                    (ICMPV6_TYPE_AT, kind),
                    (QUOTED_NEXT_HEADER_AT, ROUTING),
                ])
            });
            return [dropped(&[(NEXT_HEADER_AT, MOBILITY_HEADER)])]
                .into_iter()
                .chain(places)
                .chain(errors)
                .collect();
        }
        let discovery = self.rule(interface, |rule| {
            to(rule);
            rule.load(NEXT_HEADER_AT, 1);
            rule.compare(EQUAL, &[ICMPV6]);
            rule.load(ICMPV6_TYPE_AT, 1);
            rule.compare(AT_LEAST, &[DISCOVERY.0]);
            rule.compare(AT_MOST, &[DISCOVERY.1]);
            rule.verdict(ACCEPT);
        });
        vec![discovery, dropped(&[])]
    }

    fn rule(&self, chain: &str, expressions: impl FnOnce(&mut Attributes)) -> Attributes {
        let mut rule = Attributes::default();
        rule.text(RULE_TABLE, &self.name);
        rule.text(RULE_CHAIN, chain);
        rule.nested(RULE_EXPRESSIONS, expressions);
        rule
    }

    /// A batch: all of it happens, or nothing.
    fn order(&mut self, messages: &[(u16, u16, Attributes)]) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        let mut batch = Vec::new();
        let mut put = |kind: u16, flags: u16, family: u8, resource: u16, body: &[u8]| {
            self.sequence = self.sequence.wrapping_add(1);
            let length = (HEADER_LEN + body.len()) as u32;
            batch.extend_from_slice(&length.to_ne_bytes());
            batch.extend_from_slice(&kind.to_ne_bytes());
            batch.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
            batch.extend_from_slice(&self.sequence.to_ne_bytes());
            batch.extend_from_slice(&0u32.to_ne_bytes());
            batch.extend_from_slice(&[family, 0]);
            batch.extend_from_slice(&resource.to_be_bytes());
            batch.extend_from_slice(body);
        };
        put(BATCH_BEGIN, 0, 0, NFTABLES, &[]);
        for (number, (kind, flags, attributes)) in messages.iter().enumerate() {
            let kind = NFTABLES << 8 | *kind;
            // errors come without being asked for
            let asks = if number + 1 == messages.len() {
                ACKNOWLEDGE
            } else {
                0
            };
            put(kind, *flags | asks, NETDEV, 0, &attributes.0);
        }
        put(BATCH_END, 0, 0, NFTABLES, &[]);
        self.socket.send(&batch, 0)?;
        self.outcome(first, messages.len() as u32)
    }

    /// What has come of a batch of so many messages, whose beginning has the number `first`. The kernel goes on after an error, and
    /// says so of each message that has one: the first stands for all. The last message is answered in any case, unless
    /// nothing of the batch was looked at; then its beginning is. What is left of an earlier batch is passed over.
    fn outcome(&self, first: u32, messages: u32) -> io::Result<()> {
        let mut error = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for answer in answers(&bytes) {
                let number = answer.number.wrapping_sub(first);
                if number > messages {
                    continue;
                }
                if answer.code != 0 {
                    error = error.or(Some(Errno::from_raw(-answer.code)));
                }
                if number == 0 || number == messages {
                    return error.map_or(Ok(()), |error| Err(error.into()));
                }
            }
        }
    }
}

/// Of a message of the kernel's: which of ours it answers, and with which error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    number: u32,
    code: i32,
}

/// The answers in what was received (`struct nlmsghdr` and `struct nlmsgerr`).
fn answers(mut bytes: &[u8]) -> Vec<Answer> {
    let mut all = Vec::new();
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
        word.copied().map(u32::from_ne_bytes)
    };
    while let (Some(length), Some(number)) = (word(bytes, 0), word(bytes, 8)) {
        let kind = bytes.get(4..).and_then(|b| b.first_chunk::<2>());
        if kind.copied().map(u16::from_ne_bytes) == Some(ERROR)
            && let Some(code) = word(bytes, 16)
        {
            all.push(Answer {
                number,
                code: code as i32,
            });
        }
        let next = (length as usize).next_multiple_of(4).max(16);
        bytes = bytes.get(next..).unwrap_or_default();
    }
    all
}

/// Attributes of a message, in bytes.
#[derive(Default)]
struct Attributes(Vec<u8>);

impl Attributes {
    fn bytes(&mut self, kind: u16, value: &[u8]) {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn text(&mut self, kind: u16, value: &str) {
        self.bytes(kind, &[value.as_bytes(), b"\0"].concat());
    }

    fn number(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(kind | NESTED, &inner.0);
    }

    fn expression(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        self.nested(LIST_ELEMENT, |element| {
            element.text(EXPRESSION_NAME, name);
            element.nested(EXPRESSION_DATA, fill);
        });
    }

    /// The protocol of the frame into the register.
    fn load_protocol(&mut self) {
        self.expression("meta", |meta| {
            meta.number(META_REGISTER, REGISTER);
            meta.number(META_KEY, META_PROTOCOL);
        });
    }

    /// Bytes of the IPv6 packet into the register.
    fn load(&mut self, at: u32, length: u32) {
        self.expression("payload", |payload| {
            payload.number(PAYLOAD_REGISTER, REGISTER);
            payload.number(PAYLOAD_BASE, NETWORK_HEADER);
            payload.number(PAYLOAD_OFFSET, at);
            payload.number(PAYLOAD_LENGTH, length);
        });
    }

    /// The rule goes on if the register is so.
    fn compare(&mut self, operation: u32, value: &[u8]) {
        self.expression("cmp", |cmp| {
            cmp.number(CMP_REGISTER, REGISTER);
            cmp.number(CMP_OPERATION, operation);
            cmp.nested(CMP_DATA, |data| data.bytes(DATA_VALUE, value));
        });
    }

    fn verdict(&mut self, code: u32) {
        self.expression("immediate", |immediate| {
            immediate.number(IMMEDIATE_REGISTER, VERDICT_REGISTER);
            immediate.nested(IMMEDIATE_DATA, |data| {
                data.nested(DATA_VERDICT, |verdict| verdict.number(VERDICT_CODE, code));
            });
        });
    }
}

// Of the packet.
const ETHERTYPE_IPV6: u16 = 0x86dd;
const NEXT_HEADER_AT: u32 = 6;
const DESTINATION_AT: u32 = 24;
/// The second half of the destination.
const IDENTIFIER_AT: u32 = 32;
/// Behind the fixed header: neighbour discovery has no other.
const ICMPV6_TYPE_AT: u32 = 40;
/// Of the packet that an ICMPv6 error is about, whose header begins behind eight bytes of the error's.
const QUOTED_NEXT_HEADER_AT: u32 = ICMPV6_TYPE_AT + 8 + NEXT_HEADER_AT;
const ICMPV6: u8 = 58;
const ROUTING: u8 = 43;
const MOBILITY_HEADER: u8 = 135;
const DESTINATION_OPTIONS: u8 = 60;
const HOME_ADDRESS_OPTION: u8 = 0xc9;
/// Where a Home Address option is in destination options that come first: the first option, or behind padding to 8n+6.
const OPTION_AT: [u32; 2] = [42, 46];
/// Router solicitation to redirect (RFC 4861 section 4).
const DISCOVERY: (u8, u8) = (133, 137);

/// Bytes of the kernel's memory for a batch, and for what it says of one: of a thousand addresses. The usual fifth of a megabyte
/// is one of 56, and of what is said of 31.
const BUFFER: usize = 8 << 20;

// linux/netlink.h
const ERROR: u16 = 2;
const HEADER_LEN: usize = 20;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

// linux/netfilter/nfnetlink.h, linux/netfilter.h
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NFTABLES: u16 = 10;
const NETDEV: u8 = 5;
const INGRESS: u32 = 0;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

// linux/netfilter/nf_tables.h
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const DELETE_RULE: u16 = 8;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNED: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
/// Before the filters of others.
const FIRST: i32 = -500;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const META_REGISTER: u16 = 1;
const META_KEY: u16 = 2;
const META_PROTOCOL: u32 = 1;
const PAYLOAD_REGISTER: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const NETWORK_HEADER: u32 = 1;
const CMP_REGISTER: u16 = 1;
const CMP_OPERATION: u16 = 2;
const CMP_DATA: u16 = 3;
const EQUAL: u32 = 0;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const IMMEDIATE_REGISTER: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::net::Ipv6Addr;

    /// A message of the kernel's that says of ours of this number what has come of it, with what it quotes.
    fn said(kind: u16, number: u32, code: i32, quoted: usize) -> Vec<u8> {
        let mut bytes = ((20 + quoted) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&number.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&code.to_ne_bytes());
        bytes.resize((20 + quoted).next_multiple_of(4), 7);
        bytes
    }

    #[test]
    fn answers_are_told_apart_by_the_number_of_what_they_answer() {
        let two = [said(ERROR, 5, -17, 30), said(3, 6, 0, 0), said(ERROR, 7, 0, 16)].concat();
        let expected = [(5, -17), (7, 0)].map(|(number, code)| Answer { number, code });
        assert_eq!(answers(&two), expected);
        assert_eq!(answers(&two[..18]), []);
        assert_eq!(answers(&[0; 64]), []);
    }

    #[test]
    fn as_many_addresses_as_a_correspondent_has_are_kept_and_an_error_is_of_one_order_alone() {
        let tried = std::thread::spawn(|| {
            let new = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            let Ok(mut guard) = new.and_then(|()| Guard::new("segue-test")) else {
                eprintln!("SKIPPED: no namespace or no nftables with owners here (they need root)");
                return;
            };
            let addresses = |count: u16| -> Vec<Select> {
                let all = (0..count).map(|n| Ipv6Addr::new(0x2001, 0xdb8, n, 2, 3, 4, 5, 6));
                all.map(Select::Mobility).collect()
            };
            for count in [1, 31, 56, 300] {
                guard.watch("lo", &addresses(count)).unwrap();
            }
            // no interface has such a name, and as there is no chain, every rule has an error
            let nowhere = "a name of more than fifteen bytes";
            for count in [300, 1] {
                assert!(guard.watch(nowhere, &addresses(count)).is_err());
                guard.watch("lo", &addresses(1)).unwrap();
            }
            assert!(guard.watch(nowhere, &addresses(1)).is_err());
        });
        tried.join().unwrap();
    }
}
