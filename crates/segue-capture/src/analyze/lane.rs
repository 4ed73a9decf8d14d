//! Captures on their way through the analysis. What has nothing to do with one another goes on beside one another.

use super::assembly::{assemble, with_interfaces};
use super::engine::{Engine, Outcome};
use super::glance::{Glance, GlancedFlow};
use super::input::Error;
use super::model::{Analysis, Options};
use super::offset::Common;
use super::reader::Next;
use super::stream::Stream;

/// Captures that one engine takes, or that are only counted.
struct Lane {
    streams: Vec<Stream>,
    engine: Option<Engine>,
    /// Latest packet so far.
    end_ns: u64,
}

impl Lane {
    /// Takes the packet that is next. What is next after it; nothing waits for what is pending.
    fn step(&mut self) -> Next {
        let mut earliest: Option<(u64, &mut Stream)> = None;
        for stream in &mut self.streams {
            match stream.next() {
                Next::Packet(time_ns) if earliest.as_ref().is_none_or(|e| time_ns < e.0) => {
                    earliest = Some((time_ns, stream));
                }
                Next::Packet(_) | Next::End => {}
                Next::Pending => {
                    stream.advance();
                    return Next::Pending;
                }
            }
        }
        let Some((time_ns, stream)) = earliest else {
            return Next::End;
        };
        self.end_ns = self.end_ns.max(time_ns);
        if let Some(engine) = &mut self.engine {
            engine.packet(stream.number() as u8, time_ns, &stream.record());
        }
        stream.advance();
        Next::Packet(time_ns)
    }

    /// Takes all packets.
    fn run(&mut self) {
        while self.step() != Next::End {}
    }

    /// What was found so far.
    fn glance(&self) -> Option<Glance> {
        let glance = self.engine.as_ref()?.glance();
        let flows = glance.flows.into_iter().map(|g| GlancedFlow {
            flow: with_interfaces(g.flow, &self.streams),
            ..g
        });
        Some(Glance {
            packets: self.streams.iter().map(Stream::packets).sum(),
            flows: flows.collect(),
            ..glance
        })
    }
}

/// An analysis that goes on.
pub(super) struct Run<'a> {
    lanes: Vec<Lane>,
    common: Common,
    options: &'a Options,
    start_ns: u64,
    two: bool,
}

impl<'a> Run<'a> {
    /// Of these captures, each at its first packet.
    pub(super) fn new(streams: Vec<Stream>, common: Common, options: &'a Options) -> Self {
        let start_ns = streams
            .iter()
            .filter_map(Stream::time_ns)
            .min()
            .unwrap_or_default();
        let mut run = Self {
            lanes: Vec::with_capacity(2),
            two: streams.len() == 2,
            common,
            options,
            start_ns,
        };
        // what has nothing in common is no two ends of anything
        let together = run.common.clocks.offset.is_some() && run.common.left_out.is_none();
        for stream in streams {
            match run.lanes.first_mut() {
                Some(lane) if together => lane.streams.push(stream),
                _ => {
                    let counts = run.common.left_out == Some(stream.number());
                    let engine = (!counts).then(|| run.new_engine());
                    run.lanes.push(Lane {
                        streams: vec![stream],
                        engine,
                        end_ns: start_ns,
                    });
                }
            }
        }
        run
    }

    fn new_engine(&self) -> Engine {
        Engine::new(self.options, self.two, self.common.places.clone(), self.start_ns)
    }

    /// Of a single capture, takes the packet that is next. What is next after it; nothing waits for what is pending.
    pub(super) fn step(&mut self) -> Next {
        self.lanes.first_mut().map_or(Next::End, Lane::step)
    }

    /// Of a single capture, what was found so far.
    pub(super) fn glance(&self) -> Option<Glance> {
        self.lanes.first()?.glance()
    }

    /// Goes on to the end, each lane on a core of its own.
    pub(super) fn whole(mut self) -> Result<Analysis, Error> {
        if let [first, rest @ ..] = &mut self.lanes[..] {
            std::thread::scope(|scope| {
                for lane in rest {
                    scope.spawn(|| lane.run());
                }
                first.run();
            });
        }
        self.finish()
    }

    /// The result, if all was read.
    pub(super) fn finish(self) -> Result<Analysis, Error> {
        let streams = || self.lanes.iter().flat_map(|l| &l.streams);
        streams().try_for_each(Stream::check)?;
        let end_ns = self.lanes.iter().map(|l| l.end_ns).max().unwrap_or(self.start_ns);
        let nothing = self.new_engine();
        let mut streams = Vec::with_capacity(2);
        let mut outcomes = Vec::with_capacity(2);
        for lane in self.lanes {
            streams.extend(lane.streams);
            outcomes.extend(lane.engine.map(Engine::finish));
        }
        let whole = outcomes.into_iter().reduce(Outcome::and);
        let whole = whole.unwrap_or_else(|| nothing.finish());
        Ok(assemble(whole, &streams, &self.common, self.start_ns, end_ns))
    }
}
