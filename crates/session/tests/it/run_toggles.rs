//! A run at full speed, held and released at random: the shown label and the run always agree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt, stream};
use holdpoint_common::{Event, Fact, Hold, HoldState, RunFact, RunLimits, SessionFact, Who};
use holdpoint_session::model::{Catalog, Model, ModelEvent, ModelRequest, ModelStream};
use holdpoint_session::testing::within_patience;
use holdpoint_session::{AttachFrom, Attachment, Engine, OpenSession, RunRequest};
use holdpoint_tools::Supervisor;
use holdpoint_tools::testing::rounds;

/// A model that answers at once and counts its requests.
#[derive(Default)]
struct Counting(AtomicU64);

impl Model for Counting {
    fn name(&self) -> &str {
        "counting/test"
    }

    fn stream(&self, _: &ModelRequest) -> ModelStream {
        self.0.fetch_add(1, Ordering::SeqCst);
        stream::iter([Ok(ModelEvent::Text("done".to_owned()))]).boxed()
    }
}

/// The hold that a client shows and the iterations that it sees, by the events alone.
#[derive(Default)]
struct Shown {
    hold: HoldState,
    iterations: u64,
    holds: u32,
}

impl Shown {
    fn see(&mut self, event: &Event) {
        match event.fact() {
            Some(Fact::Session(SessionFact::HoldChanged { hold })) => {
                self.hold = hold.shown();
                self.holds += u32::from(self.hold == HoldState::Standing);
            }
            Some(Fact::Run(RunFact::IterationStarted { .. })) => {
                self.iterations += 1;
                assert_eq!(self.hold, HoldState::Off, "an iteration began under a hold");
            }
            _ => {}
        }
    }

    /// Reads events until the shown state is `hold`.
    async fn wait_for_hold(&mut self, hold: HoldState, events: &mut Attachment) {
        while self.hold != hold {
            let event =
                within_patience("the hold", events.next()).await.expect("the stream continues");
            self.see(&event);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m_d1_m_d2_label_and_run_agree_at_every_toggle() {
    let rounds = rounds(1_000, 10_000);
    holdpoint_tools::testing::serve_as_supervisor();
    let model = Arc::new(Counting::default());
    let catalog = Catalog::default().with(Arc::clone(&model) as Arc<dyn Model>);
    let engine = Engine::builder(catalog).supervisor(Supervisor::ThisProgram).start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sessions = engine.sessions(Who::named("test"));
    let session =
        sessions.open(OpenSession::in_folder(folder.path()).model("counting/test")).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    let limits = RunLimits { iterations: None, ..RunLimits::default() };
    let run = RunRequest { tasks: vec!["endless".to_owned()], limits, ..RunRequest::new("never") };
    session.start_run(run).await.unwrap();
    let mut shown = Shown::default();
    for _ in 0..rounds {
        for _ in 0..fastrand::u32(..20_000) {
            std::hint::spin_loop();
        }
        // The shown state may be old: then the toggle changes nothing, and the reply has the
        // current state.
        let hold = session.toggle_hold(shown.hold).await.unwrap();
        shown.wait_for_hold(hold.shown(), &mut events).await;
        match hold {
            Hold::Requested { .. } if fastrand::bool() => {
                shown.wait_for_hold(HoldState::Standing, &mut events).await
            }
            Hold::Standing { .. } => {
                let requests = model.0.load(Ordering::SeqCst);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(
                    model.0.load(Ordering::SeqCst),
                    requests,
                    "a request was sent under a hold"
                );
            }
            Hold::Requested { .. } | Hold::Off => {}
        }
    }
    if shown.hold == HoldState::Off {
        session.hold().await.unwrap();
    }
    shown.wait_for_hold(HoldState::Standing, &mut events).await;
    assert!(shown.holds > rounds / 10, "the holds took effect {} times", shown.holds);
    assert_eq!(model.0.load(Ordering::SeqCst), shown.iterations, "one request per iteration");
    within_patience("its close", session.close()).await.unwrap();
}
