//! What INIT and INIT ACK say of authentication: RANDOM, CHUNKS and HMAC-ALGO (RFC 4895 sections 3 and 6.1).

use super::chunk_types::{ChunkTypes, can_be_authenticated};
use super::keys::{HmacIdentifier, key_vector};
use super::{AsconfAuth, RANDOM_LEN, Random};
use crate::sctp::Config;
use bytes::Bytes;
use segue_wire::sctp::chunk_type::{ASCONF, ASCONF_ACK};
use segue_wire::sctp::{ErrorCause, Parameter};

/// Whether INIT and INIT ACK of ours offer authentication.
pub(in crate::sctp) fn is_offered(config: &Config) -> bool {
    (config.dynamic_addresses && config.asconf_auth == AsconfAuth::Required)
        || !config.auth.required_chunks.is_empty()
        || !config.auth.shared_keys.is_empty()
}

/// RANDOM, CHUNKS and HMAC-ALGO of an INIT or INIT ACK of ours: the parameters of its key vector in their order.
pub(in crate::sctp) fn own_parameters(config: &Config, random: &Random) -> Vec<Parameter> {
    let mut parameters = vec![Parameter::Random(Bytes::copy_from_slice(random))];
    let chunk_types = required_chunks(config);
    if !chunk_types.is_empty() {
        parameters.push(Parameter::Chunks(chunk_types.into()));
    }
    let hmacs = hmac_identifiers(config);
    parameters.push(Parameter::HmacAlgo(hmacs.iter().map(|h| h.number()).collect()));
    parameters
}

/// Chunk types accepted only authenticated, as CHUNKS lists them.
pub(super) fn required_chunks(config: &Config) -> Vec<u8> {
    let asconf: &[u8] = match config.asconf_auth {
        AsconfAuth::Required if config.dynamic_addresses => &[ASCONF, ASCONF_ACK],
        AsconfAuth::Required | AsconfAuth::None => &[],
    };
    let mut list = Vec::new();
    for t in asconf.iter().chain(&config.auth.required_chunks) {
        if can_be_authenticated(*t) && !list.contains(t) {
            list.push(*t);
        }
    }
    list
}

pub(super) fn hmac_identifiers(config: &Config) -> Vec<HmacIdentifier> {
    let mut list = Vec::new();
    for hmac in config.auth.hmac_identifiers.iter().chain(&[HmacIdentifier::Sha1]) {
        if !list.contains(hmac) {
            list.push(*hmac);
        }
    }
    list
}

/// Why a peer with these parameters in its INIT or INIT ACK is refused, if it is.
pub(in crate::sctp) fn refusal(config: &Config, parameters: &[Parameter]) -> Option<ErrorCause> {
    if !is_offered(config) {
        return None;
    }
    let violation = |text: &'static [u8]| Some(ErrorCause::ProtocolViolation(Bytes::from_static(text)));
    // section 6.1
    let wrong_random = |p: &Parameter| matches!(p, Parameter::Random(random) if random.len() != RANDOM_LEN);
    if parameters.iter().any(wrong_random) {
        return violation(b"RANDOM is not 32 bytes long");
    }
    if !config.auth.required_chunks.is_empty() && PeerAuth::read(parameters).is_none() {
        return violation(b"authentication is required");
    }
    None
}

/// Whether `parameter` is one of those that negotiate authentication.
pub(in crate::sctp) fn concerns(parameter: &Parameter) -> bool {
    matches!(
        parameter,
        Parameter::Random(_) | Parameter::Chunks(_) | Parameter::HmacAlgo(_)
    )
}

/// What the peer's INIT or INIT ACK said.
#[derive(Debug)]
pub(super) struct PeerAuth {
    pub vector: Vec<u8>,
    pub demanded: ChunkTypes,
    /// The first that it lists and this end supports (section 6.1).
    pub hmac: HmacIdentifier,
}

impl PeerAuth {
    /// `None` if the peer does not support authentication, or none of our HMACs.
    pub(super) fn read(parameters: &[Parameter]) -> Option<Self> {
        let random = parameters.iter().find(|p| matches!(p, Parameter::Random(_)))?;
        let chunks = parameters.iter().find(|p| matches!(p, Parameter::Chunks(_)));
        let algorithms = parameters.iter().find(|p| matches!(p, Parameter::HmacAlgo(_)))?;
        let hmac = match algorithms {
            Parameter::HmacAlgo(list) => list.iter().find_map(|&n| HmacIdentifier::from_number(n))?,
            _ => return None,
        };
        let sent: Vec<Parameter> = [Some(random), chunks, Some(algorithms)]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let demanded = match chunks {
            Some(Parameter::Chunks(types)) => types.iter().collect(),
            _ => ChunkTypes::default(),
        };
        Some(Self {
            vector: key_vector(&sent),
            demanded,
            hmac,
        })
    }
}
