//! The table: a line for each figure, written as soon as it is known.

use std::fmt;
use std::time::Duration;

/// Which figures are wanted, and where they are written.
pub(crate) struct Table {
    filters: Vec<String>,
}

/// What can be measured.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    Time(Duration),
    Bytes(u64),
    /// Of another amount.
    Times(f64),
}

/// Values of one figure, sorted.
pub(crate) struct Samples(Vec<Duration>);

impl Table {
    pub(crate) fn new(filters: Vec<String>) -> Self {
        println!("{:<62} {:>10}  {:>10}  {:>6}", "what", "measured", "at most", "ratio");
        Self { filters }
    }

    /// Whether a group of figures is wanted: one whose name, or a figure's in it, contains a filter.
    pub(crate) fn wants(&self, group: &str, figures: &[&str]) -> bool {
        let names = || figures.iter().chain([&group]);
        let wanted = self.filters.is_empty()
            || self.filters.iter().any(|filter| names().any(|name| name.contains(filter.as_str())));
        if wanted {
            println!("-- {group} (load {})", load());
        }
        wanted
    }

    /// A figure with a bound.
    pub(crate) fn figure(&self, what: &str, measured: Amount, most: Amount) {
        let ratio = measured.number() / most.number();
        let verdict = if ratio <= 1.0 { "ok" } else { "OVER" };
        println!("{what:<62} {:>10}  {:>10}  {ratio:>6.2}  {verdict}", measured.to_string(), most.to_string());
    }

    /// A figure without one.
    pub(crate) fn note(&self, what: &str, measured: Amount) {
        println!("{what:<62} {:>10}", measured.to_string());
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

    /// How often another amount goes into it.
    pub(crate) fn of(self, other: Self) -> Self {
        Self::Times(self.number() / other.number())
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
            Self::Bytes(bytes) if *bytes >= 1024 * 1024 => write!(f, "{:.1} MiB", self.number() / (1024.0 * 1024.0)),
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

    /// Of so many rounds, after one that does not count.
    pub(crate) fn of(rounds: usize, mut round: impl FnMut() -> Duration) -> Self {
        round();
        Self::new((0..rounds).map(|_| round()).collect())
    }

    pub(crate) fn median(&self) -> Amount {
        self.at(50)
    }

    pub(crate) fn p99(&self) -> Amount {
        self.at(99)
    }

    fn at(&self, part: usize) -> Amount {
        Amount::Time(self.0[(self.0.len() - 1) * part / 100])
    }
}

/// How many wait for the machine's cores: with more than there are cores, times are not this program's.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
