// Several runs in one file: the section `variants` of a scenario says in what
// each of them differs from the rest of the document.
//
//   algorithm: {name: pame, knobs: {nu: 0.5, p: 0.1}}
//   variants:
//     nu-0.2: {algorithm: {knobs: {nu: 0.2}}}
//     nu-0.8: {algorithm: {knobs: {nu: 0.8}}}
//     d-psgd: {algorithm: {name: d-psgd}}
//
// Sections are merged key by key. A section that sets its `name` or `kind`
// replaces the former section, whose other keys belong to something else. An
// empty value removes the key.
#ifndef DFL_SIM_VARIANTS_H_
#define DFL_SIM_VARIANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/config/yaml_tree.h"

namespace dfl::sim {

inline constexpr char kVariants[] = "variants";

// The names of the variants, in the order of the file; none without the
// section.
// Errors: INVALID_ARGUMENT with file and line.
absl::StatusOr<std::vector<std::string>> VariantNames(
    const config::YamlNode& root, absl::string_view file_name);
absl::StatusOr<std::vector<std::string>> VariantNames(
    absl::string_view text, absl::string_view file_name);

// The document without its section `variants`, changed as `variant` says; "":
// not changed.
// Errors: INVALID_ARGUMENT as above; NOT_FOUND names the existing variants.
absl::StatusOr<config::YamlNode> ApplyVariant(config::YamlNode root,
                                              absl::string_view file_name,
                                              absl::string_view variant);

// Merges `over` into `base` as described above; both are maps.
void MergeSections(const config::YamlNode& over, config::YamlNode& base);

}  // namespace dfl::sim

#endif  // DFL_SIM_VARIANTS_H_
