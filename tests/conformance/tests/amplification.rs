//! What a peer, or somebody in its name, can have sent to others and done here by little: answers counted in packets and
//! bytes, work in associations looked at, memory in bytes of packets kept.

use bytes::Bytes;
use segue_conformance::crowd::Crowd;
use segue_conformance::script::chunks::{data, data_chunk, extensions, init, peer_tsn};
use segue_conformance::script::{PORT, Script, auth, ms, ours, peer, quiet};
use segue_conformance::{expect, script::Sent};
use segue_proto::sctp::Config;
use segue_wire::checksum::sctp_crc32c;
use segue_wire::sctp::{
    Asconf, AsconfParameter, Chunk, DataChunk, Parameter, ReConfig, ReConfigParameter, SctpPacket,
};
use segue_wire::{AsconfSerial, Data, ReConfigSerial, Ssn};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Somebody who has nothing to do with it.
const VICTIM: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 3, 0, 0, 0, 1);

fn asconf(n: u32, parameters: Vec<AsconfParameter>) -> Chunk {
    Chunk::Asconf(Box::new(Asconf {
        serial_number: AsconfSerial(init().initial_tsn.0).add(n),
        address: peer(1),
        parameters,
    }))
}

fn add(correlation_id: u32, address: Ipv6Addr) -> AsconfParameter {
    AsconfParameter::AddIpAddress {
        correlation_id,
        address,
    }
}

fn delete(correlation_id: u32, address: Ipv6Addr) -> AsconfParameter {
    AsconfParameter::DeleteIpAddress {
        correlation_id,
        address,
    }
}

/// An association whose peer authenticates, knows every extension, and has named a second address that it has not shown
/// to be its own.
fn with_unconfirmed() -> Script {
    let mut parameters = auth::parameters();
    parameters.pop();
    parameters.extend([
        extensions(&[0xc1, 0x80, 0x0f, 0x82, 0xc0]),
        Parameter::ForwardTsnSupported,
        Parameter::Ipv6Address(peer(2)),
    ]);
    let mut t = Script::established_with(quiet(), 1, parameters);
    expect!(t, Chunk::Heartbeat(_));
    t.forget();
    t
}

/// Sends a packet in the name of `from`; gives its length and what is sent there.
fn ask(t: &mut Script, from: Ipv6Addr, chunks: Vec<Chunk>) -> (usize, Vec<Sent>) {
    t.forget();
    let sctp = SctpPacket {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: t.our_tag,
        chunks: chunks.into_iter().collect(),
    };
    let len = 40 + sctp.buffer_len();
    t.send_sctp(from, ours(1), sctp);
    let mut answers = t.take_all();
    answers.retain(|sent| sent.destination == from);
    (len, answers)
}

