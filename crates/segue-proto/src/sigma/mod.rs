//! sigma
