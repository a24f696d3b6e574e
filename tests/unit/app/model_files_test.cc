// The model as a file: out of the node, into it as a whole or in part, and
// published while it trains.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing_support::ReadFile;
using testing_support::TemporaryFolder;

constexpr char kAlone[] =
    "run: alone\n"
    "seed: 5\n"
    "members: [anna]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: local}\n"
    "evaluation: {every_steps: 10}\n"
    "stop: {steps: 50}\n";

// Header and values of a safetensors file.
struct File {
  nlohmann::json header;
  std::vector<float> values;
};
File Parse(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  File file;
  file.header = nlohmann::json::parse(bytes.substr(8, length));
  file.values.resize((bytes.size() - 8 - length) / 4);
  std::memcpy(file.values.data(), bytes.data() + 8 + length,
              4 * file.values.size());
  return file;
}
std::string Write(const nlohmann::json& header,
                  const std::vector<float>& values) {
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += text;
  bytes.append(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return bytes;
}

class ModelFilesTest : public testing::Test {
 protected:
  // A daemon on a new disk.
  BackendStage& Start(BackendOptions options = {},
                      const std::string& plan = kAlone) {
    stage_.reset();
    disk_ = simports::SimFiles();
    stage_ =
        std::make_unique<BackendStage>(disk_, learners_, std::move(options));
    EXPECT_TRUE(stage_->backend().Restore().ok());
    const auto applied = stage_->Apply(plan);
    EXPECT_TRUE(applied.ok()) << applied.status();
    return *stage_;
  }
  void Train() {
    ASSERT_TRUE(stage_->Train(control::TrainAction::kStart).ok());
    while (stage_->Status().phase != ports::Phase::kFinished) {
    }
  }
  // The model as it is now.
  std::string Export() {
    const auto source = stage_->Export(control::ModelFileFormat::kSafetensors);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *(*source)->Read(0, (*source)->total_bytes()) : "";
  }

  TemporaryFolder folder_;
  simports::SimFiles disk_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(ModelFilesTest, WhatGoesOutComesInAgain) {
  Start();
  Train();
  const std::string bytes = Export();
  File file = Parse(bytes);
  EXPECT_EQ(file.header["__metadata__"]["run"], "alone");
  EXPECT_EQ(file.header["__metadata__"]["step"], "50");
  for (float& value : file.values) value = -value;
  const auto taken = stage_->Import({}, Write(file.header, file.values));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->parameter_count, 10);
  EXPECT_EQ(taken->step, 50);
  EXPECT_EQ(Parse(Export()).values, file.values);
}

// A part of the model is replaced, and the rest is what the run starts from or
// has come to.
TEST_F(ModelFilesTest, APartComesInAndTheRestStays) {
  learners_.tensors = {4, 6};
  control::ImportRequest part;
  part.only = {"*0"};
  const std::string zero = Write(
      {{"t0", {{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {0, 16}}}}},
      std::vector<float>(4, 0));
  // What the seed gives.
  Start();
  Train();
  const std::vector<float> fresh = Parse(Export()).values;
  const auto taken = stage_->Import(part, zero);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->parameter_count, 4);
  EXPECT_THAT(taken->notes,
              Contains(HasSubstr("keeps the node's values: \"t1\"")));
  std::vector<float> expected = fresh;
  std::fill_n(expected.begin(), 4, 0.0F);
  EXPECT_EQ(Parse(Export()).values, expected);

  // Before the run has begun.
  Start();
  ASSERT_TRUE(stage_->Import(part, zero).ok());
  EXPECT_EQ(Parse(Export()).values, expected);
  Train();  // the gradient of this learner is 0
  EXPECT_EQ(Parse(Export()).values, expected);
}

