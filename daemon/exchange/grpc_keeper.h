// Keeps gRPC's callback threads for the life of the process.
//
// gRPC 1.51 runs callback calls on a completion queue that all channels and
// servers share. The last of them to be destroyed joins the queue's threads and
// deletes it. But a call that ends releases its channel on one of these
// threads. If that channel is the last, the thread joins itself, which fails,
// and then uses the deleted queue (an assertion in grpc_cq_internal_unref). A
// channel that is never destroyed prevents this.
#ifndef DFL_EXCHANGE_GRPC_KEEPER_H_
#define DFL_EXCHANGE_GRPC_KEEPER_H_

namespace dfl::exchange {

// Idempotent, thread-safe, cheap after the first call.
void KeepCallbackThreads();

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_KEEPER_H_
