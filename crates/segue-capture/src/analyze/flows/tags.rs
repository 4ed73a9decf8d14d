//! Verification tags of SCTP (RFC 9260 section 8.5): each packet of a direction carries the same, until one end begins anew
//! without having ended the association (a *restart*, section 5.2).

/// An INIT or INIT ACK: the tag that packets of the other direction will carry, and the first TSN of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub tag: u32,
    /// Nothing if the chunk itself was not captured.
    pub tsn: Option<u32>,
}

/// A handshake between ends that have an association, of which it is not known whether anything comes of it: anybody can send an
/// INIT, and get it answered.
#[derive(Clone, Debug)]
struct Pending {
    since_ns: u64,
    /// The direction of the INIT.
    by: usize,
    /// By the direction of the chunk.
    asked: [Option<Asked>; 2],
}

/// An association that has taken the place of another between the same ends. Its direction 0 is that of the INIT.
#[derive(Debug)]
pub(super) struct Restarted {
    pub since_ns: u64,
    /// What the direction of the INIT was in the one before.
    pub by: usize,
    /// First TSNs, by direction.
    pub tsns: [Option<u32>; 2],
    pub tags: Tags,
}

/// By direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags {
    /// Zero where none is known yet, which no packet but one with an INIT carries.
    carried: [u32; 2],
    /// Those of the association that this one has replaced, of which some may still be under way.
    replaced: [u32; 2],
    pending: Option<Box<Pending>>,
}

impl Tags {
    /// By direction; zero where none is known.
    pub(super) const fn carried(&self) -> [u32; 2] {
        self.carried
    }

    /// The direction of a packet with this tag, if the tag tells.
    pub(super) const fn direction(&self, tag: u32) -> Option<usize> {
        match self.carried {
            [x, y] if x == y => None,
            [x, _] if tag != 0 && x == tag => Some(0),
            [_, y] if tag != 0 && y == tag => Some(1),
            _ => None,
        }
    }

    /// A packet of this direction carries it.
    pub(super) fn carry(&mut self, direction: usize, tag: u32) {
        if self.carried[direction] == 0 && !self.are_not(direction, tag) {
            self.carried[direction] = tag;
        }
    }

    /// An INIT or INIT ACK of this direction asks for it: packets of the other will carry it.
    pub(super) const fn asked_for(&mut self, direction: usize, tag: u32) {
        self.carried[1 - direction] = tag;
    }

    /// Whether an INIT of this direction, after the association has been closed, asks for another than is carried: it begins
    /// another association.
    pub(super) fn are_replaced(&self, direction: usize, asks_for: Option<u32>) -> bool {
        Some(self.carried[1 - direction]) != asks_for
    }

    /// An INIT, which carries no tag, or INIT ACK of this direction. Whether it is of another handshake than the association's
    /// own, which is then remembered: INITs that are repeated ask for the same, and so do those of both ends that cross.
    pub(super) fn are_asked_anew(
        &mut self,
        direction: usize,
        carries: u32,
        asks: Asked,
        now_ns: u64,
    ) -> bool {
        let other = 1 - direction;
        let (own, others) = (self.carried[direction], self.carried[other]);
        let is_own = match carries {
            0 => others == asks.tag || (others == 0 && own == 0),
            _ => carries == own || (own == 0 && (others == 0 || others == asks.tag)),
        };
        if is_own {
            return false;
        }
        let is_same = |p: &Pending| match carries {
            0 => p.asked[direction].is_some_and(|a| a.tag == asks.tag),
            _ => p.asked[other].is_some_and(|a| a.tag == carries),
        };
        let known = self.pending.take().filter(|p| is_same(p));
        let mut pending = known.unwrap_or_else(|| {
            let answered = Asked {
                tag: carries,
                tsn: None,
            };
            let mut asked = [None; 2];
            asked[other] = (carries != 0).then_some(answered);
            Box::new(Pending {
                since_ns: now_ns,
                by: if carries == 0 { direction } else { other },
                asked,
            })
        });
        pending.asked[direction] = Some(asks);
        self.pending = Some(pending);
        true
    }

    /// What a packet of this direction shows to have begun, which carries a tag and is of no handshake but for a COOKIE ECHO:
    /// who sends that, or what comes behind it, knows the tag that the other end chose.
    pub(super) fn restart(&self, direction: usize, tag: u32, echoes_cookie: bool) -> Option<Restarted> {
        let pending = self.pending.as_deref()?;
        let (by, mut asked) = (pending.by, pending.asked);
        let is_asked_for = asked[1 - direction].is_some_and(|a| a.tag == tag);
        let begins = is_asked_for || (direction == by && echoes_cookie);
        let is_known = tag == self.carried[direction] || self.replaced.contains(&tag);
        if !begins || is_known || tag == 0 {
            return None;
        }
        // one who is asked twice answers twice, with other tags
        if !is_asked_for {
            asked[1 - direction] = Some(Asked { tag, tsn: None });
        }
        let asked = [asked[by], asked[1 - by]];
        let [x, y] = asked.map(|asked| asked.map_or(0, |a| a.tag));
        Some(Restarted {
            since_ns: pending.since_ns,
            by,
            tsns: asked.map(|asked| asked?.tsn),
            tags: Self {
                carried: [y, x],
                replaced: [self.carried[by], self.carried[1 - by]],
                pending: None,
            },
        })
    }

    /// Whether a packet of this direction is of the handshake that is pending, or of the association before this one.
    pub(super) fn are_not(&self, direction: usize, tag: u32) -> bool {
        let is_pending = |p: &Pending| p.asked[1 - direction].is_some_and(|a| a.tag == tag);
        tag != 0
            && !self.carried.contains(&tag)
            && (self.replaced.contains(&tag) || self.pending.as_deref().is_some_and(is_pending))
    }
}
