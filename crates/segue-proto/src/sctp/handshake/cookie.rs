//! The state cookie (RFC 9260 section 5.1.3): everything needed to build an association, signed, so that a listening
//! endpoint keeps nothing between INIT and COOKIE ECHO.

use crate::random::SecretRng;
use crate::sctp::auth::Random;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use hmac::{Hmac, Mac};
use segue_wire::Tsn;
use segue_wire::sctp::Parameter;
use sha2::Sha256;

const MAC_LEN: usize = 32;

/// Key of the signature.
pub(in crate::sctp) type CookieKey = [u8; 32];

/// Hours of use are enough for one key; "reasonably frequently" says section 5.1.3.
const KEY_PERIOD: Duration = Duration::from_secs(3600);

/// The key that signs cookies, and the one before it, whose cookies may still live (section 5.1.3).
pub(in crate::sctp) struct CookieKeys {
    current: CookieKey,
    previous: Option<CookieKey>,
    /// When `current` was first used.
    since: Option<Instant>,
    /// How long it is used: longer than any cookie lives, so that one former key is enough.
    period: Duration,
}

impl CookieKeys {
    /// Keys for cookies that live for `life`, or at most for twice that.
    pub(in crate::sctp) fn new(life: Duration, secrets: &mut dyn SecretRng) -> Self {
        Self {
            current: new_key(secrets),
            previous: None,
            since: None,
            period: KEY_PERIOD.max(life * 2),
        }
    }

    /// The key to sign with: a new one if the last has been in use for long enough.
    pub(in crate::sctp) fn current(&mut self, now: Instant, secrets: &mut dyn SecretRng) -> &CookieKey {
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= self.period {
            self.previous = Some(core::mem::replace(&mut self.current, new_key(secrets)));
            self.since = Some(now);
        }
        &self.current
    }

    /// Reads a cookie that either key has signed.
    pub(in crate::sctp) fn open(&self, bytes: &[u8], now: Instant) -> Result<Cookie, CookieError> {
        let opened = Cookie::open(bytes, &self.current, now);
        match &self.previous {
            Some(previous) if opened == Err(CookieError::Forged) => Cookie::open(bytes, previous, now),
            _ => opened,
        }
    }
}

fn new_key(secrets: &mut dyn SecretRng) -> CookieKey {
    let mut key = [0; 32];
    secrets.fill(&mut key);
    key
}

/// What a cookie says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Cookie {
    pub lifetime: Lifetime,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_initial_tsn: Tsn,
    pub peer_initial_tsn: Tsn,
    pub peer_rwnd: u32,
    pub streams: Streams,
    pub local_port: u16,
    pub peer_port: u16,
    /// Of the association that exists already, if one does (section 5.2.2).
    pub tie_tags: Option<TieTags>,
    /// RANDOM of the INIT ACK, if it offered authentication: known to whoever saw that, so no secret of the cookie's.
    pub local_random: Option<Random>,
    /// The parameters of the peer's INIT that negotiate extensions (`PeerExtensions::concerns`).
    pub peer_parameters: Vec<Parameter>,
    /// The address of ours that the INIT came to.
    pub local_address: Ipv6Addr,
    /// Peer addresses; the first is the one that the INIT came from and the INIT ACK went to.
    pub peer_addresses: Vec<Ipv6Addr>,
    /// Those that it named and that are not taken, as far as they are kept.
    pub not_taken: Vec<Ipv6Addr>,
}

/// How long a cookie is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Lifetime {
    pub created: Instant,
    pub life: Duration,
}

/// Streams negotiated: out of this endpoint, into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Streams {
    pub outbound: u16,
    pub inbound: u16,
}

/// A nonce that links a cookie to the association that existed when the INIT came: (Local-Tie-Tag, Peer's-Tie-Tag),
/// neither of them zero. They are random numbers and not the tags themselves, which a cookie must not reveal (section
/// 1.3, "Tie-Tags").
pub(in crate::sctp) type TieTags = (u32, u32);

/// Why a cookie was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum CookieError {
    /// Not signed by this endpoint, or changed on the way.
    Forged,
    /// Signed by this endpoint, but older than its life; how much.
    Stale(Box<Cookie>, Duration),
}

