//! What must hold of an endpoint whenever its polls have been drained. Tests and fuzzing ask after every input; nothing
//! in production does.

use super::endpoint::Endpoint;

impl Endpoint {
    /// Checks the invariants of the endpoint and of all its associations. To be called after the polls were drained.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        if !self.is_drained() {
            return Err("packets or notifications are left after draining".into());
        }
        if !self.index_is_complete() {
            return Err("associations are not found by the addresses and tags that they have".into());
        }
        for (id, association) in self.associations() {
            association
                .check_invariants()
                .map_err(|what| format!("association {}: {what}", id.0))?;
        }
        Ok(())
    }
}
