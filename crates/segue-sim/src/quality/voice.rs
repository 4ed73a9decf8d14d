//! How calls sounded: as a whole, and around each handover.

use super::e_model::{Equipment, Impairments, mos};
use super::playout::{Fate, Transported, play};
use crate::scenario::traffic::VoiceSection;
use segue_capture::record::HandoverRecord;
use segue_proto::app::{Codec, FRAME_INTERVAL, Frame, HeardCall, VoiceCall};
use segue_proto::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// One direction of a call, as it sounded.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VoiceMetrics {
    /// Codec.
    pub codec: Codec,
    /// Depth of the playout buffer, seconds.
    pub playout_delay_s: f64,
    /// All of it.
    #[serde(flatten)]
    pub whole: Quality,
    /// Around each handover of its flow, in order.
    pub handovers: Vec<HandoverQuality>,
}

/// How some stretch of a call sounded. What is nothing has no frames to be worked out from, or a codec without published
/// factors.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Quality {
    /// Frames of speech that were made, and had to be played before the end of the run.
    pub frames: u64,
    /// Of them, those that did not arrive.
    pub lost_frames: u64,
    /// Of them, those that arrived too late to be played.
    pub late_frames: u64,
    /// Both, as a share of all (Ppl of G.107, there in percent).
    pub loss: Option<f64>,
    /// Mean length of a burst of either, by what it would be if each frame were hit by itself (`BurstR` of G.107); 1 at least.
    pub burst_ratio: Option<f64>,
    /// Longest stretch of speech that was not heard, seconds.
    pub longest_silence_s: f64,
    /// Mouth to ear, mean of the frames that were played (Ta of G.107), seconds: a frame's length, what the codec looks ahead,
    /// the network and the playout buffer.
    pub delay_s: Option<f64>,
    /// Rating R of the E-model (G.107), 0 to 93.2; 0 where nothing is heard.
    pub r: Option<f64>,
    /// Whether loss or burst ratio are beyond what the E-model is for (a fifth lost, and a ratio of 2: G.107 (03/2005) table 2,
    /// from memory), so that R says little more than that it is bad.
    pub is_extrapolated: bool,
    /// Mean opinion score that this rating is expected to get (G.107 annex B), 1 to 4.5.
    pub mos: Option<f64>,
}

/// How a call sounded around a handover: in the ten seconds with the interruption in their middle, or in twice the interruption
/// where that is longer. Handovers that are near each other are in each other's ten seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HandoverQuality {
    /// The handover, as in the table of them: first data over the new path, seconds.
    pub time: f64,
    /// Its interruption, seconds.
    pub interruption_s: f64,
    /// From when on, seconds.
    pub begin_s: f64,
    /// Until when, seconds.
    pub end_s: f64,
    /// How it sounded.
    #[serde(flatten)]
    pub quality: Quality,
}

/// The calls of an application.
pub(super) fn metrics(
    section: &VoiceSection,
    calls: &[(&VoiceCall, Option<&HeardCall>)],
    handovers: &[&HandoverRecord],
    end: Instant,
) -> VoiceMetrics {
    let mut played = Vec::new();
    for (sent, heard) in calls {
        let frames = transported(sent, *heard, section.codec);
        played.extend(play(&frames, section.playout_delay, end));
    }
    let quality = |frames: &[(Transported, Fate)]| Quality::of(frames, section);
    let end_s = end.since(Instant::ZERO).as_secs_f64();
    let around = handovers.iter().map(|h| {
        let (begin_s, end_s) = window(h, end_s);
        let at = |f: &(Transported, Fate)| f.0.sent.since(Instant::ZERO).as_secs_f64();
        let first = played.partition_point(|f| at(f) < begin_s);
        let after = played.partition_point(|f| at(f) < end_s);
        HandoverQuality {
            time: h.time,
            interruption_s: h.interruption_s.unwrap_or_default(),
            begin_s,
            end_s,
            quality: quality(&played[first..after.max(first)]),
        }
    });
    VoiceMetrics {
        codec: section.codec,
        playout_delay_s: section.playout_delay.as_secs_f64(),
        whole: quality(&played),
        handovers: around.collect(),
    }
}

