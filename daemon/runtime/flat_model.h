// The node's model: flat vectors of n parameters, their gradient, and b module
// buffers, and the snapshots that are taken of it.
//
// A gradient changes the buffers while snapshots of w^k are still being taken;
// so the buffers are kept as they were when the boundary was left.
//
// Loop only. The vectors stay where they are between two calls of Resize and
// the Swaps, so spans of them may be held that long.
#ifndef DFL_RUNTIME_FLAT_MODEL_H_
#define DFL_RUNTIME_FLAT_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

// Values of the flat vectors.
struct ModelParts {
  struct Range {
    int64_t offset = 0;
    int64_t size = 0;
  };
  bool whole = true;  // all of them; else:
  std::vector<Range> parameters = {};
  std::vector<Range> buffers = {};
};

class FlatModel {
 public:
  // All zero, n = `parameters` and b = `buffers`.
  void Resize(int64_t parameters, int64_t buffers) {
    parameters_.assign(static_cast<size_t>(parameters), 0.0F);
    gradient_.assign(static_cast<size_t>(parameters), 0.0F);
    buffers_.assign(static_cast<size_t>(buffers), 0.0F);
  }

  absl::Span<float> parameters() { return absl::MakeSpan(parameters_); }
  absl::Span<float> gradient() { return absl::MakeSpan(gradient_); }
  absl::Span<float> buffers() { return absl::MakeSpan(buffers_); }
  absl::Span<const float> parameters() const { return parameters_; }
  absl::Span<const float> buffers() const { return buffers_; }
  int64_t parameter_count() const {
    return static_cast<int64_t>(parameters_.size());
  }
  int64_t buffer_count() const { return static_cast<int64_t>(buffers_.size()); }

  // The vectors have a model's values, not only its shape.
  bool initialised() const { return initialised_; }
  void SetInitialised(bool initialised) { initialised_ = initialised; }
  // The parameters were changed: the next snapshot is a new copy.
  void Changed() { ++generation_; }

  // Takes the values of vectors of the same lengths [n] and [b]: the model is
  // initialised and has changed.
  void Take(absl::Span<const float> parameters,
            absl::Span<const float> buffers) {
    std::copy(parameters.begin(), parameters.end(), parameters_.begin());
    std::copy(buffers.begin(), buffers.end(), buffers_.begin());
    initialised_ = true;
    Changed();
  }

  // The same of parts alone; the others keep the values that they have.
  void TakeParts(absl::Span<const float> parameters,
                 absl::Span<const float> buffers, const ModelParts& parts) {
    const auto take = [](absl::Span<const float> from, FlatVector& to,
                         const std::vector<ModelParts::Range>& ranges) {
      for (const ModelParts::Range& range : ranges) {
        const auto values = from.subspan(static_cast<size_t>(range.offset),
                                         static_cast<size_t>(range.size));
        std::copy(values.begin(), values.end(), to.begin() + range.offset);
      }
    };
    take(parameters, parameters_, parts.parameters);
    take(buffers, buffers_, parts.buffers);
    Changed();
  }

  // Exchanges memory with vectors of the same lengths.
  void Swap(FlatVector& parameters, FlatVector& buffers) {
    parameters_.swap(parameters);
    buffers_.swap(buffers);
  }

  void LeaveBoundary() { boundary_buffers_ = buffers_; }

  // The model w^k, k = `step`, with the buffers of the boundary; `steps` lie
  // behind it. One copy is shared by all who ask before the next Changed() and
  // still hold it.
  SnapshotPtr Share(bool at_boundary, int64_t step, int64_t steps = 0) {
    SnapshotPtr present = snapshot_.lock();
    if (present && snapshot_generation_ == generation_) return present;
    auto copy = std::make_shared<Snapshot>();
    copy->parameters = parameters_;
    copy->buffers = at_boundary ? buffers_ : boundary_buffers_;
    copy->step = step;
    copy->steps = steps;
    snapshot_ = copy;
    snapshot_generation_ = generation_;
    return copy;
  }
  // A copy of `values` [n] with the buffers as they are now, for the caller
  // alone.
  SnapshotPtr CopyOf(absl::Span<const float> values, int64_t step) const {
    auto copy = std::make_shared<Snapshot>();
    copy->parameters.assign(values.begin(), values.end());
    copy->buffers = buffers_;
    copy->step = step;
    return copy;
  }

 private:
  FlatVector parameters_;
  FlatVector gradient_;
  FlatVector buffers_;
  FlatVector boundary_buffers_;
  bool initialised_ = false;
  int64_t generation_ = 0;  // counts changes of the parameters
  std::weak_ptr<const Snapshot> snapshot_;
  int64_t snapshot_generation_ = -1;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_FLAT_MODEL_H_
