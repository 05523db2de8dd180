//! What rig is told of an endpoint, so that it reads its answers and nothing more.

use std::fmt;

use rig_core::completion::options::{Mapping, OptionFields, OptionMap};
use rig_core::completion::{Accepts, CompletionRequest, ReplayTarget};
use rig_core::error::EncodeError;
use rig_core::message::Api;
use rig_core::operation::Completion;
use rig_core::wire::{Descriptor, Mode, Wire, WireFrame};

use super::Protocol;

/// A protocol as rig's driver takes it: the request is written already, so there is nothing to encode.
#[derive(Clone)]
pub(super) struct Reader<P>(pub(super) P);

impl<P: Protocol> Wire for Reader<P> {
    type Op = Completion;
    type Payload = ();
    type Frame = WireFrame;
    type Decoder<'id> = <P::Reader as Wire>::Decoder<'id>;
    type Reassembler = <P::Reader as Wire>::Reassembler;

    fn describe(&self) -> Descriptor<'_> {
        let endpoint = self.0.endpoint();
        Descriptor::new(endpoint.provider.name()).model(endpoint.model.as_str()).replay(self)
    }

    fn encode(&self, _: CompletionRequest, _: Mode) -> Result<(), EncodeError> {
        Ok(())
    }

    fn decoder<'id>(&self) -> Self::Decoder<'id> {
        self.0.decoder()
    }
}

impl<P: Protocol> ReplayTarget for Reader<P> {
    fn api(&self) -> Api {
        Api::from_static("holdpoint")
    }

    fn provider(&self) -> &str {
        self.0.endpoint().provider.name()
    }

    fn model(&self) -> &str {
        &self.0.endpoint().model
    }

    fn accepts(&self, _: &str) -> Accepts {
        Accepts::TEXT
    }

    fn map_options(&self, _: &CompletionRequest, _: OptionFields<'_>) -> OptionMap {
        let nothing = || Mapping::Nothing;
        OptionMap {
            reasoning: nothing(),
            cache: nothing(),
            service_tier: nothing(),
            verbosity: nothing(),
            parallel_tool_calls: nothing(),
            top_p: nothing(),
            seed: nothing(),
            stop: nothing(),
        }
    }

    /// Some compatible servers say none.
    fn states_finish_reason(&self) -> bool {
        false
    }
}

impl<P> fmt::Debug for Reader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