/// What both ends know of a call's frames.
fn transported(sent: &VoiceCall, heard: Option<&HeardCall>, codec: Codec) -> Vec<Transported> {
    // of copies the first counts
    let mut arrivals: BTreeMap<u32, Instant> = BTreeMap::new();
    for (place, at) in heard.iter().flat_map(|h| h.places.iter().zip(&h.times)) {
        arrivals.entry(*place).or_insert(*at);
    }
    let mut place = 0_u32;
    let mut frames = Vec::new();
    for (number, frame) in (0..).zip(&sent.frames) {
        if *frame != Frame::None {
            frames.push(Transported {
                sent: sent.begun + Duration::from_nanos(FRAME_INTERVAL.as_nanos() * number),
                is_speech: *frame == Frame::Speech,
                arrived: arrivals.get(&place).copied(),
            });
        }
        place = place.wrapping_add(frame.message_bytes(codec));
    }
    frames
}

/// From when until when a handover is heard, seconds.
fn window(h: &HandoverRecord, end_s: f64) -> (f64, f64) {
    // of one that is censored the interruption begins with the last data, and `time` may be when the move began
    let until = if h.censored { end_s } else { h.time };
    let lasted = h.interruption_s.unwrap_or_default();
    let (middle, half) = (until - lasted / 2.0, HALF_A_WINDOW_S.max(lasted));
    ((middle - half).max(0.0), (middle + half).min(end_s))
}

impl Quality {
    fn of(frames: &[(Transported, Fate)], section: &VoiceSection) -> Self {
        let count = |fate: Fate| frames.iter().filter(|(_, f)| *f == fate).count() as u64;
        let (lost_frames, late_frames) = (count(Fate::Lost), count(Fate::Late));
        let all = frames.len() as u64;
        let played = frames.iter().filter_map(|(_, fate)| match fate {
            Fate::Played(wait) => Some(wait.as_secs_f64()),
            Fate::Late | Fate::Lost => None,
        });
        let own = FRAME_INTERVAL.as_secs_f64() + section.codec.look_ahead().as_secs_f64();
        let heard = all - lost_frames - late_frames;
        let delay_s = (heard > 0).then(|| played.sum::<f64>() / heard as f64 + own);
        let bursts: Vec<usize> = frames
            .split(|(_, fate)| matches!(fate, Fate::Played(_)))
            .map(<[_]>::len)
            .filter(|len| *len > 0)
            .collect();
        let loss = (all > 0).then(|| (lost_frames + late_frames) as f64 / all as f64);
        let burst_ratio = loss.map(|loss| {
            let mean = (lost_frames + late_frames) as f64 / bursts.len().max(1) as f64;
            (mean * (1.0 - loss)).max(1.0)
        });
        let longest = bursts.iter().max().copied().unwrap_or_default();
        let impairments = equipment(section).filter(|_| all > 0).map(|codec| Impairments {
            delay_ms: delay_s.unwrap_or_default() * 1000.0,
            loss: loss.unwrap_or_default(),
            burst_ratio: burst_ratio.unwrap_or_default(),
            codec,
        });
        let r = impairments.map(|i| if heard == 0 { 0.0 } else { i.r() });
        Self {
            frames: all,
            lost_frames,
            late_frames,
            loss,
            burst_ratio,
            longest_silence_s: longest as f64 * FRAME_INTERVAL.as_secs_f64(),
            delay_s,
            r,
            // nothing heard is rated without the model
            is_extrapolated: heard > 0 && impairments.is_some_and(|i| !i.is_in_range()),
            mos: r.map(mos),
        }
    }
}

/// What the codec does to speech: as published, but for what the scenario sets. For EVS the narrowband E-model has nothing.
fn equipment(section: &VoiceSection) -> Option<Equipment> {
    let published = match (section.codec, section.concealment) {
        (Codec::G711, true) => Some(Equipment::G711_CONCEALED),
        (Codec::G711, false) => Some(Equipment::G711_BARE),
        (Codec::Amr, _) => Some(Equipment::GSM_EFR),
        (Codec::Evs, _) => None,
    };
    Some(Equipment {
        ie: section.ie.or(published.map(|p| p.ie))?,
        bpl: section.bpl.or(published.map(|p| p.bpl))?,
    })
}

