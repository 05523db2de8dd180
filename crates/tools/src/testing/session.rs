//! The session of a bench: a real actor with scripted answers.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use actix::prelude::*;
use actix::{Addr, WeakRecipient};
use holdpoint_common::{AskRequest, Tasks};

use crate::ask::{Answering, AskReply, ToolAsk, ToolRequest};

/// The substitute for a session, on its own thread.
pub(super) struct Session {
    actor: Addr<Answerer>,
    thread: JoinHandle<()>,
}

impl Session {
    #[expect(clippy::expect_used, reason = "tests report faults by panicking")]
    pub(super) fn start(answers: Vec<AskReply>) -> Self {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let system = System::new();
            system.block_on(async move {
                let answerer = Answerer {
                    answers: answers.into(),
                    asked: Vec::new(),
                    open: VecDeque::new(),
                    ask_waiters: Vec::new(),
                    tasks: Tasks::default(),
                    attended: true,
                    cut: false,
                };
                let _ = sender.send(answerer.start());
            });
            let _ = system.run();
        });
        Self { actor: receiver.recv().expect("the actor starts"), thread }
    }

    pub(super) fn recipient(&self) -> WeakRecipient<ToolRequest> {
        self.actor.downgrade().recipient()
    }

    /// Answers all open asks, and all later ones, with *Interrupted*.
    pub(super) fn drop_asks(&self) {
        self.actor.do_send(DropAsks);
    }

    /// From now on, answers asks without a scripted answer with *Interrupted*, except an open one
    /// that the test has seen.
    pub(super) fn interrupt_unanswered(&self) {
        self.actor.do_send(InterruptUnanswered);
    }

    /// Waits for an ask without a scripted answer and returns it.
    #[expect(clippy::expect_used, reason = "tests report faults by panicking")]
    pub(super) fn wait_asked(&self) -> AskRequest {
        let (sender, receiver) = mpsc::channel();
        self.actor.do_send(WaitAsk(sender));
        receiver.recv_timeout(super::patience()).expect("an ask is raised")
    }

    /// The oldest open ask.
    #[expect(clippy::expect_used, reason = "tests report faults by panicking")]
    pub(super) fn oldest_open(&self) -> Option<AskRequest> {
        let (sender, receiver) = mpsc::channel();
        self.actor.do_send(GetOpen(sender));
        receiver.recv().expect("the actor runs until it is stopped")
    }

    /// Answers the oldest open ask, or the next one if none is open.
    pub(super) fn answer(&self, reply: AskReply) {
        self.actor.do_send(Answer(reply));
    }

    /// Stops the actor and returns all asks.
    #[expect(clippy::expect_used, reason = "tests report faults by panicking")]
    pub(super) fn stop(self) -> Vec<AskRequest> {
        let (sender, receiver) = mpsc::channel();
        self.actor.do_send(Stop(sender));
        let asked = receiver.recv().expect("the actor runs until it is stopped");
        drop(self.actor);
        let _ = self.thread.join();
        asked
    }
}

struct Answerer {
    answers: VecDeque<AskReply>,
    asked: Vec<AskRequest>,
    /// Asks without an answer, kept until they get one or the call is cut.
    open: VecDeque<OpenAsk>,
    /// Callers that wait for an open ask.
    ask_waiters: Vec<mpsc::Sender<AskRequest>>,
    tasks: Tasks,
    /// The test may still answer. If not, an ask without a scripted answer is interrupted.
    attended: bool,
    /// Every ask is interrupted, even if it has a scripted answer.
    cut: bool,
}

struct OpenAsk {
    request: AskRequest,
    /// Dropped without an answer, it answers [`AskReply::Interrupted`].
    answering: Answering,
    /// The test has seen the ask.
    shown: bool,
}

impl Actor for Answerer {
    type Context = Context<Self>;
}

impl Handler<ToolRequest> for Answerer {
    type Result = ();

    fn handle(&mut self, message: ToolRequest, _: &mut Context<Self>) {
        let (request, answering) = match message {
            ToolRequest::Ask(ToolAsk { request, answering, .. }) => (request, answering),
            ToolRequest::Tasks { request, answering, .. } => {
                let decided = self.tasks.decide(request, None);
                let decided =
                    decided.map(|facts| facts.iter().for_each(|fact| self.tasks.apply(fact)));
                return answering.answer(decided.map(|()| self.tasks.clone()));
            }
            ToolRequest::JobStarted { .. } | ToolRequest::JobEnded { .. } => return,
        };
        self.asked.push(request.clone());
        match self.answers.pop_front() {
            _ if self.cut => answering.answer(AskReply::Interrupted),
            Some(reply) => answering.answer(reply),
            None if !self.attended => answering.answer(AskReply::Interrupted),
            None => {
                let shown = !self.ask_waiters.is_empty();
                self.ask_waiters.drain(..).for_each(|waiter| drop(waiter.send(request.clone())));
                self.open.push_back(OpenAsk { request, answering, shown });
            }
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct WaitAsk(mpsc::Sender<AskRequest>);

impl Handler<WaitAsk> for Answerer {
    type Result = ();

    fn handle(&mut self, WaitAsk(sender): WaitAsk, _: &mut Context<Self>) {
        match self.open.front_mut() {
            Some(open) => {
                open.shown = true;
                let _ = sender.send(open.request.clone());
            }
            None => self.ask_waiters.push(sender),
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct GetOpen(mpsc::Sender<Option<AskRequest>>);

impl Handler<GetOpen> for Answerer {
    type Result = ();

    fn handle(&mut self, GetOpen(sender): GetOpen, _: &mut Context<Self>) {
        let _ = sender.send(self.open.front().map(|open| open.request.clone()));
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Answer(AskReply);

impl Handler<Answer> for Answerer {
    type Result = ();

    fn handle(&mut self, Answer(reply): Answer, _: &mut Context<Self>) {
        match self.open.pop_front() {
            Some(open) => open.answering.answer(reply),
            None => self.answers.push_back(reply),
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct InterruptUnanswered;

impl Handler<InterruptUnanswered> for Answerer {
    type Result = ();

    fn handle(&mut self, _: InterruptUnanswered, _: &mut Context<Self>) {
        self.attended = false;
        self.open.retain(|open| open.shown);
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct DropAsks;

impl Handler<DropAsks> for Answerer {
    type Result = ();

    fn handle(&mut self, _: DropAsks, _: &mut Context<Self>) {
        self.cut = true;
        self.open.clear();
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Stop(mpsc::Sender<Vec<AskRequest>>);

impl Handler<Stop> for Answerer {
    type Result = ();

    fn handle(&mut self, Stop(sender): Stop, _: &mut Context<Self>) {
        let _ = sender.send(std::mem::take(&mut self.asked));
        System::current().stop();
    }
}
