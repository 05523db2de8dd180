//! The daemon's resources between rounds, when it is idle.

use std::fmt;
use std::time::{Duration, Instant};

use crate::daemon::harness::DaemonWorld;
use crate::world::patience;

/// Rounds until everything that is kept for later (stacks, arenas, caches) exists.
const WARM: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    kib: u64,
    descriptors: usize,
    threads: usize,
}

/// The readings, one after each round.
pub(crate) struct Gauge {
    /// Sockets of a daemon without clients.
    sockets: usize,
    readings: Vec<Reading>,
}

impl Gauge {
    pub(crate) fn new(house: &DaemonWorld) -> Self {
        Self { sockets: house.sockets(), readings: Vec::new() }
    }

    /// Takes a reading once the clients' connections are gone, which the daemon notices with a
    /// delay. A thread for files ends after ten idle seconds, so more threads than at first are
    /// waited for.
    pub(crate) fn read(&mut self, house: &DaemonWorld) {
        let (first, _) = self.ends();
        let most = first.iter().map(|reading| reading.threads).max().unwrap_or(usize::MAX);
        wait_until(|| house.sockets() <= self.sockets);
        wait_until(|| Reading::of(house).threads <= most);
        self.readings.push(Reading::of(house));
    }

    /// Checks that no resource has grown by more than the measurement's error.
    pub(crate) fn check(&self) {
        let (first, last) = self.ends();
        if first.is_empty() {
            return;
        }
        // A connection may still be closing, so this compares the least of the last readings with
        // the most of the first.
        let back =
            |of: fn(&Reading) -> usize| last.iter().map(of).min() <= first.iter().map(of).max();
        assert!(back(|reading| reading.descriptors), "descriptors: {self}");
        assert!(back(|reading| reading.threads), "threads: {self}");
        let (early, late) = (memory(first), memory(last));
        // The median of a few rounds means little.
        assert!(
            self.readings.len() < WARM + 30 || late <= early + early / 20,
            "memory: {early} to {late} KiB; {self}"
        );
    }

    /// The first and the last third of the readings after the warm-up.
    fn ends(&self) -> (&[Reading], &[Reading]) {
        let warm = self.readings.get(WARM..).unwrap_or_default();
        (&warm[..warm.len().div_ceil(3)], &warm[warm.len() * 2 / 3..])
    }
}

/// Waits until `is_so` holds, at most for the patience of a test: the reading that follows is
/// checked at the end.
fn wait_until(is_so: impl Fn() -> bool) {
    let by = Instant::now() + patience();
    while !is_so() && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The median of some readings in KiB: rounds differ, and freed memory is returned with a delay.
fn memory(readings: &[Reading]) -> u64 {
    let mut kib: Vec<u64> = readings.iter().map(|reading| reading.kib).collect();
    kib.sort_unstable();
    kib.get(kib.len() / 2).copied().unwrap_or_default()
}

impl Reading {
    fn of(house: &DaemonWorld) -> Self {
        let daemon = house.status();
        let status = std::fs::read_to_string(format!("/proc/{}/status", daemon["pid"])).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        Self {
            kib: field("VmRSS:"),
            descriptors: daemon["descriptors"]["open"].as_u64().unwrap().try_into().unwrap(),
            threads: usize::try_from(field("Threads:")).unwrap(),
        }
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, last)) = self.readings.first().zip(self.readings.last()) else {
            return write!(f, "nothing measured");
        };
        let (early, late) = self.ends();
        write!(
            f,
            "memory {} to {} KiB (middle of the first and the last third), descriptors {} to {}, threads {} to {}, in {} \
             calm rounds; KiB after each: {:?}",
            memory(early),
            memory(late),
            first.descriptors,
            last.descriptors,
            first.threads,
            last.threads,
            self.readings.len(),
            self.readings.iter().map(|reading| reading.kib).collect::<Vec<_>>()
        )
    }
}
