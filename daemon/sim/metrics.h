// What is measured of a simulated run, and its text form.
#ifndef DFL_SIM_METRICS_H_
#define DFL_SIM_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl::sim {

// One moment of a run. Means are over the nodes in the run: those that are up
// and have a model.
struct MetricsRow {
  int64_t step = 0;   // finished steps of a node, the mean rounded down
  double time_s = 0;  // virtual, from the first node's training on
  // f(mean w), f being the mean of all nodes' f_i over all their rows.
  double loss_mean_model = 0;
  double mean_loss = 0;        // mean of f_i(w_i)
  double consensus_error = 0;  // mean of |w_i - mean w|^2
  int64_t bytes_sent = 0;      // by all nodes together, from the beginning
  int64_t nodes = 0;           // in the run
  int64_t lowest_step = 0;
  int64_t highest_step = 0;
  // Accuracy on test rows, in [0, 1]: the mean over the nodes' own models, and
  // that of the mean model. None if a problem has no classes.
  std::optional<double> accuracy;
  std::optional<double> accuracy_mean_model;
  // simports::MassDrift; none if the algorithm conserves nothing.
  std::optional<double> mass_drift;
  // The share of parameters that are exactly 0, the mean over the nodes. None
  // if the newest plan's algorithm takes no proximal step.
  std::optional<double> sparsity;
  // f + h at the mean model, f being loss_mean_model and h the newest plan's
  // penalty. [DEPOSITUM] eq. 1. None without a penalty.
  std::optional<double> phi_mean_model;
  // What network.metrics asks for (extra_metrics.h), by name. Values that do
  // not exist are absent.
  std::map<std::string, double> extra;

  friend bool operator==(const MetricsRow&, const MetricsRow&) = default;
};

// A header line and one line for each row. Numbers read back exactly; missing
// values are empty. The columns `extra` stand between mass_drift, the twelfth,
// and the last two, sparsity and phi_mean_model.
std::string ToCsv(absl::Span<const MetricsRow> rows,
                  absl::Span<const std::string> extra = {});

// Errors: INVALID_ARGUMENT "FILE:LINE: ..." for anything but ToCsv's form.
absl::StatusOr<std::vector<MetricsRow>> ParseCsv(absl::string_view text,
                                                 absl::string_view file_name);

}  // namespace dfl::sim

#endif  // DFL_SIM_METRICS_H_
