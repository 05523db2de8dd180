//! Responses to successful requests.

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use schemars::JsonSchema;
use serde::Serialize;

use super::operation::{DescribeOutput, Operation};

/// A value, sent as JSON.
pub(super) struct Reply<T>(pub(super) T);

/// Success without a value.
pub(super) struct Done;

impl<T: Serialize> Responder for Reply<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(self.0)
    }
}

impl<T: JsonSchema> DescribeOutput for Reply<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<T>("200", "application/json", "Success.");
    }
}

impl Responder for Done {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::NoContent().finish()
    }
}

impl DescribeOutput for Done {
    fn describe(operation: &mut Operation<'_>) {
        operation.nothing("204", "Success.");
    }
}
