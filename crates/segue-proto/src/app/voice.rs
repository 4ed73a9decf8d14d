//! One direction of a telephone call: a codec's frames, sent as they are made, and who hears them.
//!
//! A frame is made every 20 ms, and travels in a message of its own behind the 12 bytes of an RTP header (RFC 3550 section
//! 5.1). With silence suppression there are frames only while the person talks: talk spurts and pauses are exponentially
//! distributed, as in the model of Brady (1969), with the means of ITU-T P.59 table 1 unless others are set. In a pause the
//! codec describes the noise at its beginning and every 160 ms (3GPP TS 26.093 and 26.450: SID). Left out are the hangover
//! of some frames after a talk spurt, and RTCP.
//!
//! What RTP's header says of a frame is in the bytes of the message: the data of a call are the synthetic bytes from an offset
//! on whose upper half is the call's random synchronization source (SSRC), and whose lower half says how much of the call
//! went before. So a receiver tells calls apart, and what is missing, by what it receives and nothing else. When a frame
//! was made is known to its sender: how a call sounded is worked out from what both ends have noted ([`VoiceCall`],
//! [`HeardCall`]), as a measurement with clocks in step would.

use super::account::Account;
use super::connection::{Connection, SendRefused};
use super::distribution::Holding;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use segue_wire::Data;
use serde::{Deserialize, Serialize};

/// From one frame to the next.
pub const FRAME_INTERVAL: Duration = Duration::from_millis(20);

/// A codec, as far as its frames go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// ITU-T G.711, 64 kbit/s: 160 bytes a frame. Noise as in its appendix II, and RFC 3389: a level and ten
    /// coefficients.
    #[default]
    G711,
    /// AMR at 12.2 kbit/s, octet-aligned (RFC 4867 section 4.4): two bytes of header and table of contents, and 244 bits of
    /// speech or 39 of noise.
    Amr,
    /// EVS at 13.2 kbit/s (3GPP TS 26.445 annex A.2.1, compact format): 264 bits, and 48 of noise.
    Evs,
}

impl Codec {
    /// Bytes of a frame of speech.
    #[must_use]
    pub const fn speech_bytes(self) -> u32 {
        match self {
            Self::G711 => 160,
            Self::Amr | Self::Evs => 33,
        }
    }

    /// Bytes of a description of noise.
    #[must_use]
    pub const fn noise_bytes(self) -> u32 {
        match self {
            Self::G711 => 11,
            Self::Amr => 7,
            Self::Evs => 6,
        }
    }

    /// What it looks ahead beyond the frame before it can encode it: nothing but with EVS (3GPP TS 26.445 section 4.3: 32 ms
    /// from a frame's beginning on).
    #[must_use]
    pub const fn look_ahead(self) -> Duration {
        match self {
            Self::G711 | Self::Amr => Duration::ZERO,
            Self::Evs => Duration::from_millis(12),
        }
    }
}

/// A direction of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VoiceConfig {
    /// Codec.
    pub codec: Codec,
    /// Mean talk spurt and mean pause; nothing for somebody who never pauses, or a codec without silence suppression.
    pub pauses: Option<(Duration, Duration)>,
    /// What is older need not arrive: over SCTP a frame is given up after that (RFC 3758). Nothing: never.
    pub lifetime: Option<Duration>,
}

/// What is in a frame's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Frame {
    /// Nothing: there was no message.
    None,
    /// Speech.
    Speech,
    /// A description of noise.
    Noise,
}

impl Frame {
    /// Bytes of the message; zero if there is none.
    #[must_use]
    pub const fn message_bytes(self, codec: Codec) -> u32 {
        match self {
            Self::None => 0,
            Self::Speech => RTP_HEADER + codec.speech_bytes(),
            Self::Noise => RTP_HEADER + codec.noise_bytes(),
        }
    }
}

/// A call as its sender knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoiceCall {
    /// Its synchronization source, by which its receiver knows it.
    pub source: u32,
    /// When its first frame was made.
    pub begun: Instant,
    /// Its frames, one every [`FRAME_INTERVAL`], as they were sent. The transport may not have taken all of them.
    pub frames: Vec<Frame>,
}

/// A call as its receiver knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeardCall {
    /// Its synchronization source.
    pub source: u32,
    /// Of each message that arrived, in the order of arrival: the bytes of messages that were sent before it, modulo 2^32.
    pub places: Vec<u32>,
    /// When it did.
    pub times: Vec<Instant>,
}

/// One end of calls: who may talk, and hears.
#[derive(Debug)]
pub(super) struct Telephone {
    pub speaker: Option<Speaker>,
    pub hearing: Hearing,
}

