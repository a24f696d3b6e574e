// The model as a file, as programs and people meet it: what is in it, what
// comes back, and the examples of docs/models.md. Where it may be written to:
// cases/04_export_target.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A tensor of a safetensors file, and a file of them.
struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
struct TensorFile {
  json metadata;
  std::map<std::string, Tensor> tensors;

  static TensorFile Of(const std::string& bytes) {
    TensorFile file;
    uint64_t length = 0;
    if (bytes.size() < 8) return file;
    std::memcpy(&length, bytes.data(), 8);
    const json header = json::parse(bytes.substr(8, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry;
        continue;
      }
      const size_t begin = entry.at("data_offsets")[0];
      const size_t end = entry.at("data_offsets")[1];
      file.tensors[name] = {entry.at("dtype"),
                            entry.at("shape").get<std::vector<int64_t>>(),
                            bytes.substr(8 + length + begin, end - begin)};
    }
    return file;
  }
  std::string Bytes() const {
    json header = json::object();
    std::string data;
    if (!metadata.is_null()) header["__metadata__"] = metadata;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
      data += tensor.bytes;
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + text + data;
  }
};

// The features of the second row, which is of class 1.
std::string SecondRow(const std::string& path, const std::string& between) {
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(path), '\n');
  std::vector<std::string> numbers = absl::StrSplit(lines.at(1), ',');
  numbers.pop_back();
  return absl::StrJoin(numbers, between);
}

class ModelFile : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    WriteBlobs(folder_.File("test.csv"), 30, 4, 3, 2);
  }
  void TearDown() override {
    if (HasFailure() && node_) std::cerr << "---- log\n" << node_->log();
  }

  void Start(const std::string& extra_yaml = "") {
    DaemonProcess::Options options;
    options.name = "a";
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.test_csv = folder_.File("test.csv");
    options.extra_yaml = extra_yaml;
    node_ = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(node_->Start()) << node_->log();
  }
  void Train(const std::string& model) {
    WriteFile(
        folder_.File("plan.yaml"),
        absl::StrCat("members: [a]\nmodel: ", model,
                     "\nalgorithm: {name: local}\nbatch_size: 8\n"
                     "evaluation: {every_steps: 20}\nstop: {steps: 60}\n"));
    ASSERT_EQ(Dflctl({"plan", "apply", folder_.File("plan.yaml"), "--new-run"})
                  .exit_code,
              0);
    ASSERT_EQ(Dflctl({"train", "start"}).exit_code, 0);
    ASSERT_TRUE(node_->StatusBecomes(
        absl::Seconds(20), [](const client::NodeStatus& status) {
          return status.phase == client::Phase::kFinished;
        }));
  }
  Outcome Dflctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    arguments.insert(arguments.end(), {"--target", node_->target()});
    return RunCommand(arguments, {}, absl::Seconds(30));
  }
  Outcome Shell(const std::string& command) const {
    return RunCommand({"/bin/sh", "-c", command},
                      {{"CTL", absl::StrCat(Program("dflctl"), " --target ",
                                            node_->target(), " model ")},
                       {"D", folder_.path()}},
                      absl::Seconds(30));
  }
  TensorFile Exported() const {
    const std::string path = folder_.File("exported");
    EXPECT_EQ(Dflctl({"model", "export", path}).exit_code, 0);
    return TensorFile::Of(ReadFile(path));
  }
  Outcome Import(const TensorFile& file,
                 const std::vector<std::string>& flags = {}) const {
    WriteFile(folder_.File("in"), file.Bytes());
    std::vector<std::string> arguments = {"model", "import",
                                          folder_.File("in")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return Dflctl(arguments);
  }

  TemporaryFolder folder_;
  std::unique_ptr<DaemonProcess> node_;
};

TEST_F(ModelFile, FilesOfOtherProgramsComeIn) {
  Start();
  ASSERT_NO_FATAL_FAILURE(Train("{kind: logistic, classes: 3}"));
  const TensorFile good = Exported();
  ASSERT_EQ(good.tensors.size(), 2);

  // BF16 is the upper half of a float32.
  TensorFile half = good;
  for (auto& [name, tensor] : half.tensors) {
    std::string narrow;
    for (size_t i = 0; i < tensor.bytes.size(); i += 4) {
      narrow += tensor.bytes.substr(i + 2, 2);
    }
    tensor.dtype = "BF16";
    tensor.bytes = narrow;
  }
  const Outcome widened = Import(half);
  EXPECT_EQ(widened.exit_code, 0) << widened.err;
  EXPECT_THAT(widened.err, HasSubstr("2 tensors are BF16"));
  const TensorFile after = Exported();
  for (const auto& [name, tensor] : after.tensors) {
    for (size_t i = 0; i < tensor.bytes.size(); i += 4) {
      EXPECT_EQ(tensor.bytes.substr(i, 2), std::string(2, '\0'));
      EXPECT_EQ(tensor.bytes.substr(i + 2, 2),
                good.tensors.at(name).bytes.substr(i + 2, 2));
    }
  }

  TensorFile prefixed;
  for (const auto& [name, tensor] : good.tensors) {
    prefixed.tensors["module." + name] = tensor;
  }
  const Outcome hinted = Import(prefixed);
  EXPECT_NE(hinted.exit_code, 0);
  EXPECT_THAT(hinted.err, HasSubstr("did you mean --strip-prefix module.?"));
  const Outcome stripped = Import(prefixed, {"--strip-prefix", "module."});
  EXPECT_EQ(stripped.exit_code, 0) << stripped.err;
  EXPECT_EQ(Exported().tensors.at("linear.bias").bytes,
            good.tensors.at("linear.bias").bytes);

  TensorFile wide = good;
  wide.tensors["linear.weight"] = {"F32", {10, 4}, std::string(160, '\0')};
  EXPECT_THAT(
      Import(wide).err,
      HasSubstr("\"linear.weight\": shape [10, 4], where the model's is "
                "[3, 4]"));
  const Outcome part = Import(wide, {"--only", "*.bias"});
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_THAT(part.err, HasSubstr("keeps the node's values"));
}

