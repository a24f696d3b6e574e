// Everything that dflctl prints as JSON has the form that docs/schema says:
// whoever runs it in a test has that checked.
#ifndef DFL_TESTS_UNIT_CLI_CHECKED_JSON_H_
#define DFL_TESTS_UNIT_CLI_CHECKED_JSON_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/support/json_schema.h"

namespace dfl::cli {

// Whether `arguments` ask for documents of JSON. What is completed is no
// question yet.
inline bool AskForJson(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "__complete") return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& one = arguments[i];
    if (one == "-o=json" || one == "-ojson" || one == "--output=json") {
      return true;
    }
    if ((one == "-o" || one == "--output") && i + 1 < arguments.size() &&
        arguments[i + 1] == "json") {
      return true;
    }
  }
  return false;
}

// The schema of the command in `arguments`: "plan-show" of {"plan", "show"}.
// "": it has none.
inline std::string SchemaOf(const std::vector<std::string>& arguments,
                            const testing_support::JsonSchemas& schemas) {
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& one = arguments[i];
    if (one.empty() || one[0] != '-') {
      words.push_back(one);
    } else if (one == "-o" || one == "--output" || one == "--target" ||
               one == "-t" || one == "--all" || one == "--context") {
      ++i;  // its value
    }
  }
  // Nouns of the plan answer alike, and `dflctl set` with them.
  if (words.size() >= 2 && words[1] == "set") words = {"set"};
  for (size_t count = words.size() < 2 ? words.size() : 2; count > 0; --count) {
    const std::string name = absl::StrJoin(
        words.begin(), words.begin() + static_cast<ptrdiff_t>(count), "-");
    if (name.find('/') == std::string::npos && schemas.Has(name)) return name;
  }
  return "";
}

// Documents are one, or one a line. With a `code` of 2 the command line was
// wrong, and help may be there instead.
inline void CheckJson(const std::vector<std::string>& arguments, int code,
                      const std::string& out) {
  if (out.empty() || code == 2 || !AskForJson(arguments)) return;
  testing_support::JsonSchemas schemas(DFL_SCHEMA_FOLDER);
  const std::string name = SchemaOf(arguments, schemas);
  ASSERT_NE(name, "") << "docs/schema has no schema for "
                      << absl::StrJoin(arguments, " ") << ", which prints\n"
                      << out;
  std::vector<nlohmann::json> documents = {
      nlohmann::json::parse(out, nullptr, false)};
  if (documents[0].is_discarded()) {
    documents.clear();
    for (const auto line : absl::StrSplit(out, '\n', absl::SkipEmpty())) {
      documents.push_back(
          nlohmann::json::parse(std::string(line), nullptr, false));
    }
  }
  for (const nlohmann::json& document : documents) {
    ASSERT_FALSE(document.is_discarded()) << "this is no JSON:\n" << out;
    for (const std::string& wrong : schemas.Check(name, document)) {
      ADD_FAILURE() << "docs/schema/" << name << ".json: " << wrong;
    }
  }
}

}  // namespace dfl::cli

#endif  // DFL_TESTS_UNIT_CLI_CHECKED_JSON_H_
