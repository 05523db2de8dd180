//! The orders of the editor to a session: prompts, changes and commands. They are carried out one
//! at a time in the order of their arrival, so that an earlier one never takes effect after a later
//! one.

use std::collections::VecDeque;

use agent_client_protocol_schema::v1::RequestId;
use holdpoint_common::SessionError;
use holdpoint_common::api::PromptRequest;
use holdpoint_session::{Prompted, SessionHandle};

use super::SetReply;
use crate::acp::commands::Command;
use crate::acp::modes::Change;

/// The maximum number of orders that wait.
pub(super) const MAX_ORDERS: usize = 64;

/// An order and its request.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) request: RequestId,
    pub(super) work: Work,
    /// Whether it is a prompt that was handed back, and is sent once more.
    is_repeated: bool,
}

/// The work of an order.
#[derive(Debug)]
pub(super) enum Work {
    Prompt(PromptRequest),
    Set(Change, SetReply),
    /// A command of the user, which takes the place of a prompt.
    Command(Command),
}

/// The result of an order.
#[derive(Debug)]
pub(super) enum Ordered {
    Prompted(Result<Prompted, SessionError>),
    Set(SetReply, Result<(), SessionError>),
    Commanded(Result<(), SessionError>),
}

impl Work {
    /// The result if carrying out the work panics.
    pub(super) fn on_panic(&self) -> impl FnOnce(SessionError) -> Ordered + Send + use<> {
        let reply = match self {
            Self::Set(_, reply) => Some(*reply),
            Self::Prompt(_) | Self::Command(_) => None,
        };
        let is_prompt = matches!(self, Self::Prompt(_));
        move |error| match reply {
            Some(reply) => Ordered::Set(reply, Err(error)),
            None if is_prompt => Ordered::Prompted(Err(error)),
            None => Ordered::Commanded(Err(error)),
        }
    }

    pub(super) async fn carry_out(self, session: &SessionHandle) -> Ordered {
        match self {
            Self::Prompt(prompt) => Ordered::Prompted(session.prompt(prompt).await),
            Self::Set(change, reply) => Ordered::Set(reply, set(session, change).await),
            Self::Command(command) => Ordered::Commanded(match command {
                Command::Hold => session.hold().await.map(drop),
                Command::Release => session.release().await.map(drop),
                Command::Rename(name) => session.rename(name).await,
            }),
        }
    }
}

async fn set(session: &SessionHandle, change: Change) -> Result<(), SessionError> {
    match change {
        Change::Policy(policy) => session.change_policy(policy).await?,
        Change::Model(model) => session.change_model(model).await?,
    }
    // The reply has the new values.
    session.refresh().await
}

/// The orders that wait, at most [`MAX_ORDERS`], and the prompts that are sent once more.
#[derive(Debug, Default)]
pub(super) struct Orders(VecDeque<Order>);

impl Orders {
    /// Adds an order.
    ///
    /// # Errors
    /// Gives the request back if too many wait.
    pub(super) fn push(&mut self, request: RequestId, work: Work) -> Result<(), RequestId> {
        if self.0.len() >= MAX_ORDERS {
            return Err(request);
        }
        self.0.push_back(Order { request, work, is_repeated: false });
        Ok(())
    }

    /// Adds a prompt that was handed back, before all new orders.
    pub(super) fn repeat(&mut self, request: RequestId, prompt: PromptRequest) {
        let at = self.0.iter().take_while(|order| order.is_repeated).count();
        self.0.insert(at, Order { request, work: Work::Prompt(prompt), is_repeated: true });
    }

    /// Removes the first order.
    pub(super) fn pop(&mut self) -> Option<Order> {
        self.0.pop_front()
    }

    /// Removes the order of this request, if it waits.
    pub(super) fn remove(&mut self, request: &RequestId) -> Option<Order> {
        let at = self.0.iter().position(|order| order.request == *request)?;
        self.0.remove(at)
    }

    /// Removes the prompts.
    pub(super) fn take_prompts(&mut self) -> Vec<Order> {
        self.take(|work| matches!(work, Work::Prompt(_)))
    }

    /// Removes everything that the editor sent as a prompt: the prompts and the commands.
    pub(super) fn take_prompts_and_commands(&mut self) -> Vec<Order> {
        self.take(|work| matches!(work, Work::Prompt(_) | Work::Command(_)))
    }

    fn take(&mut self, is_taken: impl Fn(&Work) -> bool) -> Vec<Order> {
        let (taken, others) =
            std::mem::take(&mut self.0).into_iter().partition(|order| is_taken(&order.work));
        self.0 = others;
        Vec::from(taken)
    }

    /// Removes all orders.
    pub(super) fn take_all(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(orders: Vec<Order>) -> Vec<RequestId> {
        orders.into_iter().map(|order| order.request).collect()
    }

    #[test]
    fn m_h1_prompts_that_are_sent_once_more_come_first_and_in_order() {
        let mut orders = Orders::default();
        let prompt = || Work::Prompt("p".into());
        orders.push(RequestId::Number(3), prompt()).unwrap();
        orders.repeat(RequestId::Number(1), "p".into());
        orders.repeat(RequestId::Number(2), "p".into());
        orders.push(RequestId::Number(4), Work::Command(Command::Hold)).unwrap();
        orders.push(RequestId::Number(5), prompt()).unwrap();
        assert!(orders.remove(&RequestId::Number(5)).is_some());
        assert!(orders.remove(&RequestId::Number(5)).is_none());
        assert_eq!(requests(orders.take_prompts()), [1, 2, 3].map(RequestId::Number));
        assert_eq!(requests(orders.take_all()), [RequestId::Number(4)]);
    }

    #[test]
    fn m_h1_more_orders_than_the_limit_are_refused() {
        let mut orders = Orders::default();
        for number in 0..64 {
            orders.push(RequestId::Number(number), Work::Command(Command::Hold)).unwrap();
        }
        let refused = orders.push(RequestId::Number(64), Work::Command(Command::Hold));
        assert_eq!(refused, Err(RequestId::Number(64)));
    }
}