TEST_F(ModelFile, SaysWhatItsNumbersMean) {
  Start();
  ASSERT_NO_FATAL_FAILURE(Train("{kind: logistic, classes: 3}"));
  TensorFile file = Exported();
  json contract =
      json::parse(file.metadata.at("dfl.contract").get<std::string>());
  EXPECT_EQ(contract.at("task"), "classification");
  EXPECT_TRUE(contract.at("input").contains("divide"));
  EXPECT_EQ(file.metadata.at("step"), "60");
  // A model of other classes is refused, with both sides.
  contract["shape"] = {7};
  file.metadata["dfl.contract"] = contract.dump();
  const Outcome refused = Import(file, {"--force"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("shape [7]"), HasSubstr("[4]")));
}

// What is neither trained nor mixed leaves with the rest.
TEST_F(ModelFile, HasTheWholeState) {
  const std::string net = folder_.File("net.pt");
  ASSERT_EQ(RunCommand({Program("make_torchscript"), net, "4", "3", "frozen"})
                .exit_code,
            0);
  Start();
  ASSERT_NO_FATAL_FAILURE(Train(
      absl::StrCat("{kind: torchscript, classes: 3, path: \"", net, "\"}")));
  const TensorFile file = Exported();
  std::vector<std::string> dtypes;
  for (const auto& [name, tensor] : file.tensors) {
    dtypes.push_back(tensor.dtype);
  }
  EXPECT_THAT(dtypes, testing::Contains("I64"));
  const client::NodeStatus status = node_->Status();
  int64_t values = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (tensor.dtype == "F32") {
      values += static_cast<int64_t>(tensor.bytes.size()) / 4;
    }
  }
  EXPECT_GT(values, status.parameter_count + status.buffer_count)
      << "the frozen weights";
  const Outcome back = Import(file);
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("skipped, for the node does not train it"));
}

// The examples of the documentation, on files that the daemon has published.
TEST_F(ModelFile, IsUsedByTheExamples) {
  if (RunCommand({"/usr/bin/python3", "-c", "import numpy"}).exit_code != 0) {
    GTEST_SKIP() << "install python3-numpy to run this test";
  }
  const std::string path = folder_.File("published.safetensors");
  Start(absl::StrCat("model: {publish: {path: \"", path, "\"}}\n"));
  ASSERT_NO_FATAL_FAILURE(Train("{kind: logistic, classes: 3}"));
  ASSERT_TRUE(Eventually(absl::Seconds(20),
                         [&] { return std::filesystem::exists(path); }));
  const TensorFile file = TensorFile::Of(ReadFile(path));
  EXPECT_EQ(file.metadata.at("step"), "60");
  const json contract =
      json::parse(file.metadata.at("dfl.contract").get<std::string>());
  EXPECT_THAT(contract.at("classes"), testing::SizeIs(3));
  // The second row of the training data is of class 1.
  const Outcome said =
      RunCommand({"/usr/bin/python3",
                  absl::StrCat(DFL_DOCS_FOLDER, "/examples/use_model.py"), path,
                  SecondRow(folder_.File("train.csv"), ",")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.out, "1\n");
}

TEST_F(ModelFile, TorchScriptIsUsedByTheExample) {
  const std::string net = folder_.File("net.pt");
  ASSERT_EQ(RunCommand({Program("make_torchscript"), net, "4", "3"}).exit_code,
            0);
  const std::string path = folder_.File("published.pt");
  Start(absl::StrCat("model: {publish: {path: \"", path, "\", when: best}}\n"));
  ASSERT_NO_FATAL_FAILURE(Train(
      absl::StrCat("{kind: torchscript, classes: 3, path: \"", net, "\"}")));
  ASSERT_TRUE(Eventually(absl::Seconds(20),
                         [&] { return std::filesystem::exists(path); }));
  const json about = json::parse(ReadFile(path + ".json"));
  EXPECT_THAT(about.at("dfl.contract").at("classes"), testing::SizeIs(3));
  const Outcome said =
      Shell(absl::StrCat(Program("use_model"), " ", path, " ",
                         SecondRow(folder_.File("train.csv"), " ")));
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, testing::AnyOf("0\n", "1\n", "2\n"));
}

}  // namespace
}  // namespace dfl::testing_support
