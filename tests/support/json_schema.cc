#include "tests/support/json_schema.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace dfl::testing_support {
namespace {

using Json = nlohmann::json;

const Json& None() {
  static const Json kNone;
  return kNone;
}

bool IsOf(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return false;
}

bool HasType(const Json& value, const Json& types) {
  if (types.is_string()) return IsOf(value, types.get<std::string>());
  return std::any_of(types.begin(), types.end(), [&](const Json& type) {
    return IsOf(value, type.get<std::string>());
  });
}

// What is wrong with a value by itself.
std::string WrongValue(const Json& schema, const Json& value) {
  if (schema.contains("type") && !HasType(value, schema["type"])) {
    return absl::StrCat("is no ", schema["type"].dump(), " but ",
                        value.dump().substr(0, 80));
  }
  if (schema.contains("const") && value != schema["const"]) {
    return absl::StrCat("is not ", schema["const"].dump());
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) ==
          schema["enum"].end()) {
    return absl::StrCat(value.dump(), " is none of ", schema["enum"].dump());
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"]) {
      return absl::StrCat("is below ", schema["minimum"].dump());
    }
    if (schema.contains("maximum") && number > schema["maximum"]) {
      return absl::StrCat("is above ", schema["maximum"].dump());
    }
  }
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>()))) {
    return absl::StrCat(value.dump(), " is not as ", schema["pattern"].dump());
  }
  return "";
}

}  // namespace

bool JsonSchemas::Has(const std::string& name) const {
  return std::filesystem::exists(folder_ + "/" + name + ".json");
}

std::vector<std::string> JsonSchemas::Check(const std::string& name,
                                            const Json& document) {
  const std::string file = name + ".json";
  std::vector<std::string> wrong;
  CheckAt(File(file), file, document, "", wrong);
  return wrong;
}

std::vector<std::string> JsonSchemas::Lint(const std::string& name) {
  std::vector<std::string> wrong;
  LintAt(File(name + ".json"), "", true, wrong);
  return wrong;
}

const Json& JsonSchemas::File(const std::string& file) {
  const auto known = files_.find(file);
  if (known != files_.end()) return known->second;
  std::ifstream in(folder_ + "/" + file);
  return files_[file] = in ? Json::parse(in, nullptr, false) : Json();
}

const Json& JsonSchemas::Resolve(const std::string& reference,
                                 std::string& file) {
  const size_t hash = reference.find('#');
  if (hash != 0) file = reference.substr(0, hash);
  const Json& whole = File(file);
  if (hash == std::string::npos) return whole;
  const Json::json_pointer pointer(reference.substr(hash + 1));
  return whole.contains(pointer) ? whole.at(pointer) : None();
}

void JsonSchemas::CheckAt(const Json& schema, const std::string& file,
                          const Json& value, const std::string& place,
                          std::vector<std::string>& wrong) {
  if (!schema.is_object()) {
    wrong.push_back(absl::StrCat(place, ": ", file, " has no schema for it"));
    return;
  }
  if (schema.contains("$ref")) {
    std::string there = file;
    const Json& meant = Resolve(schema["$ref"].get<std::string>(), there);
    CheckAt(meant, there, value, place, wrong);
  }
  const std::string text = WrongValue(schema, value);
  if (!text.empty()) wrong.push_back(absl::StrCat(place, ": ", text));
  if (schema.contains("anyOf")) {
    std::vector<std::string> all;
    const bool fits = std::any_of(
        schema["anyOf"].begin(), schema["anyOf"].end(), [&](const Json& one) {
          std::vector<std::string> problems;
          CheckAt(one, file, value, place, problems);
          all.insert(all.end(), problems.begin(), problems.end());
          return problems.empty();
        });
    if (!fits) wrong.insert(wrong.end(), all.begin(), all.end());
  }
  if (value.is_object()) CheckObject(schema, file, value, place, wrong);
  if (value.is_array() && schema.contains("items")) {
    for (size_t i = 0; i < value.size(); ++i) {
      CheckAt(schema["items"], file, value[i], absl::StrCat(place, "/", i),
              wrong);
    }
  }
}

void JsonSchemas::CheckObject(const Json& schema, const std::string& file,
                              const Json& value, const std::string& place,
                              std::vector<std::string>& wrong) {
  const Json properties = schema.value("properties", Json::object());
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) {
      wrong.push_back(absl::StrCat(place, ": has no ", name.dump()));
    }
  }
  const Json others = schema.value("additionalProperties", Json(true));
  for (const auto& [name, field] : value.items()) {
    const std::string there = absl::StrCat(place, "/", name);
    if (properties.contains(name)) {
      CheckAt(properties[name], file, field, there, wrong);
    } else if (others.is_object()) {
      CheckAt(others, file, field, there, wrong);
    } else if (others == false) {
      wrong.push_back(absl::StrCat(there, ": is not in the schema"));
    }
  }
}

void JsonSchemas::LintAt(const Json& schema, const std::string& place,
                         bool described, std::vector<std::string>& wrong) {
  static const std::set<std::string> kKnown = {
      "$ref",       "type",    "properties",
      "required",   "items",   "additionalProperties",
      "enum",       "const",   "anyOf",
      "minimum",    "maximum", "pattern",
      "$schema",    "$defs",   "title",
      "description"};
  if (!schema.is_object()) {
    wrong.push_back(absl::StrCat(place, ": is no schema"));
    return;
  }
  for (const auto& [keyword, ignored] : schema.items()) {
    if (kKnown.count(keyword) == 0) {
      wrong.push_back(
          absl::StrCat(place, ": keyword ", keyword, " is checked by nothing"));
    }
  }
  if (!described && !schema.contains("description")) {
    wrong.push_back(absl::StrCat(place, ": has no description"));
  }
  if (schema.contains("properties") &&
      !schema.contains("additionalProperties")) {
    wrong.push_back(absl::StrCat(place, ": has no additionalProperties"));
  }
  for (const char* group : {"properties", "$defs"}) {
    if (!schema.contains(group)) continue;
    for (const auto& [name, one] : schema[group].items()) {
      LintAt(one, absl::StrCat(place, "/", group, "/", name), false, wrong);
    }
  }
  for (const char* one : {"items", "additionalProperties"}) {
    if (!schema.contains(one) || schema[one].is_boolean()) continue;
    LintAt(schema[one], absl::StrCat(place, "/", one), true, wrong);
  }
  for (const Json& one : schema.value("anyOf", Json::array())) {
    LintAt(one, absl::StrCat(place, "/anyOf"), true, wrong);
  }
}

}  // namespace dfl::testing_support
