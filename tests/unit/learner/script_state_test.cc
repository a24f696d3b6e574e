// Modes of the parts of a TorchScript model, and its tensors: which are
// trained, mixed or fixed, and what becomes of one that a model assigns anew.
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/learner/catalogue/torch_interface.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/script_files.h"

namespace dfl::learner {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ScriptState : public ScriptFiles {
 protected:
  // A backbone, which the head is trained on.
  static torch::jit::Module WithBackbone(const torch::jit::Module& backbone,
                                         bool training = true) {
    torch::jit::Module net = ScriptPart("Net", training);
    AddParameter(net, "v", Spread({5, 3}));
    net.register_module("backbone", backbone);
    net.define(R"(
      def forward(self, x):
          return torch.matmul(self.backbone.forward(x), self.v)
    )");
    return net;
  }

  // A head with a dropout of its own and a running mean.
  static torch::jit::Module WithDropout(bool training, bool dropout_training) {
    torch::jit::Module dropout = ScriptPart("Dropout", dropout_training);
    dropout.define(
        "def forward(self, x):\n"
        "    return torch.dropout(x, 0.5, self.training)\n");
    torch::jit::Module net = ScriptPart("Net", training);
    AddParameter(net, "w", Spread({5, 3}));
    net.register_buffer("mean", torch::zeros({5}));
    net.register_module("dropout", dropout);
    net.define(R"(
      def forward(self, x):
          if self.training:
              self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
          return torch.matmul(self.dropout.forward(x), self.w)
    )");
    return net;
  }

  static std::string Exported(BoundLearner& node) {
    std::string bytes;
    const absl::Status written =
        AsTorchScriptExporter(*node.learner)
            ->ExportTorchScript(node.parameters, node.buffers,
                                [&](absl::string_view part) {
                                  bytes.append(part.data(), part.size());
                                  return absl::OkStatus();
                                });
    EXPECT_TRUE(written.ok()) << written;
    return bytes;
  }

  static torch::jit::Module Loaded(const std::string& bytes) {
    std::istringstream in(bytes);
    return torch::jit::load(in);
  }

  static bool Mode(const torch::jit::Module& module) {
    return module.attr("training").toBool();
  }
};

data::DatasetView Shifted() {
  std::vector<float> values(5 * 30);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 50 + static_cast<float>(i % 11);
  }
  return Rows(5, values);
}

TEST_F(ScriptState, AFrozenPartInEvaluationModeKeepsItsStatistics) {
  for (const bool training : {true, false}) {  // the model as a whole
    SCOPED_TRACE(training);
    const auto made = Learn(
        WithBackbone(BatchNormPart(5, false, false), training), Shifted());
    ASSERT_TRUE(made.ok()) << made.status();
    BoundLearner& node = **made;
    node.Train(50, 8, 0.05F);
    const torch::jit::Module after = Loaded(Exported(node));
    const torch::jit::Module backbone = after.attr("backbone").toModule();
    EXPECT_EQ(backbone.attr("mean").toTensor().abs().sum().item<float>(), 0);
    EXPECT_EQ(backbone.attr("var").toTensor().sum().item<float>(), 5);
    EXPECT_FALSE(Mode(backbone));
    EXPECT_EQ(Mode(after), training);
    // They are constants, so not mixed, but part of the state.
    const ports::ModelInfo& info = node.learner->model();
    EXPECT_EQ(info.buffer_count, 0);
    std::map<std::string, const ports::FixedTensor*> others;
    for (const ports::FixedTensor& other : info.others) {
      others[other.name] = &other;
    }
    ASSERT_EQ(others.size(), 5U);
    EXPECT_EQ(others["backbone.g"]->dtype, "F32");
    EXPECT_EQ(others["backbone.mean"]->bytes, 20);
    EXPECT_EQ(others["backbone.num_batches_tracked"]->dtype, "I64");
    EXPECT_THAT(others["backbone.num_batches_tracked"]->shape, IsEmpty());
    const std::string var = others["backbone.var"]->read();
    std::vector<float> ones(5);
    ASSERT_EQ(var.size(), 20U);
    std::memcpy(ones.data(), var.data(), 20);
    EXPECT_THAT(ones, Each(1.0F));
  }
}