impl Cookie {
    /// The cookie's bytes with their HMAC-SHA-256.
    pub(in crate::sctp) fn seal(&self, key: &CookieKey) -> Bytes {
        let mut out = Vec::with_capacity(97 + 16 * (self.peer_addresses.len() + self.not_taken.len()));
        // zeros say that there are none (section 5.2.2)
        let tie_tags = self.tie_tags.unwrap_or((0, 0));
        out.extend(self.lifetime.created.as_nanos().to_be_bytes());
        out.extend(self.lifetime.life.as_nanos().to_be_bytes());
        for word in [
            self.local_tag,
            self.peer_tag,
            self.local_initial_tsn.0,
            self.peer_initial_tsn.0,
            self.peer_rwnd,
            tie_tags.0,
            tie_tags.1,
        ] {
            out.extend(word.to_be_bytes());
        }
        for half in [
            self.streams.outbound,
            self.streams.inbound,
            self.local_port,
            self.peer_port,
        ] {
            out.extend(half.to_be_bytes());
        }
        out.extend(self.local_address.octets());
        for addresses in [&self.peer_addresses, &self.not_taken] {
            out.push(addresses.len() as u8);
            out.extend(addresses.iter().flat_map(Ipv6Addr::octets));
        }
        out.push(u8::from(self.local_random.is_some()));
        out.extend(self.local_random.iter().flatten());
        Parameter::emit_list(&self.peer_parameters, &mut out);
        let mac = sign(key, &out);
        out.extend(mac);
        out.into()
    }

    /// Reads a cookie back, if the signature is ours and its life has not ended by `now`.
    pub(in crate::sctp) fn open(bytes: &[u8], key: &CookieKey, now: Instant) -> Result<Self, CookieError> {
        let body_len = bytes.len().checked_sub(MAC_LEN).ok_or(CookieError::Forged)?;
        let (body, mac) = bytes.split_at(body_len);
        let mut check = Hmac::<Sha256>::new_from_slice(key).map_err(|_| CookieError::Forged)?;
        check.update(body);
        check.verify_slice(mac).map_err(|_| CookieError::Forged)?;
        let cookie = Self::read(body).ok_or(CookieError::Forged)?;
        let age = now.since(cookie.lifetime.created);
        if age > cookie.lifetime.life {
            let excess = age - cookie.lifetime.life;
            return Err(CookieError::Stale(Box::new(cookie), excess));
        }
        Ok(cookie)
    }

    fn read(mut body: &[u8]) -> Option<Self> {
        fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
            let (head, rest) = body.split_first_chunk::<N>()?;
            *body = rest;
            Some(*head)
        }
        let b = &mut body;
        let created = Instant::from_nanos(u64::from_be_bytes(take(b)?));
        let life = Duration::from_nanos(u64::from_be_bytes(take(b)?));
        let local_tag = u32::from_be_bytes(take(b)?);
        let peer_tag = u32::from_be_bytes(take(b)?);
        let local_initial_tsn = Tsn(u32::from_be_bytes(take(b)?));
        let peer_initial_tsn = Tsn(u32::from_be_bytes(take(b)?));
        let peer_rwnd = u32::from_be_bytes(take(b)?);
        let tie_tags = (u32::from_be_bytes(take(b)?), u32::from_be_bytes(take(b)?));
        let outbound_streams = u16::from_be_bytes(take(b)?);
        let inbound_streams = u16::from_be_bytes(take(b)?);
        let local_port = u16::from_be_bytes(take(b)?);
        let peer_port = u16::from_be_bytes(take(b)?);
        let local_address = Ipv6Addr::from(take::<16>(b)?);
        let mut addresses = || {
            let count = take::<1>(b)?[0];
            let all = (0..count).map(|_| take::<16>(b).map(Ipv6Addr::from));
            all.collect::<Option<Vec<_>>>()
        };
        let peer_addresses = addresses()?;
        let not_taken = addresses()?;
        let local_random = match take::<1>(b)?[0] {
            0 => None,
            _ => Some(take(b)?),
        };
        let peer_parameters = Parameter::parse_list(&Bytes::copy_from_slice(b)).ok()?;
        Some(Self {
            lifetime: Lifetime { created, life },
            local_tag,
            peer_tag,
            local_initial_tsn,
            peer_initial_tsn,
            peer_rwnd,
            tie_tags: (tie_tags != (0, 0)).then_some(tie_tags),
            streams: Streams {
                outbound: outbound_streams,
                inbound: inbound_streams,
            },
            local_port,
            peer_port,
            local_random,
            peer_parameters,
            local_address,
            peer_addresses,
            not_taken,
        })
    }
}

