//! Requests over TCP (RFC 7766): each within its time, and from nobody more connections than his part.

use crate::serve::Request;
use crate::serve::{Route, converted, pause};
use bytes::Bytes;
use segue_proto::location::Transport;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Connections at a time. Who comes when there are as many takes the place of the one that has been without a whole
/// request for the longest time (RFC 7766 section 6.2.3 lets a server close those that it likes).
const MOST_CONNECTIONS: usize = 128;

/// Threads that may still be on their way out besides, of connections whose place was taken. Who comes when there are more
/// is closed.
const MOST_LEAVING: usize = 32;

/// Connections of one client at a time: further ones are closed (RFC 7766 section 6.2.2).
const MOST_OF_A_CLIENT: usize = 16;

/// Time for a whole request, from the answer to the one before it, and for taking the answer (RFC 7766 section 6.2.3: "a
/// few seconds").
const WITHIN: Duration = Duration::from_secs(10);

/// The connections that there are. Each has a number; the least is that of the one that has waited longest.
#[derive(Debug)]
pub(crate) struct Connections<H> {
    next: u64,
    open: BTreeMap<u64, (Ipv6Addr, H)>,
    of_client: BTreeMap<Ipv6Addr, usize>,
    /// Those whose place was taken are among them until they have noticed.
    threads: usize,
}

impl<H> Default for Connections<H> {
    fn default() -> Self {
        Self {
            next: 0,
            open: BTreeMap::new(),
            of_client: BTreeMap::new(),
            threads: 0,
        }
    }
}

impl<H> Connections<H> {
    /// Takes a connection, whose thread ends with [`Self::leave`]: its number, and the one whose place it takes. `None` if
    /// its client has too many, or all have.
    fn admit(&mut self, from: IpAddr, handle: H) -> Option<(u64, Option<H>)> {
        let client = client(from);
        if self.threads >= MOST_CONNECTIONS + MOST_LEAVING {
            return None;
        }
        if self
            .of_client
            .get(&client)
            .is_some_and(|n| *n >= MOST_OF_A_CLIENT)
        {
            return None;
        }
        let oldest = self.open.first_key_value().map(|(number, _)| *number);
        let oldest = oldest.filter(|_| self.open.len() >= MOST_CONNECTIONS);
        let displaced = oldest.and_then(|number| self.end(number));
        *self.of_client.entry(client).or_default() += 1;
        self.threads += 1;
        Some((self.number(client, handle), displaced))
    }

    /// A connection has had a whole request: its new number. `None` if another has taken its place.
    fn renew(&mut self, number: u64) -> Option<u64> {
        let (client, handle) = self.open.remove(&number)?;
        Some(self.number(client, handle))
    }

    /// The thread of a connection ends, whether or not another has taken its place.
    fn leave(&mut self, number: u64) {
        self.threads -= 1;
        self.end(number);
    }

    fn end(&mut self, number: u64) -> Option<H> {
        let (client, handle) = self.open.remove(&number)?;
        if let Some(n) = self.of_client.get_mut(&client) {
            *n -= 1;
            if *n == 0 {
                self.of_client.remove(&client);
            }
        }
        Some(handle)
    }

    fn number(&mut self, client: Ipv6Addr, handle: H) -> u64 {
        self.next += 1;
        self.open.insert(self.next, (client, handle));
        self.next
    }
}

/// Who counts as one client: an IPv4 address, or a network of IPv6, all of whose addresses a host may use (RFC 8981).
fn client(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) if a.to_ipv4_mapped().is_some() => a,
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() >> 64 << 64),
    }
}

type Shared = Arc<Mutex<Connections<TcpStream>>>;

/// The place of a connection: given back with its thread, or at once if there is none for it.
struct Place {
    all: Shared,
    number: u64,
}

impl Place {
    /// Whether the connection still has it.
    fn renew(&mut self) -> bool {
        let renewed = lock(&self.all).renew(self.number);
        self.number = renewed.unwrap_or(self.number);
        renewed.is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.all).leave(self.number);
    }
}

