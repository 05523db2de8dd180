//! Responses to successful requests.

use actix_web::body::BoxBody;
use actix_web::{HttpRequest, HttpResponse, Responder};
use holdpoint_common::api::VerbReply;
use schemars::JsonSchema;
use serde::Serialize;

use super::operation::{DescribeOutput, Operation};

/// A value, sent as JSON.
pub(super) struct Reply<T>(pub(super) T);

/// The reply to a verb: JSON, or no body if the reply has no value.
pub(super) struct VerbResponse<R>(pub(super) R);

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
        operation.response::<T>("200", "application/json", "Success.");
    }
}

impl<R: VerbReply> Responder for VerbResponse<R> {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        if R::HAS_BODY { Reply(self.0).respond_to(request) } else { Done.respond_to(request) }
    }
}

impl<R: VerbReply + JsonSchema> DescribeOutput for VerbResponse<R> {
    fn describe(operation: &mut Operation<'_>) {
        if R::HAS_BODY { Reply::<R>::describe(operation) } else { Done::describe(operation) }
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
        operation.empty_response("204", "Success.");
    }
}
