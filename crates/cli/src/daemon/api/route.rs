//! A path and what is done with it: served and described from the same handlers.

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Responder, web};

use super::fault::Fault;
use super::operation::{Gives, Operation, Takes};

/// A path and what is done with it.
pub(super) struct Resource {
    path: &'static str,
    routes: Vec<Route>,
}

/// One method of a path.
pub(super) struct Route {
    pub(super) method: Method,
    /// What it does, in one sentence.
    pub(super) what: &'static str,
    pub(super) describe: fn(&mut Operation<'_>),
    route: actix_web::Route,
}

impl Resource {
    /// What is at this path.
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, routes: Vec::new() }
    }

    /// Answers a GET.
    pub(super) fn get<F, Args>(self, what: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + Takes + 'static,
        F::Output: Responder + Gives + 'static,
    {
        self.on(Method::GET, what, handler)
    }

    /// Answers a POST.
    pub(super) fn post<F, Args>(self, what: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + Takes + 'static,
        F::Output: Responder + Gives + 'static,
    {
        self.on(Method::POST, what, handler)
    }

    /// Answers a DELETE.
    pub(super) fn delete<F, Args>(self, what: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + Takes + 'static,
        F::Output: Responder + Gives + 'static,
    {
        self.on(Method::DELETE, what, handler)
    }

    fn on<F, Args>(mut self, method: Method, what: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + Takes + 'static,
        F::Output: Responder + Gives + 'static,
    {
        let describe = |operation: &mut Operation<'_>| {
            Args::describe(operation);
            F::Output::describe(operation);
        };
        let route = web::method(method.clone()).to(handler);
        self.routes.push(Route { method, what, describe, route });
        self
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The same, for the server.
    pub(super) fn into_service(self) -> actix_web::Resource {
        let other = web::to(|request: HttpRequest| async move {
            Err::<HttpResponse, _>(Fault::no_such_method(request.method().as_str(), request.path()))
        });
        let resource = web::resource(self.path).default_service(other);
        self.routes.into_iter().fold(resource, |resource, route| resource.route(route.route))
    }
}
