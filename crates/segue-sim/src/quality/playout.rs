//! When a receiver plays what arrives: a playout buffer, and what comes too late for it.
//!
//! A frame is played so long after it was sent as the first that arrived took, and the depth of the buffer. That stays, with two
//! exceptions, as receivers have them. When for half a second all that arrives is too late, the buffer begins anew with
//! the last of it: the network has become slower. What arrives at once after an interruption, and is too late, changes
//! nothing. And when for five seconds everything had more than twice the depth to spare, the buffer is shortened, so
//! that the least that was to spare is the depth: the network has become faster.

use segue_proto::{Duration, Instant};

/// A frame, as both ends know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transported {
    /// When it was sent.
    pub sent: Instant,
    /// Speech: the rest describes noise.
    pub is_speech: bool,
    /// When it arrived.
    pub arrived: Option<Instant>,
}

/// What became of a frame of speech.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Played, so long after it was sent.
    Played(Duration),
    /// It arrived when its turn was over.
    Late,
    /// It did not arrive.
    Lost,
}

/// What becomes of frames, in the order in which they were sent, in a run that ends then. Frames whose turn would come
/// after the end have no fate.
#[must_use]
pub fn play(frames: &[Transported], depth: Duration, end: Instant) -> Vec<(Transported, Fate)> {
    let mut buffer = Buffer {
        depth,
        wait: None,
        late_since: None,
        early_since: None,
        spare: Duration::MAX,
    };
    let mut played = Vec::new();
    for &frame in frames {
        let turn = frame.sent + buffer.wait.unwrap_or(depth);
        let fate = match frame.arrived {
            Some(arrived) => buffer.take(arrived, arrived.since(frame.sent)),
            None => Fate::Lost,
        };
        if turn <= end && frame.is_speech {
            played.push((frame, fate));
        }
    }
    played
}

struct Buffer {
    depth: Duration,
    /// From sending to playing, once something has arrived.
    wait: Option<Duration>,
    /// Since when everything has come too late, or nothing; the least time that something had to spare since then.
    late_since: Option<Instant>,
    early_since: Option<Instant>,
    spare: Duration,
}

impl Buffer {
    /// A frame arrives that was under way for so long.
    fn take(&mut self, now: Instant, transit: Duration) -> Fate {
        let wait = *self.wait.get_or_insert(transit + self.depth);
        if transit > wait {
            (self.early_since, self.spare) = (None, Duration::MAX);
            let since = *self.late_since.get_or_insert(now);
            if now.since(since) >= SLOWER_AFTER {
                self.late_since = None;
                self.wait = Some(transit + self.depth);
            }
            return Fate::Late;
        }
        self.late_since = None;
        self.spare = self.spare.min(wait.saturating_sub(transit));
        let since = *self.early_since.get_or_insert(now);
        if now.since(since) >= FASTER_AFTER {
            let twice = self.depth + self.depth;
            if self.spare > twice {
                self.wait = Some(wait.saturating_sub(self.spare.saturating_sub(self.depth)));
            }
            (self.early_since, self.spare) = (None, Duration::MAX);
        }
        Fate::Played(wait)
    }
}

/// All was too late for so long: the network has become slower.
const SLOWER_AFTER: Duration = Duration::from_millis(500);
/// All was early for so long: it has become faster.
const FASTER_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTH: Duration = Duration::from_millis(60);

    /// Frames 20 ms apart that take so many milliseconds each.
    fn played(transits: &[Option<u64>]) -> Vec<Fate> {
        let frame = |(n, transit): (u64, &Option<u64>)| {
            let sent = Instant::ZERO + Duration::from_millis(20 * n);
            Transported {
                sent,
                is_speech: true,
                arrived: transit.map(|ms| sent + Duration::from_millis(ms)),
            }
        };
        let frames: Vec<_> = (0..).zip(transits).map(frame).collect();
        play(&frames, DEPTH, Instant::MAX)
            .into_iter()
            .map(|(_, fate)| fate)
            .collect()
    }

    fn after(ms: u64) -> Fate {
        Fate::Played(Duration::from_millis(ms))
    }

    #[test]
    fn what_is_within_the_buffer_is_played_in_its_turn_and_what_is_not_is_late() {
        let fates = played(&[Some(30), Some(90), Some(91), None, Some(10)]);
        assert_eq!(fates, [after(90), after(90), Fate::Late, Fate::Lost, after(90)]);
    }

    #[test]
    fn a_slower_network_silences_half_a_second() {
        let mut transits = vec![Some(30); 10];
        transits.extend([Some(300); 40]);
        let fates = played(&transits);
        // the first that is late arrives at 500 ms, and that of 1000 ms is the last
        assert_eq!(fates.iter().filter(|f| **f == Fate::Late).count(), 26);
        assert_eq!(fates[36..], [after(360); 14]);
    }

    #[test]
    fn what_comes_at_once_after_an_interruption_is_late_and_makes_nothing_wait() {
        let mut transits = vec![Some(30); 10];
        // all of the next second arrives at 1300 ms
        transits.extend((10..60).map(|n| Some(1300 - 20 * n)));
        transits.extend([Some(30); 10]);
        let fates = played(&transits);
        assert_eq!(fates[10..60], [Fate::Late; 50]);
        assert_eq!(fates[60..], [after(90); 10]);
    }

    #[test]
    fn a_faster_network_shortens_the_wait_after_five_seconds() {
        let mut transits = vec![Some(300); 2];
        transits.extend([Some(30); 600]);
        let fates = played(&transits);
        // in the five seconds from 300 ms on the first two spared 60 ms; in those from 5330 ms on all spared 330
        assert_eq!((fates[265], fates[515]), (after(360), after(360)));
        assert_eq!(fates[516..], [after(90); 86]);
    }

    #[test]
    fn what_would_be_played_after_the_end_has_no_fate() {
        let sent = Instant::ZERO + Duration::from_secs(1);
        let frame = Transported {
            sent,
            is_speech: true,
            arrived: None,
        };
        assert_eq!(play(&[frame], DEPTH, sent), []);
        assert_eq!(play(&[frame], DEPTH, sent + DEPTH), [(frame, Fate::Lost)]);
    }
}