/// Who talks.
#[derive(Debug)]
pub(super) struct Speaker {
    config: VoiceConfig,
    random: Stream,
    calls: Vec<VoiceCall>,
    /// Of the call at hand.
    now: Option<Talking>,
}

/// How far a call is.
#[derive(Debug)]
struct Talking {
    /// Bytes of its messages so far.
    sent: u32,
    /// The frame that is next to be sent, and what it is.
    next: (usize, Frame),
    /// Whether the person talks, since when, and until when.
    talks: bool,
    since: Duration,
    until: Duration,
}

/// Who hears.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    calls: Vec<HeardCall>,
}

impl Speaker {
    pub fn new(config: VoiceConfig, random: Stream) -> Self {
        Self {
            config,
            random,
            calls: Vec::new(),
            now: None,
        }
    }

    pub fn calls(&self) -> &[VoiceCall] {
        &self.calls
    }

    pub fn on_connected(&mut self, now: Instant) {
        self.calls.push(VoiceCall {
            source: (self.random.next_u64() >> 32) as u32,
            begun: now,
            frames: Vec::new(),
        });
        let until = match self.config.pauses {
            Some((mean, _)) => Holding::Exponential { mean }.draw(&mut self.random),
            None => Duration::MAX,
        };
        self.now = Some(Talking {
            sent: 0,
            next: (0, Frame::Speech),
            talks: true,
            since: Duration::ZERO,
            until,
        });
    }

    pub fn on_closed(&mut self) {
        self.now = None;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let (number, _) = self.now.as_ref()?.next;
        Some(self.calls.last()?.begun + time_of(number))
    }

    /// Sends the frames that are due.
    pub fn on_timeout(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        while self.poll_timeout().is_some_and(|at| at <= now)
            && let (Some(talking), Some(call)) = (&mut self.now, self.calls.last_mut())
        {
            let (number, frame) = talking.next;
            let len = frame.message_bytes(self.config.codec);
            let data = Data::Synthetic {
                offset: u64::from(call.source) << 32 | u64::from(talking.sent),
                len,
            };
            connection.made_since(call.begun + time_of(number) - FRAME_INTERVAL);
            match connection.send_unordered(now, data, self.config.lifetime) {
                Ok(()) => {
                    account.position.sent += u64::from(len);
                    account.stats.bytes_sent += u64::from(len);
                    account.stats.messages_sent += 1;
                }
                // it is as good as lost
                Err(SendRefused::Full) => account.stats.messages_skipped += 1,
                Err(SendRefused::Closed) => {
                    self.now = None;
                    return;
                }
            }
            talking.sent = talking.sent.wrapping_add(len);
            call.frames.resize(number, Frame::None);
            call.frames.push(frame);
            talking.next = talking.after(number, self.config.pauses, &mut self.random);
        }
    }
}

impl Talking {
    /// The next frame after this one that is sent.
    fn after(
        &mut self,
        mut number: usize,
        pauses: Option<(Duration, Duration)>,
        random: &mut Stream,
    ) -> (usize, Frame) {
        loop {
            number += 1;
            let at = time_of(number);
            let mut begins = false;
            while let Some((talk, pause)) = pauses.filter(|_| self.until <= at) {
                self.talks = !self.talks;
                let mean = if self.talks { talk } else { pause };
                self.since = self.until;
                self.until += Holding::Exponential { mean }.draw(random);
                begins = true;
            }
            if self.talks {
                return (number, Frame::Speech);
            }
            // the first frame of a pause, and every eighth after it
            let first = self.since.as_nanos().div_ceil(FRAME_INTERVAL.as_nanos());
            if begins || (number as u64 - first).is_multiple_of(NOISE_PERIOD) {
                return (number, Frame::Noise);
            }
        }
    }
}

impl Hearing {
    pub fn calls(&self) -> &[HeardCall] {
        &self.calls
    }

    /// A message has arrived whose data lie there in the synthetic sequence.
    pub fn on_message(&mut self, now: Instant, offset: u64) {
        let source = (offset >> 32) as u32;
        let known = self.calls.iter().rposition(|call| call.source == source);
        let number = known.unwrap_or_else(|| {
            self.calls.push(HeardCall {
                source,
                places: Vec::new(),
                times: Vec::new(),
            });
            self.calls.len() - 1
        });
        let call = &mut self.calls[number];
        call.places.push(offset as u32);
        call.times.push(now);
    }
}

fn time_of(frame: usize) -> Duration {
    Duration::from_nanos(FRAME_INTERVAL.as_nanos() * frame as u64)
}

