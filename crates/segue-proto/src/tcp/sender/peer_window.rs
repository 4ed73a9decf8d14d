//! The window that the peer offers (RFC 9293 section 3.10.7.4, fifth).

/// SND.WND, and where it was taken from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    /// SND.WND.
    size: u32,
    /// The greatest that it ever was.
    greatest: u32,
    /// SND.WL1 and SND.WL2, as positions.
    wl1: u64,
    wl2: u64,
    /// Shift count of the peer's windows.
    wscale: u8,
}

impl PeerWindow {
    /// Nothing is offered yet. `wscale` is the shift count of what will be.
    pub fn new(wscale: u8) -> Self {
        Self {
            wscale,
            ..Self::default()
        }
    }

    /// SND.WND, bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The greatest that was ever offered.
    pub fn greatest(&self) -> u32 {
        self.greatest
    }

    /// The window of a segment that is no SYN, bytes.
    pub fn scaled(&self, window: u16) -> u32 {
        u32::from(window) << self.wscale
    }

    /// The window of a SYN, or of what acknowledges one: it is taken whatever was before.
    pub fn begin(&mut self, at: u64, una: u64, size: u32) {
        self.size = size;
        self.greatest = self.greatest.max(size);
        (self.wl1, self.wl2) = (at, una);
    }

    /// The window of a segment that begins `at` and acknowledges `ack`, unless it is older than the one that the window was
    /// taken from. Whether it opens what was closed.
    pub fn take(&mut self, at: u64, ack: u64, size: u32) -> bool {
        if self.wl1 < at || (self.wl1 == at && self.wl2 <= ack) {
            let was_closed = self.size == 0;
            self.begin(at, ack, size);
            return was_closed && size > 0;
        }
        false
    }
}
