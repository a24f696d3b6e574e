// Why something a peer sent is not taken, and the text for the peer.
#ifndef DFL_RUNTIME_TRANSFERS_REFUSAL_H_
#define DFL_RUNTIME_TRANSFERS_REFUSAL_H_

#include <string>

#include "daemon/ports/frames.h"

namespace dfl::runtime {

struct Refusal {
  ports::RefuseReason reason = ports::RefuseReason::kNotReady;
  std::string text;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRANSFERS_REFUSAL_H_
