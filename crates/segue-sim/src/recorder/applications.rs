//! Which flow carries which application's data: a flow's number is its application's place in the scenario, whichever of
//! them sends first, and one that was never served is a flow too.

use super::flow::Data;
use super::ledger::{FlowKey, Transport};
use segue_proto::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// An application of the scenario, as far as its flows go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    /// Node that sends the data, or asks.
    pub sender: u32,
    /// Node that receives it, or answers.
    pub receiver: u32,
    /// Over what.
    pub transport: Transport,
    /// When it first tries.
    pub start: Instant,
    /// What it was opened with, while there is a connection.
    pub opened: Option<Opened>,
}

/// A connection by what stays of it, as the node that opened it knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// That node.
    pub by: u32,
    /// What packets to it have and packets from it have: its port of TCP or UDP, verification tags of SCTP.
    pub label: Label,
}

/// See [`Opened`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Label {
    /// Its port.
    Port(u16),
    /// Verification tags: of packets to it, and of packets from it, once the peer has named that.
    Tags(u32, Option<u32>),
}

/// One row of the flows of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Number in the ledger; nothing if not a packet with data ever left.
    pub flow: Option<usize>,
    /// Number of the application that it carries.
    pub application: Option<usize>,
}

/// The rows of a run that ends then, in order: by the application, its data before the answers, and then as they first sent.
pub(crate) fn rows(keys: &[FlowKey], flows: &[Data], applications: &[Application], end: Instant) -> Vec<Row> {
    let parties = Parties::of(applications);
    // by flow: the application, and whether it is its answers
    let opened = |(key, flow): (&FlowKey, &Data)| {
        let mut some = parties.applications(key, flow).iter();
        some.find_map(|&number| Some((number, applications[number].is_opened_for(key)?)))
    };
    let mut carries: Vec<Option<(usize, bool)>> = keys.iter().zip(flows).map(opened).collect();
    let mut carried: BTreeSet<(usize, bool)> = carries.iter().flatten().copied().collect();
    for ((key, flow), own) in keys.iter().zip(flows).zip(&mut carries) {
        if own.is_some() {
            continue;
        }
        // its connection is over: of those between its ends, the first that has none
        let between = || {
            let some = parties.applications(key, flow).iter();
            some.filter_map(|&number| Some((number, applications[number].is_between(key, flow)?)))
        };
        let is_free = |it: &(usize, bool)| applications[it.0].opened.is_none() && !carried.contains(it);
        *own = between().find(is_free).or_else(|| between().next());
        carried.extend(*own);
    }
    let mut rows: Vec<(usize, bool, Option<usize>)> = (0..)
        .zip(&carries)
        .map(|(flow, own)| {
            let (number, answers) = own.unwrap_or((usize::MAX, false));
            (number, answers, Some(flow))
        })
        .collect();
    let begun = applications.iter().enumerate().filter(|(_, a)| a.start < end);
    let never = begun.filter(|(number, _)| !carried.contains(&(*number, false)));
    rows.extend(never.map(|(number, _)| (number, false, None)));
    rows.sort_unstable();
    let row = |(number, _, flow)| Row {
        flow,
        application: (number < applications.len()).then_some(number),
    };
    rows.into_iter().map(row).collect()
}

/// Numbers of applications, in order, by whose they are.
struct Parties {
    of_node: BTreeMap<u32, Vec<usize>>,
    of_both: BTreeMap<[u32; 2], Vec<usize>>,
}

impl Parties {
    fn of(applications: &[Application]) -> Self {
        let (mut of_node, mut of_both) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::<_, Vec<usize>>::new());
        for (number, a) in applications.iter().enumerate() {
            for node in [a.sender, a.receiver] {
                of_node.entry(node).or_default().push(number);
            }
            of_both
                .entry(both(a.sender, a.receiver))
                .or_default()
                .push(number);
        }
        Self { of_node, of_both }
    }

    /// Those that a flow may be of: ports are the same in connections to different hosts. Those of its sender, if nothing of
    /// it arrived anywhere.
    fn applications(&self, key: &FlowKey, flow: &Data) -> &[usize] {
        let some = match flow.receiver() {
            Some(receiver) => self.of_both.get(&both(key.sender, receiver)),
            None => self.of_node.get(&key.sender),
        };
        some.map_or(&[], |numbers| numbers)
    }
}

fn both(a: u32, b: u32) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

impl Application {
    /// Whether a flow is its answers, if it is of its connection.
    fn is_opened_for(&self, key: &FlowKey) -> Option<bool> {
        let opened = self.opened?;
        let other = if opened.by == self.sender {
            self.receiver
        } else {
            self.sender
        };
        let outwards = key.sender == opened.by;
        let own = key.transport == self.transport
            && (outwards || key.sender == other)
            && match opened.label {
                Label::Port(port) if outwards => key.source_port == port,
                Label::Port(port) => key.destination_port == port,
                Label::Tags(_, from) if outwards => from.is_some_and(|tag| key.receiver == u64::from(tag)),
                Label::Tags(to, _) => key.receiver == u64::from(to),
            };
        own.then_some(key.sender != self.sender)
    }

