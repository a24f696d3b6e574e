// The one document that a command prints on stdout, as JSON or YAML.
//
// Schemas are stable: keys are only added. Every command that asks daemons
// prints
//   {"targets": [{"target": "unix:...", "ok": true, ...}, ...]}
// in the order of the targets; a target that failed has "ok": false and
// "error": {"code": "unreachable", "exit_code": 3, "message": "..."}.
#ifndef DFL_CONSOLE_DOCUMENT_H_
#define DFL_CONSOLE_DOCUMENT_H_

#include <string>

#include <nlohmann/json.hpp>

namespace dfl::console {

using Json = nlohmann::ordered_json;

// Indented by two blanks, with a line end. Bytes that are no UTF-8 are
// replaced.
std::string ToJson(const Json& document);
// One line with its line end.
std::string ToJsonLine(const Json& document);
std::string ToYaml(const Json& document);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_DOCUMENT_H_
