//! What goes although a window would not let it.

/// Segments that are owed, each once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    /// The first retransmission of a recovery, whatever cwnd says.
    retransmission: bool,
    /// A tail loss probe.
    loss_probe: bool,
    /// A probe of the peer's window.
    window_probe: bool,
}

impl Pending {
    pub fn demand_retransmission(&mut self) {
        self.retransmission = true;
    }

    pub fn demand_loss_probe(&mut self) {
        self.loss_probe = true;
    }

    pub fn demand_window_probe(&mut self) {
        self.window_probe = true;
    }

    /// Whether a retransmission goes anyway; it does no more.
    pub fn take_retransmission(&mut self) -> bool {
        core::mem::take(&mut self.retransmission)
    }

    pub fn has_probe(&self) -> bool {
        self.loss_probe || self.window_probe
    }

    pub fn take_window_probe(&mut self) -> bool {
        core::mem::take(&mut self.window_probe)
    }

    pub fn take_loss_probe(&mut self) {
        self.loss_probe = false;
    }

    /// Nothing is probed any more.
    pub fn forget_probes(&mut self) {
        self.loss_probe = false;
        self.window_probe = false;
    }
}
