#include "daemon/learner/catalogue/batch_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/catalogue/bad_batch.h"
#include "daemon/learner/catalogue/dropout.h"
#include "daemon/learner/catalogue/evaluation_sums.h"
#include "daemon/learner/catalogue/regulariser.h"

namespace dfl::learner {

BatchLearner::BatchLearner(ResolvedSpec spec, ports::ModelInfo info,
                           absl::string_view archive_hash, LearnerData data,
                           LearnerOptions options)
    : spec_(std::move(spec)),
      data_(std::move(data)),
      options_(std::move(options)),
      info_(std::move(info)),
      sampler_(data_.train.size(), 1,
               DeriveSeed(options_.data_seed, "learner batches")) {
  FillContract(archive_hash);
  FillDataInfo();
  sampler_.set_min_rows(info_.min_batch_rows);
  evaluation_order_ = EvaluationOrder(data_info_.test_rows);
}

void BatchLearner::FillContract(absl::string_view archive_hash) {
  core::DataContract& contract = info_.contract;
  contract = data_.contract;
  contract.task = spec_.classes == 0 ? core::Task::kRegression
                                     : core::Task::kClassification;
  contract.shape = data_.train.dataset().shape();
  contract.loss = LossText(spec_);
  contract.model = ModelHash(spec_, archive_hash);
  info_.scaling = contract.input;
  if (info_.scaling.mean.empty()) {
    info_.scaling.mean = data_.standardizer.mean();
    info_.scaling.std = data_.standardizer.std();
  }
}

void BatchLearner::FillDataInfo() {
  data_info_.train_rows = data_.train.size();
  data_info_.test_rows = data_.test.has_value() ? data_.test->size() : 0;
  data_info_.classes = spec_.classes;
  data_info_.bytes = data_.train.dataset().memory_bytes();
  if (data_.test.has_value() &&
      &data_.test->dataset() != &data_.train.dataset()) {
    data_info_.bytes += data_.test->dataset().memory_bytes();
  }
}

std::optional<ports::BatchPosition> BatchLearner::position() const {
  const data::BatchSampler::State state = sampler_.state();
  return ports::BatchPosition{state.seed, state.rows, state.pass,
                              state.position};
}

absl::Status BatchLearner::GoTo(const ports::BatchPosition& position) {
  DFL_RETURN_IF_ERROR(sampler_.Restore(
      {position.seed, position.rows, position.pass, position.row}));
  batch_is_good_ = false;  // none was drawn since: there is none to repeat
  return absl::OkStatus();
}

absl::Status BatchLearner::Bind(absl::Span<float> parameters,
                                absl::Span<float> gradient,
                                absl::Span<float> buffers) {
  if (bound_) {
    return absl::FailedPreconditionError(
        "learner: it is bound already; allowed: one binding of a learner");
  }
  const bool sizes_fit =
      static_cast<int64_t>(parameters.size()) == info_.parameter_count &&
      static_cast<int64_t>(gradient.size()) == info_.parameter_count &&
      static_cast<int64_t>(buffers.size()) == info_.buffer_count;
  if (!sizes_fit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learner: buffers of ", parameters.size(), ", ", gradient.size(),
        " and ", buffers.size(), " values given; allowed: ",
        info_.parameter_count, " twice and ", info_.buffer_count));
  }
  DFL_RETURN_IF_ERROR(BindModel(parameters, gradient, buffers));
  parameters_ = parameters;
  gradient_ = gradient;
  buffers_ = buffers;
  bound_ = true;
  return absl::OkStatus();
}

absl::Status BatchLearner::Initialise(uint64_t seed) {
  DFL_RETURN_IF_ERROR(CheckBound());
  return InitialiseModel(seed);
}

