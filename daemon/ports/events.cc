#include "daemon/ports/events.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dfl::ports {

std::string EvaluatedText(const Evaluated& event) {
  const Evaluation& result = event.result;
  std::string text =
      absl::StrFormat("step %d: loss %.4f", event.step, result.loss);
  const auto add = [&](const char* name, std::optional<double> value) {
    if (value.has_value())
      absl::StrAppendFormat(&text, ", %s %.4f", name, *value);
  };
  add("accuracy", result.accuracy);
  add("macro F1", result.macro_f1);
  add("mean absolute error", result.mae);
  add("R2", result.r2);
  return absl::StrCat(text, " on ", result.rows, " rows");
}

}  // namespace dfl::ports
