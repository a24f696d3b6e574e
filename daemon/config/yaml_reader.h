// Reads values out of a YamlNode tree and collects mistakes with their lines:
// FILE:LINE: KEY: found VALUE; allowed: ...
//
// A value that is not allowed is noted and not stored, and reading continues.
// Paths are written "topology.edges[2]".
#ifndef DFL_CONFIG_YAML_READER_H_
#define DFL_CONFIG_YAML_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_tree.h"

namespace dfl::config {

class YamlReader {
 public:
  // `file` is only quoted.
  explicit YamlReader(absl::string_view file) : file_(file) {}

  // OK, or INVALID_ARGUMENT with the first ten mistakes, a line each.
  absl::Status status() const { return mistakes_.ToStatus(); }
  // Whether a mistake that is added now will not be seen.
  bool full() const { return mistakes_.full(); }
  const std::string& file() const { return file_; }

  // "path.key", "path[index]".
  static std::string Join(absl::string_view path, absl::string_view key);
  static std::string Element(absl::string_view path, size_t index);

  // Notes a mistake; Wrong quotes what was found.
  void Add(int line, absl::string_view path, absl::string_view what);
  void Wrong(const YamlNode& node, absl::string_view path,
             absl::string_view allowed);

  // Notes the line of a path, for later errors that name the path.
  void Remember(absl::string_view path, int line);
  // The same, for a path whose line may have been noted before.
  void Move(absl::string_view path, int line);
  // The line of the path with which `message` begins, or of the nearest section
  // or list around it.
  int LineOf(absl::string_view message) const;

  // Whether `node` is a section or empty; else a mistake.
  bool IsSection(const YamlNode& node, absl::string_view path);
  // Remembers the line of every key, and notes a mistake for a key that is not
  // in `allowed`, with the nearest allowed one.
  void TakeKeys(const YamlNode& section, absl::string_view path,
                const std::vector<std::string>& allowed);
  // The section `key` with its keys taken; null when it is absent or none.
  const YamlNode* Section(const YamlNode& parent, absl::string_view path,
                          absl::string_view key,
                          const std::vector<std::string>& allowed);

  // Each of these reads `key` into `out`. If it is absent, `out` does not
  // change; a value that is not allowed is noted as a mistake.
  void Text(const YamlNode& section, absl::string_view path,
            absl::string_view key, std::string& out);
  void Integer(const YamlNode& section, absl::string_view path,
               absl::string_view key, int64_t& out);
  void Unsigned(const YamlNode& section, absl::string_view path,
                absl::string_view key, uint64_t& out);
  void Number(const YamlNode& section, absl::string_view path,
              absl::string_view key, double& out);
  void Duration(const YamlNode& section, absl::string_view path,
                absl::string_view key, absl::Duration& out);
  void Integers(const YamlNode& section, absl::string_view path,
                absl::string_view key, absl::string_view allowed,
                std::vector<int64_t>& out);
  void Numbers(const YamlNode& section, absl::string_view path,
               absl::string_view key, absl::string_view allowed,
               std::vector<double>& out);
  void Texts(const YamlNode& section, absl::string_view path,
             absl::string_view key, std::vector<std::string>& out);
  void Floats(const YamlNode& section, absl::string_view path,
              absl::string_view key, std::vector<float>& out);
  // `read` returns nullopt for a value that is not allowed.
  template <typename T, typename Reader>
  void Scalar(const YamlNode& section, absl::string_view path,
              absl::string_view key, Reader read, absl::string_view allowed,
              T& out) {
    const YamlNode* node = section.Find(key);
    if (node != nullptr) Value(*node, Join(path, key), read, allowed, out);
  }
  // The same of a value that is at hand; `path` is its own.
  template <typename T, typename Reader>
  void Value(const YamlNode& node, absl::string_view path, Reader read,
             absl::string_view allowed, T& out) {
    if (node.kind == YamlNode::Kind::kScalar) {
      if (const std::optional<T> value = read(node.text)) {
        out = *value;
        return;
      }
    }
    Wrong(node, path, allowed);
  }

  // Calls `take(element, its path)` for each element of the list `key`.
  template <typename Take>
  void List(const YamlNode& section, absl::string_view path,
            absl::string_view key, absl::string_view allowed, Take take) {
    const YamlNode* node = section.Find(key);
    if (node == nullptr) return;
    const std::string list = Join(path, key);
    if (node->kind != YamlNode::Kind::kList) {
      Wrong(*node, list, allowed);
      return;
    }
    for (size_t i = 0; i < node->items.size(); ++i) {
      const std::string element = Element(list, i);
      Remember(element, node->items[i].line);
      take(node->items[i], element);
    }
  }

  // A node's name; nullopt, and a mistake, if it is not a valid one.
  std::optional<NodeId> Name(const YamlNode& node, absl::string_view path);

 private:
  // A list of scalars, each read by `read`.
  template <typename T, typename Read>
  void Values(const YamlNode& section, absl::string_view path,
              absl::string_view key, absl::string_view allowed, Read read,
              std::vector<T>& out);

  const std::string file_;
  std::map<std::string, int> lines_;  // of each path
  Mistakes mistakes_;
};

}  // namespace dfl::config

#endif  // DFL_CONFIG_YAML_READER_H_
