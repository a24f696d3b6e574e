#include "daemon/config/yaml_tree.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <istream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/config/values.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace dfl::config {
namespace {

int LineOf(const YAML::Mark& mark) { return mark.line < 0 ? 1 : mark.line + 1; }

// Builds the tree from the parser's events. The first mistake is kept and all
// that follows is ignored.
class TreeBuilder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { (void)mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.line = LineOf(mark);
    CheckAnchor(mark, anchor);
    Leaf(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(LineOf(mark), "an alias (*name) is not taken here; write it out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    CheckAnchor(mark, anchor);
    CheckTag(mark, tag);
    if (value.size() > kMaxYamlText) {
      Refuse(LineOf(mark),
             absl::StrCat("found a text of ", value.size(),
                          " bytes; allowed: at most ", kMaxYamlText));
    }
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.line = LineOf(mark);
    node.text = value;
    Leaf(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckAnchor(mark, anchor);
    CheckTag(mark, tag);
    Open(YamlNode::Kind::kList, LineOf(mark));
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    CheckAnchor(mark, anchor);
    CheckTag(mark, tag);
    Open(YamlNode::Kind::kMap, LineOf(mark));
  }
  void OnMapEnd() override { Close(); }

  void Refuse(int line, std::string why) {
    if (!why_.empty()) return;
    line_ = line;
    why_ = std::move(why);
  }

  const std::string& why() const { return why_; }
  int line() const { return line_; }
  YamlNode TakeRoot() { return std::move(root_); }

 private:
  // A map or list whose end has not come.
  struct Level {
    YamlNode node;
    std::map<std::string, int> keys;  // of a map: with their lines
    bool has_key = false;             // of a map: `key` waits for its value
    std::string key;
    int key_line = 1;
  };

  void CheckAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Refuse(LineOf(mark), "an anchor (&name) is not taken here");
    }
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(LineOf(mark),
             absl::StrCat("a tag (", Quoted(tag), ") is not taken here"));
    }
  }

  // A finished node takes its place in the level it belongs to.
  void Leaf(YamlNode node) {
    if (!why_.empty()) return;
    if (++nodes_ > kMaxYamlNodes) {
      Refuse(node.line, absl::StrCat("found more than ", kMaxYamlNodes,
                                     " keys and values; allowed: so many"));
      return;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = open_.back();
    if (level.node.kind == YamlNode::Kind::kList) {
      level.node.items.push_back(std::move(node));
      return;
    }
    if (!level.has_key) {
      if (node.kind != YamlNode::Kind::kScalar) {
        Refuse(node.line,
               absl::StrCat(Describe(node), " stands where a key is expected"));
        return;
      }
      const auto [first, fresh] = level.keys.emplace(node.text, node.line);
      if (!fresh) {
        Refuse(node.line, absl::StrCat(Quoted(node.text),
                                       " is given twice, first in line ",
                                       first->second, "; keep one"));
        return;
      }
      level.has_key = true;
      level.key = std::move(node.text);
      level.key_line = node.line;
      return;
    }
    node.key = std::move(level.key);
    node.key_line = level.key_line;
    level.has_key = false;
    level.node.items.push_back(std::move(node));
  }

  void Open(YamlNode::Kind kind, int line) {
    if (!why_.empty()) return;
    if (open_.size() >= kMaxYamlDepth) {
      Refuse(line, absl::StrCat("nested deeper than ", kMaxYamlDepth));
      return;
    }
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap &&
        !open_.back().has_key) {
      Refuse(line, kind == YamlNode::Kind::kList
                       ? "a list stands where a key is expected"
                       : "a section stands where a key is expected");
      return;
    }
    Level level;
    level.node.kind = kind;
    level.node.line = line;
    open_.push_back(std::move(level));
  }

  void Close() {
    if (!why_.empty() || open_.empty()) return;
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Leaf(std::move(node));
  }

  YamlNode root_;
  std::vector<Level> open_;
  size_t nodes_ = 0;
  std::string why_;
  int line_ = 1;
};

}  // namespace

const YamlNode* YamlNode::Find(absl::string_view name) const {
  if (kind != Kind::kMap) return nullptr;
  for (const YamlNode& item : items) {
    if (item.key == name) return &item;
  }
  return nullptr;
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   absl::string_view file_name) {
  TreeBuilder builder;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(builder)) {
      // A second one is noticed by its first event or by its end.
      TreeBuilder second;
      const int lines =
          static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
      if (parser.HandleNextDocument(second)) {
        builder.Refuse(lines, "a second document (---) is not taken here");
      }
    }
  } catch (const YAML::Exception& error) {
    builder.Refuse(LineOf(error.mark), absl::StrCat("not YAML: ", error.msg));
  } catch (const std::exception& error) {
    builder.Refuse(1, absl::StrCat("not YAML: ", error.what()));
  }
  if (!builder.why().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":", builder.line(), ": ", builder.why()));
  }
  return builder.TakeRoot();
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return Quoted(node.text);
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a section";
  }
  return "something";
}

}  // namespace dfl::config
