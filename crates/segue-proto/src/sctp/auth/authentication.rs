//! Authentication of one association: its keys, what it demands and what is demanded of it (RFC 4895 section 6).

use super::chunk_types::ChunkTypes;
use super::keys::{AssociationKey, HmacIdentifier, SharedKey, association_shared_key, key_vector};
use super::offer::{PeerAuth, hmac_identifiers, own_parameters, required_chunks};
use super::{AsconfAuth, AuthError, Random};
use crate::sctp::Config;
use bytes::Bytes;
use segue_wire::sctp::chunk_type::{ASCONF, ASCONF_ACK, COOKIE_ECHO};
use segue_wire::sctp::{Auth, Chunk, Parameter, SctpPacket};
use smallvec::SmallVec;

#[derive(Debug)]
struct Key {
    shared: SharedKey,
    /// Once both key vectors are known.
    association: Option<AssociationKey>,
}

/// Why chunks were not accepted as authenticated (section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum AuthFailure {
    /// Authentication was not negotiated.
    NotNegotiated,
    /// This end did not list the HMAC.
    UnsupportedHmac(u16),
    /// There is no such shared key.
    UnknownKey,
    /// The HMAC is wrong.
    WrongHmac,
}

/// What was found while a packet was sifted.
#[derive(Default)]
pub(in crate::sctp) struct Sifted {
    /// The key of an AUTH chunk that is right, if the peer did not use it before.
    pub new_key: Option<u16>,
    /// What is wrong with an AUTH chunk that is not.
    pub failure: Option<AuthFailure>,
    /// How many chunks had to be authenticated and were not.
    pub unauthenticated: u64,
}

/// Authentication of one association.
#[derive(Debug)]
pub(in crate::sctp) struct Authentication {
    /// RANDOM that this end sent; `None` if it does not offer authentication.
    random: Option<Random>,
    own_vector: Vec<u8>,
    hmacs: Vec<HmacIdentifier>,
    /// Chunk types accepted only behind an AUTH chunk.
    required: ChunkTypes,
    /// Chunk types that go out only behind an AUTH chunk.
    demanded: ChunkTypes,
    asconf: AsconfAuth,
    keys: SmallVec<[Key; 1]>,
    active_key: u16,
    /// Shared key identifier of the last AUTH chunk that was right.
    peer_key: u16,
    /// Whether the peer takes ASCONF only authenticated.
    refuses_bare_asconf: bool,
    peer: Option<PeerAuth>,
}

impl Authentication {
    /// `random` is what INIT or INIT ACK carried.
    pub(in crate::sctp) fn new(config: &Config, random: Option<Random>) -> Self {
        let shared_keys = if config.auth.shared_keys.is_empty() {
            vec![SharedKey {
                id: 0,
                key: Bytes::new(),
            }]
        } else {
            config.auth.shared_keys.clone()
        };
        let wanted = config.auth.active_key;
        let active_key = if shared_keys.iter().any(|k| k.id == wanted) {
            wanted
        } else {
            shared_keys[0].id
        };
        Self {
            random,
            own_vector: random.map_or_else(Vec::new, |r| key_vector(&own_parameters(config, &r))),
            hmacs: hmac_identifiers(config),
            required: required_chunks(config).iter().collect(),
            demanded: ChunkTypes::default(),
            asconf: config.asconf_auth,
            keys: shared_keys
                .into_iter()
                .map(|shared| Key {
                    shared,
                    association: None,
                })
                .collect(),
            active_key,
            peer_key: active_key,
            refuses_bare_asconf: false,
            peer: None,
        }
    }

    /// A cookie of ours came back, whose INIT ACK carried `random`: usually what is known already (section 6.1).
    pub(in crate::sctp) fn adopt_random(&mut self, config: &Config, random: Option<Random>) {
        if self.random != random {
            self.random = random;
            self.own_vector = random.map_or_else(Vec::new, |r| key_vector(&own_parameters(config, &r)));
        }
    }

