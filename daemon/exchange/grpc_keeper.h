// Keeps gRPC's callback threads for the life of the process.
//
// gRPC 1.51 runs callback calls on a completion queue that all channels and
// servers share. The last of them to go joins the queue's threads and deletes
// it. A call that ends gives its channel back on one of these threads: when
// that is the last one, the thread joins itself, which fails, and then goes on
// with a queue that is gone (an assertion in grpc_cq_internal_unref). With a
// channel that never goes, none is the last.
#ifndef DFL_EXCHANGE_GRPC_KEEPER_H_
#define DFL_EXCHANGE_GRPC_KEEPER_H_

namespace dfl::exchange {

// Idempotent, thread-safe, cheap after the first call.
void KeepCallbackThreads();

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_KEEPER_H_
