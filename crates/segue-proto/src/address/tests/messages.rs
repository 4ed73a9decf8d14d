//! DHCPv6 a message at a time (RFC 8415): what a client takes for an answer, and what a server answers.

use super::super::client::Client;
use super::*;
use segue_wire::dhcpv6::{Dhcpv6Option, IaAddress, IaNa, MessageType};

const IAID: u32 = 5;
const OFFERED: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0x77);

fn server_id(n: u8) -> Bytes {
    Bytes::copy_from_slice(&[n; 4])
}

struct Asking {
    client: Client,
    stream: Stream,
}

impl Asking {
    /// Has begun to ask.
    fn new() -> Self {
        let config = ClientConfig {
            sol_max_delay: Duration::ZERO,
            ..ClientConfig::default()
        };
        let mut it = Self {
            client: Client::new(config, MAC, IAID),
            stream: Stream::new(3, "client"),
        };
        it.client.start(at(0), &mut it.stream);
        it
    }

    fn sent(&mut self) -> Dhcpv6Message {
        let packet = self.client.poll_transmit().expect("a message");
        message_to(&packet, SERVER).expect("to the servers")
    }

    fn give(&mut self, now: Instant, message: &Dhcpv6Message) {
        self.client.handle_message(now, message, &mut self.stream);
    }

    fn wait(&mut self) -> Instant {
        let time = self.client.poll_timeout().expect("a timer");
        self.client.handle_timeout(time, &mut self.stream);
        time
    }
}

fn offer(message_type: MessageType, asked: &Dhcpv6Message, preference: u8) -> Dhcpv6Message {
    let ia = IaNa {
        iaid: IAID,
        t1_s: 0,
        t2_s: 0,
        addresses: vec![IaAddress {
            address: OFFERED,
            preferred_lifetime_s: 1000,
            valid_lifetime_s: 2000,
        }],
    };
    Dhcpv6Message {
        message_type,
        transaction_id: asked.transaction_id,
        options: vec![
            Dhcpv6Option::ClientIdentifier(duid(MAC)),
            Dhcpv6Option::ServerIdentifier(server_id(preference)),
            Dhcpv6Option::IaNa(ia),
            Dhcpv6Option::Unknown {
                code: PREFERENCE,
                data: Bytes::copy_from_slice(&[preference]),
            },
        ],
    }
}

fn of_server(message: &Dhcpv6Message) -> Option<Bytes> {
    message.options.iter().find_map(|o| match o {
        Dhcpv6Option::ServerIdentifier(id) => Some(id.clone()),
        _ => None,
    })
}

fn ia_of(message: &mut Dhcpv6Message) -> &mut IaNa {
    let found = message.options.iter_mut().find_map(|o| match o {
        Dhcpv6Option::IaNa(ia) => Some(ia),
        _ => None,
    });
    found.expect("an IA_NA")
}

/// Has been given the address with these times.
fn bound(change: impl FnOnce(&mut IaNa)) -> Asking {
    let mut it = Asking::new();
    let solicit = it.sent();
    it.give(at(0), &offer(MessageType::Advertise, &solicit, 255));
    let request = it.sent();
    assert_eq!(request.message_type, MessageType::Request);
    let mut reply = offer(MessageType::Reply, &request, 255);
    change(ia_of(&mut reply));
    it.give(at(0), &reply);
    assert_eq!(it.client.poll_leased().map(|a| a.address), Some(OFFERED));
    it
}

#[test]
fn the_best_offer_of_the_first_timeout_is_requested() {
    // section 18.2.1
    let mut it = Asking::new();
    let solicit = it.sent();
    for preference in [3, 9, 9, 7] {
        it.give(at(10), &offer(MessageType::Advertise, &solicit, preference));
        assert!(it.client.poll_transmit().is_none());
    }
    let time = it.wait();
    assert!(time > at(1000) && time <= at(1101), "{time}");
    let request = it.sent();
    assert_eq!(
        (request.message_type, of_server(&request)),
        (MessageType::Request, Some(server_id(9)))
    );
    // after the first timeout the first offer is as good as any
    let mut it = Asking::new();
    it.sent();
    it.wait();
    let again = it.sent();
    assert_eq!(again.message_type, MessageType::Solicit);
    it.give(at(1500), &offer(MessageType::Advertise, &again, 0));
    assert_eq!(it.sent().message_type, MessageType::Request);
}

