//! Prints the table, with one line for each figure as soon as it is known.

use std::fmt;
use std::time::Duration;

use crate::floors::{Floor, Floors};

/// Selects the wanted figures and prints them.
pub(crate) struct Table {
    filters: Vec<String>,
    floors: Floors,
}

/// A measured quantity.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    Time(Duration),
    Bytes(u64),
    /// The ratio to another amount.
    Times(f64),
}

/// The values of one figure, sorted.
pub(crate) struct Samples(Vec<Duration>);

impl Table {
    pub(crate) fn new(filters: Vec<String>, floors: Floors) -> Self {
        println!(
            "{:<62} {:>10}  {:>10}  {:>6}  {:<4}  of the machine",
            "figure", "measured", "at most", "ratio", ""
        );
        Self { filters, floors }
    }

    pub(crate) fn floors(&self) -> &Floors {
        &self.floors
    }

    /// Whether a group of figures is wanted: its name, or that of one of its figures, contains a
    /// filter.
    pub(crate) fn wants(&self, group: &str, figures: &[&str]) -> bool {
        let names = || figures.iter().chain([&group]);
        let wanted = self.filters.is_empty()
            || self.filters.iter().any(|filter| names().any(|name| name.contains(filter.as_str())));
        if wanted {
            println!("-- {group} (load {})", load());
        }
        wanted
    }

    /// Prints a figure with a bound that no floor explains: bytes, ratios, CPU time.
    pub(crate) fn figure(&self, what: &str, measured: Amount, most: Amount) {
        println!("{}", bounded(what, measured, most).trim_end());
    }

    /// Prints a figure with a bound that is mostly a cost of the machine itself, and its ratio to
    /// that cost.
    pub(crate) fn figure_beside(&self, floor: Floor, what: &str, measured: Amount, most: Amount) {
        println!("{}  {}", bounded(what, measured, most), self.beside(floor, measured));
    }

    /// Like [`figure_beside`](Self::figure_beside), without a bound.
    pub(crate) fn note_beside(&self, floor: Floor, what: &str, measured: Amount) {
        println!(
            "{what:<62} {:>10}  {:>10}  {:>6}  {:<4}  {}",
            measured.to_string(),
            "",
            "",
            "",
            self.beside(floor, measured)
        );
    }

    /// Prints a figure without a bound.
    pub(crate) fn note(&self, what: &str, measured: Amount) {
        println!("{what:<62} {:>10}", measured.to_string());
    }

    fn beside(&self, floor: Floor, measured: Amount) -> String {
        format!("{:.1} {floor}", measured.number() / Amount::Time(self.floors.of(floor)).number())
    }
}

impl Amount {
    pub(crate) fn us(us: u64) -> Self {
        Self::Time(Duration::from_micros(us))
    }

    pub(crate) fn ms(ms: u64) -> Self {
        Self::Time(Duration::from_millis(ms))
    }

    pub(crate) fn kib(kib: u64) -> Self {
        Self::Bytes(kib * 1024)
    }

    pub(crate) fn mib(mib: u64) -> Self {
        Self::kib(mib * 1024)
    }

    /// The ratio of this amount to another.
    pub(crate) fn of(self, other: Self) -> Self {
        Self::Times(self.number() / other.number())
    }

    /// The part of a time that exceeds this limit.
    pub(crate) fn beyond(self, limit: Duration) -> Self {
        match self {
            Self::Time(time) => Self::Time(time.saturating_sub(limit)),
            other => other,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
            Self::Bytes(bytes) => bytes as f64,
            Self::Times(times) => times,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:.2?}"),
            Self::Bytes(bytes) if *bytes >= 1024 * 1024 => {
                write!(f, "{:.1} MiB", self.number() / (1024.0 * 1024.0))
            }
            Self::Times(times) => write!(f, "{times:.2} times"),
            Self::Bytes(_) => write!(f, "{:.1} KiB", self.number() / 1024.0),
        }
    }
}

impl Samples {
    pub(crate) fn new(mut values: Vec<Duration>) -> Self {
        assert!(!values.is_empty(), "nothing was measured");
        values.sort();
        Self(values)
    }

    /// Measures this many rounds after a warm-up.
    pub(crate) fn of(rounds: usize, mut round: impl FnMut() -> Duration) -> Self {
        round();
        Self::new((0..rounds).map(|_| round()).collect())
    }

    pub(crate) fn median(&self) -> Amount {
        Amount::Time(self.middle())
    }

    pub(crate) fn p99(&self) -> Amount {
        Amount::Time(self.at(99))
    }

    pub(crate) fn slowest(&self) -> Amount {
        Amount::Time(self.at(100))
    }

    pub(crate) fn middle(&self) -> Duration {
        self.at(50)
    }

    fn at(&self, part: usize) -> Duration {
        self.0[(self.0.len() - 1) * part / 100]
    }
}

fn bounded(what: &str, measured: Amount, most: Amount) -> String {
    let ratio = measured.number() / most.number();
    let verdict = if ratio <= 1.0 { "ok" } else { "OVER" };
    format!(
        "{what:<62} {:>10}  {:>10}  {ratio:>6.2}  {verdict:<4}",
        measured.to_string(),
        most.to_string()
    )
}

/// The number of tasks that run or wait for a core. If it exceeds the number of cores, the times
/// are not this program's.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