    /// The peer's INIT or INIT ACK said this.
    pub(in crate::sctp) fn negotiate(&mut self, parameters: &[Parameter]) {
        let peer = PeerAuth::read(parameters);
        self.refuses_bare_asconf = peer.as_ref().is_some_and(|p| p.demanded.contains(ASCONF));
        self.peer = peer.filter(|_| self.random.is_some());
        self.make_keys();
        self.demanded = ChunkTypes::default();
        let Some(peer) = &self.peer else {
            return;
        };
        self.demanded = peer.demanded;
        if self.asconf == AsconfAuth::Required {
            // RFC 5061 sections 4.1.1 and 4.1.2: whether the peer lists them or not
            self.demanded = self.demanded.union([ASCONF, ASCONF_ACK].iter().collect());
        }
    }

    /// Association shared keys of all endpoint pair shared keys, if both key vectors are known.
    fn make_keys(&mut self) {
        for key in &mut self.keys {
            key.association = self.peer.as_ref().map(|peer| {
                let bytes = association_shared_key(&key.shared.key, [&self.own_vector, &peer.vector]);
                AssociationKey::new(&bytes)
            });
        }
    }

    /// Whether ASCONF may be used with this peer: it would drop one that is not authenticated if it listed the chunk
    /// type, and the association would end for want of an answer.
    pub(in crate::sctp) fn allows_asconf(&self) -> bool {
        self.peer.is_some() || (self.asconf == AsconfAuth::None && !self.refuses_bare_asconf)
    }

    /// Whether `chunk_type` is accepted only authenticated.
    fn requires(&self, chunk: &Chunk) -> bool {
        self.required.contains_type_of(chunk)
    }

    /// Bytes that an AUTH chunk takes from a packet with one of these chunk types.
    pub(in crate::sctp) fn overhead(&self, chunk_types: &[u8]) -> u32 {
        match &self.peer {
            Some(peer) if chunk_types.iter().any(|&t| self.demanded.contains(t)) => {
                8 + peer.hmac.hmac_len() as u32
            }
            _ => 0,
        }
    }

    /// Puts an AUTH chunk before the first chunk that the peer demands to be authenticated (section 6.2).
    #[inline]
    pub(in crate::sctp) fn protect(&self, chunks: &mut SmallVec<[Chunk; 1]>) {
        if let Some(at) = chunks.iter().position(|c| self.demanded.contains_type_of(c)) {
            self.insert_auth(at, chunks);
        }
    }

    #[inline(never)]
    fn insert_auth(&self, at: usize, chunks: &mut SmallVec<[Chunk; 1]>) {
        let key = self.key(self.active_key).and_then(|k| k.association.as_ref());
        let (Some(peer), Some(key)) = (&self.peer, key) else {
            return;
        };
        let auth = |hmac| Auth::new(self.active_key, peer.hmac.number(), hmac);
        let blank = auth(Bytes::from(vec![0; peer.hmac.hmac_len()]));
        let hmac = key.sign(peer.hmac, &blank.authenticated_bytes(&chunks[at..]));
        chunks.insert(at, Chunk::Auth(Box::new(auth(hmac))));
    }

    /// Verifies an AUTH chunk over itself and `following`, the chunks after it (section 6.3); returns the shared key
    /// identifier.
    pub(in crate::sctp) fn verify(&self, auth: &Auth, following: &[Chunk]) -> Result<u16, AuthFailure> {
        if self.peer.is_none() {
            return Err(AuthFailure::NotNegotiated);
        }
        let hmac = HmacIdentifier::from_number(auth.hmac_id)
            .filter(|h| self.hmacs.contains(h))
            .ok_or(AuthFailure::UnsupportedHmac(auth.hmac_id))?;
        let key = self
            .key(auth.shared_key_id)
            .and_then(|k| k.association.as_ref())
            .ok_or(AuthFailure::UnknownKey)?;
        if auth.hmac.len() != hmac.hmac_len()
            || !key.verify(hmac, &auth.authenticated_bytes(following), &auth.hmac)
        {
            return Err(AuthFailure::WrongHmac);
        }
        Ok(auth.shared_key_id)
    }

    /// The association has restarted: the endpoint pair shared keys are as they were set.
    pub(in crate::sctp) fn inherit_keys(&mut self, former: Self) {
        self.active_key = former.active_key;
        self.peer_key = former.peer_key;
        self.keys = former.keys;
        self.make_keys();
    }

    /// RANDOM of our INIT or INIT ACK.
    pub(in crate::sctp) fn random(&self) -> Option<&Random> {
        self.random.as_ref()
    }

    /// Whether both ends support it.
    pub(in crate::sctp) fn is_negotiated(&self) -> bool {
        self.peer.is_some()
    }