/// Bytes of the header of RTP (RFC 3550 section 5.1).
const RTP_HEADER: u32 = 12;
/// Frames from one description of noise to the next: 160 ms.
const NOISE_PERIOD: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes everything, and keeps what was sent.
    #[derive(Default)]
    struct Sent(Vec<(Instant, u64, u32)>);

    impl Connection for Sent {
        fn send(&mut self, now: Instant, data: Data) -> Result<(), SendRefused> {
            let offset = data.synthetic_offset().ok_or(SendRefused::Closed)?;
            self.0.push((now, offset, data.len() as u32));
            Ok(())
        }
        fn max_message(&self) -> u32 {
            1000
        }
        fn recv(&mut self, _take: impl FnOnce(&[Data], bool)) -> bool {
            false
        }
        fn close(&mut self, _now: Instant) {}
    }

    fn talk(config: VoiceConfig, seconds: u64) -> (Speaker, Sent) {
        let (mut voice, mut sent) = (Speaker::new(config, Stream::new(1, "voice")), Sent::default());
        let begun = Instant::ZERO + Duration::from_secs(3);
        voice.on_connected(begun);
        while let Some(at) = voice
            .poll_timeout()
            .filter(|at| *at < begun + Duration::from_secs(seconds))
        {
            voice.on_timeout(at, &mut sent, &mut Account::default());
        }
        (voice, sent)
    }

    fn config(codec: Codec, pauses: Option<(u64, u64)>) -> VoiceConfig {
        let ms = Duration::from_millis;
        VoiceConfig {
            codec,
            pauses: pauses.map(|(talk, pause)| (ms(talk), ms(pause))),
            lifetime: None,
        }
    }

    #[test]
    fn g711_sends_172_bytes_every_20_ms_that_say_which_they_are() {
        let (voice, sent) = talk(config(Codec::G711, None), 1);
        let source = u64::from(voice.calls()[0].source) << 32;
        let expected: Vec<_> = (0..50)
            .map(|n| {
                let at = Duration::from_millis(3000 + 20 * n);
                (Instant::ZERO + at, source + 172 * n, 172)
            })
            .collect();
        assert_eq!(sent.0, expected);
        assert_eq!(voice.calls()[0].frames, [Frame::Speech; 50]);
    }

    #[test]
    fn who_pauses_talks_for_the_share_of_the_means_and_describes_noise_every_160_ms_meanwhile() {
        let (voice, sent) = talk(config(Codec::Amr, Some((1004, 1587))), 20_000);
        let frames = &voice.calls()[0].frames;
        let speech = frames.iter().filter(|f| **f == Frame::Speech).count();
        // ITU-T P.59 table 1: a speaker is active for 38.53 %
        let activity = speech as f64 / frames.len() as f64;
        assert!((activity - 0.3853).abs() < 0.01, "{activity}");
        let mut pauses: Vec<&[Frame]> = frames.split(|f| *f == Frame::Speech).collect();
        pauses.retain(|pause| !pause.is_empty());
        let mean = (frames.len() - speech) as f64 * 0.02 / pauses.len() as f64;
        // pauses and talk spurts of less than a frame may not be seen
        assert!((1.57..1.68).contains(&mean), "{mean}");
        for pause in pauses {
            let noise = pause.iter().enumerate().filter(|(_, f)| **f == Frame::Noise);
            let at: Vec<usize> = noise.map(|(n, _)| n).chain([pause.len()]).collect();
            // a talk spurt of less than a frame may lie between two pauses: the second begins with noise too
            assert!(at[0] == 0 && at.windows(2).all(|w| w[1] - w[0] <= 8), "{pause:?}");
        }
        let mut place = 0;
        for (_, offset, len) in &sent.0 {
            assert_eq!(*offset as u32, place);
            assert!([45, 19].contains(len));
            place += len;
        }
    }

    #[test]
    fn another_connection_is_another_call_and_its_listener_tells_them_apart() {
        let (mut voice, mut sent) = talk(config(Codec::G711, None), 1);
        voice.on_closed();
        assert_eq!(voice.poll_timeout(), None);
        let again = Instant::ZERO + Duration::from_secs(9);
        voice.on_connected(again);
        voice.on_timeout(again, &mut sent, &mut Account::default());
        let [first, second] = voice.calls() else {
            panic!("two calls")
        };
        assert_ne!(first.source, second.source);
        let mut hearing = Hearing::default();
        for (at, offset, _) in sent.0.iter().rev() {
            hearing.on_message(*at, *offset);
        }
        let [late, early] = hearing.calls() else {
            panic!("two calls")
        };
        assert_eq!(
            (late.source, &late.places[..], late.times[0]),
            (second.source, &[0][..], again)
        );
        assert_eq!(
            (early.source, early.places.len(), early.places[0]),
            (first.source, 50, 49 * 172)
        );
    }
}
