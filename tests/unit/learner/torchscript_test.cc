// TorchScript files built here, and the binding of tensors to flat vectors: the
// tests that need LibTorch's headers.
#include <sys/stat.h>
#include <torch/script.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/learner/flat_binding.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {
namespace {

using ::testing::HasSubstr;

class TorchScript : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "torchscript_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    for (const std::string& path : written_) ::unlink(path.c_str());
    ::rmdir(folder_.c_str());
  }

  std::string Path(const std::string& name) {
    written_.push_back(absl::StrCat(folder_, "/", name));
    return written_.back();
  }

  // Two layers with a scaled output; a frozen parameter, an integer buffer and
  // a floating-point buffer that forward changes.
  static torch::jit::Module Net() {
    torch::jit::Module net("Net");
    const auto trained = [](at::Tensor tensor) {
      return tensor.set_requires_grad(true);
    };
    if (!net.hasattr("training")) {
      net.register_attribute("training", c10::BoolType::get(), true);
    }
    net.register_parameter(
        "first", trained(torch::arange(20, at::kFloat).view({4, 5}) / 50),
        false);
    net.register_parameter("bias", trained(torch::zeros({4})), false);
    net.register_parameter("frozen", torch::ones({4}), false);
    net.register_parameter(
        "last", trained(torch::arange(12, at::kFloat).view({3, 4}) / -30),
        false);
    net.register_buffer("mean", torch::zeros({4}));
    net.register_buffer("calls", torch::zeros({}, at::kLong));
    net.define(R"(
      def forward(self, x):
          h = torch.matmul(x, self.first.t()) + self.bias
          if self.training:
              self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
              self.calls.add_(1)
          h = torch.dropout(torch.relu(h), 0.25, self.training)
          return torch.matmul(h * self.frozen, self.last.t())
    )");
    return net;
  }

  std::string SavedNet(const std::string& name = "net.pt") {
    const std::string path = Path(name);
    Net().save(path);
    return path;
  }

  static core::ModelSpec SpecOf(const std::string& path, int64_t classes = 3) {
    core::ModelSpec spec = Spec("torchscript", classes);
    spec.path = path;
    return spec;
  }

  static ports::GradientRequest Request(int64_t step, int64_t batch_size) {
    ports::GradientRequest request;
    request.step = step;
    request.batch_size = batch_size;
    return request;
  }

  std::string folder_;
  std::vector<std::string> written_;
};

TEST_F(TorchScript, StartsFromTheFilesWeightsAndKeepsItsViews) {
  auto bound =
      MakeLearner(SpecOf(SavedNet()), RandomRows({5}, 30, 3, 4),
                  RandomRows({5}, 30, 3, 5), LearnerOptions(), /*seed=*/123);
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  const ports::ModelInfo& info = node.learner->model();
  ASSERT_EQ(info.parameters.size(), 3U);
  EXPECT_EQ(info.parameters[2].name, "last");
  EXPECT_EQ(info.parameters[2].offset, 24);
  EXPECT_EQ(info.parameter_count, 36);
  ASSERT_EQ(info.buffers.size(), 1U);
  EXPECT_EQ(info.buffers[0].name, "mean");
  EXPECT_FLOAT_EQ(node.parameters[7], 7.0F / 50);
  EXPECT_FLOAT_EQ(node.parameters[24 + 11], 11.0F / -30);
  const auto before = node.learner->Evaluate(0);
  ASSERT_TRUE(before.ok()) << before.status();
  for (int64_t step = 0; step < 60; ++step) {
    std::fill(node.gradient.begin(), node.gradient.end(), 1e30F);
    const auto result = node.learner->Gradient(Request(step, 30));
    ASSERT_TRUE(result.ok()) << "step " << step << ": " << result.status();
    for (size_t i = 0; i < node.gradient.size(); ++i) {
      ASSERT_LT(std::fabs(node.gradient[i]), 1e20F);
      node.parameters[i] -= 0.1F * node.gradient[i];
    }
  }
  const auto after = node.learner->Evaluate(0);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_LT(after->loss, before->loss);
  EXPECT_NE(node.buffers[0], 0);
}

TEST_F(TorchScript, GradientMatchesDifferences) {
  torch::jit::Module net = Net();
  auto bound = MakeLearner(SpecOf(SavedNet()), RandomRows({5}, 1, 3, 4));
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  const auto loss = [&] {
    const auto result = node.learner->Gradient(Request(5, 1));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->loss : 0.0;
  };
  loss();
  const FlatVector gradient = node.gradient;
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    const float value = node.parameters[i];
    node.parameters[i] = value + 0.01F;
    const double above = loss();
    node.parameters[i] = value - 0.01F;
    const double below = loss();
    node.parameters[i] = value;
    EXPECT_NEAR(gradient[i], (above - below) / 0.02, 3e-3) << i;
  }
}

