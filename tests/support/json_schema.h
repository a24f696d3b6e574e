// Whether a JSON document has a documented form: JSON Schema, draft 2020-12, as
// far as docs/schema uses it. A keyword that is not known here is an error, so
// that no schema promises what nothing checks.
//
// Known are $ref (into the same file, or "FILE.json" and "FILE.json#/$defs/X"
// beside it), type, properties, required, additionalProperties, items, enum,
// const, anyOf, minimum, maximum and pattern. Beside them $schema, $defs, title
// and description say something to people.
#ifndef DFL_TESTS_SUPPORT_JSON_SCHEMA_H_
#define DFL_TESTS_SUPPORT_JSON_SCHEMA_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace dfl::testing_support {

// The schemas of a folder, read when they are asked for.
class JsonSchemas {
 public:
  explicit JsonSchemas(std::string folder) : folder_(std::move(folder)) {}

  // Whether there is a file NAME.json.
  bool Has(const std::string& name) const;

  // What of `document` is not as NAME.json says: "/targets/0/ok: is no
  // boolean". None: it fits.
  std::vector<std::string> Check(const std::string& name,
                                 const nlohmann::json& document);

  // What makes NAME.json no good documentation: a keyword that is not known, an
  // object whose further properties are left open, a property without a
  // description.
  std::vector<std::string> Lint(const std::string& name);

 private:
  using Json = nlohmann::json;

  // The file; null when it cannot be read.
  const Json& File(const std::string& file);
  // What "$ref" in `file` means; `file` becomes the one where it stands.
  const Json& Resolve(const std::string& reference, std::string& file);
  void CheckAt(const Json& schema, const std::string& file, const Json& value,
               const std::string& place, std::vector<std::string>& wrong);
  void CheckObject(const Json& schema, const std::string& file,
                   const Json& value, const std::string& place,
                   std::vector<std::string>& wrong);
  void LintAt(const Json& schema, const std::string& place, bool described,
              std::vector<std::string>& wrong);

  const std::string folder_;
  std::map<std::string, Json> files_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_JSON_SCHEMA_H_
