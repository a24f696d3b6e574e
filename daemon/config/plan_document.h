// What reading and writing a plan's document go through. Room-internal.
#ifndef DFL_CONFIG_PLAN_DOCUMENT_H_
#define DFL_CONFIG_PLAN_DOCUMENT_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::config {

// A plan while its document is read. A value that is not allowed is noted in
// `yaml` and left at its default, so that later ones are still looked at.
struct PlanReading {
  explicit PlanReading(
      absl::string_view file,
      const core::Catalogue& algorithms = core::BuiltInCatalogue())
      : yaml(file), catalogue(algorithms) {}

  YamlReader yaml;
  const core::Catalogue& catalogue;  // of the algorithms that it may name
  core::RunPlan plan;
  // Once its name was read; null: there is no such algorithm.
  const core::AlgorithmInfo* algorithm = nullptr;
};

// Lines "key: value" and "- item".
class PlanWriter {
 public:
  // `value` is "" above a section or a list.
  void Line(int depth, absl::string_view key, absl::string_view value) {
    absl::StrAppend(&out_, std::string(2 * static_cast<size_t>(depth), ' '),
                    key, ":", value.empty() ? "" : " ", value, "\n");
  }
  void Item(int depth, absl::string_view value) {
    absl::StrAppend(&out_, std::string(2 * static_cast<size_t>(depth), ' '),
                    "- ", value, "\n");
  }
  // What another writer took down.
  void Lines(absl::string_view text) { absl::StrAppend(&out_, text); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace dfl::config

#endif  // DFL_CONFIG_PLAN_DOCUMENT_H_
