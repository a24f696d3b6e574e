#include "daemon/config/yaml_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::config {

std::string YamlReader::Join(absl::string_view path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

std::string YamlReader::Element(absl::string_view path, size_t index) {
  return absl::StrCat(path, "[", index, "]");
}

void YamlReader::Add(int line, absl::string_view path, absl::string_view what) {
  mistakes_.Add(absl::StrCat(file_, ":", line, ": ", path, ": ", what));
}

void YamlReader::Wrong(const YamlNode& node, absl::string_view path,
                       absl::string_view allowed) {
  Add(node.line, path,
      absl::StrCat("found ", Describe(node), "; allowed: ", allowed));
}

void YamlReader::Remember(absl::string_view path, int line) {
  lines_.emplace(std::string(path), line);
}

void YamlReader::Move(absl::string_view path, int line) {
  lines_[std::string(path)] = line;
}

int YamlReader::LineOf(absl::string_view message) const {
  std::string path(message.substr(0, message.find(": ")));
  while (!path.empty()) {
    const auto found = lines_.find(path);
    if (found != lines_.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return 1;
}

bool YamlReader::IsSection(const YamlNode& node, absl::string_view path) {
  if (node.kind == YamlNode::Kind::kMap || node.kind == YamlNode::Kind::kNull) {
    return true;
  }
  Wrong(node, path, "a section of \"key: value\"");
  return false;
}

void YamlReader::TakeKeys(const YamlNode& section, absl::string_view path,
                          const std::vector<std::string>& allowed) {
  for (const YamlNode& item : section.items) {
    Remember(Join(path, item.key), item.key_line);
    if (std::find(allowed.begin(), allowed.end(), item.key) != allowed.end()) {
      continue;
    }
    const std::string nearest = NearestName(item.key, allowed);
    Add(item.key_line, Join(path, item.key),
        absl::StrCat(
            "unknown key; ",
            nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "? "),
            "allowed: ", absl::StrJoin(allowed, ", ")));
  }
}

const YamlNode* YamlReader::Section(const YamlNode& parent,
                                    absl::string_view path,
                                    absl::string_view key,
                                    const std::vector<std::string>& allowed) {
  const YamlNode* section = parent.Find(key);
  const std::string full = Join(path, key);
  if (section == nullptr || !IsSection(*section, full)) return nullptr;
  TakeKeys(*section, full, allowed);
  return section;
}

void YamlReader::Text(const YamlNode& section, absl::string_view path,
                      absl::string_view key, std::string& out) {
  Scalar(
      section, path, key,
      [](absl::string_view text) {
        return std::optional<std::string>(std::string(text));
      },
      "a text", out);
}

void YamlReader::Integer(const YamlNode& section, absl::string_view path,
                         absl::string_view key, int64_t& out) {
  Scalar(section, path, key, ReadInteger, "an integer", out);
}

void YamlReader::Unsigned(const YamlNode& section, absl::string_view path,
                          absl::string_view key, uint64_t& out) {
  Scalar(section, path, key, ReadUnsigned, "an integer from 0 to 2^64 - 1",
         out);
}

void YamlReader::Number(const YamlNode& section, absl::string_view path,
                        absl::string_view key, double& out) {
  Scalar(section, path, key, ReadNumber, "a number", out);
}

void YamlReader::Duration(const YamlNode& section, absl::string_view path,
                          absl::string_view key, absl::Duration& out) {
  Scalar(section, path, key, ReadDuration,
         "a duration with its unit, such as 500ms, 2s or 1h30m", out);
}

template <typename T, typename Read>
void YamlReader::Values(const YamlNode& section, absl::string_view path,
                        absl::string_view key, absl::string_view allowed,
                        Read read, std::vector<T>& out) {
  std::vector<T> values;
  List(section, path, key, allowed,
       [&](const YamlNode& node, const std::string& element) {
         const std::optional<T> value = node.kind == YamlNode::Kind::kScalar
                                            ? read(node.text)
                                            : std::nullopt;
         if (!value.has_value()) {
           Wrong(node, element, allowed);
           return;
         }
         values.push_back(*value);
       });
  if (section.Find(key) != nullptr) out = std::move(values);
}

void YamlReader::Integers(const YamlNode& section, absl::string_view path,
                          absl::string_view key, absl::string_view allowed,
                          std::vector<int64_t>& out) {
  Values(section, path, key, allowed, ReadInteger, out);
}

void YamlReader::Numbers(const YamlNode& section, absl::string_view path,
                         absl::string_view key, absl::string_view allowed,
                         std::vector<double>& out) {
  Values(section, path, key, allowed, ReadNumber, out);
}

void YamlReader::Texts(const YamlNode& section, absl::string_view path,
                       absl::string_view key, std::vector<std::string>& out) {
  constexpr absl::string_view kAllowed = "a list of texts such as [cat, dog]";
  std::vector<std::string> texts;
  List(section, path, key, kAllowed,
       [&](const YamlNode& node, const std::string& element) {
         if (node.kind != YamlNode::Kind::kScalar) {
           Wrong(node, element, kAllowed);
           return;
         }
         texts.push_back(node.text);
       });
  if (section.Find(key) != nullptr) out = std::move(texts);
}

void YamlReader::Floats(const YamlNode& section, absl::string_view path,
                        absl::string_view key, std::vector<float>& out) {
  constexpr absl::string_view kAllowed = "a list of numbers such as [0.5, 2]";
  std::vector<float> numbers;
  List(section, path, key, kAllowed,
       [&](const YamlNode& node, const std::string& element) {
         float number = 0;
         if (node.kind != YamlNode::Kind::kScalar ||
             !absl::SimpleAtof(node.text, &number) || !std::isfinite(number)) {
           Wrong(node, element, kAllowed);
           return;
         }
         numbers.push_back(number);
       });
  if (section.Find(key) != nullptr) out = std::move(numbers);
}

std::optional<NodeId> YamlReader::Name(const YamlNode& node,
                                       absl::string_view path) {
  if (node.kind != YamlNode::Kind::kScalar) {
    Wrong(node, path, "the name of a node");
    return std::nullopt;
  }
  const absl::Status status = ValidateNodeName(node.text);
  if (!status.ok()) {
    Add(node.line, path,
        absl::StrCat("found ", Quoted(node.text), ": ", status.message(),
                     "; allowed: the name of a node"));
    return std::nullopt;
  }
  return NodeId(node.text);
}

}  // namespace dfl::config
