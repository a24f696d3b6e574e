// Keeps gRPC's callback threads for the life of the process.
//
// gRPC 1.51 runs callback calls on a completion queue that all channels and
// servers share and that goes with the last of them. Going, it can be given
// back twice by two of its threads (an assertion in grpc_cq_internal_unref);
// with a channel that never goes, it never does.
#ifndef DFL_EXCHANGE_GRPC_KEEPER_H_
#define DFL_EXCHANGE_GRPC_KEEPER_H_

namespace dfl::exchange {

// Idempotent, thread-safe, cheap after the first call.
void KeepCallbackThreads();

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_GRPC_KEEPER_H_