/// Every chunk that is answered, as often as a packet has room for it, with what makes the endpoint ready for it.
fn repeated() -> Vec<(&'static str, Script, Vec<Chunk>)> {
    let mut cases = Vec::new();

    let mut t = with_unconfirmed();
    let long = (1..=15)
        .map(|n| add(n, peer(3)))
        .chain([add(16, Ipv6Addr::LOCALHOST)]);
    let answered = asconf(0, long.collect());
    let signed = t.signed([answered]);
    t.send(signed);
    let again = t.signed((0..47).map(|_| asconf(0, Vec::new())));
    cases.push(("ASCONF", t, again));

    let t = with_unconfirmed();
    let new = t.signed((0..20).map(|n| {
        asconf(
            n,
            vec![AsconfParameter::Unknown {
                correlation_id: n,
                parameter_type: 0xc123,
                value: Bytes::from_static(&[0; 8]),
            }],
        )
    }));
    cases.push(("new ASCONFs", t, new));

    let request = Chunk::ReConfig(Box::new(ReConfig {
        parameters: vec![ReConfigParameter::AddOutgoingStreams {
            request: ReConfigSerial(init().initial_tsn.0).add(1000),
            new_streams: 1,
        }],
    }));
    cases.push(("RE-CONFIG", with_unconfirmed(), vec![request; 90]));
    let requests = (0..90).map(|n| {
        Chunk::ReConfig(Box::new(ReConfig {
            parameters: vec![ReConfigParameter::AddOutgoingStreams {
                request: ReConfigSerial(init().initial_tsn.0).add(n),
                new_streams: 1,
            }],
        }))
    });
    cases.push(("new RE-CONFIGs", with_unconfirmed(), requests.collect()));

    let mut t = with_unconfirmed();
    let cumulative_tsn_ack = t.our_tsn.previous();
    t.send([Chunk::Shutdown { cumulative_tsn_ack }]);
    cases.push(("SHUTDOWN", t, vec![Chunk::Shutdown { cumulative_tsn_ack }; 180]));
    let t = with_unconfirmed();
    cases.push((
        "first SHUTDOWN",
        t,
        vec![Chunk::Shutdown { cumulative_tsn_ack }; 180],
    ));

    let heartbeats = (0..100_u8).map(|n| Chunk::Heartbeat(vec![n].into()));
    cases.push(("HEARTBEAT", with_unconfirmed(), heartbeats.collect()));

    let unknown = (0..200_u8).map(|n| Chunk::Unknown {
        chunk_type: 0xfe,
        flags: n,
        value: Bytes::new(),
    });
    cases.push(("unknown chunks", with_unconfirmed(), unknown.collect()));

    let mut strange = |n: u32| {
        Chunk::Data(DataChunk {
            stream_id: 9000 + n as u16,
            ..data_chunk(n)
        })
    };
    let wrong_streams = (0..70).map(&mut strange).collect();
    cases.push(("DATA of unknown streams", with_unconfirmed(), wrong_streams));

    // every second TSN is missing: as many gap ack blocks as there may be
    let mut t = with_unconfirmed();
    for n in 1..400 {
        t.send([data(2 * n)]);
    }
    cases.push(("DATA behind gaps", t, vec![data(900)]));
    cases.push(("nothing known", with_unconfirmed(), vec![Chunk::ShutdownAck; 2]));
    cases
}

#[test]
fn a_packet_is_answered_by_one_packet_whatever_is_in_it() {
    for (name, mut t, chunks) in repeated() {
        let (_, answers) = ask(&mut t, peer(1), chunks);
        assert!(answers.len() <= 2, "{name}: {} packets", answers.len());
        // DATA has its SACK beside the answer to what is wrong with it
        let sacks = answers.iter().filter(|a| matches!(a.chunks[0], Chunk::Sack(_)));
        assert!(answers.len() - sacks.count() <= 1, "{name}: {answers:?}");
    }
}

#[test]
fn an_address_that_is_not_confirmed_is_sent_no_more_bytes_than_came_from_it() {
    for (name, mut t, chunks) in repeated() {
        let (asked, answers) = ask(&mut t, peer(2), chunks);
        let answered: usize = answers.iter().map(|a| a.len).sum();
        assert!(answered <= asked, "{name}: {answered} bytes for {asked}");
    }
    // the answers are there all the same, where they are no longer than what they answer
    let mut t = with_unconfirmed();
    let (_, answers) = ask(&mut t, peer(2), vec![Chunk::Heartbeat("who is there".into())]);
    assert!(matches!(&answers[0].chunks[..], [Chunk::HeartbeatAck(info)] if info == "who is there"));
}

