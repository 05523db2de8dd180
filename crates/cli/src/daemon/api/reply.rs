//! What is answered when something was done.

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use schemars::JsonSchema;
use serde::Serialize;

use super::operation::{Gives, Operation};

/// This, as JSON.
pub(super) struct Reply<T>(pub(super) T);

/// It was done; there is nothing to be said about it.
pub(super) struct Done;

impl<T: Serialize> Responder for Reply<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(self.0)
    }
}

impl<T: JsonSchema> Gives for Reply<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<T>("200", "application/json", "It was done.");
    }
}

impl Responder for Done {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::NoContent().finish()
    }
}

impl Gives for Done {
    fn describe(operation: &mut Operation<'_>) {
        operation.nothing("204", "It was done.");
    }
}
