//! Extensions of SCTP: which of them this end offers in INIT and INIT ACK, and which the peer offered.
//!
//! An extension is negotiated by parameters alone. A listening endpoint keeps nothing of an INIT, so those parameters
//! travel in the cookie, as they came.

use crate::sctp::Config;
use crate::sctp::auth::{self, Random};
use segue_wire::sctp::Parameter;
use segue_wire::sctp::chunk_type::{ASCONF, ASCONF_ACK, AUTH, FORWARD_TSN, NR_SACK, RE_CONFIG};

/// What the peer's parameters say of extensions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::sctp) struct PeerExtensions {
    asconf: bool,
    deactivation: bool,
    re_config: bool,
    forward_tsn: bool,
    nr_sack: bool,
}

impl PeerExtensions {
    pub(in crate::sctp) fn read(parameters: &[Parameter]) -> Self {
        let mut chunk_types: Vec<u8> = Vec::new();
        for parameter in parameters {
            if let Parameter::SupportedExtensions(types) = parameter {
                chunk_types.extend(types);
            }
        }
        let supports = |types: &[u8]| types.iter().all(|t| chunk_types.contains(t));
        Self {
            asconf: supports(&[ASCONF, ASCONF_ACK]),
            deactivation: parameters.contains(&Parameter::AddressDeactivationSupported),
            re_config: supports(&[RE_CONFIG]),
            forward_tsn: parameters.contains(&Parameter::ForwardTsnSupported) || supports(&[FORWARD_TSN]),
            nr_sack: supports(&[NR_SACK]),
        }
    }

    /// ASCONF and ASCONF-ACK (RFC 5061 section 4.2.7).
    pub(in crate::sctp) const fn asconf(&self) -> bool {
        self.asconf
    }

    /// Deactivation of addresses, a private extension.
    pub(in crate::sctp) const fn deactivation(&self) -> bool {
        self.deactivation
    }

    /// RE-CONFIG (RFC 6525 section 5.2).
    pub(in crate::sctp) const fn re_config(&self) -> bool {
        self.re_config
    }

    /// FORWARD TSN (RFC 3758 section 3.1).
    pub(in crate::sctp) const fn forward_tsn(&self) -> bool {
        self.forward_tsn
    }

    /// NR-SACK (draft-natarajan-tsvwg-sctp-nrsack section 3).
    pub(in crate::sctp) const fn nr_sack(&self) -> bool {
        self.nr_sack
    }

    /// Whether [`read`](Self::read) takes notice of `parameter`: a cookie keeps those that it does.
    pub(in crate::sctp) fn concerns(parameter: &Parameter) -> bool {
        matches!(
            parameter,
            Parameter::SupportedExtensions(_)
                | Parameter::ForwardTsnSupported
                | Parameter::AddressDeactivationSupported
        ) || auth::concerns(parameter)
    }
}

/// Parameters of an INIT or INIT ACK of ours that offer extensions; `random` if authentication is among them.
pub(super) fn offered(config: &Config, random: Option<&Random>) -> Vec<Parameter> {
    let mut chunk_types = Vec::new();
    if config.dynamic_addresses {
        chunk_types.extend([ASCONF, ASCONF_ACK]);
    }
    let mut parameters = Vec::new();
    if config.partial_reliability {
        chunk_types.push(FORWARD_TSN);
        parameters.push(Parameter::ForwardTsnSupported);
    }
    if config.stream_reconfiguration {
        chunk_types.push(RE_CONFIG);
    }
    if config.multipath.is_some_and(|m| m.nr_sack) {
        chunk_types.push(NR_SACK);
    }
    if random.is_some() {
        chunk_types.push(AUTH);
    }
    if !chunk_types.is_empty() {
        parameters.push(Parameter::SupportedExtensions(chunk_types.into()));
    }
    if let Some(random) = random {
        parameters.extend(auth::own_parameters(config, random));
    }
    if config.address_deactivation {
        parameters.push(Parameter::AddressDeactivationSupported);
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn asconf_needs_both_chunk_types() {
        let supports = |types: &'static [u8]| {
            PeerExtensions::read(&[Parameter::SupportedExtensions(Bytes::from_static(types))]).asconf
        };
        assert!(supports(&[0x80, 0xc1]));
        assert!(!supports(&[0xc1]));
    }

    #[test]
    fn an_end_without_extensions_offers_none() {
        let bare = Config {
            partial_reliability: false,
            stream_reconfiguration: false,
            dynamic_addresses: false,
            ..Config::default()
        };
        assert_eq!(offered(&bare, None), []);
        assert!(!auth::is_offered(&bare));
        let asconf = Config {
            dynamic_addresses: true,
            ..bare
        };
        assert!(PeerExtensions::read(&offered(&asconf, None)).asconf);
        assert!(auth::is_offered(&asconf));
    }

    #[test]
    fn forward_tsn_is_offered_by_its_parameter_or_its_chunk_type() {
        let read = |parameters: &[Parameter]| PeerExtensions::read(parameters).forward_tsn;
        assert!(read(&[Parameter::ForwardTsnSupported]));
        assert!(read(&[Parameter::SupportedExtensions(Bytes::from_static(&[
            0xc0
        ]))]));
        assert!(!read(&[Parameter::SupportedExtensions(Bytes::from_static(&[
            0xc1
        ]))]));
        let off = Config {
            partial_reliability: false,
            ..Config::default()
        };
        assert!(read(&offered(&Config::default(), None)));
        assert!(!read(&offered(&off, None)));
    }
}
