#include "daemon/simports/analytic_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"

namespace dfl::simports {
namespace {

ports::ModelInfo MakeModel(const std::string& kind, int64_t parameters,
                           int64_t buffers) {
  ports::ModelInfo model;
  model.kind = kind;
  model.parameter_count = parameters;
  model.buffer_count = buffers;
  model.parameters.push_back(
      ports::TensorInfo{"w", {parameters}, 0, parameters});
  if (buffers > 0) {
    model.buffers.push_back(
        ports::TensorInfo{"running", {buffers}, 0, buffers});
  }
  model.contract.loss = kind;
  model.contract.model = Sha256Hex(absl::StrCat(
      kind, ";w:[", parameters, "]:float32;running:[", buffers, "]:float32"));
  return model;
}

absl::Status CheckLengths(const ports::ModelInfo& model,
                          absl::Span<float> parameters,
                          absl::Span<float> gradient,
                          absl::Span<float> buffers) {
  const auto n = static_cast<size_t>(model.parameter_count);
  const auto b = static_cast<size_t>(model.buffer_count);
  if (parameters.size() == n && gradient.size() == n && buffers.size() == b) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", n, " parameters and ", b,
                   " buffer values; given were ", parameters.size(), ", ",
                   gradient.size(), " for the gradient, and ", buffers.size()));
}

// Mean over classes of F1, without those that neither occur nor are predicted.
// As learner/scores.h has it.
double MacroF1(const std::vector<int64_t>& right,
               const std::vector<int64_t>& predicted,
               const std::vector<int64_t>& actual) {
  double sum = 0;
  int64_t seen = 0;
  for (size_t c = 0; c < right.size(); ++c) {
    const int64_t both = predicted[c] + actual[c];
    if (both == 0) continue;
    ++seen;
    sum += 2.0 * static_cast<double>(right[c]) / static_cast<double>(both);
  }
  return seen == 0 ? 0 : sum / static_cast<double>(seen);
}

}  // namespace

AnalyticTest SoftmaxTest(std::shared_ptr<const Softmax> problem,
                         std::vector<int64_t> labels, int64_t classes) {
  AnalyticTest test;
  test.problem = problem;
  test.classes = classes;
  test.labels = std::move(labels);
  test.predict = [problem = std::move(problem), classes](
                     absl::Span<const float> w, int64_t row) {
    std::vector<double> p(static_cast<size_t>(classes));
    problem->Predict(w, row, absl::MakeSpan(p));
    return static_cast<int64_t>(std::max_element(p.begin(), p.end()) -
                                p.begin());
  };
  return test;
}

// ------------------------------------------------------- AnalyticLearner ----

AnalyticLearner::AnalyticLearner(AnalyticLearnerOptions options,
                                 std::shared_ptr<const Problem> train,
                                 AnalyticTest test)
    : options_(std::move(options)),
      train_(std::move(train)),
      softmax_(dynamic_cast<const Softmax*>(train_.get())),
      test_(std::move(test)),
      model_(MakeModel(options_.kind, train_->n(), 0)),
      sampler_(train_->rows(), 1, DeriveSeed(options_.seed, "batches")) {
  data_.train_rows = train_->rows();
  data_.classes = test_.classes;
  if (test_.problem != nullptr) {
    DFL_CHECK(test_.problem->n() == train_->n());
    data_.test_rows = test_.problem->rows();
    if (test_.classes > 0) {
      DFL_CHECK(static_cast<int64_t>(test_.labels.size()) == data_.test_rows);
    }
    test_order_.resize(static_cast<size_t>(data_.test_rows));
    for (size_t i = 0; i < test_order_.size(); ++i) {
      test_order_[i] = static_cast<int64_t>(i);
    }
    Rng rng(DeriveSeed(options_.seed, "test order"));
    rng.Shuffle(absl::MakeSpan(test_order_));
  }
}

absl::Status AnalyticLearner::Bind(absl::Span<float> parameters,
                                   absl::Span<float> gradient,
                                   absl::Span<float> buffers) {
  const absl::Status status =
      CheckLengths(model_, parameters, gradient, buffers);
  if (!status.ok()) return status;
  parameters_ = parameters;
  gradient_ = gradient;
  return absl::OkStatus();
}

absl::Status AnalyticLearner::Initialise(uint64_t seed) {
  Rng rng(DeriveSeed(seed, "parameters"));
  for (float& value : parameters_) {
    value = options_.initial_stddev > 0
                ? static_cast<float>(options_.initial_stddev * Normal(rng))
                : 0.0F;
  }
  return absl::OkStatus();
}

absl::StatusOr<ports::GradientResult> AnalyticLearner::Gradient(
    const ports::GradientRequest& request) {
  if (request.batch_size != sampler_.batch_size()) {
    sampler_.set_batch_size(request.batch_size);
  }
  const absl::Span<const int64_t> batch =
      request.same_batch && batch_is_good_ ? sampler_.Again() : sampler_.Next();
  ports::GradientResult result;
  result.rows = static_cast<int64_t>(batch.size());
  result.loss = train_->Gradient(parameters_, batch, gradient_);
  const bool finite_loss = std::isfinite(result.loss);
  batch_is_good_ = finite_loss && std::all_of(gradient_.begin(),
                                              gradient_.end(), [](float value) {
                                                return std::isfinite(value);
                                              });
  if (batch_is_good_) return result;
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  return absl::DataLossError(absl::StrCat(
      finite_loss ? "the gradient" : "the loss",
      " is not finite; the step is too large or the model broken"));
}

