//! Return routability (RFC 6275 section 5.2): keygen tokens, nonces, the binding management key and what it signs; and
//! the code between mobile node and home agent (RFC 4285 section 5.1).

use crate::mac::of_parts;
use crate::random::SecretRng;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::fmt;
use core::net::Ipv6Addr;
use hmac::{Hmac, Mac};
use segue_wire::mobility::AUTHENTICATOR_LEN;
use sha1::{Digest, Sha1};
use std::collections::VecDeque;

/// Which of the two keygen tokens: the octet at the end of what is hashed (section 5.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// Home keygen token: 0.
    Home = 0,
    /// Care-of keygen token: 1.
    CareOf = 1,
}

/// A keygen token: First (64, HMAC_SHA1 (Kcn, (address | nonce | kind))) (section 5.2.5).
#[must_use]
pub fn keygen_token(kcn: &[u8; 20], address: Ipv6Addr, nonce: &[u8; 8], kind: TokenKind) -> u64 {
    let mac = of_parts::<Hmac<Sha1>>(kcn, &[&address.octets(), nonce, &[kind as u8]]);
    let code = mac.finalize().into_bytes();
    code.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// The binding management key, Kbm (section 5.2.5): of both tokens, or of the home keygen token alone if a binding is to
/// be deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BindingManagementKey([u8; 20]);

impl BindingManagementKey {
    /// SHA1 (home keygen token | care-of keygen token), or SHA1 (home keygen token).
    #[must_use]
    pub fn new(home_keygen_token: u64, care_of_keygen_token: Option<u64>) -> Self {
        let mut hash = Sha1::new();
        hash.update(home_keygen_token.to_be_bytes());
        if let Some(token) = care_of_keygen_token {
            hash.update(token.to_be_bytes());
        }
        Self(hash.finalize().into())
    }

    /// The authenticator of a message: First (96, HMAC_SHA1 (Kbm, care-of address | correspondent | MH Data))
    /// (section 6.2.7). `care_of_address` is the one that the Binding Update names, the home address if it deletes.
    #[must_use]
    pub fn authenticator(&self, care_of_address: Ipv6Addr, correspondent: Ipv6Addr, mh_data: &[u8]) -> Bytes {
        code(&self.0, care_of_address, correspondent, mh_data)
    }

    /// Whether this is the authenticator of the message.
    #[must_use]
    pub fn verify(
        &self,
        care_of_address: Ipv6Addr,
        correspondent: Ipv6Addr,
        mh_data: &[u8],
        authenticator: &[u8],
    ) -> bool {
        verify_code(&self.0, care_of_address, correspondent, mh_data, authenticator)
    }
}

/// The key stays out of logs.
impl fmt::Debug for BindingManagementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BindingManagementKey")
    }
}

/// Authentication data of the MN-HA option: First (96, HMAC_SHA1 (key, care-of address | home address | MH Data))
/// (RFC 4285 section 5.1).
#[must_use]
pub fn mn_ha_code(key: &[u8], care_of_address: Ipv6Addr, home_address: Ipv6Addr, mh_data: &[u8]) -> Bytes {
    code(key, care_of_address, home_address, mh_data)
}

/// Whether this is the authentication data of the message.
#[must_use]
pub fn verify_mn_ha_code(
    key: &[u8],
    care_of_address: Ipv6Addr,
    home_address: Ipv6Addr,
    mh_data: &[u8],
    data: &[u8],
) -> bool {
    verify_code(key, care_of_address, home_address, mh_data, data)
}

/// A correspondent's secrets: its node key Kcn (section 5.2.1) and its nonces with their indices (section 5.2.2).
///
/// A new nonce is made when a token is asked for and the newest is older than an interval; so no timer runs where there is
/// no mobile node, and every token is good for the lifetime of a nonce less an interval: 210 s, MAX_TOKEN_LIFETIME.
pub struct Nonces {
    kcn: [u8; 20],
    /// The oldest first.
    nonces: VecDeque<Nonce>,
    next_index: u16,
    interval: Duration,
    lifetime: Duration,
    secrets: Box<dyn SecretRng>,
}