#[test]
fn an_asconf_that_comes_again_from_a_strange_address_is_not_answered_with_more() {
    let mut t = with_unconfirmed();
    let long = (1..=15)
        .map(|n| add(n, peer(3)))
        .chain([add(16, Ipv6Addr::LOCALHOST)]);
    let first = t.signed([asconf(0, long.collect())]);
    let (_, answers) = ask(&mut t, peer(1), first.clone());
    assert!(matches!(answers[0].chunks[1], Chunk::AsconfAck(_)));
    let again = t.signed((0..47).map(|_| asconf(0, Vec::new())));
    let short = t.signed([asconf(0, Vec::new())]);
    for packet in [again, short, first] {
        let (asked, answers) = ask(&mut t, VICTIM, packet);
        let answered: usize = answers.iter().map(|a| a.len).sum();
        assert!(
            answers.len() <= 1 && answered <= asked,
            "{answered} bytes for {asked}"
        );
    }
    // a host that has moved gets its answer where it is
    let moved = t.signed([asconf(1, vec![add(1, VICTIM)])]);
    let (_, answers) = ask(&mut t, VICTIM, moved);
    assert!(matches!(answers[0].chunks[1], Chunk::AsconfAck(_)), "{answers:?}");
}

fn heartbeats(sent: &[Sent]) -> usize {
    let is_heartbeat = |c: &&Chunk| matches!(c, Chunk::Heartbeat(_));
    sent.iter().flat_map(|s| &s.chunks).filter(is_heartbeat).count()
}

#[test]
fn addresses_of_an_init_are_probed_one_in_an_rto() {
    // section 5.4 and HB.Max.Burst of section 16
    for (hb_max_burst, at_once) in [(1, 1), (4, 4)] {
        let mut t = Script::established_with(
            Config {
                hb_max_burst,
                ..quiet()
            },
            1,
            (2..=32).map(|n| Parameter::Ipv6Address(peer(n))).collect(),
        );
        assert_eq!(heartbeats(&t.take_all()), at_once);
        let mut probed = Vec::new();
        for _ in 0..35 {
            t.wait(ms(1000));
            let sent = t.take_all();
            assert!(heartbeats(&sent) <= at_once, "{} at once", heartbeats(&sent));
            for packet in sent {
                if let [Chunk::Heartbeat(info)] = &packet.chunks[..] {
                    t.send_from(packet.destination, [Chunk::HeartbeatAck(info.clone())]);
                    probed.push(packet.destination);
                }
            }
        }
        // nobody is forgotten: those that answered first were not answered here
        probed.sort();
        probed.dedup();
        assert_eq!(probed.len(), 31);
        assert_eq!(
            t.association()
                .paths()
                .filter(|p| p.state == segue_proto::sctp::PathState::Active)
                .count(),
            32
        );
    }
}

#[test]
fn an_address_that_is_not_there_does_not_keep_the_others_waiting() {
    let mut t = Script::established_with(
        quiet(),
        1,
        (2..=6).map(|n| Parameter::Ipv6Address(peer(n))).collect(),
    );
    // nobody answers: each has its turn before the first has its second
    t.wait(ms(4500));
    let order: Vec<_> = t.take_all().into_iter().map(|s| s.destination).collect();
    assert_eq!(order, (2..=6).map(peer).collect::<Vec<_>>());
}

#[test]
fn an_address_that_is_added_and_deleted_again_and_again_is_probed_once() {
    let mut t = with_unconfirmed();
    // the heartbeat of the handshake is over
    t.wait(ms(60_000));
    let changes = (0..24).flat_map(|n| [add(2 * n, VICTIM), delete(2 * n + 1, VICTIM)]);
    let chunks = t.signed([asconf(0, changes.chain([add(100, VICTIM)]).collect())]);
    t.forget();
    t.send(chunks);
    let to_victim = |sent: Vec<Sent>| sent.into_iter().filter(|s| s.destination == VICTIM).count();
    assert!(to_victim(t.take_all()) <= 1);
    t.wait(ms(900));
    assert_eq!(to_victim(t.take_all()), 0);
    t.wait(ms(20_000));
    assert!(to_victim(t.take_all()) >= 1, "it is probed all the same");
}

