//! Figures from repeated measurements.

use std::time::Duration;

/// Measurements of one thing, in order of size.
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Of durations, in milliseconds.
    pub fn of_durations(durations: &[Duration]) -> Self {
        Self::new(durations.iter().map(|duration| duration.as_secs_f64() * 1e3).collect())
    }

    /// The value that this share of all is not above; 0 where nothing was measured.
    pub fn percentile(&self, percent: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let place = (percent / 100.0 * last as f64).round() as usize;
        self.0.get(place.min(last)).copied().unwrap_or_default()
    }

    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// The quickest tenth, for work that is always the same: what takes longer was kept waiting by something else.
    pub fn undisturbed(&self) -> f64 {
        self.percentile(10.0)
    }

    pub fn max(&self) -> f64 {
        self.percentile(100.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle half, and of how many: how much to believe the median.
    pub fn spread(&self) -> String {
        format!("{}..{} of {}", figure(self.percentile(25.0)), figure(self.percentile(75.0)), self.len())
    }
}

/// A number with three digits that matter.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let sample = Sample::new((1..=101).rev().map(f64::from).collect());
        assert_eq!((sample.percentile(0.0), sample.median(), sample.percentile(99.0)), (1.0, 51.0, 100.0));
        assert_eq!(sample.max(), 101.0);
        assert_eq!(sample.spread(), "26.0..76.0 of 101");
    }

    #[test]
    fn nothing_measured_is_zero() {
        assert_eq!(Sample::new(vec![]).median(), 0.0);
    }

    #[test]
    fn figures_keep_what_matters() {
        let shown = [0.0, 0.0123, 1.234, 12.34, 123.4, 12345.6].map(figure);
        assert_eq!(shown, ["0", "0.012", "1.23", "12.3", "123", "12346"]);
    }
}
