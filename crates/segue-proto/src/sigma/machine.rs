//! The state machine of the mobile host.

/// SIGMA on a mobile host.
#[derive(Debug)]
pub struct Sigma {}
