//! The calls of replicas: checked, queued for the owner, answered with what it says.

use headgate_core::{
    message::{
        call::{AskCall, Join, Leave},
        wire::WireError,
    },
    owner::effect::{Rejection, Reply},
    wire as pb,
};
use tokio::sync::oneshot;
use tonic::{Request, Response, Status};

use crate::{
    clock::Monotonic,
    engine::{Queue, Refused},
    owner::{Command, Request as Wanted},
};

/// Client and server of the wire format, as generated.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all
)]
pub mod generated {
    include!("rpc/headgate.v1.rs");
}

use generated::counter_server::{Counter, CounterServer};

/// The way from a call to the owner and back.
#[derive(Debug)]
pub struct Calls {
    queue: Queue<Command>,
    clock: Monotonic,
}

impl Calls {
    /// Calls that go to this queue.
    #[must_use]
    pub fn new(queue: Queue<Command>, clock: Monotonic) -> Self {
        Self { queue, clock }
    }

    /// The gRPC service, for messages up to a size in bytes.
    #[must_use]
    pub fn into_server(self, max_message_bytes: usize) -> CounterServer<Self> {
        CounterServer::new(self).max_decoding_message_size(max_message_bytes)
    }

    async fn call(&self, request: Wanted) -> Result<Reply, Status> {
        let (reply, answer) = oneshot::channel();
        let received = self.clock.now();
        let command = Command {
            request,
            received,
            reply,
        };
        self.queue
            .submit(command)
            .map_err(|refused| match refused {
                Refused::Full(_) => Status::resource_exhausted(
                    "too many calls are queued (--max-queued-calls); repeat the call",
                ),
                Refused::Stopped(_) => stopping(),
            })?;
        match answer.await {
            Ok(Reply::Rejected(why)) => Err(rejected(why)),
            Ok(reply) => Ok(reply),
            Err(_) => Err(stopping()),
        }
    }
}

fn stopping() -> Status {
    Status::unavailable("the service stops; repeat the call")
}

fn rejected(why: Rejection) -> Status {
    match why {
        Rejection::Recovering => Status::unavailable(
            "the service waits for a replica to tell it the time; repeat the call",
        ),
        Rejection::Version => Status::failed_precondition(
            "this service does not speak the replica's version of the protocol; update one of them",
        ),
        Rejection::OldIncarnation => Status::failed_precondition(
            "the replica has joined with a later incarnation; this call is void",
        ),
        Rejection::SeatsFull => Status::resource_exhausted(
            "all seats are taken (--max-replicas); the replica stays without leases",
        ),
        Rejection::WaitingFull => {
            Status::resource_exhausted("too many asks wait (--max-waiting-asks); repeat the call")
        }
    }
}

fn invalid(error: WireError) -> Status {
    Status::invalid_argument(error.to_string())
}

/// The owner answers a call with a reply of its kind; anything else is a defect.
fn mixed_up() -> Status {
    Status::internal("the answer is of another kind than the call; please report this")
}

#[tonic::async_trait]
impl Counter for Calls {
    async fn join(
        &self,
        request: Request<pb::JoinRequest>,
    ) -> Result<Response<pb::JoinResponse>, Status> {
        let join = Join::try_from(request.into_inner()).map_err(invalid)?;
        match self.call(Wanted::Join(join)).await? {
            Reply::Welcome(welcome) => Ok(Response::new(welcome.into())),
            _ => Err(mixed_up()),
        }
    }

    async fn ask(
        &self,
        request: Request<pb::AskRequest>,
    ) -> Result<Response<pb::AskResponse>, Status> {
        let call = AskCall::try_from(request.into_inner()).map_err(invalid)?;
        match self.call(Wanted::Ask(call)).await? {
            Reply::Ask(answer) => Ok(Response::new(answer.into())),
            _ => Err(mixed_up()),
        }
    }

    async fn watch(
        &self,
        request: Request<pb::WatchRequest>,
    ) -> Result<Response<pb::WatchResponse>, Status> {
        let sender = request.into_inner().sender.try_into().map_err(invalid)?;
        match self.call(Wanted::Watch(sender)).await? {
            Reply::Watch(answer) => Ok(Response::new(answer.into())),
            _ => Err(mixed_up()),
        }
    }

    async fn leave(
        &self,
        request: Request<pb::LeaveRequest>,
    ) -> Result<Response<pb::LeaveResponse>, Status> {
        let leave = Leave::try_from(request.into_inner()).map_err(invalid)?;
        match self.call(Wanted::Leave(leave)).await? {
            Reply::Left => Ok(Response::new(pb::LeaveResponse::default())),
            _ => Err(mixed_up()),
        }
    }
}
