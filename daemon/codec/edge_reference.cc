#include "daemon/codec/edge_reference.h"

#include "daemon/base/check.h"

namespace dfl::codec {

EdgeReference::EdgeReference(int64_t n)
    : values_(static_cast<size_t>(n), 0.0f) {}

void EdgeReference::Commit(const SentValues& sent) {
  DFL_CHECK(sent.coordinates.size() == sent.values.size());
  for (size_t q = 0; q < sent.values.size(); ++q) {
    DFL_CHECK(sent.coordinates[q] < values_.size());
    values_[sent.coordinates[q]] = sent.values[q];
  }
}

}  // namespace dfl::codec
