// What a model is before it trains: tensors, counts, starting values, hash, and
// which specs are refused.
#include <cmath>
#include <functional>
#include <map>

#include "daemon/learner/catalogue/dropout.h"
#include "daemon/learner/catalogue/initialise.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/learner_fixture.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(TorchVersion, IsANumberThatPeopleKnow) {
  EXPECT_THAT(TorchVersion(), testing::MatchesRegex("[12]\\.[0-9]+\\..*"));
}

TEST(Models, HaveThePublishedNumbersOfParameters) {
  struct Case {
    const char* kind;
    std::vector<int64_t> input;
    int64_t classes;
    int64_t parameters;
    int64_t buffers;
  };
  const Case cases[] = {
      {"linear", {123}, 2, 248, 0},
      {"logistic", {1, 28, 28}, 10, 7850, 0},
      {"svm", {784}, 10, 7850, 0},
      {"mlp", {784}, 10, 101770, 0},
      {"cnn", {1, 28, 28}, 10, 268362, 0},
      // He et al. 2016, CIFAR-10, option A: 0.27 M.
      {"resnet20", {3, 32, 32}, 10, 269722, 1376},
      {"resnet18", {3, 32, 32}, 10, 11173962, 9600},
      // torchvision's, 1000 classes.
      {"resnet18", {3, 224, 224}, 1000, 11689512, 9600},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.kind);
    const auto learner = CreateTorchLearner(
        Spec(c.kind, c.classes), LearnerData(RandomRows(c.input, 2, 2, 1)), {});
    ASSERT_TRUE(learner.ok()) << learner.status();
    const ports::ModelInfo& info = (*learner)->model();
    EXPECT_EQ(info.kind, c.kind);
    EXPECT_EQ(info.parameter_count, c.parameters);
    EXPECT_EQ(info.buffer_count, c.buffers);
    int64_t next = 0;
    for (const ports::TensorInfo& tensor : info.parameters) {
      int64_t size = 1;
      for (const int64_t extent : tensor.shape) size *= extent;
      EXPECT_EQ(tensor.size, size) << tensor.name;
      EXPECT_EQ(tensor.offset, next) << tensor.name;
      next += size;
    }
    EXPECT_EQ(next, c.parameters);
    EXPECT_EQ((*learner)->data().train_rows, 2);
    EXPECT_EQ((*learner)->data().classes, c.classes);
  }
}

