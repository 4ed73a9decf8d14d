//! Signalling of mobility below the transports: neighbour discovery (RFC 4861, 4862), the mobility header (RFC 6275),
//! locator updates (RFC 6743).

use super::packet::Seen;
use super::{Engine, Locators, MAX_HOSTS};
use crate::analyze::decode::{Address, Skip};
use crate::analyze::flows::paths::Role;
use crate::analyze::model::SignalKind;

impl Engine {
    /// `| type (1) | code (1) | checksum (2) | ...`
    pub(super) fn icmpv6(&mut self, found: &Seen<'_>) -> Result<(), Skip> {
        let payload = found.packet.payload;
        let kind = *payload.first().ok_or(Skip::CutOff)?;
        match kind {
            133 => self.signal(found, SignalKind::RouterSolicitation, None, None),
            134 => self.signal(found, SignalKind::RouterAdvertisement, prefix(payload), None),
            // from the unspecified address: duplicate address detection
            135 if found.packet.inner.0.0 == 0 => {
                let target = payload
                    .get(8..)
                    .and_then(|b| b.first_chunk())
                    .map(|b| Address::v6(*b));
                self.signal(found, SignalKind::DuplicateAddressDetection, target, None);
            }
            156 => self.locator_update(found, payload)?,
            _ => {}
        }
        Ok(())
    }

    /// ```text
    /// | type, code, checksum (4) | locators (1) | operation (1) | reserved (2) | locator (8), preference, lifetime (4) ...
    /// ```
    fn locator_update(&mut self, found: &Seen<'_>, payload: &[u8]) -> Result<(), Skip> {
        let &[_, _, _, _, count, operation, _, _] = payload.first_chunk().ok_or(Skip::CutOff)?;
        let entries = payload
            .get(8..)
            .unwrap_or_default()
            .chunks_exact(12)
            .take(usize::from(count));
        if found.packet.payload.len() < (8 + 12 * usize::from(count)).min(found.packet.payload_len as usize) {
            return Err(Skip::CutOff);
        }
        let valid: Vec<u64> = entries
            .filter(|e| matches!(e, [.., l0, l1] if *l0 != 0 || *l1 != 0))
            .filter_map(|e| e.first_chunk().map(|b| u64::from_be_bytes(*b)))
            .collect();
        let about = valid.first().map(|l| Address(u128::from(*l) << 64));
        if operation != 1 {
            self.signal(found, SignalKind::LocatorUpdateAcknowledgement, about, None);
            return Ok(());
        }
        self.signal(found, SignalKind::LocatorUpdate, about, None);
        if found.sight.role == Role::Sender {
            let (capture, nid) = (found.sight.capture, found.packet.inner.0.nid());
            let full = self.locators.len() >= MAX_HOSTS;
            let known = self
                .locators
                .iter_mut()
                .find(|l| l.capture == capture && l.nid == nid);
            match known {
                Some(host) => host.locators = valid,
                None if !full => self.locators.push(Locators {
                    capture,
                    nid,
                    locators: valid,
                }),
                None => self.limit("hosts-with-locators-beyond-limit"),
            }
        }
        Ok(())
    }

    /// `| payload protocol (1) | length (1) | type (1) | reserved (1) | checksum (2) | ...`
    pub(super) fn mobility(&mut self, found: &Seen<'_>) -> Result<(), Skip> {
        let &[_, _, kind] = found.packet.payload.first_chunk().ok_or(Skip::CutOff)?;
        let kind = match kind {
            1 => SignalKind::HomeTestInit,
            2 => SignalKind::CareOfTestInit,
            3 => SignalKind::HomeTest,
            4 => SignalKind::CareOfTest,
            5 => SignalKind::BindingUpdate,
            6 => SignalKind::BindingAcknowledgement,
            7 => SignalKind::BindingError,
            _ => return Ok(()),
        };
        // the home address is that of the option or the routing header, and in a tunnel the inner address
        let to_mobile = matches!(
            kind,
            SignalKind::HomeTest
                | SignalKind::CareOfTest
                | SignalKind::BindingAcknowledgement
                | SignalKind::BindingError
        );
        let (source, destination) = found.packet.identity;
        let home = if to_mobile { destination } else { source };
        // | ... | sequence number and flags, or status, flags and sequence number (4) |
        if matches!(
            kind,
            SignalKind::BindingUpdate | SignalKind::BindingAcknowledgement
        ) && found.packet.payload.len() < 10.min(found.packet.payload_len as usize)
        {
            return Err(Skip::CutOff);
        }
        let asked = match found.packet.payload {
            // | sequence number (2) | A, flags | ...
            [_, _, 5, _, _, _, n0, n1, flags, ..] => (flags & 0x80 != 0, Some([*n0, *n1])),
            // | status (1) | flags (1) | sequence number (2) | ...
            [_, _, 6, _, _, _, _, _, n0, n1, ..] => (false, Some([*n0, *n1])),
            _ => (true, None),
        };
        // 16 bits, which are before or after one another as 32 bits are
        let serial = asked.1.map(|n| u32::from(u16::from_be_bytes(n)) << 16);
        self.numbered_signal(found, kind, Some(home), None, (asked.0, serial));
        Ok(())
    }
}

/// The first prefix of a router advertisement (RFC 4861 section 4.6.2).
fn prefix(payload: &[u8]) -> Option<Address> {
    let mut options = payload.get(16..)?;
    while let Some(&[kind, units]) = options.first_chunk() {
        let len = usize::from(units) * 8;
        let option = options.get(..len).filter(|_| len > 0)?;
        if kind == 3 {
            return option
                .get(16..)
                .and_then(|b| b.first_chunk())
                .map(|b| Address::v6(*b));
        }
        options = options.get(len..)?;
    }
    None
}