std::optional<ports::BatchPosition> AnalyticLearner::position() const {
  const data::BatchSampler::State state = sampler_.state();
  return ports::BatchPosition{state.seed, state.rows, state.pass,
                              state.position};
}

absl::Status AnalyticLearner::GoTo(const ports::BatchPosition& position) {
  DFL_RETURN_IF_ERROR(sampler_.Restore(
      {position.seed, position.rows, position.pass, position.row}));
  batch_is_good_ = false;  // none was drawn since: there is none to repeat
  return absl::OkStatus();
}

absl::StatusOr<ports::Predictions> AnalyticLearner::Predict(
    const ports::PredictRequest& request) {
  if (softmax_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model ", options_.kind, " tells no classes, so it predicts none"));
  }
  for (const core::ModelValues& model : *request.models) {
    if (static_cast<int64_t>(model.parameters.size()) == train_->n() &&
        model.buffers.empty()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("a model to predict with has ", model.parameters.size(),
                     " parameters and ", model.buffers.size(),
                     " buffer values; allowed: ", train_->n(), " and 0"));
  }
  if (request.batch_size != sampler_.batch_size()) {
    sampler_.set_batch_size(request.batch_size);
  }
  const absl::Span<const int64_t> batch = sampler_.Next();
  const auto classes = static_cast<size_t>(softmax_->classes());
  const auto predict = [&](absl::Span<const float> w) {
    std::vector<double> p(batch.size() * classes);
    for (size_t i = 0; i < batch.size(); ++i) {
      softmax_->Predict(w, batch[i],
                        absl::MakeSpan(p).subspan(i * classes, classes));
    }
    return p;
  };
  ports::Predictions result;
  result.rows = static_cast<int64_t>(batch.size());
  result.probabilities.push_back(predict(parameters_));
  for (const core::ModelValues& model : *request.models) {
    result.probabilities.push_back(predict(model.parameters));
  }
  return result;
}

absl::StatusOr<ports::Evaluation> AnalyticLearner::Evaluate(int64_t max_rows) {
  if (test_.problem == nullptr) {
    return absl::FailedPreconditionError("there are no test rows");
  }
  absl::Span<const int64_t> rows = test_order_;
  if (max_rows > 0 && max_rows < static_cast<int64_t>(rows.size())) {
    rows = rows.first(static_cast<size_t>(max_rows));
  }
  ports::Evaluation result;
  result.rows = static_cast<int64_t>(rows.size());
  result.loss = test_.problem->Loss(parameters_, rows);
  if (test_.classes == 0) return result;
  const auto classes = static_cast<size_t>(test_.classes);
  std::vector<int64_t> right(classes, 0);
  std::vector<int64_t> predicted(classes, 0);
  std::vector<int64_t> actual(classes, 0);
  int64_t hits = 0;
  for (const int64_t row : rows) {
    const auto guess = static_cast<size_t>(test_.predict(parameters_, row));
    const auto label =
        static_cast<size_t>(test_.labels[static_cast<size_t>(row)]);
    ++predicted[guess];
    ++actual[label];
    if (guess == label) {
      ++right[label];
      ++hits;
    }
  }
  result.accuracy =
      static_cast<double>(hits) / static_cast<double>(result.rows);
  result.macro_f1 = MacroF1(right, predicted, actual);
  return result;
}

// ----------------------------------------------------------- FakeLearner ----

FakeLearner::FakeLearner(int64_t parameters, int64_t buffers, std::string kind)
    : model_(MakeModel(kind, parameters, buffers)) {
  data_.train_rows = 1;
  data_.test_rows = 1;
}

absl::Status FakeLearner::Bind(absl::Span<float> parameters,
                               absl::Span<float> gradient,
                               absl::Span<float> buffers) {
  const absl::Status status =
      CheckLengths(model_, parameters, gradient, buffers);
  if (!status.ok()) return status;
  parameters_ = parameters;
  gradient_ = gradient;
  buffers_ = buffers;
  return absl::OkStatus();
}

absl::Status FakeLearner::Initialise(uint64_t seed) {
  Rng rng(DeriveSeed(seed, "parameters"));
  for (float& value : parameters_) value = static_cast<float>(Normal(rng));
  for (float& value : buffers_) value = static_cast<float>(Normal(rng));
  return absl::OkStatus();
}

absl::StatusOr<ports::GradientResult> FakeLearner::Gradient(
    const ports::GradientRequest& /*request*/) {
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  if (!failure_.ok()) return failure_;
  if (not_finite_) return absl::DataLossError("the gradient is not finite");
  ports::GradientResult result;
  result.rows = 1;
  return result;
}

absl::StatusOr<ports::Predictions> FakeLearner::Predict(
    const ports::PredictRequest& request) {
  if (!failure_.ok()) return failure_;
  return ports::Predictions{
      1, {request.models->size() + 1, std::vector<double>(2, 0.5)}};
}

absl::StatusOr<ports::Evaluation> FakeLearner::Evaluate(int64_t /*max_rows*/) {
  if (!failure_.ok()) return failure_;
  ports::Evaluation result;
  result.rows = 1;
  return result;
}

}  // namespace dfl::simports
