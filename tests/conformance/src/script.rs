//! One endpoint against a scripted peer.
