//! Cells whose bearers share what the cell carries: their packets leave when a scheduler has sent them.

use super::cells::signal_above_border_db;
use super::{LazyTimer, Network};
use crate::cell_scheduler::{CellScheduler, SchedulerConfig};
use crate::mobility::Point;
use crate::scenario::sharing::LEAST_SNR_DB;
use crate::scheduler::Event;
use segue_proto::units::BitRate;

/// What a cell's bearers share, in both directions.
#[derive(Debug)]
pub(crate) struct SharedCell {
    /// Signal to noise at its border, dB, if rates are by distance.
    edge_snr_db: Option<f64>,
    /// Down and up.
    directions: [Shared; 2],
}

#[derive(Debug)]
struct Shared {
    scheduler: CellScheduler,
    timer: LazyTimer,
    /// At best.
    rate: BitRate,
}

impl SharedCell {
    pub fn new(config: SchedulerConfig, edge_snr_db: Option<f64>, rates: [BitRate; 2]) -> Self {
        let shared = |rate| Shared {
            scheduler: CellScheduler::new(config),
            timer: LazyTimer::default(),
            rate,
        };
        Self {
            edge_snr_db,
            directions: rates.map(shared),
        }
    }
}

/// Spectral efficiency at which a link has reached its greatest, by the factor of its implementation: log2(1 + SNR) of 4.4
/// bit/s/Hz and 0.6 in the downlink, 2.0 bit/s/Hz and 0.4 in the uplink (3GPP TR 36.942 annex A.2, unchecked).
const GREATEST_EFFICIENCY: [f64; 2] = [4.4 / 0.6, 2.0 / 0.4];

/// Share of the greatest rate at this signal to noise ratio: the truncated Shannon bound of 3GPP TR 36.942 annex A.2, whose
/// factor cancels out.
fn share_of_rate(snr_db: f64, greatest_efficiency: f64) -> f64 {
    let snr = libm::pow(10.0, snr_db.max(LEAST_SNR_DB) / 10.0);
    (libm::log2(1.0 + snr) / greatest_efficiency).min(1.0)
}

impl Network {
    /// A bearer's radio is at this place: how fast it can send and receive from there on.
    pub fn measure_bearer(&mut self, cell: u32, down: u32, at: Point) {
        let c = &self.cells[cell as usize];
        let Some(shared) = &mut self.shared_cells[cell as usize] else {
            return;
        };
        let snr_db = shared
            .edge_snr_db
            .map(|edge| edge + signal_above_border_db(at.distance(c.position), c.radius));
        for (way, (direction, efficiency)) in (0..).zip(shared.directions.iter_mut().zip(GREATEST_EFFICIENCY))
        {
            let share = snr_db.map_or(1.0, |snr_db| share_of_rate(snr_db, efficiency));
            let bps = libm::round(direction.rate.bits_per_second() as f64 * share).max(1.0);
            let rate = BitRate::from_bits_per_second(bps as u64);
            direction.scheduler.set_rate(self.now, down + way, rate);
            direction.arm(2 * cell + way, self.now, &mut self.scheduler);
        }
    }

    /// A packet may have come to a bearer that had none.
    pub fn offer_to_cell(&mut self, cell: u32, way: u32, link: u32) {
        let Some(shared) = &mut self.shared_cells[cell as usize] else {
            return;
        };
        let direction = &mut shared.directions[way as usize];
        if !direction.scheduler.is_served(link)
            && let Some(length) = self.links[link as usize].length_of_first()
        {
            direction.scheduler.offer(self.now, link, length);
            direction.arm(2 * cell + way, self.now, &mut self.scheduler);
        }
    }

    /// What waited at both ends of a bearer was taken away.
    pub fn withdraw_from_cell(&mut self, cell: u32, down: u32) {
        let Some(shared) = &mut self.shared_cells[cell as usize] else {
            return;
        };
        for (way, direction) in (0..).zip(&mut shared.directions) {
            direction.scheduler.withdraw(self.now, down + way);
            direction.arm(2 * cell + way, self.now, &mut self.scheduler);
        }
    }

    /// Whether the bearers of a cell share it.
    pub fn is_shared(&self, cell: u32) -> bool {
        self.shared_cells[cell as usize].is_some()
    }

    /// Whether they do, and their rates are by the places of their radios.
    pub fn has_rates_by_place(&self, cell: u32) -> bool {
        let shared = self.shared_cells[cell as usize].as_ref();
        shared.is_some_and(|shared| shared.edge_snr_db.is_some())
    }

    /// A packet has been sent, or a turn is over: `direction` is the number of the cell and the way.
    pub fn cell_turn(&mut self, direction: u32, generation: u32) {
        let (cell, way) = (direction / 2, direction % 2);
        let Some(shared) = &mut self.shared_cells[cell as usize] else {
            return;
        };
        let shared = &mut shared.directions[way as usize];
        if !shared.timer.fired(generation) {
            return;
        }
        let (links, store, scheduler, now) =
            (&mut self.links, &mut self.store, &mut self.scheduler, self.now);
        shared.scheduler.advance(now, |link| {
            let link = &mut links[link as usize];
            link.send_first(now, scheduler, |packet| store.duplicate(packet));
            link.length_of_first()
        });
        shared.arm(direction, now, scheduler);
    }
}

impl Shared {
    fn arm(
        &mut self,
        direction: u32,
        now: segue_proto::Instant,
        scheduler: &mut crate::scheduler::Scheduler,
    ) {
        let wanted = self.scheduler.next();
        self.timer
            .arm(wanted, now, scheduler, |generation| Event::CellTurn {
                direction,
                generation,
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_shannon_bound_between_the_least_and_the_greatest_ratio() {
        let [down, up] = GREATEST_EFFICIENCY;
        // 4.4 bit/s/Hz are reached at 22 dB, 2.0 at 15 dB: TR 36.942 figures A.1 and A.2
        assert!(share_of_rate(21.9, down) < 1.0 && share_of_rate(22.1, down) == 1.0);
        assert!(share_of_rate(14.8, up) < 1.0 && share_of_rate(15.0, up) == 1.0);
        // 0.6 bit/s/Hz of 4.4 at 0 dB
        assert!((share_of_rate(0.0, down) - 0.6 / 4.4).abs() < 1e-12);
        assert_eq!(share_of_rate(-20.0, down), share_of_rate(-10.0, down));
        assert!(share_of_rate(-10.0, down) > 0.0);
    }
}