fn sign(key: &CookieKey, body: &[u8]) -> [u8; MAC_LEN] {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(body);
            mac.finalize().into_bytes().into()
        }
        // HMAC takes keys of any length
        Err(_) => [0; MAC_LEN],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie() -> Cookie {
        Cookie {
            lifetime: Lifetime {
                created: Instant::from_nanos(5),
                life: Duration::from_secs(60),
            },
            local_tag: 1,
            peer_tag: 2,
            local_initial_tsn: Tsn(3),
            peer_initial_tsn: Tsn(4),
            peer_rwnd: 5,
            tie_tags: Some((10, 11)),
            streams: Streams {
                outbound: 6,
                inbound: 7,
            },
            local_port: 8,
            peer_port: 9,
            local_random: Some([12; 32]),
            peer_parameters: vec![Parameter::SupportedExtensions(Bytes::from_static(&[
                0x80, 0xc1, 1,
            ]))],
            local_address: Ipv6Addr::LOCALHOST,
            peer_addresses: vec![Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED],
            not_taken: vec![Ipv6Addr::from(13)],
        }
    }

    #[test]
    fn a_cookie_reads_back_and_any_flipped_bit_refuses_it() {
        let key = [7; 32];
        let sealed = cookie().seal(&key);
        let now = Instant::from_nanos(6);
        assert_eq!(Cookie::open(&sealed, &key, now), Ok(cookie()));
        assert_eq!(Cookie::open(&sealed, &[8; 32], now), Err(CookieError::Forged));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Cookie::open(&changed, &key, now), Err(CookieError::Forged));
        }
        assert_eq!(Cookie::open(&sealed[..20], &key, now), Err(CookieError::Forged));
    }

    #[test]
    fn the_key_changes_and_the_one_before_it_opens_cookies_once_more() {
        let mut secrets = crate::random::Stream::new(1, "keys");
        let life = Duration::from_secs(60);
        let mut keys = CookieKeys::new(life, &mut secrets);
        let begin = Instant::from_nanos(5);
        let first = *keys.current(begin, &mut secrets);
        let just_before = begin + KEY_PERIOD - Duration::from_nanos(1);
        assert_eq!(*keys.current(just_before, &mut secrets), first);
        let late = Cookie {
            lifetime: Lifetime {
                created: just_before,
                ..cookie().lifetime
            },
            ..cookie()
        };
        let sealed = late.seal(&first);
        let changed = begin + KEY_PERIOD;
        let second = *keys.current(changed, &mut secrets);
        assert_ne!(second, first);
        assert_eq!(keys.open(&sealed, changed), Ok(late));
        assert!(keys.open(&cookie().seal(&second), begin).is_ok());
        // a key that is two changes old opens nothing
        assert_ne!(*keys.current(changed + KEY_PERIOD, &mut secrets), second);
        assert_eq!(keys.open(&sealed, changed), Err(CookieError::Forged));
        // nor is a key changed that cookies of may live longer
        let mut long = CookieKeys::new(KEY_PERIOD, &mut secrets);
        let key = *long.current(begin, &mut secrets);
        assert_eq!(*long.current(begin + KEY_PERIOD, &mut secrets), key);
        assert_ne!(*long.current(begin + KEY_PERIOD * 2, &mut secrets), key);
    }

    #[test]
    fn a_cookie_past_its_life_is_stale_by_the_excess() {
        let key = [7; 32];
        let sealed = cookie().seal(&key);
        let late = Instant::from_nanos(5) + Duration::from_secs(61);
        assert_eq!(
            Cookie::open(&sealed, &key, late),
            Err(CookieError::Stale(Box::new(cookie()), Duration::from_secs(1)))
        );
    }
}
