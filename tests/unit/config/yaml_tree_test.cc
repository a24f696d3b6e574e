#include "daemon/config/yaml_tree.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using Kind = YamlNode::Kind;
using testing::HasSubstr;
using testing::StartsWith;

TEST(YamlTree, KeepsLinesKeysAndOrder) {
  const absl::StatusOr<YamlNode> root =
      ParseYaml("# a comment\nb: 1\na:\n  - x\n  - \"y z\"\nc:\n", "f.yaml");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->kind, Kind::kMap);
  ASSERT_EQ(root->items.size(), 3u);
  EXPECT_EQ(root->items[0].key, "b");
  EXPECT_EQ(root->items[0].key_line, 2);
  const YamlNode* list = root->Find("a");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->kind, Kind::kList);
  EXPECT_EQ(list->key_line, 3);
  EXPECT_EQ(list->items[1].text, "y z");
  EXPECT_EQ(list->items[1].line, 5);
  EXPECT_EQ(root->Find("c")->kind, Kind::kNull);
  EXPECT_EQ(root->Find("d"), nullptr);
}

TEST(YamlTree, AnEmptyDocumentIsNothing) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    const absl::StatusOr<YamlNode> root = ParseYaml(text, "f.yaml");
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(root->kind, Kind::kNull) << text;
  }
}

TEST(YamlTree, RefusesWithTheLine) {
  struct Case {
    std::string text;
    std::string where;
    std::string why;
  };
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  const Case cases[] = {
      {"a: 1\na: 2\n", "f.yaml:2: ", "\"a\" is given twice, first in line 1"},
      {"a: &x 1\nb: *x\n", "f.yaml:1: ", "anchor"},
      {"a: 1\nb: !!binary abc\n", "f.yaml:2: ", "tag"},
      {"a: 1\n---\nb: 2\n", "f.yaml:", "second document"},
      {"a: 1\n b: 2\n", "f.yaml:", "not YAML"},
      {"a: [1, 2\n", "f.yaml:", "not YAML"},
      {"\tb: 1\n", "f.yaml:", ""},
      {"? [a]\n: 1\n", "f.yaml:1: ", "where a key is expected"},
      {"a:\n  {b: {c: d}: e}\n", "f.yaml:", ""},
      {deep, "f.yaml:1: ", ""},
      {"a: 1\nb: " + std::string(5000, 'x'),
       "f.yaml:2: ", "found a text of 5000 bytes; allowed: at most 4096"},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<YamlNode> root = ParseYaml(c.text, "f.yaml");
    ASSERT_FALSE(root.ok()) << c.text;
    EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(root.status().message()), StartsWith(c.where));
    EXPECT_THAT(std::string(root.status().message()), HasSubstr(c.why));
  }
}

TEST(YamlTree, RefusesMoreValuesThanAPlanHas) {
  std::string text = "a: [";
  for (size_t i = 0; i < kMaxYamlNodes; ++i) text += "1,";
  EXPECT_THAT(
      std::string(ParseYaml(text + "]", "f.yaml").status().message()),
      HasSubstr("found more than 1048576 keys and values; allowed: so many"));
}

// What every answer holds: a tree, or an error that names the file.
void ExpectTreeOrError(const std::string& text) {
  const absl::StatusOr<YamlNode> root = ParseYaml(text, "f.yaml");
  if (root.ok()) return;
  EXPECT_EQ(root.status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(root.status().message()), StartsWith("f.yaml:"));
}

TEST(YamlTree, AnyBytesGiveATreeOrAnError) {
  const std::string sample =
      "a: [1, \"b\\x41\", {c: d}]\ne:\n  - f: 'g'\n    h: |\n      text\n";
  for (size_t cut = 0; cut < sample.size(); ++cut) {
    ExpectTreeOrError(sample.substr(0, cut));
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string bytes = sample;
      bytes[cut] = static_cast<char>(bytes[cut] ^ flip);
      ExpectTreeOrError(bytes);
    }
  }
}

}  // namespace
}  // namespace dfl::config
