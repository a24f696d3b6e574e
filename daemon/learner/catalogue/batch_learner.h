// What all learners of a node's rows do alike: which rows make a mini-batch,
// what they say of model and data, and what they tell of a batch that gives no
// gradient. What derives from it computes: on LibTorch (learner/torch_learner)
// or without it (learner/plain/plain_learner.h). Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_BATCH_LEARNER_H_
#define DFL_LEARNER_CATALOGUE_BATCH_LEARNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/learner/catalogue/learner_data.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// What BatchLearner::engine says of a learner without LibTorch.
inline constexpr char kPlainEngine[] = "plain";

class BatchLearner : public ports::Learner {
 public:
  const ports::ModelInfo& model() const final { return info_; }
  const ports::DataInfo& data() const final { return data_info_; }
  std::optional<ports::BatchPosition> position() const final;
  absl::Status GoTo(const ports::BatchPosition& position) final;

  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) final;
  absl::Status Initialise(uint64_t seed) final;
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) final;
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) final;
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) final;

  // What computes, for people: "plain", "LibTorch 2.6.0".
  virtual std::string engine() const = 0;

 protected:
  // `info` has all but contract and scaling; `archive_hash` is "" unless the
  // model is from a file.
  BatchLearner(ResolvedSpec spec, ports::ModelInfo info,
               absl::string_view archive_hash, LearnerData data,
               LearnerOptions options);

  // What computes. All but BindModel are called when the model is bound, and
  // after EnterCall on the same thread.

  // Ties the model to memory of the right sizes.
  // Errors: as Learner::Bind.
  virtual absl::Status BindModel(absl::Span<float> parameters,
                                 absl::Span<float> gradient,
                                 absl::Span<float> buffers) = 0;
  virtual absl::Status InitialiseModel(uint64_t seed) = 0;
  // A gradient, a prediction or an evaluation begins.
  virtual void EnterCall() {}
  // Leaves the gradient of the mean loss of these training rows, without the
  // l2 term, in gradient(), and what training makes of the buffers in
  // buffers(). Returns the loss. An error, whose text begins with `name` or has
  // no subject, may leave anything in both.
  // Errors: RESOURCE_EXHAUSTED: memory; any other: the model fails at them.
  virtual absl::StatusOr<double> RowsGradient(const std::string& name,
                                              absl::Span<const int64_t> rows,
                                              uint64_t dropout_seed) = 0;
  // Predicts these training rows with the bound model and with each of
  // `models`. May leave anything in buffers().
  virtual absl::Status PredictRows(absl::Span<const int64_t> rows,
                                   const std::vector<core::ModelValues>& models,
                                   ports::Predictions* result) = 0;
  // Loss and scores on these test rows, at least one. May leave anything in
  // buffers().
  virtual absl::StatusOr<ports::Evaluation> EvaluateRows(
      absl::Span<const int64_t> rows) = 0;
  // Which rows of the last batch are wild (bad_batch.h).
  virtual std::vector<size_t> WildRowsOfBatch() const = 0;

  const ResolvedSpec& spec() const { return spec_; }
  const LearnerData& rows() const { return data_; }
  int threads() const { return options_.threads ? options_.threads() : 1; }
  absl::Span<float> parameters() const { return parameters_; }
  absl::Span<float> gradient() const { return gradient_; }
  absl::Span<float> buffers() const { return buffers_; }

 private:
  // The bound buffers as they are before a pass, and back to that. Models
  // without buffers pay nothing.
  void KeepBuffers() { kept_buffers_.assign(buffers_.begin(), buffers_.end()); }
  void PutBuffersBack();

  absl::Status CheckBound() const;
  absl::Status CheckPredict(const ports::PredictRequest& request) const;
  void FillContract(absl::string_view archive_hash);
  void FillDataInfo();
  // Leaves the gradient of these rows in the bound vector, and returns their
  // loss. An error may leave anything there and in the buffers.
  absl::StatusOr<double> BatchLoss(int64_t step,
                                   absl::Span<const int64_t> rows);

  const ResolvedSpec spec_;
  const LearnerData data_;
  const LearnerOptions options_;
  ports::ModelInfo info_;
  ports::DataInfo data_info_;
  data::BatchSampler sampler_;
  std::vector<int64_t> evaluation_order_;
  absl::Span<float> parameters_;
  absl::Span<float> gradient_;
  absl::Span<float> buffers_;
  std::vector<float> kept_buffers_;
  bool bound_ = false;
  bool batch_is_good_ = true;  // the last one gave a gradient
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_BATCH_LEARNER_H_