absl::StatusOr<ports::GradientResult> BatchLearner::Gradient(
    const ports::GradientRequest& request) {
  DFL_RETURN_IF_ERROR(CheckBound());
  DFL_CHECK(request.batch_size >= 1);
  EnterCall();
  sampler_.set_batch_size(request.batch_size);
  const absl::Span<const int64_t> rows =
      request.same_batch && batch_is_good_ ? sampler_.Again() : sampler_.Next();
  KeepBuffers();
  const absl::StatusOr<double> loss = BatchLoss(request.step, rows);
  batch_is_good_ = loss.ok();
  if (!loss.ok()) {
    PutBuffersBack();
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    return loss.status();
  }
  ports::GradientResult result;
  result.rows = static_cast<int64_t>(rows.size());
  result.loss = *loss;
  return result;
}

absl::StatusOr<ports::Predictions> BatchLearner::Predict(
    const ports::PredictRequest& request) {
  DFL_RETURN_IF_ERROR(CheckBound());
  DFL_CHECK(request.batch_size >= 1);
  DFL_RETURN_IF_ERROR(CheckPredict(request));
  EnterCall();
  sampler_.set_batch_size(request.batch_size);
  const absl::Span<const int64_t> rows = sampler_.Next();
  ports::Predictions result;
  result.rows = static_cast<int64_t>(rows.size());
  KeepBuffers();
  const absl::Status status = PredictRows(rows, *request.models, &result);
  PutBuffersBack();
  DFL_RETURN_IF_ERROR(status);
  return result;
}

absl::StatusOr<ports::Evaluation> BatchLearner::Evaluate(int64_t max_rows) {
  DFL_RETURN_IF_ERROR(CheckBound());
  if (data_info_.test_rows == 0) {
    return absl::FailedPreconditionError(
        "evaluation: this node has no test data; allowed: a test set in its "
        "settings");
  }
  EnterCall();
  const int64_t total = max_rows > 0 ? std::min(max_rows, data_info_.test_rows)
                                     : data_info_.test_rows;
  KeepBuffers();
  absl::StatusOr<ports::Evaluation> result = EvaluateRows(
      absl::MakeConstSpan(evaluation_order_).first(static_cast<size_t>(total)));
  PutBuffersBack();
  return result;
}

void BatchLearner::PutBuffersBack() {
  std::copy(kept_buffers_.begin(), kept_buffers_.end(), buffers_.begin());
}

absl::Status BatchLearner::CheckBound() const {
  if (bound_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "learner: the model is not bound to memory (did that fail before?); "
      "allowed: after Bind");
}

absl::Status BatchLearner::CheckPredict(
    const ports::PredictRequest& request) const {
  if (spec_.classes == 0) {
    return absl::FailedPreconditionError(
        "prediction: the model is a regression and tells no classes");
  }
  for (const core::ModelValues& model : *request.models) {
    if (model.parameters.size() == parameters_.size() &&
        model.buffers.size() == buffers_.size()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "prediction: a model of ", model.parameters.size(), " parameters and ",
        model.buffers.size(), " buffer values given; allowed: ",
        parameters_.size(), " and ", buffers_.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> BatchLearner::BatchLoss(int64_t step,
                                               absl::Span<const int64_t> rows) {
  const std::string name = absl::StrCat("gradient ", step);
  absl::StatusOr<double> computed =
      RowsGradient(name, rows, DropoutSeed(options_.data_seed, step));
  const absl::Status& status = computed.status();
  if (absl::IsResourceExhausted(status)) return status;
  const auto told_rows = [&] {
    return DescribeRows(data_.train, "training", rows, WildRowsOfBatch());
  };
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat(
        absl::StartsWith(status.message(), name) ? ""
                                                 : absl::StrCat(name, ": "),
        status.message(), "; ", told_rows()));
  }
  const double loss =
      *computed + AddRegulariser(spec_.l2, parameters_, gradient_);
  const char* const wild = !std::isfinite(loss)    ? "the loss"
                           : !AllFinite(gradient_) ? "the gradient"
                           : !AllFinite(buffers_)  ? "a buffer"
                                                   : nullptr;
  if (wild == nullptr) return loss;
  return absl::DataLossError(absl::StrCat(
      name, ": ", wild, " is not finite; ", told_rows(),
      "; either training diverged (smaller steps help) or the data is to be "
      "mended or standardised"));
}

}  // namespace dfl::learner
