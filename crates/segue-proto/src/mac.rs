//! Message authentication codes over several pieces, for the protocols that carry them.

use hmac::Mac;
use hmac::digest::KeyInit;

/// The code of `parts`, one after the other, under `key`; to be finished or verified.
pub(crate) fn of_parts<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> M {
    let mut mac = <M as Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes any key"));
    for part in parts {
        mac.update(part);
    }
    mac
}