TEST_F(ScriptState, AFrozenPartInTrainingModeFollows) {
  const auto made =
      Learn(WithBackbone(BatchNormPart(5, false, true)), Shifted());
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  EXPECT_EQ(node.learner->model().buffer_count, 10);
  ASSERT_TRUE(node.learner->Gradient(Request(0, 8)).ok());
  EXPECT_NE(node.buffers[0], 0);
  // It is the usual mistake.
  EXPECT_THAT(node.learner->model().warnings,
              ElementsAre(HasSubstr("backbone has no trained weights, but was "
                                    "saved in training mode")));
}

TEST_F(ScriptState, ATrainedPartSavedInEvaluationModeKeepsIt) {
  const auto made =
      Learn(WithBackbone(BatchNormPart(5, true, false)), Shifted());
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  node.Train(5, 8, 0.01F);
  EXPECT_THAT(node.learner->model().warnings, IsEmpty());
  ASSERT_EQ(node.buffers.size(), 10U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(node.buffers[i], 0);
    EXPECT_EQ(node.buffers[5 + i], 1);
  }
}

TEST_F(ScriptState, AModelSavedInEvaluationModeAsAWholeIsTrainedAndTold) {
  const auto made = Learn(WithDropout(false, false), RandomRows({5}, 30, 3, 4));
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  EXPECT_THAT(node.learner->model().warnings,
              ElementsAre(HasSubstr("saved in evaluation mode as a whole")));
  ASSERT_TRUE(node.learner->Gradient(Request(0, 30)).ok());
  EXPECT_NE(node.buffers[0], 0);
  // The dropout too: other masks, another gradient of the same rows.
  const FlatVector first = node.gradient;
  ASSERT_TRUE(node.learner->Gradient(Request(1, 30)).ok());
  EXPECT_NE(node.gradient, first);
}

TEST_F(ScriptState, ADropoutSavedInEvaluationModeDropsNothing) {
  const auto made = Learn(WithDropout(true, false), RandomRows({5}, 6, 3, 4));
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  EXPECT_THAT(node.learner->model().warnings, IsEmpty());
  const double first = node.learner->Gradient(Request(0, 6))->loss;
  EXPECT_NEAR(node.learner->Gradient(Request(1, 6))->loss, first, 1e-6);
  const torch::jit::Module after = Loaded(Exported(node));
  EXPECT_TRUE(Mode(after));
  EXPECT_FALSE(Mode(after.attr("dropout").toModule()));
}

// --------------------------------------------------------- assigned anew ----

TEST_F(ScriptState, ABufferThatIsAssignedAnewKeepsItsPlace) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.register_buffer("mean", torch::zeros({5}));
  net.register_buffer("calls", torch::zeros({}, at::kLong));
  // The mean takes part in the gradient, and hangs on it.
  net.define(R"(
    def forward(self, x):
        if self.training:
            self.mean = 0.5 * self.mean + (self.w.sum(1) * 0 + x.mean(0))
            self.calls = self.calls + 1
        return torch.matmul(x - self.mean, self.w)
  )");
  const auto rows = RandomRows({5}, 4, 3, 4);
  const auto made = Learn(net, rows, 3, rows);
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  std::vector<double> mean(5, 0);
  for (size_t i = 0; i < 20; ++i) {
    mean[i % 5] += static_cast<double>(rows.dataset().floats()[i]) / 4;
  }
  double factor = 0;
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(node.learner->Gradient(Request(step, 4)).ok());
    factor = 0.5 * factor + 1;
    for (size_t i = 0; i < 5; ++i) {
      ASSERT_NEAR(node.buffers[i], factor * mean[i], 1e-4);
    }
    // What others' models made of it is what the next forward sees.
    for (float& value : node.buffers) value *= 2;
    factor *= 2;
  }
  const FlatVector kept = node.buffers;
  ASSERT_TRUE(node.learner->Evaluate(0).ok());
  EXPECT_EQ(node.buffers, kept);
  const torch::jit::Module after = Loaded(Exported(node));
  EXPECT_EQ(after.attr("mean").toTensor()[1].item<float>(), kept[1]);
  EXPECT_EQ(after.attr("calls").toTensor().item<int64_t>(), 4);
  const ports::FixedTensor& calls = node.learner->model().others.at(0);
  EXPECT_EQ(calls.name, "calls");
  int64_t count = 0;
  const std::string bytes = calls.read();
  ASSERT_EQ(bytes.size(), sizeof(count));
  std::memcpy(&count, bytes.data(), sizeof(count));
  EXPECT_EQ(count, 4);
}

