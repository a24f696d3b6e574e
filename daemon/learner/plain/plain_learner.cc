#include "daemon/learner/plain/plain_learner.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/batch.h"
#include "daemon/learner/catalogue/bad_batch.h"
#include "daemon/learner/catalogue/batch_learner.h"
#include "daemon/learner/catalogue/evaluation_sums.h"
#include "daemon/learner/catalogue/initialise.h"
#include "daemon/learner/plain/losses.h"
#include "daemon/learner/plain/network.h"

namespace dfl::learner {
namespace {

class PlainLearner final : public BatchLearner {
 public:
  PlainLearner(ResolvedSpec spec, Network network, ports::ModelInfo info,
               LearnerData data, const LearnerOptions& options)
      : BatchLearner(std::move(spec), std::move(info), "", std::move(data),
                     options),
        network_(std::move(network)) {}

  std::string engine() const override { return kPlainEngine; }

 private:
  absl::Status BindModel(absl::Span<float> /*parameters*/,
                         absl::Span<float> /*gradient*/,
                         absl::Span<float> /*buffers*/) override {
    return absl::OkStatus();
  }

  absl::Status InitialiseModel(uint64_t seed) override {
    FillTensors(seed, network_.tensors(), network_.rules(), parameters());
    return absl::OkStatus();
  }

  absl::StatusOr<double> RowsGradient(const std::string& /*name*/,
                                      absl::Span<const int64_t> batch,
                                      uint64_t dropout_seed) override {
    Fill(rows().train, batch);
    const absl::Span<const float> outputs =
        network_.TrainForward(parameters(), input_, dropout_seed);
    const double loss =
        PlainMeanLoss(spec(), outputs, {labels_, targets_}, &by_outputs_);
    network_.Backward(by_outputs_, gradient());
    return loss;
  }

  absl::Status PredictRows(absl::Span<const int64_t> batch,
                           const std::vector<core::ModelValues>& models,
                           ports::Predictions* result) override {
    Fill(rows().train, batch);
    const auto predict = [&](absl::Span<const float> parameters) {
      result->probabilities.push_back(
          PlainProbabilities(spec(), network_.Forward(parameters, input_)));
    };
    predict(parameters());
    for (const core::ModelValues& model : models) predict(model.parameters);
    return absl::OkStatus();
  }

  absl::StatusOr<ports::Evaluation> EvaluateRows(
      absl::Span<const int64_t> all) override {
    const data::DatasetView& test = *rows().test;
    const auto step =
        static_cast<size_t>(EvaluationBatch(test.dataset().row_size()));
    EvaluationSums sums(spec());
    for (size_t begin = 0; begin < all.size(); begin += step) {
      const absl::Span<const int64_t> part = all.subspan(begin, step);
      Fill(test, part);
      const absl::Span<const float> outputs =
          network_.Forward(parameters(), input_);
      const double loss = PlainMeanLoss(spec(), outputs, {labels_, targets_});
      if (!std::isfinite(loss)) {
        return LossNotFinite(test, part, WildRowsOfBatch());
      }
      if (spec().classes == 0) {
        sums.AddTargets(loss, targets_, outputs);
      } else {
        sums.AddClasses(loss, labels_, PlainPredictions(spec(), outputs));
      }
    }
    return sums.Result();
  }

  std::vector<size_t> WildRowsOfBatch() const override {
    return WildRows(input_, static_cast<size_t>(spec().input_size()), targets_);
  }

  // The rows `part` of `view` become the batch.
  void Fill(const data::DatasetView& view, absl::Span<const int64_t> part) {
    const auto row_size = static_cast<size_t>(view.dataset().row_size());
    input_.resize(part.size() * row_size);
    data::FillBatch(view, part, rows().standardizer, absl::MakeSpan(input_));
    labels_.clear();
    targets_.clear();
    if (view.dataset().is_regression()) {
      targets_.resize(part.size());
      data::FillTargets(view, part, absl::MakeSpan(targets_));
    } else {
      labels_.resize(part.size());
      data::FillLabels(view, part, absl::MakeSpan(labels_));
    }
  }

  Network network_;
  std::vector<float> input_;  // of the batch, [rows x input]
  std::vector<int64_t> labels_;
  std::vector<float> targets_;
  std::vector<float> by_outputs_;
};

}  // namespace

int64_t PlainParameterCount(const ResolvedSpec& spec) {
  return IsNetwork(spec) ? Network(spec).parameter_count() : 0;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> CreatePlainLearner(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options, const std::string& warning) {
  DFL_RETURN_IF_ERROR(CheckData(data));
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveSpec(spec, ShapeOf(data)));
  if (!IsNetwork(resolved)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.kind: ", spec.kind,
                     " needs LibTorch; allowed without it: linear, logistic, "
                     "svm, mlp"));
  }
  Network network(resolved);
  ports::ModelInfo info;
  info.kind = spec.kind;
  info.parameters = network.tensors();
  info.parameter_count = network.parameter_count();
  if (!warning.empty()) info.warnings.push_back(warning);
  return std::make_unique<PlainLearner>(
      resolved, std::move(network), std::move(info), std::move(data), options);
}

}  // namespace dfl::learner
