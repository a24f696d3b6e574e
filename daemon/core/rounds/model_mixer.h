// How models of neighbours are mixed into a node's own: by their weights, or by
// the plan's aggregation rule (vector/aggregation.h).
#ifndef DFL_CORE_ROUNDS_MODEL_MIXER_H_
#define DFL_CORE_ROUNDS_MODEL_MIXER_H_

#include <map>
#include <string>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/vector/aggregation.h"

namespace dfl::core {

class ModelMixer {
 public:
  struct Model {
    const RemoteModel* model = nullptr;
    double weight = 0;
  };

  // Mixes `models` into `parameters` [n] and `buffers` [b] by `spec`, which is
  // robust; the module buffers by themselves, each whole. `share`: Aggregate.
  void Mix(const AggregationSpec& spec, absl::Span<const Model> models,
           double share, absl::Span<float> parameters,
           absl::Span<float> buffers);

  // Of the last Mix, once there was one:
  //   aggregation_left     share of the parameters that had too few values
  //   aggregation_clipped  models that were clipped
  void AddGauges(std::map<std::string, double>& gauges) const;

 private:
  bool mixed_ = false;
  double left_ = 0;
  double clipped_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_MODEL_MIXER_H_