/// The memory of a packet that arrived, counted while anything of it is kept.
struct Backing {
    bytes: Vec<u8>,
    kept: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Backing {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        self.kept.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// Makes the PAD chunk behind a DATA chunk of one byte a HEARTBEAT whose information is 8 bytes long: what is behind them
/// is parsed by nobody.
fn heartbeat_with_more_behind_its_information(bytes: &mut [u8]) {
    const BEHIND_DATA: usize = 12 + 20;
    bytes[BEHIND_DATA] = 4;
    bytes[BEHIND_DATA + 4..BEHIND_DATA + 8].copy_from_slice(&[0, 1, 0, 8]);
    let crc = sctp_crc32c(bytes);
    bytes[8..12].copy_from_slice(&crc);
}

#[test]
fn a_byte_that_waits_does_not_keep_its_packet() {
    let mut t = with_unconfirmed();
    t.reading = false;
    let kept = Arc::new(AtomicUsize::new(0));
    let window = t.association().a_rwnd() as usize;
    // unread, out of order, parts of a message, and beside what is thrown away for want of an AUTH chunk
    let ballast = [
        Chunk::Pad(vec![0; 60_000].into()),
        asconf(
            0,
            vec![AsconfParameter::Unknown {
                correlation_id: 1,
                parameter_type: 0xc123,
                value: vec![0; 60_000].into(),
            }],
        ),
    ];
    for n in 0..3000_u32 {
        let chunk = Chunk::Data(DataChunk {
            stream_id: (n % 2) as u16,
            ssn: Ssn(n as u16),
            tsn: peer_tsn(n),
            ending: n % 3 > 0,
            data: Data::Bytes(Bytes::from_static(b"x")),
            ..data_chunk(n)
        });
        let mut bytes = Vec::new();
        SctpPacket {
            source_port: PORT,
            destination_port: PORT,
            verification_tag: t.our_tag,
            chunks: [chunk, ballast[n as usize % 2].clone()].into_iter().collect(),
        }
        .emit(&mut bytes);
        if n % 4 == 2 {
            heartbeat_with_more_behind_its_information(&mut bytes);
        }
        kept.fetch_add(bytes.len(), Ordering::Relaxed);
        let backing = Backing {
            bytes,
            kept: kept.clone(),
        };
        let sctp = SctpPacket::parse(&Bytes::from_owner(backing)).expect("a packet");
        t.send_parsed(peer(1), sctp);
    }
    let counters = t.association().counters();
    assert!(counters.data_chunks_received > 1000, "{counters:?}");
    let kept = kept.load(Ordering::Relaxed);
    assert!(
        kept <= 2 * window,
        "{kept} bytes of packets are kept, the window is {window}"
    );
}

#[test]
fn what_is_most_of_its_packet_is_kept_as_it_came() {
    // bulk data is not copied once more
    let mut t = Script::established(quiet());
    t.reading = false;
    let kept = Arc::new(AtomicUsize::new(0));
    let mut bytes = Vec::new();
    SctpPacket {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: t.our_tag,
        chunks: [Chunk::Data(DataChunk {
            data: Data::Bytes(vec![1; 1400].into()),
            ..data_chunk(0)
        })]
        .into_iter()
        .collect(),
    }
    .emit(&mut bytes);
    kept.fetch_add(bytes.len(), Ordering::Relaxed);
    let len = bytes.len();
    let backing = Backing {
        bytes,
        kept: kept.clone(),
    };
    let sctp = SctpPacket::parse(&Bytes::from_owner(backing)).expect("a packet");
    t.send_parsed(peer(1), sctp);
    assert_eq!(kept.load(Ordering::Relaxed), len);
}

#[test]
fn what_anybody_can_send_has_no_more_associations_looked_at_among_10_000() {
    let mut crowd = Crowd::new(10_000);
    assert_eq!(crowd.end.check_invariants(), Ok(()));
    // an INIT may name 32 addresses, each of somebody else
    let most = 40;
    for (name, packet) in crowd.spoofed() {
        let before = crowd.end.counters().associations_examined;
        crowd.take(packet);
        let examined = crowd.end.counters().associations_examined - before;
        assert!(examined <= most, "{name}: {examined} associations looked at");
    }
    assert_eq!(crowd.end.associations().count(), 10_000);
    assert!(crowd.end.counters().associations_examined > 0);
    assert_eq!(crowd.end.check_invariants(), Ok(()));
}
