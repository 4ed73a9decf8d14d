//! Chunk authentication (RFC 4895), and ASCONF's demand for it (RFC 5061 section 4.1).
//!
//! Both ends send a random number (RANDOM), the chunk types that they accept only authenticated (CHUNKS) and the HMACs
//! that they take (HMAC-ALGO). These parameters and the endpoint pair shared keys, if there are any, make the association
//! shared keys (`auth_keys`). Whoever sends a chunk that the other end lists puts an AUTH chunk before it.
//!
//! What it protects from: without endpoint pair shared keys, from everybody who did not see the handshake; with them, from
//! everybody who does not know them.

use super::association::Association;
use super::auth_keys::{AssociationKey, HmacIdentifier, SharedKey, association_shared_key, key_vector};
use super::handshake::Cookie;
use super::{Config, Event};
use bytes::Bytes;
use segue_wire::sctp::chunk_type::{
    ASCONF, ASCONF_ACK, AUTH, COOKIE_ECHO, INIT, INIT_ACK, SHUTDOWN_COMPLETE,
};
use segue_wire::sctp::{Auth, Chunk, ErrorCause, Parameter, SctpPacket};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Whether ASCONF and ASCONF-ACK must be authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AsconfAuth {
    /// Yes (RFC 5061 section 4.1.1): without authentication they are neither sent nor acted on, and with a peer that does
    /// not support it addresses cannot be changed.
    #[default]
    Required,
    /// No: as in the drafts before RFC 4895. Whoever knows or guesses the verification tag can move the association.
    /// Authentication is then offered only if [`AuthConfig`] asks for it, and peers that follow RFC 5061 refuse the
    /// association.
    None,
}

/// Chunk authentication, apart from what ASCONF needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthConfig {
    /// Chunk types that the peer must authenticate, besides ASCONF and ASCONF-ACK. INIT, INIT ACK, SHUTDOWN COMPLETE and
    /// AUTH cannot be authenticated and are passed over. A peer without authentication is refused at set-up if there are
    /// any.
    pub required_chunks: Vec<u8>,
    /// HMACs accepted, the preferred one first. SHA-1 is added if it is missing: every endpoint must accept it (section
    /// 6.1).
    pub hmac_identifiers: Vec<HmacIdentifier>,
    /// Endpoint pair shared keys of new associations. If there are none, the empty key under identifier 0 (section 6.2);
    /// if there are any, only these: a peer that may also use an empty key need not know one (section 9).
    pub shared_keys: Vec<SharedKey>,
    /// The shared key that new associations send with; the first of `shared_keys` if it is none of them.
    pub active_key: u16,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            required_chunks: Vec::new(),
            hmac_identifiers: vec![HmacIdentifier::Sha256, HmacIdentifier::Sha1],
            shared_keys: Vec::new(),
            active_key: 0,
        }
    }
}

/// Why a change of keys was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthError {
    /// This end did not offer authentication when the association was set up.
    #[error("the association was set up without authentication")]
    NotOffered,
    /// No key has this identifier.
    #[error("no such shared key")]
    NoSuchKey,
    /// The active key cannot be deleted.
    #[error("the shared key is the active one")]
    ActiveKey,
}

impl Association {
    /// Whether both ends support authentication.
    #[must_use]
    pub fn is_authentication_negotiated(&self) -> bool {
        self.auth.peer.is_some()
    }

    /// Adds an endpoint pair shared key, or replaces the one with this identifier. AUTH chunks that name it are accepted
    /// from now on; for sending see [`set_active_key`](Self::set_active_key).
    ///
    /// # Errors
    /// [`AuthError::NotOffered`].
    pub fn set_shared_key(&mut self, id: u16, key: impl Into<Bytes>) -> Result<(), AuthError> {
        let shared = SharedKey { id, key: key.into() };
        self.auth.set_shared_key(shared)
    }

    /// Authenticates with this key from now on, retransmissions included. The peer must know it already.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`].
    pub fn set_active_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.key(id).ok_or(AuthError::NoSuchKey)?;
        self.auth.active_key = id;
        Ok(())
    }

    /// Forgets a key: AUTH chunks that name it are refused from now on. Identifier 0 is the empty key, unless it was
    /// replaced.
    ///
    /// # Errors
    /// [`AuthError::NoSuchKey`] and [`AuthError::ActiveKey`].
    pub fn delete_shared_key(&mut self, id: u16) -> Result<(), AuthError> {
        self.auth.key(id).ok_or(AuthError::NoSuchKey)?;
        if self.auth.active_key == id {
            return Err(AuthError::ActiveKey);
        }
        self.auth.keys.retain(|key| key.shared.id != id);
        Ok(())
    }

    /// The shared key identifier that this end authenticates with.
    #[must_use]
    pub fn active_key(&self) -> u16 {
        self.auth.active_key
    }
}

/// The random number that RANDOM carries (section 6.1).
pub(super) type Random = [u8; RANDOM_LEN];
const RANDOM_LEN: usize = 32;

/// A set of chunk types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ChunkTypes([u64; 4]);