/// Half of the time around a handover that is looked at, seconds.
const HALF_A_WINDOW_S: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(frames: u64) -> VoiceCall {
        VoiceCall {
            source: 1,
            begun: Instant::ZERO + Duration::from_secs(1),
            frames: vec![Frame::Speech; frames as usize],
        }
    }

    /// Everything arrives 30 ms after it was sent, but for these frames.
    fn heard(call: &VoiceCall, codec: Codec, lost: impl Fn(u64) -> bool) -> HeardCall {
        let arrived: Vec<u64> = (0..call.frames.len() as u64).filter(|n| !lost(*n)).collect();
        let bytes = Frame::Speech.message_bytes(codec);
        HeardCall {
            source: 1,
            places: arrived.iter().map(|n| *n as u32 * bytes).collect(),
            times: arrived
                .iter()
                .map(|n| call.begun + Duration::from_millis(20 * n + 30))
                .collect(),
        }
    }

    fn handover(time: f64, interruption_s: f64) -> HandoverRecord {
        let mut record = super::super::tests::handover();
        (record.time, record.interruption_s) = (time, Some(interruption_s));
        record
    }

    fn end() -> Instant {
        Instant::ZERO + Duration::from_secs(1000)
    }

    #[test]
    fn a_call_without_losses_has_the_delay_of_frame_network_and_buffer() {
        let sent = call(500);
        let all = heard(&sent, Codec::G711, |_| false);
        let m = metrics(&VoiceSection::default(), &[(&sent, Some(&all))], &[], end());
        assert_eq!(
            (m.whole.frames, m.whole.lost_frames, m.whole.late_frames),
            (500, 0, 0)
        );
        assert!((m.whole.delay_s.unwrap() - 0.110).abs() < 1e-9, "{m:?}");
        let score = m.whole.mos.unwrap();
        // Id of 110 ms is some 2.5
        assert!((4.33..4.37).contains(&score), "{score}");
    }

    #[test]
    fn of_an_interruption_only_its_own_handover_is_blamed() {
        let sent = call(3000);
        // 0.5 s from 21 s on
        let all = heard(&sent, Codec::G711, |n| (1000..1025).contains(&n));
        let moves = [handover(21.5, 0.5), handover(41.5, 0.02)];
        let moves: Vec<&HandoverRecord> = moves.iter().collect();
        let m = metrics(&VoiceSection::default(), &[(&sent, Some(&all))], &moves, end());
        let [bad, good] = &m.handovers[..] else {
            panic!("two handovers")
        };
        assert_eq!((bad.begin_s, bad.end_s), (16.25, 26.25));
        assert_eq!((bad.quality.frames, bad.quality.lost_frames), (500, 25));
        assert_eq!(bad.quality.longest_silence_s, 0.5);
        // one burst of 25 where 1 / 0.95 was to be expected
        assert!((bad.quality.burst_ratio.unwrap() - 23.75).abs() < 1e-9, "{bad:?}");
        assert!(bad.quality.is_extrapolated && !good.quality.is_extrapolated);
        assert_eq!(good.quality.lost_frames, 0);
        let (worst, whole) = (bad.quality.mos.unwrap(), m.whole.mos.unwrap());
        assert!(
            worst < 4.0 && whole > 4.2 && good.quality.mos > m.whole.mos,
            "{worst} {whole}"
        );
    }

    #[test]
    fn ten_seconds_are_looked_at_whatever_else_is_near_and_more_where_the_interruption_is_longer() {
        let around = |time, interruption_s, censored| {
            let mut moved = handover(time, interruption_s);
            moved.censored = censored;
            window(&moved, 100.0)
        };
        assert_eq!(around(50.0, 0.0, false), (45.0, 55.0));
        assert_eq!(around(50.0, 4.0, false), (43.0, 53.0));
        assert_eq!(around(50.0, 12.0, false), (32.0, 56.0));
        assert_eq!(around(3.0, 0.0, false), (0.0, 8.0));
        // nothing came since 80 s
        assert_eq!(around(84.0, 20.0, true), (70.0, 100.0));
    }

    #[test]
    fn a_call_that_nobody_hears_is_rated_zero_and_one_that_was_not_made_is_not_rated() {
        let sent = call(100);
        let m = metrics(&VoiceSection::default(), &[(&sent, None)], &[], end());
        assert_eq!(
            (m.whole.lost_frames, m.whole.r, m.whole.mos),
            (100, Some(0.0), Some(1.0))
        );
        assert!(!m.whole.is_extrapolated);
        let m = metrics(&VoiceSection::default(), &[], &[], end());
        assert_eq!((m.whole.frames, m.whole.r, m.whole.loss), (0, None, None));
    }

    #[test]
    fn a_codec_without_published_factors_is_rated_by_those_that_are_set() {
        let sent = call(100);
        let all = heard(&sent, Codec::Evs, |_| false);
        let section = VoiceSection {
            codec: Codec::Evs,
            ..VoiceSection::default()
        };
        let r = |section: &VoiceSection| metrics(section, &[(&sent, Some(&all))], &[], end()).whole.r;
        assert_eq!(r(&section), None);
        let set = VoiceSection {
            ie: Some(3.0),
            bpl: Some(10.0),
            ..section
        };
        // 93.2, less Ie, less some 2.6 for 122 ms
        let rated = r(&set).unwrap();
        assert!((87.0..88.2).contains(&rated), "{rated}");
    }
}