struct Nonce {
    index: u16,
    value: [u8; 8],
    made: Instant,
}

impl Nonces {
    /// Draws a node key.
    #[must_use]
    pub fn new(interval: Duration, lifetime: Duration, mut secrets: Box<dyn SecretRng>) -> Self {
        let mut kcn = [0; 20];
        secrets.fill(&mut kcn);
        let next_index = secrets.secret_u32() as u16;
        Self {
            kcn,
            nonces: VecDeque::new(),
            next_index,
            interval,
            lifetime,
            secrets,
        }
    }

    /// A token of the newest nonce for `address`, and the nonce's index.
    pub fn issue(&mut self, now: Instant, address: Ipv6Addr, kind: TokenKind) -> (u16, u64) {
        let lifetime = self.lifetime;
        self.nonces.retain(|n| now.since(n.made) < lifetime);
        if self
            .nonces
            .back()
            .is_none_or(|n| now.since(n.made) >= self.interval)
        {
            let mut value = [0; 8];
            self.secrets.fill(&mut value);
            let index = self.next_index;
            self.next_index = index.wrapping_add(1);
            self.nonces.push_back(Nonce {
                index,
                value,
                made: now,
            });
        }
        self.nonces.back().map_or((0, 0), |n| {
            (n.index, keygen_token(&self.kcn, address, &n.value, kind))
        })
    }

    /// The token that was issued for `address` under nonce `index`; `None` if that is no longer, or not yet, valid.
    #[must_use]
    pub fn token(&self, now: Instant, index: u16, address: Ipv6Addr, kind: TokenKind) -> Option<u64> {
        self.nonces
            .iter()
            .find(|n| n.index == index && now.since(n.made) < self.lifetime)
            .map(|n| keygen_token(&self.kcn, address, &n.value, kind))
    }

    /// Makes every token that was issued invalid.
    pub fn invalidate(&mut self) {
        self.nonces.clear();
    }
}

/// The secrets stay out of logs.
impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces")
            .field("count", &self.nonces.len())
            .finish_non_exhaustive()
    }
}

fn code(key: &[u8], first: Ipv6Addr, second: Ipv6Addr, mh_data: &[u8]) -> Bytes {
    let mac = of_parts::<Hmac<Sha1>>(key, &[&first.octets(), &second.octets(), mh_data]);
    Bytes::copy_from_slice(&mac.finalize().into_bytes()[..AUTHENTICATOR_LEN])
}

