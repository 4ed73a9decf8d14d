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
        let mut values: Vec<(f64, bool)> = values.into_iter().collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = values.len();
        let at = |place: usize| values.get(place).map_or(0.0, |(value, _)| *value);
        let percentile = |p: usize| at((n * p).div_ceil(100).max(1) - 1);
        Some(Self {
            count: n as u64,
            censored: values.iter().filter(|(_, bound)| *bound).count() as u64,
            bound_from: values.iter().find(|(_, bound)| *bound).map(|(value, _)| *value),
            mean: values.iter().map(|(value, _)| value).sum::<f64>() / n as f64,
            min: values.first()?.0,
            p5: percentile(5),
            p10: percentile(10),
            p25: percentile(25),
            median: f64::midpoint(at((n - 1) / 2), at(n / 2)),
            p75: percentile(75),
            p90: percentile(90),
            p95: percentile(95),
            p99: percentile(99),
            max: at(n - 1),
            cdf: steps(&values),
        })
    }
}

/// The steps of the distribution function of these values, which are sorted.
fn steps(values: &[(f64, bool)]) -> Vec<(f64, f64)> {
    let n = values.len();
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (number, (value, _)) in (1..).zip(values) {
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
