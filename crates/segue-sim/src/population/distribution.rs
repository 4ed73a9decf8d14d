//! Distributions of a quantity over all that had it.

use serde::Serialize;

/// Most steps of a distribution function that are told.
const MOST_STEPS: usize = 1000;

/// How values are distributed, in their unit. A percentile is the smallest value that at least so many percent of them do not
/// exceed; the median of an even number is the mean of the two in the middle.
///
/// Of some only a lower bound may be known. A percentile, or a step of the distribution function, that is as great as the least
/// of those bounds, or greater, is a lower bound itself.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// How many of them are lower bounds.
    pub censored: u64,
    /// The least of these.
    pub bound_from: Option<f64>,
    /// Mean; a lower bound if any value is.
    pub mean: f64,
    /// Whether `median` is a lower bound: of an even number, whether the greater of the two is.
    pub median_censored: bool,
    /// Whether `p95` is.
    pub p95_censored: bool,
    /// Whether `min` is.
    pub min_censored: bool,
    /// Whether `max` is.
    pub max_censored: bool,
    /// Smallest.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// The distribution function: values in their order, each with the share of values that are no greater. Of more than a
    /// thousand different values, those at every thousandth.
    pub cdf: Vec<(f64, f64)>,
}

impl Distribution {
    /// Of values, with whether each is a lower bound; nothing of none.
    pub(crate) fn of(values: impl IntoIterator<Item = (f64, bool)>) -> Option<Self> {
        let ordered = Ordered::of(values);
        let percentile = |p: usize| ordered.percentile(p);
        let is_bound = |p: usize| ordered.is_bound(ordered.percentile(p));
        (ordered.count() > 0).then(|| Self {
            count: ordered.count(),
            censored: ordered.bounds(),
            bound_from: ordered.bound_from,
            mean: ordered.values.iter().sum::<f64>() / ordered.values.len() as f64,
            median_censored: ordered.median_is_bound(),
            p95_censored: is_bound(95),
            min_censored: is_bound(0),
            max_censored: is_bound(100),
            min: percentile(0),
            p5: percentile(5),
            p10: percentile(10),
            p25: percentile(25),
            median: ordered.median(),
            p75: percentile(75),
            p90: percentile(90),
            p95: percentile(95),
            p99: percentile(99),
            max: percentile(100),
            cdf: steps(&ordered.values),
        })
    }
}

/// Values in their order, some of which may be lower bounds.
pub(super) struct Ordered {
    values: Vec<f64>,
    /// The least of those that are.
    bound_from: Option<f64>,
    bounds: u64,
}

impl Ordered {
    /// Of values, with whether each is a lower bound.
    pub fn of(values: impl IntoIterator<Item = (f64, bool)>) -> Self {
        let (mut all, mut bound_from, mut bounds) = (Vec::new(), None, 0);
        for (value, is_bound) in values {
            all.push(value);
            if is_bound {
                bounds += 1;
                bound_from = Some(bound_from.map_or(value, |least: f64| least.min(value)));
            }
        }
        all.sort_by(f64::total_cmp);
        Self {
            values: all,
            bound_from,
            bounds,
        }
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.values.len() as u64
    }

    /// How many of them are lower bounds.
    pub const fn bounds(&self) -> u64 {
        self.bounds
    }

    /// The smallest value that at least so many percent do not exceed.
    pub fn percentile(&self, p: usize) -> f64 {
        self.at((self.values.len() * p).div_ceil(100).max(1) - 1)
    }

    /// Of an even number the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let n = self.values.len();
        f64::midpoint(self.at(n.saturating_sub(1) / 2), self.at(n / 2))
    }

    /// Whether it may be greater in truth, as it may if the greater of the two may.
    pub fn median_is_bound(&self) -> bool {
        self.is_bound(self.at(self.values.len() / 2))
    }

    /// Whether one of the values, or a percentile, is a lower bound.
    pub fn is_bound(&self, value: f64) -> bool {
        self.bound_from.is_some_and(|bound| value >= bound)
    }

    fn at(&self, place: usize) -> f64 {
        self.values.get(place).copied().unwrap_or_default()
    }
}

