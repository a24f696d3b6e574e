// The records of a book as control shows them.
#ifndef DFL_APP_NETWORK_RECORD_LIST_H_
#define DFL_APP_NETWORK_RECORD_LIST_H_

#include <vector>

#include "daemon/control/backend.h"
#include "daemon/runtime/gossip/record_book.h"

namespace dfl::app {

// By kind, subject and counter: those that count, and those they replaced.
std::vector<control::RecordInfo> ListOf(const runtime::RecordBook& book);

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_RECORD_LIST_H_
