//! Chunk authentication (RFC 4895) as somebody who saw the handshake works it out, apart from the code under test.

use super::{Departure, Net};
use bytes::Bytes;
use hmac::{Hmac, Mac};
use segue_wire::sctp::{Auth, Chunk, Parameter};
use sha1::Sha1;
use sha2::Sha256;

/// RANDOM, CHUNKS and HMAC-ALGO of the INIT or INIT ACK that `host` sent last, without padding.
fn key_vector(log: &[Departure], host: usize) -> Vec<u8> {
    let parameters = log
        .iter()
        .rev()
        .filter(|d| d.from == host)
        .find_map(|d| match &d.sctp().chunks[0] {
            Chunk::Init(init) | Chunk::InitAck(init) => Some(&init.parameters),
            _ => None,
        })
        .expect("neither INIT nor INIT ACK");
    let mut out = Vec::new();
    for wanted in [0x8002, 0x8003, 0x8004] {
        if let Some(parameter) = parameters.iter().find(|p| p.parameter_type() == wanted) {
            match parameter {
                Parameter::Random(v) | Parameter::Chunks(v) => tlv(wanted, v, &mut out),
                Parameter::HmacAlgo(ids) => {
                    let v: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
                    tlv(wanted, &v, &mut out);
                }
                _ => unreachable!(),
            }
        }
    }
    out
}

fn tlv(parameter_type: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(parameter_type.to_be_bytes());
    out.extend((4 + value.len() as u16).to_be_bytes());
    out.extend(value);
}

/// The association shared key of the handshake in the log. Both vectors begin with 0x8002: the longer is the larger.
pub fn association_key(net: &Net, shared_key: &[u8]) -> Vec<u8> {
    let mut vectors = [0, 1].map(|host| key_vector(&net.log, host));
    vectors.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    [shared_key, &vectors[0], &vectors[1]].concat()
}

pub fn hmac(key: &[u8], hmac_id: u16, bytes: &[u8]) -> Vec<u8> {
    match hmac_id {
        1 => {
            let mut mac = Hmac::<Sha1>::new_from_slice(key).unwrap();
            mac.update(bytes);
            mac.finalize().into_bytes().to_vec()
        }
        3 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            mac.update(bytes);
            mac.finalize().into_bytes().to_vec()
        }
        _ => panic!("no such HMAC"),
    }
}

/// `chunks` behind an AUTH chunk.
pub fn authenticated(
    association_key: &[u8],
    (shared_key_id, hmac_id): (u16, u16),
    chunks: impl IntoIterator<Item = Chunk>,
) -> Vec<Chunk> {
    let chunks: Vec<Chunk> = chunks.into_iter().collect();
    let len: usize = if hmac_id == 1 { 20 } else { 32 };
    let mut covered = vec![15, 0];
    covered.extend((8 + len as u16).to_be_bytes());
    covered.extend(shared_key_id.to_be_bytes());
    covered.extend(hmac_id.to_be_bytes());
    covered.resize(8 + len, 0);
    for chunk in &chunks {
        chunk.emit(&mut covered);
    }
    let hmac = Bytes::from(hmac(association_key, hmac_id, &covered));
    let mut out = vec![Chunk::Auth(Box::new(Auth::new(shared_key_id, hmac_id, hmac)))];
    out.extend(chunks);
    out
}

/// Whether what stands behind the AUTH chunk of a packet is authenticated by this key.
pub fn is_authentic(association_key: &[u8], packet: &segue_wire::sctp::SctpPacket) -> bool {
    let at = packet.chunks.iter().position(|c| matches!(c, Chunk::Auth(_)));
    at.is_some_and(|at| {
        let Chunk::Auth(auth) = &packet.chunks[at] else {
            unreachable!()
        };
        let again = authenticated(
            association_key,
            (auth.shared_key_id, auth.hmac_id),
            packet.chunks[at + 1..].to_vec(),
        );
        again[0] == packet.chunks[at]
    })
}
