// Strong identities. A NodeId is the node's configured name; members of a run
// are sorted bytewise by it, so that every node derives the same order.
#ifndef DFL_BASE_IDS_H_
#define DFL_BASE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dfl {

// A node's configured name, e.g. "gateway-07".
class NodeId {
 public:
  NodeId() = default;
  explicit NodeId(std::string name)
      : name_(std::move(name)), prefix_(PrefixOf(name_)) {}

  const std::string& name() const { return name_; }
  bool empty() const { return name_.empty(); }

  friend bool operator==(const NodeId& a, const NodeId& b) {
    return a.prefix_ == b.prefix_ && a.name_ == b.name_;
  }
  friend bool operator!=(const NodeId& a, const NodeId& b) { return !(a == b); }
  friend bool operator<(const NodeId& a, const NodeId& b) {
    return a.prefix_ != b.prefix_ ? a.prefix_ < b.prefix_ : a.name_ < b.name_;
  }

 private:
  // The first eight bytes as a number, which orders as they do: maps of nodes
  // are searched with every frame, and most names differ in them.
  static uint64_t PrefixOf(absl::string_view name) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; ++i) {
      prefix =
          prefix << 8 |
          (i < name.size() ? static_cast<unsigned char>(name[i]) : uint64_t{0});
    }
    return prefix;
  }

  std::string name_;
  uint64_t prefix_ = 0;
};

// OK when `name` can be a NodeId: 1 to 63 characters, letters, digits, '-',
// '_' and '.', starting with a letter or digit.
// Errors: INVALID_ARGUMENT says what is wrong with which character.
absl::Status ValidateNodeName(absl::string_view name);

}  // namespace dfl

#endif  // DFL_BASE_IDS_H_