TEST_F(ScriptState, ABatchThatFailsTakesBackWhatItAssigned) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({2, 3}));
  net.register_buffer("mean", torch::zeros({2}));
  net.define(R"(
    def forward(self, x):
        if self.training:
            self.mean = self.mean + x.mean(0)
            assert bool((x < 100).all()), "above 100"
        return torch.matmul(x, self.w) + self.mean.sum() * 0
  )");
  const auto made = Learn(net, Rows(2, {1, 2, 3, 4, 5, 1000}), 3, absl::nullopt,
                          BatchSize(1));
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  int64_t failed = 0;
  for (int64_t step = 0; step < 6; ++step) {
    const FlatVector before = node.buffers;
    if (!node.learner->Gradient(Request(step, 1)).ok()) {
      ++failed;
      EXPECT_EQ(node.buffers, before);
    }
  }
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(node.buffers, (FlatVector{8, 12}));
}

// A model traced while it trained goes on so in an evaluation.
TEST_F(ScriptState, AnEvaluationUndoesWhatItDoesToBuffers) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.register_buffer("mean", torch::zeros({5}));
  net.define(R"(
    def forward(self, x):
        self.mean.add_(x.mean(0))
        return torch.matmul(x, self.w)
  )");
  const auto rows = RandomRows({5}, 6, 3, 4);
  const auto made = Learn(net, rows, 3, rows);
  ASSERT_TRUE(made.ok()) << made.status();
  BoundLearner& node = **made;
  EXPECT_THAT(node.learner->model().warnings,
              Contains(HasSubstr("changes buffers in evaluation mode")));
  ASSERT_TRUE(node.learner->Gradient(Request(0, 6)).ok());
  const FlatVector kept = node.buffers;
  ASSERT_TRUE(node.learner->Evaluate(0).ok());
  EXPECT_EQ(node.buffers, kept);
  auto models = std::make_shared<std::vector<core::ModelValues>>(1);
  models->front().parameters = node.parameters;
  models->front().buffers.assign(5, 3.0F);
  ASSERT_TRUE(node.learner->Predict({6, models}).ok());
  EXPECT_EQ(node.buffers, kept);
  EXPECT_THAT(models->front().buffers, Each(3.0F));
}

// ------------------------------------------------------------ tied tensors ---

TEST_F(ScriptState, TiedTensorsAreListedUnderOneName) {
  torch::jit::Module net = ScriptPart("Net");
  const at::Tensor trained = Spread({5, 3});
  const at::Tensor frozen = Spread({3}, false);
  AddParameter(net, "out", trained);
  AddParameter(net, "embedding", trained);
  AddParameter(net, "bias", frozen);
  AddParameter(net, "other_bias", frozen);
  net.define(R"(
    def forward(self, x):
        return (torch.matmul(x, self.out) + torch.matmul(x, self.embedding)
                + self.bias + self.other_bias)
  )");
  const auto made = Learn(net, RandomRows({5}, 6, 3, 4));
  ASSERT_TRUE(made.ok()) << made.status();
  const ports::ModelInfo& info = (*made)->learner->model();
  EXPECT_EQ(info.parameter_count, 15);
  ASSERT_EQ(info.others.size(), 1U);
  EXPECT_EQ(info.others[0].name, "bias");
  EXPECT_EQ(info.aliases, (std::map<std::string, std::string>{
                              {"embedding", "out"}, {"other_bias", "bias"}}));
}

}  // namespace
}  // namespace dfl::learner