#[test]
fn what_is_no_answer_to_the_client_is_ignored() {
    let changes: [fn(&mut Dhcpv6Message); 10] = [
        |m| m.transaction_id ^= 1,
        |m| m.message_type = MessageType::Reply,
        |m| m.options[0] = Dhcpv6Option::ClientIdentifier(duid(ROUTER)),
        |m| drop(m.options.remove(0)),
        |m| drop(m.options.remove(1)),
        |m| ia_of(m).iaid += 1,
        |m| ia_of(m).addresses[0].valid_lifetime_s = 0,
        |m| ia_of(m).addresses[0].preferred_lifetime_s = 2001,
        // section 21.4: T1 above T2
        |m| (ia_of(m).t1_s, ia_of(m).t2_s) = (600, 599),
        |m| {
            m.options.push(Dhcpv6Option::StatusCode {
                code: 2,
                message: Bytes::new(),
            });
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut it = Asking::new();
        let solicit = it.sent();
        let mut answer = offer(MessageType::Advertise, &solicit, 255);
        change(&mut answer);
        it.give(at(10), &answer);
        assert!(it.client.poll_transmit().is_none(), "case {number}");
        assert!(it.client.poll_leased().is_none(), "case {number}");
    }
    let mut it = Asking::new();
    let solicit = it.sent();
    let mut answer = offer(MessageType::Advertise, &solicit, 255);
    ia_of(&mut answer).addresses[0].preferred_lifetime_s = 2000;
    it.give(at(10), &answer);
    assert_eq!(
        it.sent().message_type,
        MessageType::Request,
        "as long as it is valid"
    );
}

#[test]
fn a_lease_is_renewed_at_t1_which_is_half_the_preferred_lifetime_where_it_is_left_open() {
    // sections 18.2.4 and 21.4
    const FOREVER: u32 = u32::MAX;
    for (t1, t2, preferred, renewed) in [
        (0, 0, 1000, Some(500)),
        (300, 600, 1000, Some(300)),
        (600, 600, 1000, Some(600)),
        (10, 0, 1000, Some(10)),
        (FOREVER, FOREVER, 1000, None),
        (0, 0, FOREVER, None),
        // section 14.2: not at once, whatever the lifetime; what the server says, it has
        (0, 0, 2, Some(1)),
        (0, 0, 1, Some(10)),
        (0, 0, 0, Some(10)),
        (1, 0, 0, Some(1)),
    ] {
        let it = bound(|ia| {
            (ia.t1_s, ia.t2_s) = (t1, t2);
            (
                ia.addresses[0].preferred_lifetime_s,
                ia.addresses[0].valid_lifetime_s,
            ) = (preferred, FOREVER);
        });
        let expected = renewed.map(|s| at(1000 * s));
        assert_eq!(it.client.poll_timeout(), expected, "{t1} {t2} {preferred}");
    }
}

fn elapsed(message: &Dhcpv6Message) -> Option<u16> {
    message.options.iter().find_map(|o| match o {
        Dhcpv6Option::ElapsedTime(hundredths) => Some(*hundredths),
        _ => None,
    })
}

#[test]
fn at_t2_a_renewal_ends_and_a_rebinding_begins() {
    // sections 18.2.4 and 18.2.5; T2 is four fifths of the preferred lifetime where the server leaves it open
    let mut it = bound(|ia| ia.addresses[0].preferred_lifetime_s = 1004);
    let mut renew = None;
    let (time, rebind) = loop {
        let time = it.wait();
        let message = it.sent();
        if message.message_type == MessageType::Rebind {
            break (time, message);
        }
        assert_eq!(message.message_type, MessageType::Renew);
        assert_eq!(of_server(&message), Some(server_id(255)));
        renew = Some(message.transaction_id);
    };
    assert_eq!(time, at(803_000), "T2 itself");
    assert_eq!(of_server(&rebind), None, "any server may answer");
    assert_ne!(Some(rebind.transaction_id), renew, "another exchange");
    assert_eq!(elapsed(&rebind), Some(0));
    let again = it.wait();
    assert!((ms(9_000)..=ms(11_000)).contains(&(again - time)), "REB_TIMEOUT");
    let message = it.sent();
    assert_eq!(
        (message.message_type, message.transaction_id),
        (MessageType::Rebind, rebind.transaction_id)
    );
    assert_eq!(
        elapsed(&message).map(u64::from),
        Some((again - time).as_millis() / 10)
    );
}

#[test]
fn who_comes_back_after_t2_asks_any_server_at_once() {
    let mut it = bound(|_| {});
    let lease = it.client.suspend().expect("a lease");
    it.client.resume(lease);
    it.client.handle_timeout(at(900_000), &mut it.stream);
    assert_eq!(it.sent().message_type, MessageType::Rebind);
}

#[test]
fn an_address_that_is_deprecated_is_not_renewed_once_per_round_trip() {
    let deprecated = |ia: &mut IaNa| {
        ia.addresses[0].preferred_lifetime_s = 0;
    };
    let mut it = bound(deprecated);
    let mut renewals = 0;
    while it.client.poll_timeout().is_some_and(|time| time < at(600_000)) {
        let time = it.wait();
        let asked = it.sent();
        let mut reply = offer(MessageType::Reply, &asked, 255);
        if let Some(Dhcpv6Option::IaNa(ia)) = reply
            .options
            .iter_mut()
            .find(|o| matches!(o, Dhcpv6Option::IaNa(_)))
        {
            deprecated(ia);
        }
        it.give(time + Duration::from_millis(1), &reply);
        renewals += 1;
        assert!(renewals <= 60, "{time}");
    }
    assert_eq!(renewals, 59);
}

/// What answers another question, and what is no answer.
fn no_replies(asked: &Dhcpv6Message) -> [Dhcpv6Message; 2] {
    let mut other = offer(MessageType::Reply, asked, 255);
    other.transaction_id ^= 1;
    [other, offer(MessageType::Advertise, asked, 255)]
}

#[test]
fn a_reply_is_to_the_request_or_the_renewal_that_was_sent() {
    // section 18.2.10: the transaction ID is that of the exchange
    let mut it = Asking::new();
    let solicit = it.sent();
    it.give(at(0), &offer(MessageType::Advertise, &solicit, 255));
    let request = it.sent();
    for message in no_replies(&request) {
        it.give(at(0), &message);
        assert!(it.client.poll_leased().is_none() && !it.client.is_for(OFFERED));
    }
    it.give(at(0), &offer(MessageType::Reply, &request, 255));
    assert!(it.client.poll_leased().is_some() && it.client.is_for(OFFERED));
    let time = it.wait();
    let renew = it.sent();
    for message in no_replies(&renew) {
        it.give(time, &message);
        assert!(it.client.poll_leased().is_none());
    }
    it.give(time, &offer(MessageType::Reply, &renew, 255));
    assert!(it.client.poll_leased().is_some());
}

#[test]
fn a_renewal_is_of_the_same_address_or_none() {
    let mut it = bound(|_| {});
    let time = it.wait();
    let renew = it.sent();
    let mut other = offer(MessageType::Reply, &renew, 255);
    ia_of(&mut other).addresses[0].address = PREFIX;
    it.give(time, &other);
    assert!(it.client.poll_leased().is_none());
    assert!(it.client.is_for(OFFERED) && !it.client.is_for(PREFIX));
    it.give(time, &offer(MessageType::Reply, &renew, 255));
    assert!(it.client.poll_leased().is_some());
    assert_eq!(it.client.poll_timeout(), Some(time + Duration::from_secs(500)));
}

#[test]
fn a_server_that_has_no_address_after_all_is_asked_again_after_a_pause() {
    let mut it = Asking::new();
    let solicit = it.sent();
    it.give(at(0), &offer(MessageType::Advertise, &solicit, 255));
    let request = it.sent();
    let mut none = offer(MessageType::Reply, &request, 255);
    ia_of(&mut none).addresses.clear();
    it.give(at(40), &none);
    assert!(it.client.poll_leased().is_none());
    assert_eq!(it.client.poll_timeout(), Some(at(1040)), "SOL_TIMEOUT");
    it.wait();
    assert_eq!(it.sent().message_type, MessageType::Solicit);
}

#[test]
fn a_reply_to_a_solicitation_is_for_those_who_asked_for_it() {
    // section 18.2.1: rapid commit, of both
    let mut it = Asking::new();
    let solicit = it.sent();
    assert!(!solicit.options.contains(&Dhcpv6Option::RapidCommit));
    let mut reply = offer(MessageType::Reply, &solicit, 0);
    reply.options.push(Dhcpv6Option::RapidCommit);
    it.give(at(0), &reply);
    assert!(it.client.poll_leased().is_none());
}

// --- the server ---

fn server(config: ServerConfig) -> Dhcpv6Server {
    Dhcpv6Server::new(InterfaceId(0), ROUTER, PREFIX, config)
}

fn asks(message_type: MessageType, client: u8, iaid: u32, more: Vec<Dhcpv6Option>) -> Dhcpv6Message {
    let ia = IaNa {
        iaid,
        t1_s: 0,
        t2_s: 0,
        addresses: Vec::new(),
    };
    let mut options = vec![
        Dhcpv6Option::ClientIdentifier(server_id(client)),
        Dhcpv6Option::IaNa(ia),
    ];
    options.extend(more);
    Dhcpv6Message {
        message_type,
        transaction_id: 0x1234,
        options,
    }
}

fn answer(server: &mut Dhcpv6Server, message: &Dhcpv6Message) -> Option<Dhcpv6Message> {
    let from = crate::nd::link_local(MAC);
    server.handle_packet(
        at(0),
        &udp_packet(
            (from, CLIENT),
            (ALL_DHCP_RELAY_AGENTS_AND_SERVERS, SERVER),
            message,
        ),
    );
    let packet = server.poll_transmit(at(0))?.packet;
    assert_eq!(packet.ip.destination, from);
    message_to(&packet, CLIENT)
}

fn given(answer: Option<Dhcpv6Message>) -> Ipv6Addr {
    ia_of(&mut answer.expect("an answer")).addresses[0].address
}

#[test]
fn a_server_answers_what_is_meant_for_it() {
    // sections 16.2 to 16.9
    let ours = || Dhcpv6Option::ServerIdentifier(duid(ROUTER));
    let other = || Dhcpv6Option::ServerIdentifier(duid(MAC));
    let mut it = server(ServerConfig::default());
    for (kind, of, answered) in [
        (MessageType::Solicit, None, Some(MessageType::Advertise)),
        (MessageType::Solicit, Some(ours()), None),
        (MessageType::Request, Some(ours()), Some(MessageType::Reply)),
        (MessageType::Request, Some(other()), None),
        (MessageType::Request, None, None),
        (MessageType::Renew, Some(ours()), Some(MessageType::Reply)),
        (MessageType::Renew, Some(other()), None),
        (MessageType::Rebind, None, Some(MessageType::Reply)),
        (MessageType::Rebind, Some(ours()), None),
        (MessageType::Release, Some(other()), None),
        (MessageType::Release, Some(ours()), Some(MessageType::Reply)),
        (MessageType::Decline, Some(other()), None),
        (MessageType::Advertise, None, None),
    ] {
        let ignored = it.ignored();
        let found = answer(&mut it, &asks(kind, 1, 1, of.into_iter().collect()));
        assert_eq!(found.as_ref().map(|m| m.message_type), answered, "{kind:?}");
        assert_eq!(it.ignored() - ignored, u64::from(answered.is_none()));
        if let Some(found) = found {
            assert_eq!(
                (found.transaction_id, of_server(&found)),
                (0x1234, Some(duid(ROUTER)))
            );
        }
    }
    let mut nobody = asks(MessageType::Solicit, 1, 1, Vec::new());
    nobody.options.remove(0);
    assert!(answer(&mut it, &nobody).is_none());
    let mut nothing = asks(MessageType::Solicit, 1, 1, Vec::new());
    nothing.options.remove(1);
    assert!(answer(&mut it, &nothing).is_none());
}

#[test]
fn a_server_that_takes_its_time_answers_when_it_said() {
    let mut it = server(ServerConfig {
        reply_delay: ms(300),
        ..ServerConfig::default()
    });
    assert_eq!(it.poll_timeout(), None);
    assert!(answer(&mut it, &asks(MessageType::Solicit, 1, 1, Vec::new())).is_none());
    assert_eq!(it.poll_timeout(), Some(at(300)));
    assert!(it.poll_transmit(at(299)).is_none());
    assert!(it.poll_transmit(at(300)).is_some());
    assert_eq!(it.poll_timeout(), None);
}

#[test]
fn each_client_s_interface_has_an_address_and_keeps_it() {
    let mut it = server(ServerConfig::default());
    let mut of = |client, iaid| {
        given(answer(
            &mut it,
            &asks(MessageType::Solicit, client, iaid, Vec::new()),
        ))
    };
    let first = of(1, 1);
    assert_eq!(first.segments()[..4], PREFIX.segments()[..4]);
    let others = [of(1, 2), of(2, 1)];
    assert!(first != others[0] && first != others[1] && others[0] != others[1]);
    assert_eq!((of(1, 1), of(1, 2)), (first, others[0]));
    // released or declined, it is another: one that was declined is not offered again (section 18.3.8)
    let ours = || vec![Dhcpv6Option::ServerIdentifier(duid(ROUTER))];
    for kind in [MessageType::Release, MessageType::Decline] {
        let before = given(answer(&mut it, &asks(MessageType::Solicit, 1, 1, Vec::new())));
        assert!(answer(&mut it, &asks(kind, 1, 1, ours())).is_some());
        let after = given(answer(&mut it, &asks(MessageType::Solicit, 1, 1, Vec::new())));
        assert_ne!(before, after);
    }
}

#[test]
fn a_server_gives_the_times_that_it_was_set_to() {
    // section 21.4: T1 and T2 are 0.5 and 0.8 times the preferred lifetime
    let mut it = server(ServerConfig {
        preferred_lifetime: Duration::from_millis(1_004_999),
        valid_lifetime: Duration::from_secs(3000),
        preference: Some(8),
        ..ServerConfig::default()
    });
    let preference = |m: &Dhcpv6Message| {
        m.options
            .iter()
            .any(|o| matches!(o, Dhcpv6Option::Unknown { code: PREFERENCE, data } if data[..] == [8]))
    };
    let mut offered = answer(
        &mut it,
        &asks(MessageType::Solicit, 1, 1, vec![Dhcpv6Option::RapidCommit]),
    )
    .unwrap();
    assert!(preference(&offered) && !offered.options.contains(&Dhcpv6Option::RapidCommit));
    let ia = ia_of(&mut offered);
    assert_eq!((ia.iaid, ia.t1_s, ia.t2_s), (1, 502, 803));
    let address = ia.addresses[0];
    assert_eq!(
        (address.preferred_lifetime_s, address.valid_lifetime_s),
        (1004, 3000)
    );
    let ours = vec![Dhcpv6Option::ServerIdentifier(duid(ROUTER))];
    let reply = answer(&mut it, &asks(MessageType::Request, 1, 1, ours)).unwrap();
    assert!(!preference(&reply), "it is for choosing");
    let mut it = server(ServerConfig {
        rapid_commit: true,
        ..ServerConfig::default()
    });
    for (asked, kind) in [
        (vec![Dhcpv6Option::RapidCommit], MessageType::Reply),
        (Vec::new(), MessageType::Advertise),
    ] {
        let rapid = !asked.is_empty();
        let found = answer(&mut it, &asks(MessageType::Solicit, 1, 1, asked)).unwrap();
        assert_eq!(
            (
                found.message_type,
                found.options.contains(&Dhcpv6Option::RapidCommit)
            ),
            (kind, rapid)
        );
    }
}
