#include "daemon/core/rounds/model_mixer.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/remote_vector.h"

namespace dfl::core {

void ModelMixer::Mix(const AggregationSpec& spec,
                     absl::Span<const Model> models, double share,
                     absl::Span<float> parameters, absl::Span<float> buffers) {
  std::vector<WeightedVector> vectors;
  std::vector<PlainRemoteVector> plain;
  vectors.reserve(models.size());
  plain.reserve(models.size());
  for (const Model& each : models) {
    vectors.push_back({each.model->parameters.get(), each.weight});
    plain.emplace_back(each.model->buffers);
  }
  const Aggregated aggregated = Aggregate(spec, vectors, share, parameters);
  mixed_ = true;
  left_ = static_cast<double>(aggregated.left) /
          static_cast<double>(std::max<size_t>(1, parameters.size()));
  clipped_ = static_cast<double>(aggregated.clipped);
  for (size_t j = 0; j < plain.size(); ++j) vectors[j].vector = &plain[j];
  (void)Aggregate(spec, vectors, share, buffers);
}

void ModelMixer::AddGauges(std::map<std::string, double>& gauges) const {
  if (!mixed_) return;
  gauges["aggregation_left"] = left_;
  gauges["aggregation_clipped"] = clipped_;
}

}  // namespace dfl::core