/// Takes connections until the core has gone.
pub(crate) fn accept(listener: &TcpListener, local_port: u16, to_core: &SyncSender<Request>, all: &Shared) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            pause();
            continue;
        };
        let admitted = stream.peer_addr().and_then(|peer| {
            let handle = stream.try_clone()?;
            Ok(lock(all).admit(peer.ip(), handle))
        });
        let Ok(Some((number, displaced))) = admitted else {
            continue;
        };
        if let Some(displaced) = displaced {
            let _ = displaced.shutdown(Shutdown::Both);
        }
        let to_core = to_core.clone();
        let mut place = Place {
            all: all.clone(),
            number,
        };
        // A connection that fails or falls silent ends, and so does one for which the system has no thread: it is dropped
        // with what the thread was to do. There is nobody to tell.
        let _ = thread::Builder::new().spawn(move || {
            let _ = converse(stream, local_port, &to_core, || place.renew());
        });
    }
}

fn lock(all: &Shared) -> std::sync::MutexGuard<'_, Connections<TcpStream>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests of a connection, one after the other; each has two octets of length before it (RFC 1035 section 4.2.2).
/// `renewed` is called for each, and says whether the connection still has its place.
fn converse(
    mut stream: TcpStream,
    local_port: u16,
    to_core: &SyncSender<Request>,
    mut renewed: impl FnMut() -> bool,
) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    let mut timed = Timed {
        stream: &mut stream,
        now,
    };
    loop {
        let message = timed.request()?;
        if !renewed() {
            return Ok(());
        }
        let (reply, answer) = sync_channel(1);
        let request = Request {
            transport: Transport::Tcp(0),
            datagram: converted(peer, local_port, message),
            route: Route::Tcp(reply),
        };
        if to_core.send(request).is_err() {
            return Ok(());
        }
        // The sender is dropped with a request that gets no answer: then the connection ends.
        let Ok(answer) = answer.recv() else { return Ok(()) };
        timed.answer(&answer)?;
    }
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the driver's clock")]
    Instant::now()
}

/// What can be told how long it may take.
trait Patient {
    fn wait_at_most(&mut self, time: Duration) -> io::Result<()>;
}

impl Patient for TcpStream {
    fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// A stream whose requests and answers have a time, whatever the pieces that they come or go in.
struct Timed<'a, S, C> {
    stream: &'a mut S,
    now: C,
}

