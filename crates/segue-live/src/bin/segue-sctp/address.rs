//! Addresses as a person writes them, and what is said to one that cannot be used.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv6 address, without a scope identifier.
pub(crate) fn parse(text: &str) -> Result<Ipv6Addr, String> {
    if let Some((address, _)) = text.split_once('%') {
        return Err(format!(
            "scope identifiers are not supported, expected an address that needs none instead of {address}"
        ));
    }
    if text.parse::<Ipv4Addr>().is_ok() {
        return Err("IPv6 only: expected an IPv6 address".to_owned());
    }
    let plain = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    plain
        .parse()
        .map_err(|_| "expected an IPv6 address, such as 2001:db8::1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_said() {
        assert_eq!(parse("::1"), Ok(Ipv6Addr::LOCALHOST));
        assert_eq!(parse("[::1]"), Ok(Ipv6Addr::LOCALHOST));
        for (text, says) in [
            ("192.0.2.1", "IPv6 only"),
            ("fe80::1%eth0", "scope identifiers are not supported"),
            ("localhost", "expected an IPv6 address, such as"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