fn verify_code(key: &[u8], first: Ipv6Addr, second: Ipv6Addr, mh_data: &[u8], tag: &[u8]) -> bool {
    tag.len() == AUTHENTICATOR_LEN
        && of_parts::<Hmac<Sha1>>(key, &[&first.octets(), &second.octets(), mh_data])
            .verify_truncated_left(tag)
            .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    /// Worked out with Python's `hmac` and `hashlib` from the formulas of sections 5.2.5 and 6.2.7:
    /// `hmac.new(kcn, ip_address(a).packed + nonce + bytes([kind]), "sha1").digest()[:8]` and so on.
    #[test]
    fn tokens_keys_and_codes_by_another_program() {
        let kcn: [u8; 20] = core::array::from_fn(|i| i as u8);
        let nonce = [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7];
        let (home, care_of) = (address("2001:db8:1::9"), address("2001:db8:2::5"));
        let home_token = keygen_token(&kcn, home, &nonce, TokenKind::Home);
        let care_of_token = keygen_token(&kcn, care_of, &nonce, TokenKind::CareOf);
        assert_eq!(home_token, HOME_TOKEN);
        assert_eq!(care_of_token, CARE_OF_TOKEN);
        let kbm = BindingManagementKey::new(home_token, Some(care_of_token));
        assert_eq!(kbm.0, KBM);
        assert_eq!(BindingManagementKey::new(home_token, None).0, KBM_OF_HOME_TOKEN);
        let correspondent = address("2001:db8:7::7");
        let authenticator = kbm.authenticator(care_of, correspondent, b"mobility header");
        assert_eq!(authenticator[..], AUTHENTICATOR);
        assert!(kbm.verify(care_of, correspondent, b"mobility header", &AUTHENTICATOR));
        assert!(!kbm.verify(care_of, correspondent, b"mobility headers", &AUTHENTICATOR));
        assert!(!kbm.verify(home, correspondent, b"mobility header", &AUTHENTICATOR));
        // neither nothing nor a part of it will do
        assert!(!kbm.verify(care_of, correspondent, b"mobility header", &AUTHENTICATOR[..11]));
        assert!(!kbm.verify(care_of, correspondent, b"mobility header", b""));
        let code = mn_ha_code(b"sixteen bytes!!!", care_of, home, b"mobility header");
        assert_eq!(code[..], MN_HA);
        assert!(verify_mn_ha_code(
            b"sixteen bytes!!!",
            care_of,
            home,
            b"mobility header",
            &MN_HA
        ));
        assert!(!verify_mn_ha_code(
            b"sixteen bytes!!?",
            care_of,
            home,
            b"mobility header",
            &MN_HA
        ));
    }

    /// Section 5.2.2: a token is good until its nonce is too old, and a rebooted or other node's is not at all.
    #[test]
    fn nonces_rotate_and_expire() {
        let secs = |s| Instant::ZERO + Duration::from_secs(s);
        let make = |seed| {
            Nonces::new(
                Duration::from_secs(30),
                Duration::from_secs(240),
                Box::new(Stream::new(seed, "kcn")),
            )
        };
        let mut nonces = make(1);
        let home = address("2001:db8:1::9");
        let (first, token) = nonces.issue(secs(0), home, TokenKind::Home);
        assert_eq!(nonces.issue(secs(29), home, TokenKind::Home), (first, token));
        let (second, other) = nonces.issue(secs(30), home, TokenKind::Home);
        assert_eq!(second, first.wrapping_add(1));
        assert_ne!(other, token);
        assert_eq!(nonces.token(secs(239), first, home, TokenKind::Home), Some(token));
        assert_eq!(nonces.token(secs(240), first, home, TokenKind::Home), None);
        assert_eq!(
            nonces.token(secs(240), second, home, TokenKind::Home),
            Some(other)
        );
        assert_eq!(
            nonces.token(secs(0), second.wrapping_add(1), home, TokenKind::Home),
            None
        );
        // the two kinds differ, and so do addresses
        assert_ne!(nonces.token(secs(1), first, home, TokenKind::CareOf), Some(token));
        let elsewhere = address("2001:db8:1::a");
        assert_ne!(
            nonces.token(secs(1), first, elsewhere, TokenKind::Home),
            Some(token)
        );
        let mut reborn = make(2);
        assert_ne!(reborn.issue(secs(0), home, TokenKind::Home).1, token);
    }

    const HOME_TOKEN: u64 = 0x2c47_fe2b_7216_f5a6;
    const CARE_OF_TOKEN: u64 = 0x7104_7bdd_2970_b183;
    const KBM: [u8; 20] = [
        0x0c, 0x75, 0xac, 0xff, 0x50, 0x66, 0x7c, 0x21, 0xae, 0x84, 0xbe, 0x26, 0x73, 0x3b, 0xd2, 0x2b, 0xdb,
        0x29, 0x7b, 0x14,
    ];
    const KBM_OF_HOME_TOKEN: [u8; 20] = [
        0x54, 0x0d, 0x34, 0x0b, 0x21, 0xac, 0xb5, 0x21, 0x89, 0x1d, 0x8b, 0x7c, 0x66, 0xc6, 0x45, 0x11, 0x53,
        0x00, 0x9c, 0x3c,
    ];
    const AUTHENTICATOR: [u8; 12] = [
        0xb0, 0xe0, 0x27, 0x6c, 0xd8, 0x90, 0xd7, 0x1d, 0xc5, 0x5c, 0xcc, 0x04,
    ];
    const MN_HA: [u8; 12] = [
        0x70, 0x3f, 0x20, 0x60, 0x1d, 0xb3, 0x5f, 0x5d, 0x3c, 0xa1, 0x6c, 0x51,
    ];
}
