// YAML text as a plain tree that knows its lines. Only this file uses yaml-cpp
// and meets its exceptions.
//
// It accepts one document of maps, lists and scalars. It refuses, with the
// line:
//   - keys that are repeated or are no scalars;
//   - aliases and anchors, of which a few lines can stand for gigabytes;
//   - tags, and a second document;
//   - nesting beyond kMaxYamlDepth, texts beyond kMaxYamlText, and more values
//     than kMaxYamlNodes.
#ifndef DFL_CONFIG_YAML_TREE_H_
#define DFL_CONFIG_YAML_TREE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl::config {

inline constexpr int kMaxYamlDepth = 32;
inline constexpr size_t kMaxYamlText = 4096;  // bytes of a key or a scalar
// Each takes about a hundred bytes. A matrix of 1,000 members has so many.
inline constexpr size_t kMaxYamlNodes = size_t{1} << 20;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  int line = 1;  // where it begins, from 1
  // kScalar: its text. Inside a map this is a value; see `key`.
  std::string text;
  // The key under which the node stands in a map; "" elsewhere.
  std::string key;
  int key_line = 1;
  // kList: its elements; kMap: its values, in the file's order.
  std::vector<YamlNode> items;

  // The value of `name` in a map; null when absent.
  const YamlNode* Find(absl::string_view name) const;
};

// Errors: INVALID_ARGUMENT "FILE:LINE: ...". An empty document is kNull.
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   absl::string_view file_name);

// What `node` is, for an error: "\"abc\"", "a list", "a section", "nothing".
std::string Describe(const YamlNode& node);

}  // namespace dfl::config

#endif  // DFL_CONFIG_YAML_TREE_H_
