//! The shim that a configuration asks for.

use crate::host::config::ShimConfig;
use crate::ilnp::Ilnp;
use crate::mip6::{CorrespondentNode, MobileNode};
use crate::random::{SecretRng, Stream};
use crate::shim::Shim;

/// The shim that `config` asks for. Its secrets come from a generator of its own, keyed by its host's
/// ([`Stream::from_key`](crate::random::Stream::from_key)).
pub(in crate::host) fn from_config(
    config: &ShimConfig,
    secrets: &mut dyn SecretRng,
) -> Option<Box<dyn Shim>> {
    let mut own_secrets = || {
        let mut key = [0; 32];
        secrets.fill(&mut key);
        Box::new(Stream::from_key(key))
    };
    match config {
        ShimConfig::None => None,
        ShimConfig::MobileIpv6(config) => Some(Box::new(MobileNode::new((**config).clone(), own_secrets()))),
        ShimConfig::MobileIpv6Correspondent(config) => Some(Box::new(CorrespondentNode::new(
            (**config).clone(),
            own_secrets(),
        ))),
        ShimConfig::Ilnp(config) => {
            let shim = Ilnp::new((**config).clone(), own_secrets());
            Some(Box::new(shim.expect("the configuration was checked")))
        }
    }
}

/// The interface identifier that addresses are to be formed with, if the shim has one.
pub(in crate::host) fn interface_identifier(config: &ShimConfig) -> Option<[u8; 8]> {
    match config {
        ShimConfig::Ilnp(config) => Some(config.nid.0.to_be_bytes()),
        _ => None,
    }
}
