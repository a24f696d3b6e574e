// The schemas of docs/schema, and the checker that says whether a document has
// their form. That what dflctl prints has it is checked by every test that runs
// dflctl: see checked_json.h.
#include "tests/support/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::JsonSchemas;

TEST(Schemas, EachSaysWhatEveryFieldMeansAndLeavesNothingOpen) {
  JsonSchemas schemas(DFL_SCHEMA_FOLDER);
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DFL_SCHEMA_FOLDER)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    EXPECT_THAT(schemas.Lint(entry.path().stem()), IsEmpty()) << entry.path();
  }
  EXPECT_GT(files, 20);
}

class JsonSchemaTest : public ::testing::Test {
 protected:
  std::vector<std::string> Check(const std::string& schema,
                                 const std::string& document) {
    std::ofstream(folder_.File("x.json")) << schema;
    JsonSchemas schemas(folder_.File(""));
    return schemas.Check("x", json::parse(document));
  }
  std::vector<std::string> Lint(const std::string& schema) {
    std::ofstream(folder_.File("x.json")) << schema;
    JsonSchemas schemas(folder_.File(""));
    return schemas.Lint("x");
  }
  SocketFolder folder_;
};

TEST_F(JsonSchemaTest, FindsWhatDoesNotFit) {
  const std::string schema = R"({
    "type": "object", "required": ["a"], "additionalProperties": false,
    "properties": {
      "a": {"type": "integer", "minimum": 1, "maximum": 3},
      "b": {"type": ["string", "null"], "pattern": "^x"},
      "c": {"type": "array", "items": {"enum": [1, "one"]}},
      "d": {"type": "object", "additionalProperties": {"type": "boolean"}},
      "e": {"anyOf": [{"const": 7}, {"$ref": "#/$defs/word"}]}
    },
    "$defs": {"word": {"type": "string"}}
  })";
  EXPECT_THAT(Check(schema, R"({"a": 1, "b": null, "c": [1, "one"],
                                "d": {"x": true}, "e": 7})"),
              IsEmpty());
  EXPECT_THAT(Check(schema, R"({"a": 3, "b": "xy", "e": "word"})"), IsEmpty());
  EXPECT_THAT(Check(schema, "[]"), ElementsAre(HasSubstr("object")));
  EXPECT_THAT(Check(schema, "{}"), ElementsAre(HasSubstr("\"a\"")));
  EXPECT_THAT(Check(schema, R"({"a": 0})"), ElementsAre(HasSubstr("/a")));
  EXPECT_THAT(Check(schema, R"({"a": 4})"), ElementsAre(HasSubstr("/a")));
  EXPECT_THAT(Check(schema, R"({"a": 1.5})"), ElementsAre(HasSubstr("/a")));
  EXPECT_THAT(Check(schema, R"({"a": 1, "b": "y"})"),
              ElementsAre(HasSubstr("/b")));
  EXPECT_THAT(Check(schema, R"({"a": 1, "c": [1, 2]})"),
              ElementsAre(HasSubstr("/c/1")));
  EXPECT_THAT(Check(schema, R"({"a": 1, "d": {"x": 1}})"),
              ElementsAre(HasSubstr("/d/x")));
  EXPECT_FALSE(Check(schema, R"({"a": 1, "e": 8})").empty());
  EXPECT_THAT(Check(schema, R"({"a": 1, "f": 1})"),
              ElementsAre("/f: is not in the schema"));
}

TEST_F(JsonSchemaTest, ReadsOtherFilesAndMissesThoseThatAreNone) {
  std::ofstream(folder_.File("y.json"))
      << R"({"$defs": {"n": {"$ref": "#/$defs/m"}, "m": {"type": "null"}}})";
  EXPECT_THAT(Check(R"({"$ref": "y.json#/$defs/n"})", "null"), IsEmpty());
  EXPECT_THAT(Check(R"({"$ref": "y.json#/$defs/n"})", "1"),
              ElementsAre(HasSubstr("null")));
  EXPECT_FALSE(Check(R"({"$ref": "y.json#/$defs/o"})", "1").empty());
  EXPECT_FALSE(Check(R"({"$ref": "z.json"})", "1").empty());
}

TEST_F(JsonSchemaTest, NoSchemaPromisesWhatIsNotChecked) {
  EXPECT_THAT(Lint(R"({"type": "string", "maxLength": 3})"),
              ElementsAre(HasSubstr("maxLength")));
  EXPECT_THAT(Lint(R"({"additionalProperties": false,
                       "properties": {"a": {"type": "string"}}})"),
              ElementsAre(HasSubstr("no description")));
  EXPECT_THAT(
      Lint(R"({"properties": {"a": {"type": "string", "description": "A."}}})"),
      ElementsAre(HasSubstr("additionalProperties")));
}

}  // namespace
}  // namespace dfl::cli