// The node outlives the backend when the daemon goes down.
TEST_F(ModelFilesTest, AnExportThatWaitsForABoundaryFindsNobody) {
  absl::Notification begun;
  absl::Notification go_on;
  learners_.tensors = {10};
  learners_.on_gradient = [&] {
    if (begun.HasBeenNotified()) return;
    begun.Notify();
    go_on.WaitForNotification();
  };
  // In a round of several steps; an imported model need not be looked for.
  Start({}, absl::StrReplaceAll(
                kAlone, {{"[anna]", "[anna, bert]"}, {"local", "dfedavgm"}}));
  ASSERT_TRUE(stage_
                  ->Import({}, Write({{"t0",
                                       {{"dtype", "F32"},
                                        {"shape", {10}},
                                        {"data_offsets", {0, 40}}}}},
                                     std::vector<float>(10, 1)))
                  .ok());
  ASSERT_TRUE(stage_->Train(control::TrainAction::kStart).ok());
  begun.WaitForNotification();
  absl::Notification answered;
  absl::Status answer;
  stage_->backend().BeginExport(
      control::ModelFileFormat::kSafetensors,
      [&](const absl::StatusOr<std::unique_ptr<control::ModelSource>>& file) {
        answer = file.status();
        answered.Notify();
      });
  stage_->Status();  // it has been posted, and waits in the node
  EXPECT_FALSE(answered.HasBeenNotified());
  stage_->EndBackend();
  go_on.Notify();
  answered.WaitForNotification();
  EXPECT_EQ(answer.code(), absl::StatusCode::kUnavailable) << answer;
}

TEST_F(ModelFilesTest, AnotherModelIsRefusedByName) {
  Start();
  const auto refused = stage_->Import(
      {},
      Write({{"head.weight",
              {{"dtype", "F32"}, {"shape", {3}}, {"data_offsets", {0, 12}}}}},
            {1, 2, 3}));
  EXPECT_THAT(
      std::string(refused.status().message()),
      AllOf(HasSubstr("tensors are missing"), HasSubstr("\"head.weight\"")));
}

// --------------------------------------------------------------- published --

BackendOptions Publishing(const std::string& path,
                          config::PublishSettings::When when) {
  BackendOptions options;
  options.publish.path = path;
  options.publish.when = when;
  options.publish.every_steps = 1000000;
  return options;
}

TEST_F(ModelFilesTest, TheModelIsPublishedWhileItTrainsAndAtTheEnd) {
  const std::string path = folder_.File("model.safetensors");
  BackendOptions options =
      Publishing(path, config::PublishSettings::When::kSteps);
  Start(options);
  Train();
  while (ReadFile(path).empty()) stage_->Status();
  EXPECT_EQ(Parse(ReadFile(path)).header["__metadata__"]["step"], "50");
  EXPECT_EQ(ReadFile(path), Export());
  EXPECT_THAT(stage_->backend().Status().warnings,
              Not(Contains(HasSubstr("published"))));
  // Nothing is written twice.
  std::filesystem::remove(path);
  for (int i = 0; i < 5; ++i) stage_->Status();
  stage_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ModelFilesTest, TheBestModelIsPublishedAndOutlivesARestart) {
  const std::string path = folder_.File("best.safetensors");
  const BackendOptions options =
      Publishing(path, config::PublishSettings::When::kBest);
  Start(options);
  Train();
  while (ReadFile(path).empty()) stage_->Status();
  // All evaluations of this learner are the same, so the first is the best.
  EXPECT_EQ(Parse(ReadFile(path)).header["__metadata__"]["step"], "10");
  const std::string before = ReadFile(path);
  Start(options);
  Train();
  stage_.reset();
  EXPECT_EQ(ReadFile(path), before);
}

TEST_F(ModelFilesTest, WhatCannotBePublishedIsAWarningAndNotAnEnd) {
  Start(Publishing(folder_.File("no/such/folder/m"),
                   config::PublishSettings::When::kSteps));
  Train();
  std::vector<std::string> warnings;
  while (warnings.empty()) {
    stage_->Status();
    for (const std::string& warning : stage_->backend().Status().warnings) {
      if (warning.find("not published") != std::string::npos) {
        warnings.push_back(warning);
      }
    }
  }
  EXPECT_THAT(warnings, Contains(HasSubstr("make the folder first")));
  EXPECT_EQ(stage_->Status().phase, ports::Phase::kFinished);
}

}  // namespace
}  // namespace dfl::app