/// The steps of the distribution function of these values, which are sorted.
fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let n = values.len();
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (number, value) in (1..).zip(values) {
        let share = f64::from(number) / n as f64;
        match all.last_mut() {
            Some(last) if last.0 == *value => last.1 = share,
            _ => all.push((*value, share)),
        }
    }
    if all.len() <= MOST_STEPS {
        return all;
    }
    let mut some: Vec<(f64, f64)> = Vec::with_capacity(MOST_STEPS);
    for part in 1..=MOST_STEPS {
        let least = part as f64 / MOST_STEPS as f64;
        let step = all.partition_point(|(_, share)| *share < least);
        let step = all[step.min(all.len() - 1)];
        if some.last() != Some(&step) {
            some.push(step);
        }
    }
    some
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984, DEC TR-301, equation 1): the square of the sum by n times the sum of the
/// squares, from 1/n, where one has everything, to 1, where all have the same. Nothing where nobody has anything.
pub(crate) fn fairness(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_smallest_values_that_so_many_do_not_exceed() {
        assert_eq!(Distribution::of([]), None);
        let hundred = Distribution::of((1..=100).rev().map(|n| (f64::from(n), n > 90))).unwrap();
        assert_eq!((hundred.p5, hundred.p10, hundred.p25), (5.0, 10.0, 25.0));
        assert_eq!((hundred.median, hundred.p75, hundred.p99), (50.5, 75.0, 99.0));
        assert_eq!((hundred.min, hundred.max, hundred.mean), (1.0, 100.0, 50.5));
        assert_eq!((hundred.censored, hundred.bound_from), (10, Some(91.0)));
        assert_eq!((hundred.median_censored, hundred.p95_censored), (false, true));
        assert_eq!((hundred.min_censored, hundred.max_censored), (false, true));
        // the greater of the two in the middle may be anything above
        let even = Distribution::of([(1.0, false), (2.0, true)]).unwrap();
        assert!(even.median < 2.0 && even.median_censored);
        let one = Distribution::of([(3.0, false)]).unwrap();
        assert_eq!((one.p5, one.median, one.p99), (3.0, 3.0, 3.0));
    }

    #[test]
    fn the_distribution_function_rises_at_each_value_by_its_share() {
        let few = Distribution::of([4.0, 1.0, 4.0, 2.0].map(|v| (v, false))).unwrap();
        assert_eq!(few.cdf, [(1.0, 0.25), (2.0, 0.5), (4.0, 1.0)]);
        // of many, steps of the same function
        let many = Distribution::of((0..4321).map(|n| (f64::from(n), false))).unwrap();
        assert_eq!(many.cdf.len(), MOST_STEPS);
        for (value, share) in &many.cdf {
            assert_eq!(*share, (value + 1.0) / 4321.0);
        }
        assert_eq!(many.cdf.last(), Some(&(4320.0, 1.0)));
    }

    #[test]
    fn of_n_of_whom_k_have_all_in_equal_parts_the_fairness_is_k_by_n() {
        for (n, k) in [(1, 1), (10, 10), (10, 1), (10, 4)] {
            let shares: Vec<f64> = (0..n).map(|i| if i < k { 7.5e6 } else { 0.0 }).collect();
            let index = fairness(&shares).unwrap();
            assert!((index - f64::from(k) / f64::from(n)).abs() < 1e-12, "{k} of {n}");
        }
        // the size of what is shared is nothing to it
        assert_eq!(fairness(&[1.0, 2.0, 3.0]), fairness(&[10.0, 20.0, 30.0]));
        assert_eq!(fairness(&[1.0, 3.0]), Some(0.8));
        assert_eq!(fairness(&[0.0, 0.0]), None);
    }
}