    /// The shared key identifier that this end authenticates with.
    pub(in crate::sctp) fn active_key(&self) -> u16 {
        self.active_key
    }

    /// Authenticates with this key from now on.
    pub(in crate::sctp) fn activate_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.key(id).ok_or(AuthError::NoSuchKey)?;
        self.active_key = id;
        Ok(())
    }

    /// Forgets a key.
    pub(in crate::sctp) fn delete_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.key(id).ok_or(AuthError::NoSuchKey)?;
        if self.active_key == id {
            return Err(AuthError::ActiveKey);
        }
        self.keys.retain(|key| key.shared.id != id);
        Ok(())
    }

    fn key(&self, id: u16) -> Option<&Key> {
        self.keys.iter().find(|k| k.shared.id == id)
    }

    /// Adds a key, or replaces the one with its identifier.
    pub(in crate::sctp) fn add_key(&mut self, shared: SharedKey) -> Result<(), AuthError> {
        if self.random.is_none() {
            return Err(AuthError::NotOffered);
        }
        self.keys.retain(|k| k.shared.id != shared.id);
        self.keys.push(Key {
            shared,
            association: None,
        });
        self.make_keys();
        Ok(())
    }

    /// Whether nothing of a packet is, or must be, authenticated: nearly every packet.
    #[inline]
    pub(in crate::sctp) fn is_plain(&self, chunks: &[Chunk]) -> bool {
        let plain = |c: &Chunk| !matches!(c, Chunk::Auth(_)) && !self.requires(c);
        chunks.iter().all(plain)
    }

    /// Takes out of a packet what may not be acted on (section 6.3): everything from an AUTH chunk on that is wrong, and
    /// chunks that must be authenticated and are not.
    #[inline(never)]
    pub(in crate::sctp) fn sift(&mut self, packet: &mut SctpPacket) -> Sifted {
        let mut sifted = Sifted::default();
        let mut authenticated_from = packet.chunks.len();
        let found = packet.chunks.iter().enumerate().find_map(|(i, c)| match c {
            Chunk::Auth(auth) => Some((i, auth)),
            _ => None,
        });
        if let Some((at, auth)) = found {
            authenticated_from = at;
            match self.verify(auth, &packet.chunks[at + 1..]) {
                Ok(key) => {
                    let former = core::mem::replace(&mut self.peer_key, key);
                    sifted.new_key = (former != key).then_some(key);
                }
                Err(failure) => {
                    sifted.failure = Some(failure);
                    packet.chunks.truncate(at);
                }
            }
        }
        let mut index = 0;
        let mut stopped = false;
        packet.chunks.retain(|chunk| {
            let bare = index < authenticated_from && self.requires(chunk);
            // RFC 5061 section 5.2, D5: a bare ASCONF takes the rest of the packet with it
            stopped |= bare && matches!(chunk, Chunk::Asconf(_));
            let accepted = !(bare || stopped);
            index += 1;
            sifted.unauthenticated += u64::from(bare);
            accepted
        });
        sifted
    }
}

/// Whether the COOKIE ECHO that begins `chunks`, alone or behind an AUTH, may be acted on (section 6.3). It is verified by
/// the association that exists, so that nobody restarts it who does not know its key, not even the peer if it forgot it;
/// where none exists, or the cookie is of the same handshake and may name another RANDOM of the peer's, by what the cookie
/// itself says: `local_random` and `peer_parameters`.
///
/// # Errors
/// Why not; `None` if it must be authenticated and is not.
pub(in crate::sctp) fn verify_cookie_echo(
    config: &Config,
    existing: Option<&Authentication>,
    local_random: Option<Random>,
    peer_parameters: &[Parameter],
    chunks: &[Chunk],
) -> Result<(), Option<AuthFailure>> {
    match chunks {
        [Chunk::Auth(auth), following @ ..] => {
            let verdict = match existing {
                Some(association) => association.verify(auth, following),
                None => {
                    let mut keys = Authentication::new(config, local_random);
                    keys.negotiate(peer_parameters);
                    keys.verify(auth, following)
                }
            };
            verdict.map(|_| ()).map_err(Some)
        }
        _ if required_chunks(config).contains(&COOKIE_ECHO) => Err(None),
        _ => Ok(()),
    }
}
