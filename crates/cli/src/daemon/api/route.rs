//! Paths and their methods, served and described by the same handlers.

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Responder, web};
use holdpoint_common::api::RequestError;
use holdpoint_session::SessionVerb;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::operation::{DescribeInput, DescribeOutput, Operation};
use super::verbs;
use crate::daemon::error::ApiError;

/// A path and its methods.
pub(super) struct Resource {
    path: &'static str,
    routes: Vec<Route>,
}

/// One method of a path.
pub(super) struct Route {
    pub(super) method: Method,
    /// The summary of the method, one sentence.
    pub(super) summary: &'static str,
    pub(super) describe: fn(&mut Operation<'_>),
    route: actix_web::Route,
}

impl Resource {
    /// A path without methods.
    pub(super) fn at(path: &'static str) -> Self {
        Self { path, routes: Vec::new() }
    }

    /// The path of a verb, with its handler.
    pub(super) fn verb<V: SessionVerb + DeserializeOwned + JsonSchema>(
        summary: &'static str,
    ) -> Self
    where
        V::Reply: JsonSchema,
    {
        Self::at(V::PATH).post(summary, verbs::act::<V>)
    }

    /// Adds a handler for GET.
    pub(super) fn get<F, Args>(self, summary: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + DescribeInput + 'static,
        F::Output: Responder + DescribeOutput + 'static,
    {
        self.add(Method::GET, summary, handler)
    }

    /// Adds a handler for POST.
    pub(super) fn post<F, Args>(self, summary: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + DescribeInput + 'static,
        F::Output: Responder + DescribeOutput + 'static,
    {
        self.add(Method::POST, summary, handler)
    }

    /// Adds a handler for DELETE.
    pub(super) fn delete<F, Args>(self, summary: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + DescribeInput + 'static,
        F::Output: Responder + DescribeOutput + 'static,
    {
        self.add(Method::DELETE, summary, handler)
    }

    fn add<F, Args>(mut self, method: Method, summary: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + DescribeInput + 'static,
        F::Output: Responder + DescribeOutput + 'static,
    {
        let describe = |operation: &mut Operation<'_>| {
            Args::describe(operation);
            F::Output::describe(operation);
        };
        let route = web::method(method.clone()).to(handler);
        self.routes.push(Route { method, summary, describe, route });
        self
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Converts the resource for the server.
    pub(super) fn into_service(self) -> actix_web::Resource {
        let unknown_method = web::to(|request: HttpRequest| async move {
            Err::<HttpResponse, _>(ApiError::from(RequestError::UnknownMethod {
                path: request.path().to_owned(),
                method: request.method().to_string(),
            }))
        });
        let resource = web::resource(self.path).default_service(unknown_method);
        self.routes.into_iter().fold(resource, |resource, route| resource.route(route.route))
    }
}
