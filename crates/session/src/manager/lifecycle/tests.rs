use std::collections::HashSet;
use std::fmt::Write;

use super::*;

/// A host with names for callers.
struct Named;

impl Host for Named {
    type Caller = &'static str;
    type PlaceCaller = &'static str;
    type Record = &'static str;
}

/// A lifecycle with its effects as text.
struct Bench(Lifecycle<Named>);

/// The phases of the session `it`. There is one place.
#[rustfmt::skip]
const PHASES: [&str; 14] = [
    // Only in the store, or with a record of its past in this process.
    "unknown", "saved", "closed", "failed",
    // A caller has its log, and does not need a place yet; waits until actors may start; waits for
    // the place, which a session in use has; another caller waits for the log.
    "owned", "early", "queued", "owned+1",
    // It has the place, for its first or its next actor; another caller waits for that.
    "starting", "rebuilding", "rebuilding+1",
    // It has an actor; that has ended; the engine stops.
    "live", "ending", "stopping",
];

fn id(name: &str) -> SessionId {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn access(name: &str, if_saved: IfSaved) -> Input<Named> {
    Input::Access { id: id(name), access: Access { seen: 0, if_saved }, caller: "caller" }
}

fn ended(name: &str, end: ActorEnd) -> Input<Named> {
    Input::Ended { id: id(name), end, now: Instant::now() }
}

fn released(name: &str, failed: Option<SessionError>) -> Input<Named> {
    Input::Released { id: id(name), failed }
}

fn need_place(name: &str) -> Input<Named> {
    Input::NeedPlace { id: id(name), caller: "owner" }
}

fn started(name: &str) -> Input<Named> {
    Input::Started { id: id(name) }
}

fn damaged() -> SessionError {
    SessionError::Damaged { session: id("it"), message: "no events".to_owned() }
}

impl Bench {
    fn with_places(places: usize) -> Self {
        Self(Lifecycle::new(places)).after([Input::Ready])
    }

    fn after(mut self, inputs: impl IntoIterator<Item = Input<Named>>) -> Self {
        inputs.into_iter().for_each(|input| drop(self.0.handle(input)));
        self
    }

    /// Opens this session, which is in use from then on.
    fn live(mut self, name: &str) -> Self {
        self = self.after([access(name, IfSaved::Reopen), need_place(name)]);
        self.0.get_mut(&id(name)).expect("the session has an entry").record = Some("record");
        self.after([started(name)])
    }

    /// The lifecycle in this phase of the session `it`.
    fn at(phase: &str) -> Self {
        let bench = || Self::with_places(1);
        let owned = || bench().after([access("it", IfSaved::Open)]);
        let live = || bench().live("it");
        match phase {
            "unknown" => bench(),
            "saved" => live().after([ended("it", ActorEnd::Unloaded)]),
            "closed" => live().after([ended("it", ActorEnd::Closed)]),
            "failed" => {
                live().after([ended("it", ActorEnd::Failed), released("it", Some(damaged()))])
            }
            "owned" => owned(),
            "early" => {
                Self(Lifecycle::new(1)).after([access("it", IfSaved::Open), need_place("it")])
            }
            "queued" => {
                bench().live("other").after([access("it", IfSaved::Open), need_place("it")])
            }
            "owned+1" => owned().after([access("it", IfSaved::Change)]),
            "starting" => owned().after([need_place("it")]),
            "rebuilding" => live().after([ended("it", ActorEnd::Failed)]),
            "rebuilding+1" => {
                live().after([ended("it", ActorEnd::Failed), access("it", IfSaved::Open)])
            }
            "live" => live(),
            "ending" => live().after([Input::Disconnected { id: id("it") }]),
            "stopping" => live().after([Input::Stop]),
            other => panic!("no phase `{other}`"),
        }
    }

    fn phase(&self) -> String {
        match self.0.get(&id("it")) {
            Some(session) => {
                let closed = if session.closed { ", closed" } else { "" };
                match session.phase {
                    Phase::Starting { rebuilding: true } => format!("Starting again{closed}"),
                    Phase::Starting { rebuilding: false } => format!("Starting{closed}"),
                    phase => format!("{phase:?}{closed}"),
                }
            }
            None => "no entry".to_owned(),
        }
    }

    /// Handles an input. Returns its effects.
    fn handle(&mut self, input: Input<Named>) -> Vec<String> {
        let result = |result: Result<&str, SessionError>| {
            result.map_or_else(|error| error.to_string(), str::to_owned)
        };
        let effect = |effect: Effect<Named>| match effect {
            Effect::Grant(caller, Ok(granted)) => format!("{caller}: {granted:?}"),
            Effect::Grant(caller, Err(error)) => format!("{caller}: {error}"),
            Effect::GrantPlace(caller, granted) => {
                format!("{caller}: {}", result(granted.map(|()| "place")))
            }
            Effect::Unload(id) => format!("unload {id}"),
            Effect::Rebuild { id, delay } => format!("rebuild {id} after {delay:?}"),
        };
        self.0.handle(input).into_iter().map(effect).collect()
    }
}

/// Every input, by name.
fn inputs() -> Vec<(&'static str, Input<Named>)> {
    let seen = Access { seen: 1, if_saved: IfSaved::Open };
    vec![
        ("ready", Input::Ready),
        ("access, or fail", access("it", IfSaved::Fail)),
        ("access, or open", access("it", IfSaved::Open)),
        ("access, or open even if closed", access("it", IfSaved::Reopen)),
        ("access, or change the log", access("it", IfSaved::Change)),
        (
            "access after the end of actor 1",
            Input::Access { id: id("it"), access: seen, caller: "caller" },
        ),
        ("need a place", need_place("it")),
        ("started", started("it")),
        ("released", released("it", None)),
        ("released after a failed start", released("it", Some(damaged()))),
        ("rebuild failed", Input::RebuildFailed { id: id("it"), error: damaged() }),
        ("it refused to unload", Input::RefusedUnload { id: id("it") }),
        ("the other refused to unload", Input::RefusedUnload { id: id("other") }),
        ("disconnected", Input::Disconnected { id: id("it") }),
        ("unloaded", ended("it", ActorEnd::Unloaded)),
        ("the other unloaded", ended("other", ActorEnd::Unloaded)),
        ("closed", ended("it", ActorEnd::Closed)),
        ("failed", ended("it", ActorEnd::Failed)),
        ("stop", Input::Stop),
    ]
}

/// Every phase and input. Pairs that change nothing and have no effect are left out.
#[test]
fn every_phase_and_input_has_its_effects() {
    let mut table = String::new();
    for (n, (name, _)) in inputs().into_iter().enumerate() {
        writeln!(table, "# {name}").unwrap();
        for phase in PHASES {
            let mut bench = Bench::at(phase);
            let before = bench.phase();
            let (_, input) = inputs().swap_remove(n);
            let effects = bench.handle(input).join("; ");
            let after = bench.phase();
            if before == after && effects.is_empty() {
                continue;
            }
            let after = if before == after { "unchanged".to_owned() } else { after };
            writeln!(table, "{}", format!("{phase:<13} {after:<16} {effects}").trim_end()).unwrap();
        }
        writeln!(table).unwrap();
    }
    insta::assert_snapshot!("table", table);
}

#[test]
fn the_least_recently_used_session_is_asked_first_and_each_once() {
    let mut bench = Bench::with_places(3).live("one").live("two").live("three");
    bench.handle(access("one", IfSaved::Open));
    bench.handle(access("four", IfSaved::Open));
    assert_eq!(bench.handle(need_place("four")), ["unload two"]);
    assert_eq!(bench.handle(Input::RefusedUnload { id: id("two") }), ["unload three"]);
    assert_eq!(bench.handle(Input::RefusedUnload { id: id("three") }), ["unload one"]);
    let full = SessionError::TooManySessions { limit: 3 };
    assert_eq!(bench.handle(Input::RefusedUnload { id: id("one") }), [format!("owner: {full}")]);
    // Sessions in use count as used, so the next search begins with another one.
    bench.handle(access("three", IfSaved::Open));
    assert_eq!(bench.handle(need_place("four")), ["unload two"]);
    assert_eq!(bench.handle(ended("two", ActorEnd::Unloaded)), ["owner: place"]);
}

#[test]
fn a_session_that_is_just_being_opened_may_make_room() {
    let mut bench = Bench::with_places(1);
    bench.handle(access("one", IfSaved::Open));
    bench.handle(access("two", IfSaved::Open));
    assert_eq!(bench.handle(need_place("one")), ["owner: place"]);
    assert_eq!(bench.handle(need_place("two")), [""; 0]);
    assert_eq!(bench.handle(started("one")), ["unload one"]);
    assert_eq!(bench.handle(ended("one", ActorEnd::Unloaded)), ["owner: place"]);
}

#[test]
fn a_request_for_a_place_ends_with_its_owner() {
    let mut bench = Bench::with_places(1).live("one");
    bench.handle(access("two", IfSaved::Open));
    bench.handle(access("three", IfSaved::Open));
    assert_eq!(bench.handle(need_place("two")), ["unload one"]);
    bench.handle(need_place("three"));
    bench.handle(released("two", None));
    assert_eq!(bench.handle(ended("one", ActorEnd::Unloaded)), ["owner: place"]);
    bench.handle(started("three"));
    assert!(bench.0.is_live(&id("three")));
}

#[test]
fn a_session_that_is_rebuilt_keeps_its_place() {
    let mut bench = Bench::with_places(1).live("one").after([ended("one", ActorEnd::Failed)]);
    bench.handle(access("two", IfSaved::Open));
    let full = SessionError::TooManySessions { limit: 1 };
    assert_eq!(bench.handle(need_place("two")), [format!("owner: {full}")]);
    bench.handle(released("one", Some(damaged())));
    assert_eq!(bench.handle(need_place("two")), ["owner: place"]);
}

#[test]
fn a_log_has_one_owner_at_a_time_in_the_order_of_the_requests() {
    let change = |caller| Input::Access {
        id: id("it"),
        access: Access { seen: 0, if_saved: IfSaved::Change },
        caller,
    };
    let mut bench = Bench::with_places(1);
    assert_eq!(bench.handle(change("first")), ["first: Log"]);
    assert_eq!(bench.handle(change("second")), [""; 0]);
    assert_eq!(bench.handle(change("third")), [""; 0]);
    assert_eq!(bench.handle(released("it", None)), ["second: Log"]);
    assert_eq!(bench.handle(released("it", None)), ["third: Log"]);
    assert_eq!(bench.handle(released("it", None)), [""; 0]);
    bench.0.remove_if(&id("it"), |_, _| true);
    assert!(bench.0.get(&id("it")).is_none());
}

#[test]
fn saved_sessions_are_removed_when_their_last_client_has_gone() {
    let mut bench = Bench::with_places(4);
    for name in ["a", "b", "c", "d"] {
        bench = bench.live(name).after([ended(name, ActorEnd::Unloaded)]);
        bench.0.remove_if(&id(name), |_, _| false);
    }
    let left = |bench: &Bench| bench.0.records().count();
    bench.0.remove_unused(2, |_, _| false);
    assert_eq!(left(&bench), 4, "all are in use");
    bench.0.remove_unused(2, |_, _| true);
    assert_eq!(left(&bench), 2);
    // A session that is live again stays.
    let live =
        ["a", "b", "c", "d"].into_iter().find(|name| bench.0.get(&id(name)).is_some()).unwrap();
    bench = bench.live(live);
    bench.0.remove_unused(9, |_, _| true);
    assert_eq!(left(&bench), 1);
    assert!(bench.0.is_live(&id(live)));
}

#[test]
fn a_name_belongs_to_one_session_and_is_free_after_it() {
    let mut names = Names::default();
    let (one, two) = (id("one"), id("two"));
    assert!(names.claim(&one, "work"));
    assert!(!names.claim(&two, "work"));
    assert_eq!(names.claim_numbered(&two, "work", &HashSet::new()), "work-2");
    assert_eq!(names.holder("work-2"), Some(&two));
    names.release(&one);
    assert_eq!(names.claim_numbered(&two, "work", &HashSet::new()), "work");
    assert_eq!((names.holder("work"), names.holder("work-2")), (Some(&two), None));
    // Sessions of other machines have these.
    let taken = ["work", "work-2", "work-3"].map(str::to_owned).into();
    assert_eq!(names.claim_numbered(&two, "work", &taken), "work-4");
    assert_eq!(names.of(&two), ["work-4"]);
}

#[test]
fn the_names_of_pending_renames_are_reserved() {
    let mut names = Names::default();
    let (one, two) = (id("one"), id("two"));
    assert!(names.begin_rename(&one, "play") && names.begin_rename(&one, "rest"));
    // The session becomes live, ends, and becomes live again in the meantime.
    for _ in 0..2 {
        assert!(names.claim(&one, "work"));
        names.release(&one);
    }
    assert!(!names.claim(&two, "play") && !names.begin_rename(&two, "rest"));
    assert!(names.claim(&one, "play"));
    names.end_rename(&one, "play");
    names.end_rename(&one, "rest");
    assert_eq!((names.holder("play"), names.holder("rest")), (Some(&one), None));
    names.release(&one);
    assert_eq!(names.holder("play"), None);
}
