// TorchScript files for tests, written to a folder of the test's own. For tests
// that may include LibTorch's headers.
#ifndef DFL_TESTS_UNIT_LEARNER_SCRIPT_FILES_H_
#define DFL_TESTS_UNIT_LEARNER_SCRIPT_FILES_H_

#include <torch/script.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/dataset.h"
#include "gtest/gtest.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {

// A module in training mode, or in evaluation mode.
inline torch::jit::Module ScriptPart(const std::string& name,
                                     bool training = true) {
  torch::jit::Module part(name);
  if (!part.hasattr("training")) {
    part.register_attribute("training", c10::BoolType::get(), training);
  }
  part.setattr("training", training);
  return part;
}

inline at::Tensor Spread(std::vector<int64_t> shape, bool trained = true) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return torch::linspace(-0.5, 0.5, size)
      .view(shape)
      .set_requires_grad(trained);
}

inline void AddParameter(torch::jit::Module& part, const std::string& name,
                         const at::Tensor& value) {
  part.register_parameter(name, value, false);
}

// A batch normalisation of `width` values, without a guard against one row.
inline torch::jit::Module BatchNormPart(int64_t width, bool trained = true,
                                        bool training = true) {
  torch::jit::Module part = ScriptPart("Norm", training);
  AddParameter(part, "g", torch::ones({width}).set_requires_grad(trained));
  AddParameter(part, "b", torch::zeros({width}).set_requires_grad(trained));
  part.register_buffer("mean", torch::zeros({width}));
  part.register_buffer("var", torch::ones({width}));
  part.register_buffer("num_batches_tracked", torch::zeros({}, at::kLong));
  part.define(R"(
    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)
        return torch.batch_norm(x, self.g, self.b, self.mean, self.var,
                                self.training, 0.1, 1e-5, False)
  )");
  return part;
}

// x W, where `forward` is its body.
inline torch::jit::Module LinearPart(int64_t features, int64_t outputs,
                                     const std::string& body) {
  torch::jit::Module part = ScriptPart("Net");
  AddParameter(part, "w", Spread({features, outputs}));
  part.define("def forward(self, x):\n" + body);
  return part;
}

class ScriptFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "script_files_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string Save(const torch::jit::Module& module,
                   const std::string& name = "net.pt") const {
    module.save(Path(name));
    return Path(name);
  }
  static core::ModelSpec SpecOf(const std::string& path, int64_t classes = 3) {
    core::ModelSpec spec = Spec("torchscript", classes);
    spec.path = path;
    return spec;
  }
  // A learner of this module, bound.
  absl::StatusOr<std::unique_ptr<BoundLearner>> Learn(
      const torch::jit::Module& module, const data::DatasetView& train,
      int64_t classes = 3,
      const absl::optional<data::DatasetView>& test = absl::nullopt,
      const LearnerOptions& options = LearnerOptions()) const {
    return MakeLearner(SpecOf(Save(module), classes), train, test, options);
  }

  // A plan's.
  static LearnerOptions BatchSize(int64_t rows) {
    LearnerOptions options;
    options.batch_size = rows;
    return options;
  }

  static ports::GradientRequest Request(int64_t step, int64_t batch_size) {
    ports::GradientRequest request;
    request.step = step;
    request.batch_size = batch_size;
    return request;
  }

 private:
  std::string folder_;
};

// Rows with these values, [rows, features], of classes 0, 1, 2, 0, ...
inline data::DatasetView Rows(int64_t features, std::vector<float> values) {
  data::Dataset::Answers answers;
  answers.classes = 3;
  const int64_t rows = static_cast<int64_t>(values.size()) / features;
  for (int64_t i = 0; i < rows; ++i) answers.labels.push_back(i % 3);
  return data::DatasetView(std::make_shared<const data::Dataset>(
      std::vector<int64_t>{features}, std::move(values), std::move(answers)));
}

}  // namespace dfl::learner

#endif  // DFL_TESTS_UNIT_LEARNER_SCRIPT_FILES_H_