impl<S: Read + Write + Patient, C: Fn() -> Instant> Timed<'_, S, C> {
    fn request(&mut self) -> io::Result<Bytes> {
        let end = (self.now)() + WITHIN;
        let mut length = [0; 2];
        self.fill(&mut length, end)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        self.fill(&mut message, end)?;
        Ok(message.into())
    }

    /// One segment for both parts (RFC 7766 section 8).
    fn answer(&mut self, answer: &[u8]) -> io::Result<()> {
        let end = (self.now)() + WITHIN;
        let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(answer);
        let mut left = &framed[..];
        while !left.is_empty() {
            self.wait_until(end)?;
            match self.stream.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => left = &left[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn fill(&mut self, mut out: &mut [u8], end: Instant) -> io::Result<()> {
        while !out.is_empty() {
            self.wait_until(end)?;
            match self.stream.read(out) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => out = &mut out[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn wait_until(&mut self, end: Instant) -> io::Result<()> {
        let left = end.saturating_duration_since((self.now)());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.wait_at_most(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn v6(network: u64, interface: u64) -> IpAddr {
        Ipv6Addr::from_bits(u128::from(network) << 64 | u128::from(interface)).into()
    }

    #[test]
    fn a_client_has_no_more_than_its_part() {
        let mut all = Connections::default();
        let numbers: Vec<u64> = (0..16).map(|i| all.admit(v6(1, i), i).expect("room").0).collect();
        assert!(
            all.admit(v6(1, 99), 99).is_none(),
            "another address of the network"
        );
        assert!(all.admit(v6(2, 0), 100).is_some());
        assert!(all.admit("192.0.2.1".parse().expect("an address"), 101).is_some());
        assert_eq!(all.end(numbers[3]), Some(3));
        assert!(all.admit(v6(1, 99), 99).is_some(), "one has ended");
        assert_eq!(all.end(numbers[3]), None, "once");
        assert!(all.admit(v6(1, 98), 98).is_none());
    }

    #[test]
    fn who_has_waited_longest_makes_room() {
        let mut all = Connections::default();
        let numbers: Vec<u64> = (0..128)
            .map(|i| all.admit(v6(i, 0), i).expect("room").0)
            .collect();
        // the first has had a request since
        let renewed = all.renew(numbers[0]).expect("still there");
        let (_, displaced) = all.admit(v6(500, 0), 500).expect("room");
        assert_eq!(displaced, Some(1));
        assert_eq!(all.renew(numbers[1]), None);
        assert_eq!(all.open.len(), 128);
        assert_eq!((all.end(renewed), all.open.len()), (Some(0), 127));
        assert_eq!(all.of_client.values().sum::<usize>(), 127);
    }

    #[test]
    fn who_has_lost_its_place_counts_until_its_thread_has_ended() {
        let mut all = Connections::default();
        let most = (MOST_CONNECTIONS + MOST_LEAVING) as u64;
        let numbers: Vec<u64> = (0..most)
            .map(|i| all.admit(v6(i, 0), i).expect("room").0)
            .collect();
        assert!(all.admit(v6(most, 0), most).is_none(), "none has left");
        assert_eq!((all.open.len(), all.threads), (MOST_CONNECTIONS, most as usize));
        all.leave(numbers[0]);
        assert_eq!(all.open.len(), MOST_CONNECTIONS, "its place was taken before");
        let (number, displaced) = all.admit(v6(most, 0), most).expect("one has left");
        assert_eq!(displaced, Some(MOST_LEAVING as u64));
        all.leave(number);
        assert_eq!((all.open.len(), all.threads), (127, most as usize - 1));
    }

    /// Gives and takes one octet a second.
    struct Trickle<'a> {
        bytes: &'a [u8],
        seconds: &'a Cell<u64>,
        moved: usize,
    }

    impl Patient for Trickle<'_> {
        fn wait_at_most(&mut self, time: Duration) -> io::Result<()> {
            assert!(time <= WITHIN && !time.is_zero());
            Ok(())
        }
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.seconds.set(self.seconds.get() + 1);
            out[0] = self.bytes[self.moved];
            self.moved += 1;
            Ok(1)
        }
    }

    impl Write for Trickle<'_> {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.seconds.set(self.seconds.get() + 1);
            self.moved += 1;
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Slow<'a, 'b> = Timed<'a, Trickle<'b>, &'a dyn Fn() -> Instant>;

    #[test]
    fn a_request_and_an_answer_end_in_time_however_they_trickle() {
        let begun = now();
        let seconds = Cell::new(0);
        let run = |bytes: &[u8], what: fn(&mut Slow<'_, '_>) -> io::Result<usize>| {
            let mut stream = Trickle {
                bytes,
                seconds: &seconds,
                moved: 0,
            };
            let clock: &dyn Fn() -> Instant = &|| begun + Duration::from_secs(seconds.get());
            let done = what(&mut Timed {
                stream: &mut stream,
                now: clock,
            });
            (done.map_err(|e| e.kind()), stream.moved)
        };
        let slow = [&[0, 100][..], &[7; 100]].concat();
        let quick = [&[0, 6][..], &[7; 6]].concat();
        assert_eq!(
            run(&slow, |t| Ok(t.request()?.len())),
            (Err(io::ErrorKind::TimedOut), 10)
        );
        assert_eq!(run(&quick, |t| Ok(t.request()?.len())), (Ok(6), 8));
        let answered = |t: &mut Slow<'_, '_>| t.answer(&[1; 100]).map(|()| 0);
        assert_eq!(run(&[], answered), (Err(io::ErrorKind::TimedOut), 10));
    }
}