TEST_F(TorchScript, DropoutInTheFileIsReplayedToo) {
  const std::string path = SavedNet();
  FlatVector gradients[2];
  for (FlatVector& gradient : gradients) {
    auto bound = MakeLearner(SpecOf(path), RandomRows({5}, 8, 3, 4));
    ASSERT_TRUE(bound.ok()) << bound.status();
    at::rand({&gradient == &gradients[0] ? 3 : 5});  // somebody else draws
    ASSERT_TRUE((*bound)->learner->Gradient(Request(2, 8)).ok());
    gradient = (*bound)->gradient;
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST_F(TorchScript, ExportsTheUpdatedModel) {
  const std::string path = SavedNet();
  auto bound = MakeLearner(SpecOf(path), RandomRows({5}, 30, 3, 4));
  ASSERT_TRUE(bound.ok()) << bound.status();
  BoundLearner& node = **bound;
  node.Train(5, 10, 0.1F);
  TorchScriptExporter* exporter = AsTorchScriptExporter(*node.learner);
  ASSERT_NE(exporter, nullptr);
  std::string bytes;
  ASSERT_TRUE(exporter
                  ->ExportTorchScript(node.parameters, node.buffers,
                                      [&](absl::string_view part) {
                                        bytes.append(part.data(), part.size());
                                        return absl::OkStatus();
                                      })
                  .ok());
  const FlatVector trained = node.parameters;
  const std::string out = Path("updated.pt");
  std::ofstream(out, std::ios::binary) << bytes;
  const torch::jit::Module loaded = torch::jit::load(out);
  EXPECT_FLOAT_EQ(loaded.attr("first").toTensor()[1][2].item<float>(),
                  trained[7]);
  EXPECT_EQ(loaded.attr("calls").toTensor().item<int64_t>(), 5);
  auto again = MakeLearner(SpecOf(out), RandomRows({5}, 30, 3, 4));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->parameters, trained);
  EXPECT_EQ((*again)->buffers, node.buffers);
  // The learner itself goes on as before.
  node.Train(2, 10, 0.1F);
  EXPECT_NE(node.parameters, trained);

  const absl::Status full = exporter->ExportTorchScript(
      node.parameters, node.buffers, [](absl::string_view) {
        return absl::ResourceExhaustedError("disk full");
      });
  EXPECT_EQ(full, absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(exporter->ExportTorchScript({}, {}, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TorchScript, OnlyTorchScriptLearnersExport) {
  auto bound = MakeLearner(Spec("logistic", 2), RandomRows({3}, 4, 2, 1));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(AsTorchScriptExporter(*(*bound)->learner), nullptr);
}

TEST_F(TorchScript, TheContractIsTheFilesNotThePaths) {
  const std::string a = SavedNet("a.pt");
  const std::string b = SavedNet("b.pt");
  torch::jit::Module other = Net();
  other.attr("bias").toTensor().detach().add_(1);
  const std::string c = Path("c.pt");
  other.save(c);
  const auto contract = [](const std::string& path) {
    const auto learner = CreateTorchLearner(
        SpecOf(path), LearnerData(RandomRows({5}, 4, 3, 1)), {});
    EXPECT_TRUE(learner.ok()) << learner.status();
    return learner.ok() ? (*learner)->model().contract : core::DataContract();
  };
  EXPECT_EQ(contract(a).model.size(), 64U);
  EXPECT_EQ(contract(a), contract(b));
  EXPECT_NE(contract(a).model, contract(c).model);
}

TEST_F(TorchScript, RefusesBadFilesWithPathReasonAndWhatIsAllowed) {
  struct Case {
    std::string path;
    std::vector<std::string> texts;
    std::vector<int64_t> input = {5};
    int64_t classes = 3;
  };
  std::vector<Case> cases;
  cases.push_back({folder_ + "/missing.pt", {"cannot be read", "allowed"}});
  cases.push_back({folder_, {"not a regular file", "allowed"}});
  const std::string good = SavedNet("good.pt");
  std::ifstream in(good, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  for (const size_t size : {size_t{0}, size_t{100}, content.str().size() / 2,
                            content.str().size() - 1}) {
    const std::string path = Path(absl::StrCat("cut", size, ".pt"));
    std::ofstream(path, std::ios::binary) << content.str().substr(0, size);
    cases.push_back({path, {"not a usable TorchScript file", "allowed"}});
  }
  const std::string text = Path("text.pt");
  std::ofstream(text) << "weights: none\n";
  cases.push_back({text, {"not a usable TorchScript file", "torch.jit.save"}});
  cases.push_back({good, {"forward", "float32 [rows, 6]"}, {6}});
  cases.push_back({good, {"forward gives [1, 3]", "[1, 4]"}, {5}, 4});

  const auto saved = [&](const char* name, const at::Tensor& weight,
                         const char* forward) {
    torch::jit::Module net("Net");
    net.register_parameter("weight", weight, false);
    net.define(forward);
    const std::string path = Path(name);
    net.save(path);
    return path;
  };
  const char kMatmul[] = "def forward(self, x):\n  return x @ self.weight\n";
  cases.push_back({saved("frozen.pt", torch::ones({5, 3}), kMatmul),
                   {"no trained parameters", "requires a gradient"}});
  const auto trained = [](at::ScalarType type) {
    return torch::ones({5, 3}, type).set_requires_grad(true);
  };
  cases.push_back(
      {saved("double.pt", trained(at::kDouble),
             "def forward(self, x):\n  return x @ self.weight.to(x.dtype)\n"),
       {"parameter weight", "Double", "float32"}});
  cases.push_back({saved("tuple.pt", trained(at::kFloat),
                         "def forward(self, x):\n"
                         "  return (x @ self.weight, x)\n"),
                   {"forward gives a Tuple", "one tensor"}});
  cases.push_back({saved("unused.pt", trained(at::kFloat),
                         "def forward(self, x):\n  return x[:, :3]\n"),
                   {"depends on no trained tensor", "allowed"}});
  torch::jit::Module mute("Net");
  mute.register_parameter("weight", trained(at::kFloat), false);
  mute.define("def predict(self, x):\n  return x @ self.weight\n");
  const std::string no_forward = Path("mute.pt");
  mute.save(no_forward);
  cases.push_back({no_forward, {"no method forward", "allowed"}});

  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const absl::Status status =
        CreateTorchLearner(SpecOf(c.path, c.classes),
                           LearnerData(RandomRows(c.input, 4, 3, 1)), {})
            .status();
    EXPECT_THAT(status.code(),
                ::testing::AnyOf(absl::StatusCode::kInvalidArgument,
                                 absl::StatusCode::kNotFound));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.path));
    for (const std::string& text : c.texts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  }
}

TEST_F(TorchScript, OneOutputServesTwoClassesAndRegression) {
  torch::jit::Module net("Net");
  net.register_parameter("weight", torch::zeros({3, 1}).set_requires_grad(true),
                         false);
  net.define("def forward(self, x):\n  return x @ self.weight\n");
  const std::string path = Path("one.pt");
  net.save(path);
  for (const char* loss : {"logistic", "hinge", "mse", "bce"}) {
    core::ModelSpec spec = SpecOf(path, 2);
    spec.loss = loss;
    auto bound = MakeLearner(spec, RandomRows({3}, 200, 2, 1),
                             RandomRows({3}, 200, 2, 2));
    ASSERT_TRUE(bound.ok()) << bound.status();
    (*bound)->Train(100, 20, 0.1F);
    const auto result = (*bound)->learner->Evaluate(0);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(*result->accuracy, 0.8) << loss;
  }
  auto bound = MakeLearner(SpecOf(path, 0), RandomRows({3}, 50, 0, 1),
                           RandomRows({3}, 50, 0, 2));
  ASSERT_TRUE(bound.ok()) << bound.status();
  const double before = (*bound)->learner->Evaluate(0)->loss;
  (*bound)->Train(50, 10, 0.1F);
  EXPECT_LT((*bound)->learner->Evaluate(0)->loss, before);
}

std::vector<NamedTensor> TwoTensors() {
  return {{"a", torch::zeros({2, 3}).set_requires_grad(true)},
          {"b", torch::zeros({2}).set_requires_grad(true)}};
}

// `staged` is what a GPU uses: vectors of its own, one copy each way.
TEST(FlatBinding, DirectAndStagedGiveTheSame) {
  FlatVector gradients[2];
  for (const bool staged : {false, true}) {
    const std::vector<NamedTensor> tensors = TwoTensors();
    const std::vector<NamedTensor> buffers = {{"m", torch::zeros({1})}};
    auto binding = FlatBinding::Create(tensors, buffers);
    ASSERT_TRUE(binding.ok()) << binding.status();
    FlatVector parameters = {1, 2, 3, 4, 5, 6, 7, 8};
    FlatVector gradient(8, 9.0F);
    FlatVector statistics = {5};
    binding->Bind(absl::MakeSpan(parameters), absl::MakeSpan(gradient),
                  absl::MakeSpan(statistics), staged);
    for (int step = 0; step < 6; ++step) {
      binding->BeginGradient();
      const at::Tensor x = torch::tensor({1.0F, -1.0F, 2.0F});
      at::Tensor loss = (tensors[0].tensor.mv(x) * tensors[1].tensor).sum();
      loss.backward();
      at::Tensor mean = buffers[0].tensor;
      mean.add_(1);
      ASSERT_TRUE(binding->EndGradient().ok());
      for (size_t i = 0; i < 8; ++i) parameters[i] -= 0.01F * gradient[i];
      EXPECT_EQ(statistics[0], 6.0F + static_cast<float>(step));
    }
    gradients[staged ? 1 : 0] = gradient;
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_NE(gradients[0][0], 0);
}

TEST(FlatBinding, BorrowsOtherValuesAndReturnsThem) {
  for (const bool staged : {false, true}) {
    const std::vector<NamedTensor> tensors = TwoTensors();
    const std::vector<NamedTensor> buffers = {{"m", torch::zeros({1})}};
    auto binding = FlatBinding::Create(tensors, buffers);
    ASSERT_TRUE(binding.ok()) << binding.status();
    FlatVector parameters = {1, 2, 3, 4, 5, 6, 7, 8};
    FlatVector gradient(8, 9.0F);
    FlatVector statistics = {5};
    binding->Bind(absl::MakeSpan(parameters), absl::MakeSpan(gradient),
                  absl::MakeSpan(statistics), staged);
    const FlatVector others(8, 0.5F);
    const FlatVector other_statistics = {-1};
    for (int turn = 0; turn < 2; ++turn) {
      binding->Return();  // nothing was borrowed
      binding->BeginEvaluation();
      EXPECT_EQ(tensors[0].tensor.sum().item<float>(), 21);
      binding->Borrow(others, other_statistics);
      EXPECT_EQ(tensors[0].tensor.sum().item<float>(), 3);
      EXPECT_EQ(tensors[1].tensor.sum().item<float>(), 1);
      EXPECT_EQ(buffers[0].tensor.item<float>(), -1);
      binding->Return();
      EXPECT_EQ(tensors[0].tensor.sum().item<float>(), 21);
      EXPECT_EQ(buffers[0].tensor.item<float>(), 5);
      binding->BeginGradient();
      tensors[1].tensor.sum().backward();
      EXPECT_TRUE(binding->EndGradient().ok());
      EXPECT_EQ(gradient, (FlatVector{0, 0, 0, 0, 0, 0, 1, 1}));
    }
    EXPECT_EQ(parameters, (FlatVector{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(others, FlatVector(8, 0.5F));
  }
}

TEST(FlatBinding, TiedTensorsShareTheirPlaceAndAddTheirGradients) {
  std::vector<NamedTensor> tensors = TwoTensors();
  tensors.push_back({"c", tensors[1].tensor.detach().set_requires_grad(true)});
  auto binding = FlatBinding::Create(tensors, {});
  ASSERT_TRUE(binding.ok()) << binding.status();
  EXPECT_EQ(binding->parameter_count(), 8);
  EXPECT_EQ(binding->parameters().size(), 2U);
  FlatVector parameters(8, 2.0F);
  FlatVector gradient(8);
  binding->Bind(absl::MakeSpan(parameters), absl::MakeSpan(gradient), {},
                false);
  binding->BeginGradient();
  (tensors[1].tensor.sum() + 3 * tensors[2].tensor.sum()).backward();
  ASSERT_TRUE(binding->EndGradient().ok());
  EXPECT_EQ(gradient[6], 4);
}

TEST(FlatBinding, RefusesPartlySharedMemory) {
  std::vector<NamedTensor> tensors = TwoTensors();
  tensors.push_back(
      {"part", tensors[0].tensor.detach()[0].set_requires_grad(true)});
  const absl::Status status = FlatBinding::Create(tensors, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("parameter part"));
}

TEST(FlatBinding, NoticesALostView) {
  const std::vector<NamedTensor> tensors = TwoTensors();
  auto binding = FlatBinding::Create(tensors, {});
  ASSERT_TRUE(binding.ok());
  FlatVector parameters(8);
  FlatVector gradient(8);
  binding->Bind(absl::MakeSpan(parameters), absl::MakeSpan(gradient), {},
                false);
  binding->BeginGradient();
  EXPECT_TRUE(binding->EndGradient().ok());
  at::Tensor moved = tensors[0].tensor;
  moved.set_data(torch::zeros({2, 3}));
  EXPECT_EQ(binding->EndGradient().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace dfl::learner