impl ChunkTypes {
    pub(super) fn contains(&self, chunk_type: u8) -> bool {
        self.0[usize::from(chunk_type >> 6)] >> (chunk_type & 63) & 1 == 1
    }
}

/// Those of `types` that can be authenticated: INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH must not be listed and are
/// ignored if they are (section 3.2).
impl<'a> FromIterator<&'a u8> for ChunkTypes {
    fn from_iter<I: IntoIterator<Item = &'a u8>>(types: I) -> Self {
        let mut set = Self::default();
        for &t in types {
            if !NEVER_AUTHENTICATED.contains(&t) {
                set.0[usize::from(t >> 6)] |= 1 << (t & 63);
            }
        }
        set
    }
}

const NEVER_AUTHENTICATED: [u8; 4] = [INIT, INIT_ACK, SHUTDOWN_COMPLETE, AUTH];

/// Whether INIT and INIT ACK of ours offer authentication.
pub(super) fn is_offered(config: &Config) -> bool {
    (config.dynamic_addresses && config.asconf_auth == AsconfAuth::Required)
        || !config.auth.required_chunks.is_empty()
        || !config.auth.shared_keys.is_empty()
}

/// RANDOM, CHUNKS and HMAC-ALGO of an INIT or INIT ACK of ours: the parameters of its key vector in their order.
pub(super) fn own_parameters(config: &Config, random: &Random) -> Vec<Parameter> {
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
fn required_chunks(config: &Config) -> Vec<u8> {
    let asconf: &[u8] = match config.asconf_auth {
        AsconfAuth::Required if config.dynamic_addresses => &[ASCONF, ASCONF_ACK],
        AsconfAuth::Required | AsconfAuth::None => &[],
    };
    let mut list = Vec::new();
    for t in asconf.iter().chain(&config.auth.required_chunks) {
        if !NEVER_AUTHENTICATED.contains(t) && !list.contains(t) {
            list.push(*t);
        }
    }
    list
}

fn hmac_identifiers(config: &Config) -> Vec<HmacIdentifier> {
    let mut list = Vec::new();
    for hmac in config.auth.hmac_identifiers.iter().chain(&[HmacIdentifier::Sha1]) {
        if !list.contains(hmac) {
            list.push(*hmac);
        }
    }
    list
}

/// Why a peer with these parameters in its INIT or INIT ACK is refused, if it is.
pub(super) fn refusal(config: &Config, parameters: &[Parameter]) -> Option<ErrorCause> {
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

/// The first chunk of a packet but for AUTH: what decides for which association a packet is (section 6.3).
#[inline]
pub(super) fn first_chunk(packet: &SctpPacket) -> Option<&Chunk> {
    packet.chunks.iter().find(|c| !matches!(c, Chunk::Auth(_)))
}

/// Whether the COOKIE ECHO that begins `chunks`, alone or behind an AUTH, may be acted on (section 6.3). It is verified by
/// the association that exists, so that nobody restarts it who does not know its key, not even the peer if it forgot it;
/// where none exists, or the cookie is of the same handshake and may name another RANDOM of the peer's, by what the cookie
/// itself says.
///
/// # Errors
/// Why not; `None` if it must be authenticated and is not.
pub(super) fn verify_cookie_echo(
    config: &Config,
    existing: Option<&Association>,
    cookie: &Cookie,
    chunks: &[Chunk],
) -> Result<(), Option<AuthFailure>> {
    match chunks {
        [Chunk::Auth(auth), following @ ..] => {
            let restarted =
                |a: &&Association| !a.is_in_handshake() && a.identity().local_tag() != cookie.local_tag;
            let verdict = match existing.filter(restarted) {
                Some(association) => association.auth.verify(auth, following),
                None => {
                    let mut keys = Authentication::new(config, cookie.local_random);
                    keys.negotiate(&cookie.peer_parameters);
                    keys.verify(auth, following)
                }
            };
            verdict.map(|_| ()).map_err(Some)
        }
        _ if required_chunks(config).contains(&COOKIE_ECHO) => Err(None),
        _ => Ok(()),
    }
}

/// What the peer's INIT or INIT ACK said.
#[derive(Debug)]
struct PeerAuth {
    vector: Vec<u8>,
    demanded: ChunkTypes,
    /// The first that it lists and this end supports (section 6.1).
    hmac: HmacIdentifier,
}

impl PeerAuth {
    /// `None` if the peer does not support authentication, or none of our HMACs.
    fn read(parameters: &[Parameter]) -> Option<Self> {
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

/// Whether `parameter` is one of those that negotiate authentication.
pub(super) fn concerns(parameter: &Parameter) -> bool {
    matches!(
        parameter,
        Parameter::Random(_) | Parameter::Chunks(_) | Parameter::HmacAlgo(_)
    )
}

#[derive(Debug)]
struct Key {
    shared: SharedKey,
    /// Once both key vectors are known.
    association: Option<AssociationKey>,
}

/// Why chunks were not accepted as authenticated (section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AuthFailure {
    /// Authentication was not negotiated.
    NotNegotiated,
    /// This end did not list the HMAC.
    UnsupportedHmac(u16),
    /// There is no such shared key.
    UnknownKey,
    /// The HMAC is wrong.
    WrongHmac,
}

/// Authentication of one association.
#[derive(Debug)]
pub(super) struct Authentication {
    /// RANDOM that this end sent; `None` if it does not offer authentication.
    pub random: Option<Random>,
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
    pub(super) fn new(config: &Config, random: Option<Random>) -> Self {
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
    pub(super) fn adopt_random(&mut self, config: &Config, random: Option<Random>) {
        if self.random != random {
            self.random = random;
            self.own_vector = random.map_or_else(Vec::new, |r| key_vector(&own_parameters(config, &r)));
        }
    }

    /// The peer's INIT or INIT ACK said this.
    pub(super) fn negotiate(&mut self, parameters: &[Parameter]) {
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
            let asconf: ChunkTypes = [ASCONF, ASCONF_ACK].iter().collect();
            for (all, asconf) in self.demanded.0.iter_mut().zip(asconf.0) {
                *all |= asconf;
            }
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
    pub(super) fn allows_asconf(&self) -> bool {
        self.peer.is_some() || (self.asconf == AsconfAuth::None && !self.refuses_bare_asconf)
    }

    /// Whether `chunk_type` is accepted only authenticated.
    pub(super) fn requires(&self, chunk_type: u8) -> bool {
        self.required.contains(chunk_type)
    }

    /// Bytes that an AUTH chunk takes from a packet with one of these chunk types.
    pub(super) fn overhead(&self, chunk_types: &[u8]) -> u32 {
        match &self.peer {
            Some(peer) if chunk_types.iter().any(|&t| self.demanded.contains(t)) => {
                8 + peer.hmac.hmac_len() as u32
            }
            _ => 0,
        }
    }

    /// Puts an AUTH chunk before the first chunk that the peer demands to be authenticated (section 6.2).
    #[inline]
    pub(super) fn protect(&self, chunks: &mut SmallVec<[Chunk; 1]>) {
        if let Some(at) = chunks.iter().position(|c| self.demanded.contains(c.chunk_type())) {
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
    pub(super) fn verify(&self, auth: &Auth, following: &[Chunk]) -> Result<u16, AuthFailure> {
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
    pub(super) fn inherit_keys(&mut self, former: Self) {
        self.active_key = former.active_key;
        self.peer_key = former.peer_key;
        self.keys = former.keys;
        self.make_keys();
    }

    fn key(&self, id: u16) -> Option<&Key> {
        self.keys.iter().find(|k| k.shared.id == id)
    }

    fn set_shared_key(&mut self, shared: SharedKey) -> Result<(), AuthError> {
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
}

impl Association {
    /// Takes out of a packet what may not be acted on (section 6.3): everything from an AUTH chunk on that is wrong, and
    /// chunks that must be authenticated and are not.
    #[inline]
    pub(super) fn authenticate(&mut self, packet: &mut SctpPacket) {
        // nearly every packet: nothing in it is, or must be, authenticated
        let plain = |c: &Chunk| !matches!(c, Chunk::Auth(_)) && !self.auth.requires(c.chunk_type());
        if !packet.chunks.iter().all(plain) {
            self.authenticate_chunks(packet);
        }
    }

    #[inline(never)]
    fn authenticate_chunks(&mut self, packet: &mut SctpPacket) {
        let mut authenticated_from = packet.chunks.len();
        let found = packet.chunks.iter().enumerate().find_map(|(i, c)| match c {
            Chunk::Auth(auth) => Some((i, auth)),
            _ => None,
        });
        if let Some((at, auth)) = found {
            match self.auth.verify(auth, &packet.chunks[at + 1..]) {
                Ok(key) => {
                    authenticated_from = at;
                    self.on_peer_key(key);
                }
                Err(failure) => {
                    self.out.counters.refused.bad_auth += 1;
                    packet.chunks.truncate(at);
                    authenticated_from = at;
                    if let AuthFailure::UnsupportedHmac(hmac_id) = failure
                        && self.is_up()
                    {
                        self.replies
                            .report(ErrorCause::UnsupportedHmacIdentifier(hmac_id));
                    }
                }
            }
        }
        let mut index = 0;
        let mut stopped = false;
        packet.chunks.retain(|chunk| {
            let bare = index < authenticated_from && self.auth.requires(chunk.chunk_type());
            // RFC 5061 section 5.2, D5: a bare ASCONF takes the rest of the packet with it
            stopped |= bare && matches!(chunk, Chunk::Asconf(_));
            let accepted = !(bare || stopped);
            index += 1;
            self.out.counters.refused.unauthenticated += u64::from(bare);
            accepted
        });
    }

    /// The peer used this key; a key that it did not use before is news (RFC 6458 section 6.1.8, SCTP_AUTH_NEW_KEY).
    fn on_peer_key(&mut self, id: u16) {
        if self.auth.peer_key != id {
            self.auth.peer_key = id;
            self.out.tell(Event::PeerKeyChanged(id));
        }
    }
}