TEST(Models, NameTheirTensorsAsTheReferenceImplementationsDo) {
  const auto cnn = CreateTorchLearner(
      Spec("cnn", 10), LearnerData(RandomRows({1, 28, 28}, 2, 2, 1)), {});
  ASSERT_TRUE(cnn.ok()) << cnn.status();
  std::vector<std::string> names;
  for (const auto& tensor : (*cnn)->model().parameters) {
    names.push_back(tensor.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  const auto resnet = CreateTorchLearner(
      Spec("resnet18", 10), LearnerData(RandomRows({3, 32, 32}, 2, 2, 1)), {});
  ASSERT_TRUE(resnet.ok()) << resnet.status();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& tensor : (*resnet)->model().parameters) {
    shapes[tensor.name] = tensor.shape;
  }
  EXPECT_EQ(shapes["layer2.0.downsample.0.weight"],
            (std::vector<int64_t>{128, 64, 1, 1}));
  EXPECT_EQ((*resnet)->model().buffers[0].name, "bn1.running_mean");
}

// Pinned: every node starts a run from these bits.
TEST(Initialise, ValuesArePinned) {
  std::vector<ports::TensorInfo> tensors(2);
  tensors[0].name = "conv1.weight";
  tensors[0].size = 3;
  tensors[1].name = "conv1.bias";
  tensors[1].offset = 3;
  tensors[1].size = 3;
  std::vector<float> flat(6);
  const std::vector<InitRule> rules = {InitRule::BeforeRelu(9),
                                       InitRule::Output(9)};
  FillTensors(1, tensors, rules, absl::MakeSpan(flat));
  const std::vector<float> expected = {0x1.3688d6p-3F,  0x1.827b46p-3F,
                                       -0x1.478d28p-2F, 0x1.31a8ap-4F,
                                       0x1.8b08bcp-2F,  -0x1.57269p-3F};
  EXPECT_EQ(flat, expected);
}

TEST(Initialise, IsEqualOnTwoNodesAndDependsOnTheSeed) {
  LearnerOptions other;
  other.data_seed = 77;
  const auto rows = RandomRows({3, 16, 16}, 4, 2, 1);
  auto a = MakeLearner(Spec("resnet20", 2), rows);
  auto b = MakeLearner(Spec("resnet20", 2), RandomRows({3, 16, 16}, 9, 2, 5),
                       absl::nullopt, other);
  auto c = MakeLearner(Spec("resnet20", 2), rows, absl::nullopt, {}, 2);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ((*a)->parameters, (*b)->parameters);
  EXPECT_EQ((*a)->buffers, (*b)->buffers);
  EXPECT_NE((*a)->parameters, (*c)->parameters);
  for (const auto& tensor : (*a)->learner->model().parameters) {
    const auto values = absl::MakeConstSpan((*a)->parameters)
                            .subspan(static_cast<size_t>(tensor.offset),
                                     static_cast<size_t>(tensor.size));
    if (tensor.name == "layer1.0.bn1.weight") {
      EXPECT_THAT(values, Each(1.0F));
    }
    if (tensor.name == "layer1.0.bn1.bias") {
      EXPECT_THAT(values, Each(0.0F));
    }
    if (tensor.name == "layer1.0.conv1.weight") {
      for (const float value : values) {
        EXPECT_LE(std::fabs(value), std::sqrt(6 / 144.0));
      }
    }
  }
}

TEST(Initialise, ConvexModelsStartAtZero) {
  for (const char* kind : {"linear", "logistic", "svm"}) {
    auto bound = MakeLearner(Spec(kind, 3), RandomRows({5}, 6, 3, 1));
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_THAT((*bound)->parameters, Each(0.0F)) << kind;
  }
}

TEST(DropoutMask, KeepsTheExpectationAndIsPinned) {
  std::vector<float> mask(100001);
  FillDropoutMask(DropoutSeed(1, 2), 0, 0.3, absl::MakeSpan(mask));
  double sum = 0;
  int64_t dropped = 0;
  for (const float value : mask) {
    sum += value;
    if (value == 0) ++dropped;
  }
  EXPECT_NEAR(sum / 100001, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(dropped) / 100001, 0.3, 0.01);
  std::vector<float> pinned(16);
  FillDropoutMask(DropoutSeed(1, 9), 0, 0.5, absl::MakeSpan(pinned));
  EXPECT_EQ(pinned, (std::vector<float>{0, 2, 0, 2, 0, 2, 2, 0, 2, 0, 0, 0, 2,
                                        2, 2, 2}));
  std::vector<float> other_layer(16);
  FillDropoutMask(DropoutSeed(1, 9), 1, 0.5, absl::MakeSpan(other_layer));
  EXPECT_NE(pinned, other_layer);
}

TEST(ModelHash, TellsStructuresApartAndLeavesTheRestToTheContract) {
  const auto contract = [](const core::ModelSpec& spec,
                           std::vector<int64_t> shape, int64_t rows) {
    const auto learner = CreateTorchLearner(
        spec, LearnerData(RandomRows(std::move(shape), rows, 2, 1)), {});
    EXPECT_TRUE(learner.ok()) << learner.status();
    return learner.ok() ? (*learner)->model().contract : core::DataContract();
  };
  const core::DataContract base = contract(Spec("mlp", 2), {6}, 4);
  EXPECT_EQ(base.model.size(), 64U);
  EXPECT_EQ(base.loss, "cross-entropy");
  EXPECT_EQ(base, contract(Spec("mlp", 2), {6}, 9));
  core::ModelSpec spelled_out = Spec("mlp", 2);
  spelled_out.input = {6};
  spelled_out.loss = "cross-entropy";
  EXPECT_EQ(base, contract(spelled_out, {6}, 4));
  core::ModelSpec other = Spec("mlp", 2);
  other.l2 = 1e-9;
  EXPECT_EQ(base.model, contract(other, {6}, 4).model);
  EXPECT_NE(base.loss, contract(other, {6}, 4).loss);
  other = Spec("mlp", 2);
  other.dropout = 0.1;
  EXPECT_NE(base.model, contract(other, {6}, 4).model);
  other = Spec("mlp", 2);
  other.hidden = {64};
  EXPECT_NE(base.model, contract(other, {6}, 4).model);
  other = Spec("mlp", 2);
  other.input = {2, 3};
  EXPECT_NE(base.model, contract(other, {6}, 4).model);
  EXPECT_NE(contract(Spec("svm", 2), {6}, 4).model,
            contract(Spec("logistic", 2), {6}, 4).model);
}

TEST(ModelHash, IsKnownBeforeTheModelIsBuilt) {
  core::ModelSpec spec = Spec("mlp", -1);
  spec.l2 = 0.5;
  spec.class_weights = {1, 2, 3};
  const auto learner = CreateTorchLearner(
      spec, LearnerData(RandomRows({6}, 9, 3, 1)), LearnerOptions());
  ASSERT_TRUE(learner.ok()) << learner.status();
  for (const int64_t width : {5, 6}) {
    const auto identity =
        IdentifyModel(spec, core::Task::kClassification, {width});
    ASSERT_TRUE(identity.ok()) << identity.status();
    EXPECT_EQ(identity->loss, (*learner)->model().contract.loss);
    EXPECT_EQ(identity->model, (*learner)->model().contract.model);
  }
  const auto regression =
      IdentifyModel(Spec("cnn", -1), core::Task::kRegression, {1, 8, 8});
  ASSERT_TRUE(regression.ok()) << regression.status();
  EXPECT_EQ(regression->loss, "mse");
  EXPECT_FALSE(
      IdentifyModel(Spec("svm", -1), core::Task::kRegression, {3}).ok());
  EXPECT_FALSE(
      IdentifyModel(Spec("mlp", 2), core::Task::kRegression, {3}).ok());
  EXPECT_FALSE(
      IdentifyModel(Spec("mlp", 0), core::Task::kClassification, {3}).ok());
}

TEST(ModelSpec, RefusalsNameKeyValueAndWhatIsAllowed) {
  struct Case {
    const char* name;
    std::function<void(core::ModelSpec*, DataShape*)> spoil;
    std::vector<std::string> texts;
  };
  const Case cases[] = {
      {"kind",
       [](auto* spec, auto*) { spec->kind = "cmn"; },
       {"model.kind", "\"cmn\"", "resnet20"}},
      {"loss",
       [](auto* spec, auto*) { spec->loss = "focal"; },
       {"model.loss", "\"focal\"", "hinge"}},
      {"one class",
       [](auto* spec, auto*) { spec->classes = 1; },
       {"model.classes", "1 found", "2 to"}},
      {"fewer classes than the data",
       [](auto* spec, auto*) { spec->classes = 5; },
       {"model.classes", "10 classes", "at least 10"}},
      {"regression with a classifier",
       [](auto* spec, auto*) {
         spec->kind = "svm";
         spec->classes = 0;
       },
       {"model.classes", "0 (regression) with kind svm", "linear, mlp, cnn"}},
      {"labels for a regression",
       [](auto* spec, auto*) {
         spec->kind = "linear";
         spec->classes = 0;
       },
       {"model.classes", "the data has 10 classes"}},
      {"targets for a classification",
       [](auto*, auto* data) { data->classes = 0; },
       {"model.classes", "has targets"}},
      {"regression with a loss of classes",
       [](auto* spec, auto* data) {
         spec->kind = "linear";
         spec->classes = 0;
         spec->loss = "hinge";
         data->classes = 0;
       },
       {"model.loss", "mse or huber for a regression"}},
      {"huber with classes",
       [](auto* spec, auto*) { spec->loss = "huber"; },
       {"model.loss", "for a regression", "cross-entropy"}},
      {"no distance for huber",
       [](auto* spec, auto* data) {
         spec->kind = "linear";
         spec->classes = 0;
         spec->loss = "huber";
         spec->huber_delta = 0;
         data->classes = 0;
       },
       {"model.huber_delta", "0 found", "above 0"}},
      {"a distance without huber",
       [](auto* spec, auto*) { spec->huber_delta = 2; },
       {"model.huber_delta", "cross-entropy", "loss huber"}},
      {"weights of another number of classes",
       [](auto* spec, auto*) { spec->class_weights = {1, 2}; },
       {"model.class_weights", "2 numbers for 10 classes", "one for each"}},
      {"a weight of 0",
       [](auto* spec, auto*) {
         spec->class_weights = std::vector<double>(10, 1);
         spec->class_weights[3] = 0;
       },
       {"model.class_weights", "0 found", "above 0"}},
      {"weights with another loss",
       [](auto* spec, auto*) {
         spec->loss = "hinge";
         spec->class_weights = std::vector<double>(10, 1);
       },
       {"model.class_weights", "hinge", "cross-entropy"}},
      {"another input size",
       [](auto* spec, auto*) { spec->input = {1, 28, 27}; },
       {"model.input", "[1, 28, 27]", "[1, 28, 28]"}},
      {"a vector for the cnn",
       [](auto* spec, auto*) { spec->input = {784}; },
       {"model.input", "[784]", "at most 32"}},
      {"a small image for a resnet",
       [](auto* spec, auto* data) {
         spec->kind = "resnet18";
         data->row = {3, 8, 8};
       },
       {"model.input", "[3, 8, 8]", "at least 16"}},
      {"negative l2",
       [](auto* spec, auto*) { spec->l2 = -1; },
       {"model.l2", "-1", "0 or more"}},
      {"certain dropout",
       [](auto* spec, auto*) {
         spec->kind = "mlp";
         spec->dropout = 1;
       },
       {"model.dropout", "1 found", "[0, 1)"}},
      {"empty layer",
       [](auto* spec, auto*) {
         spec->kind = "mlp";
         spec->hidden = {10, 0};
       },
       {"model.hidden", "width 0", "from 1"}},
      {"no path",
       [](auto* spec, auto*) { spec->kind = "torchscript"; },
       {"model.path", ".pt"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    core::ModelSpec spec = Spec("cnn", 10);
    DataShape data;
    data.row = {1, 28, 28};
    data.classes = 10;
    ASSERT_TRUE(ResolveSpec(spec, data).ok());
    c.spoil(&spec, &data);
    const absl::Status status = ResolveSpec(spec, data).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("allowed: "));
    for (const std::string& text : c.texts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  }
}

TEST(Options, RefusalsSayWhatIsAllowed) {
  const auto create = [](const LearnerOptions& options) {
    return CreateTorchLearner(Spec("logistic", 2),
                              LearnerData(RandomRows({3}, 4, 2, 1)), options)
        .status();
  };
  LearnerOptions options;
  options.device = "tpu";
  EXPECT_THAT(std::string(create(options).message()),
              AllOf(HasSubstr("\"tpu\""), HasSubstr("cpu, cuda")));
  for (const char* device : {"cuda:", "cuda:x", "cuda1", "cuda:-1", ""}) {
    EXPECT_EQ(CheckDevice(device).code(), absl::StatusCode::kInvalidArgument)
        << device;
  }
  EXPECT_TRUE(CheckDevice("cpu").ok());
  const absl::Status none = CheckDevice("cuda:4000");
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              AllOf(HasSubstr("\"cuda:4000\""), HasSubstr("allowed: cpu")));
}

TEST(Options, TestRowsMustLookLikeTrainingRows) {
  LearnerData data(RandomRows({3}, 4, 2, 1));
  data.test = RandomRows({4}, 4, 2, 1);
  const absl::Status status =
      CreateTorchLearner(Spec("logistic", 2), std::move(data), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("test rows are [4]"));
}

TEST(Bind, RefusesBuffersOfAnotherSize) {
  const auto learner = CreateTorchLearner(
      Spec("logistic", 2), LearnerData(RandomRows({3}, 4, 2, 1)), {});
  ASSERT_TRUE(learner.ok()) << learner.status();
  std::vector<float> seven(7);
  std::vector<float> eight(8);
  const absl::Status status =
      (*learner)->Bind(absl::MakeSpan(seven), absl::MakeSpan(eight), {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      (*learner)->Bind(absl::MakeSpan(eight), absl::MakeSpan(eight), {}).ok());
}

}  // namespace
}  // namespace dfl::learner
