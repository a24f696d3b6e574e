// What is measured on request (network.metrics), beside the columns that every
// run has:
//
//   gradient_error      |mean_i grad f_i(w_i) - mean_i nu_i|^2, nu being the
//                       vector whose mean estimates the gradient
//                       (core::AlgorithmInfo::gradient_estimate). [DEPOSITUM]
//                       Def. 3, last term
//   proximal_gradient   |G(mean w)|^2, G(x) = (x - prox(x - alpha grad f(x)))
//                       / alpha with the algorithm's first proximal step alpha;
//                       without a penalty |grad f(mean w)|^2.
//                       [DEPOSITUM] Def. 2
//   consensus_error_V   mean of |v_i - mean v|^2, V being one of
//                       core::AlgorithmInfo::auxiliary
//
// ModelMetrics measures them (model_metrics.h).
#ifndef DFL_SIM_EXTRA_METRICS_H_
#define DFL_SIM_EXTRA_METRICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithms/catalogue.h"

namespace dfl::sim {

inline constexpr char kGradientError[] = "gradient_error";
inline constexpr char kProximalGradient[] = "proximal_gradient";

// "nu" of "consensus_error_nu"; "" of all other names.
absl::string_view AuxiliaryOf(absl::string_view metric);

// The label of a plot's axis.
std::string ExtraMetricLabel(absl::string_view metric);

// The names of the algorithms in a document: its own, those of its variants and
// of changes of the plan.
std::vector<std::string> AlgorithmsNamed(const config::YamlNode& document);

// Reads network.metrics of the section `network`. A name that none of
// `algorithms`, looked up in `catalogue`, has is a mistake, and so is one that
// is listed twice.
std::vector<std::string> ReadMetrics(const config::YamlNode& network,
                                     absl::Span<const std::string> algorithms,
                                     const core::Catalogue& catalogue,
                                     config::YamlReader& yaml);

// |G(x)|^2 as above; `gradient` is that of f at x, [n] as x. Knobs are the
// plan's, the algorithm's own.
double SquaredProximalGradient(const core::AlgorithmInfo& algorithm,
                               const core::Knobs& knobs,
                               absl::Span<const float> x,
                               absl::Span<const double> gradient);

}  // namespace dfl::sim

#endif  // DFL_SIM_EXTRA_METRICS_H_