    /// Whether a flow is its answers, if it is between its ends.
    fn is_between(&self, key: &FlowKey, flow: &Data) -> Option<bool> {
        let is = |sender: u32, receiver: u32| {
            key.transport == self.transport
                && key.sender == sender
                && flow.receiver().is_none_or(|node| node == receiver)
        };
        if is(self.sender, self.receiver) {
            Some(false)
        } else {
            is(self.receiver, self.sender).then_some(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::Paths;
    use super::*;
    use segue_proto::Duration;

    const END: Instant = Instant::from_nanos(100_000_000_000);

    fn application(sender: u32, receiver: u32, opened: Option<(u32, Label)>) -> Application {
        Application {
            sender,
            receiver,
            transport: Transport::Tcp,
            start: Instant::ZERO + Duration::from_secs(1),
            opened: opened.map(|(by, label)| Opened { by, label }),
        }
    }

    /// A flow of which something arrived.
    fn flow(sender: u32, receiver: u32, ports: (u16, u16)) -> (FlowKey, Data) {
        let key = FlowKey {
            transport: Transport::Tcp,
            sender,
            receiver: u64::from(receiver),
            source_port: ports.0,
            destination_port: ports.1,
        };
        let mut data = Data::new(sender, false, Paths::Network);
        data.received_at(receiver);
        (key, data)
    }

    fn ordered(
        flows: Vec<(FlowKey, Data)>,
        applications: &[Application],
    ) -> Vec<(Option<usize>, Option<usize>)> {
        let (keys, data): (Vec<FlowKey>, Vec<Data>) = flows.into_iter().unzip();
        let rows = rows(&keys, &data, applications, END);
        rows.iter().map(|row| (row.flow, row.application)).collect()
    }

    #[test]
    fn a_flow_has_the_number_of_its_application_whichever_sends_first() {
        let applications = [
            application(1, 0, None),
            application(2, 0, None),
            application(3, 0, None),
        ];
        let flows = vec![flow(3, 0, (5, 9)), flow(0, 2, (9, 6)), flow(2, 0, (6, 9))];
        assert_eq!(
            ordered(flows, &applications),
            // the first was never served; data goes before answers
            [
                (None, Some(0)),
                (Some(2), Some(1)),
                (Some(1), Some(1)),
                (Some(0), Some(2))
            ]
        );
    }

    #[test]
    fn of_two_between_the_same_ends_that_which_has_the_port_or_the_tag() {
        let port = |n| Some((1, Label::Port(n)));
        let two = |a, b| [application(1, 0, port(a)), application(1, 0, port(b))];
        let sends = || vec![flow(1, 0, (70, 9))];
        assert_eq!(
            ordered(sends(), &two(60, 70)),
            [(None, Some(0)), (Some(0), Some(1))]
        );
        assert_eq!(
            ordered(sends(), &two(70, 60)),
            [(Some(0), Some(0)), (None, Some(1))]
        );
        let tagged = |to, from| Application {
            transport: Transport::Sctp,
            ..application(0, 1, Some((1, Label::Tags(to, Some(from)))))
        };
        let (mut key, data) = flow(0, 1, (9, 9));
        (key.transport, key.receiver) = (Transport::Sctp, 44);
        let to_44 = ordered(vec![(key, data)], &[tagged(33, 44), tagged(44, 33)]);
        assert_eq!(to_44, [(None, Some(0)), (Some(0), Some(1))]);
    }

    /// A host takes a port again for a connection to another (RFC 6056 section 3.3): with a thousand connections some have the
    /// same.
    #[test]
    fn of_two_from_one_port_to_different_hosts_each_has_its_own() {
        let same = Some((1, Label::Port(70)));
        let applications = [application(1, 0, same), application(1, 2, same)];
        let flows = vec![flow(1, 2, (70, 9)), flow(1, 0, (70, 9))];
        assert_eq!(
            ordered(flows, &applications),
            [(Some(1), Some(0)), (Some(0), Some(1))]
        );
    }

    #[test]
    fn what_has_not_begun_is_no_flow_and_what_nobody_asked_for_comes_last() {
        let late = Application {
            start: END,
            ..application(1, 0, None)
        };
        let flows = vec![flow(7, 8, (1, 2)), flow(1, 0, (5, 9))];
        assert_eq!(ordered(flows, &[late]), [(Some(1), Some(0)), (Some(0), None)]);
        assert_eq!(ordered(Vec::new(), &[late]), []);
    }
}
