//! The commands, events and fields of the protocol that are used here, under the protocol's names.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::connection::Command;

/// A kind of event.
pub(in crate::web) trait EventKind: DeserializeOwned {
    /// The event's name in the protocol.
    const METHOD: &'static str;
}

/// Commands: `Domain.method` name { parameters } -> the fields of the answer that are used.
macro_rules! commands {
    ($($method:literal $name:ident $(<$life:lifetime>)? {
        $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)?
    } -> $answer:ty;)*) => {$(
        #[derive(Debug, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub(in crate::web) struct $name $(<$life>)? {
            $($(#[$attribute])* pub(in crate::web) $field: $type,)*
        }

        impl $(<$life>)? Command for $name $(<$life>)? {
            const METHOD: &'static str = $method;
            type Answer = $answer;
        }
    )*};
}

/// Events: `Domain.event` name { the fields that are used }.
macro_rules! events {
    ($($method:literal $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(in crate::web) struct $name {
            $(pub(in crate::web) $field: $type,)*
        }

        impl EventKind for $name {
            const METHOD: &'static str = $method;
        }
    )*};
}

/// The answers of commands, and the objects inside commands, answers and events.
macro_rules! parts {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(in crate::web) struct $name {
            $(pub(in crate::web) $field: $type,)*
        }
    )*};
}

commands! {
    "Browser.getVersion" GetVersion {} -> IgnoredAny;
    "Browser.setDownloadBehavior" SetDownloadBehavior { behavior: &'static str, events_enabled: bool } -> IgnoredAny;
    "Target.setDiscoverTargets" SetDiscoverTargets { discover: bool } -> IgnoredAny;
    "Target.createTarget" CreateTarget { url: &'static str, new_window: bool, background: bool } -> Created;
    "Target.attachToTarget" AttachToTarget<'a> { target_id: &'a str, flatten: bool } -> Attached;
    "Target.getTargetInfo" GetTargetInfo<'a> { target_id: &'a str } -> TargetOf;
    "Target.closeTarget" CloseTarget<'a> { target_id: &'a str } -> IgnoredAny;
    "Page.enable" EnablePage {} -> IgnoredAny;
    "Page.setLifecycleEventsEnabled" SetLifecycleEventsEnabled { enabled: bool } -> IgnoredAny;
    "Page.navigate" Navigate<'a> { url: &'a str } -> Navigated;
    "Page.stopLoading" StopLoading {} -> IgnoredAny;
    "Page.handleJavaScriptDialog" HandleJavaScriptDialog { accept: bool } -> IgnoredAny;
    "Page.createIsolatedWorld" CreateIsolatedWorld<'a> { frame_id: &'a str, world_name: &'static str } -> World;
    "Page.getLayoutMetrics" GetLayoutMetrics {} -> Layout;
    "Page.captureScreenshot" CaptureScreenshot {
        format: &'static str,
        capture_beyond_viewport: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        clip: Option<Viewport>,
    } -> Captured;
    "Network.enable" EnableNetwork {} -> IgnoredAny;
    "Runtime.evaluate" Evaluate { expression: String, context_id: i64, return_by_value: bool } -> Evaluated;
}

events! {
    "Target.targetCreated" TargetCreated { target_info: TargetInfo }
    "Target.targetCrashed" TargetCrashed { target_id: String }
    "Target.detachedFromTarget" DetachedFromTarget { session_id: String }
    "Browser.downloadWillBegin" DownloadWillBegin { frame_id: String, suggested_filename: String }
    "Page.javascriptDialogOpening" JavascriptDialogOpening { message: String, r#type: String }
    "Page.javascriptDialogClosed" JavascriptDialogClosed {}
    "Page.lifecycleEvent" LifecycleEvent { frame_id: String, loader_id: String, name: String }
    "Page.frameStoppedLoading" FrameStoppedLoading { frame_id: String }
    "Network.requestWillBeSent" RequestWillBeSent {
        request_id: String,
        r#type: Option<String>,
        frame_id: Option<String>,
        request: Request,
    }
    "Network.responseReceived" ResponseReceived { request_id: String, response: Response }
    "Network.loadingFailed" LoadingFailed { request_id: String, error_text: String }
    "Network.webSocketCreated" WebSocketCreated { url: String }
}

parts! {
    Created { target_id: String }
    Attached { session_id: String }
    TargetOf { target_info: TargetInfo }
    TargetInfo { target_id: String, r#type: String, url: String, opener_id: Option<String> }
    Navigated { loader_id: Option<String>, error_text: Option<String> }
    World { execution_context_id: i64 }
    Layout { css_content_size: Size }
    Size { width: f64, height: f64 }
    Viewport { x: f64, y: f64, width: f64, height: f64, scale: f64 }
    Captured { data: String }
    Evaluated { result: Remote, exception_details: Option<Exception> }
    Remote { value: Option<Value> }
    Exception { text: String }
    Request { url: String }
    Response { headers: Map<String, Value>, status_text: String }
}
