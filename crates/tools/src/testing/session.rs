//! Stands for a session: a real actor that answers by script.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use actix::prelude::*;
use actix::{Addr, WeakRecipient};
use holdpoint_common::{AskRequest, Tasks};

use crate::ask::{Answering, AskReply, ToolRequest};

/// A session's stand-in, on a thread of its own.
pub(super) struct Session {
    actor: Addr<Answerer>,
    thread: JoinHandle<()>,
}

impl Session {
    #[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
    pub(super) fn start(answers: Vec<AskReply>) -> Self {
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let system = System::new();
            system.block_on(async move {
                let answerer = Answerer {
                    answers: answers.into(),
                    asked: Vec::new(),
                    open: VecDeque::new(),
                    looking: Vec::new(),
                    tasks: Tasks::default(),
                    attended: true,
                    cut: false,
                };
                let _ = tell.send(answerer.start());
            });
            let _ = system.run();
        });
        Self { actor: told.recv().expect("the actor starts"), thread }
    }

    pub(super) fn recipient(&self) -> WeakRecipient<ToolRequest> {
        self.actor.downgrade().recipient()
    }

    /// Lets all open asks, and those to come, read as interrupted.
    pub(super) fn drop_asks(&self) {
        self.actor.do_send(DropAsks);
    }

    /// Lets asks without an answer read as interrupted from now on, except an open one that the test was shown.
    pub(super) fn leave(&self) {
        self.actor.do_send(Leave);
    }

    /// Waits for an ask without an answer, and shows it.
    #[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
    pub(super) fn wait_asked(&self) -> AskRequest {
        let (tell, told) = mpsc::channel();
        self.actor.do_send(Look(tell));
        told.recv_timeout(super::patience()).expect("an ask is raised")
    }

    /// The oldest open ask.
    #[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
    pub(super) fn open(&self) -> Option<AskRequest> {
        let (tell, told) = mpsc::channel();
        self.actor.do_send(GetOpen(tell));
        told.recv().expect("the actor lives until it is stopped")
    }

    /// Answers the oldest open ask, or the next one if none is open.
    pub(super) fn answer(&self, reply: AskReply) {
        self.actor.do_send(Answer(reply));
    }

    /// Ends it and says what was asked.
    #[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
    pub(super) fn stop(self) -> Vec<AskRequest> {
        let (tell, told) = mpsc::channel();
        self.actor.do_send(Stop(tell));
        let asked = told.recv().expect("the actor lives until it is told to stop");
        drop(self.actor);
        let _ = self.thread.join();
        asked
    }
}

struct Answerer {
    answers: VecDeque<AskReply>,
    asked: Vec<AskRequest>,
    /// Asks without an answer, kept until one is given or the call is cut.
    open: VecDeque<Open>,
    /// Waiting for an open ask.
    looking: Vec<mpsc::Sender<AskRequest>>,
    /// The tasks and notes as tools have left them.
    tasks: Tasks,
    /// The test may still answer. Without it, an ask that has no scripted answer reads as interrupted.
    attended: bool,
    /// Every ask reads as interrupted, scripted answer or not.
    cut: bool,
}

struct Open {
    request: AskRequest,
    answering: Answering,
    /// The test has seen it.
    shown: bool,
}

impl Actor for Answerer {
    type Context = Context<Self>;
}

impl Handler<ToolRequest> for Answerer {
    type Result = ();

    fn handle(&mut self, message: ToolRequest, _: &mut Context<Self>) {
        let (request, answering) = match message {
            ToolRequest::Ask { request, answering, .. } => (request, answering),
            ToolRequest::Tasks { request, answering, .. } => {
                let decided = self.tasks.decide(request, None);
                let decided = decided.map(|facts| facts.iter().for_each(|fact| self.tasks.apply(fact)));
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
                let shown = !self.looking.is_empty();
                self.looking.drain(..).for_each(|looking| drop(looking.send(request.clone())));
                self.open.push_back(Open { request, answering, shown });
            }
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Look(mpsc::Sender<AskRequest>);

impl Handler<Look> for Answerer {
    type Result = ();

    fn handle(&mut self, Look(tell): Look, _: &mut Context<Self>) {
        match self.open.front_mut() {
            Some(open) => {
                open.shown = true;
                let _ = tell.send(open.request.clone());
            }
            None => self.looking.push(tell),
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct GetOpen(mpsc::Sender<Option<AskRequest>>);

impl Handler<GetOpen> for Answerer {
    type Result = ();

    fn handle(&mut self, GetOpen(tell): GetOpen, _: &mut Context<Self>) {
        let _ = tell.send(self.open.front().map(|open| open.request.clone()));
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
struct Leave;

impl Handler<Leave> for Answerer {
    type Result = ();

    fn handle(&mut self, _: Leave, _: &mut Context<Self>) {
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

    fn handle(&mut self, Stop(tell): Stop, _: &mut Context<Self>) {
        let _ = tell.send(std::mem::take(&mut self.asked));
        System::current().stop();
    }
}
