// A large model crosses between two real daemons with bounded memory. Reduced
// by default; DFL_LARGE_MODEL=1 (ctest label "large") takes 1 GB with one
// 600 MB tensor.
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr int64_t kMega = 1'000'000;

bool FullSize() { return std::getenv("DFL_LARGE_MODEL") != nullptr; }

// An mlp with hidden layers a, a and c: a^2 + a c parameters and some more.
std::string Hidden() {
  // 12247^2 x 4 bytes = 600 MB, 12247 x 8165 x 4 bytes = 400 MB.
  return FullSize() ? "[12247, 12247, 8165]" : "[2449, 2449, 1633]";
}

// `kappa_a`, `kappa_b`: how often a and b ask; a step so small that the model
// stays as it started.
std::string Plan(const std::string& algorithm, int64_t kappa_a,
                 int64_t kappa_b) {
  const bool pame = algorithm == "pame";
  std::string plan =
      absl::StrCat("run: large\nseed: 3\nversion: 1\nmembers: [a, b]\n",
                   "model: {kind: mlp, classes: 3, hidden: ", Hidden(), "}\n",
                   "batch_size: 4\ntopology: {kind: complete}\n",
                   "codec: {coordinates: dense, values: fp32}\n",
                   "evaluation: {every_steps: 0}\ndeadline: {exchange: 120s}\n",
                   "algorithm: {name: ", algorithm, ", knobs: {sigma0: 1.0e+30",
                   pame ? ", nu: 1, p: 1" : "", "}}\n");
  if (pame) {
    absl::StrAppend(&plan, "nodes:\n  a: {knobs: {kappa: ", kappa_a,
                    "}}\n  b: {knobs: {kappa: ", kappa_b, "}}\n");
  }
  return plan;
}

constexpr int64_t kNever = 1'000'000'000;

class LargeModel : public testing::Test {
 protected:
  // Two daemons with `plan`, training; each has done `steps`.
  void Run(const std::string& plan, int64_t steps) {
    WriteBlobs(folder_.File("train.csv"), 60, 8, 3, 1);
    for (const char* name : {"a", "b"}) {
      DaemonProcess::Options options;
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = folder_.File("train.csv");
      if (!nodes_.empty()) options.peers = {nodes_[0]->peer_address()};
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
    }
    for (const auto& node : nodes_) {
      const auto applied =
          node->client().ApplyPlan({plan, std::nullopt, false});
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->StatusBecomes(
          absl::Minutes(10),
          [steps](const client::NodeStatus& s) { return s.step >= steps; }))
          << node->log();
    }
  }

  int64_t Peak(int node) { return nodes_[node]->process().PeakResidentBytes(); }
  int64_t ModelBytes() { return 4 * nodes_[0]->Status().parameter_count; }

  void EndAll() {
    for (const auto& node : nodes_) node->Stop();
    nodes_.clear();
  }

  // SHA-256 of the node's model file.
  std::string ModelDigest(int node) {
    Sha256 hash;
    const auto exported = nodes_[node]->client().ExportModel(
        client::ModelFormat::kSafetensors,
        [&hash](absl::string_view data, int64_t) {
          hash.Update(data);
          return absl::OkStatus();
        });
    EXPECT_TRUE(exported.ok()) << exported.status();
    return hash.HexDigest();
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(LargeModel, CrossesWithBoundedMemory) {
  constexpr int64_t kSteps = 4;
  Run(Plan("local", kNever, kNever), kSteps);
  if (HasFatalFailure()) return;
  const int64_t model = ModelBytes();
  const int64_t alone = Peak(0);
  EndAll();

  // Only a asks: a receives, b sends.
  Run(Plan("pame", 1, kNever), kSteps);
  if (HasFatalFailure()) return;
  EXPECT_GE(nodes_[0]->Status().models_received, 1);
  const int64_t receiving = Peak(0) - alone;
  const int64_t sending = Peak(1) - alone;
  EndAll();

  Run(Plan("pame", 1, 1), kSteps);
  if (HasFatalFailure()) return;
  const int64_t both = std::max(Peak(0), Peak(1)) - alone;
  EndAll();

  std::cout << "model " << model / kMega << " MB; over training alone: "
            << "receiving " << receiving / kMega << " MB, sending "
            << sending / kMega << " MB, both " << both / kMega << " MB\n";
  EXPECT_LE(receiving, model + 64 * kMega);
  EXPECT_LE(sending, model + 64 * kMega);
  EXPECT_LE(both, 2 * model + 64 * kMega);
}

TEST_F(LargeModel, AnInterruptedAnswerLeavesTheModelAsItWas) {
  Run(Plan("pame", kNever, kNever), 1);
  if (HasFatalFailure()) return;
  const std::string before = ModelDigest(0);
  // From now on a asks in every step; b dies as soon as bytes are coming.
  std::string plan = Plan("pame", 1, kNever);
  plan.replace(plan.find("version: 1"), 10, "version: 2");
  ASSERT_TRUE(nodes_[0]->client().ApplyPlan({plan, std::nullopt, false}).ok());
  const auto received = [](const client::NodeStatus& status) {
    return status.bytes_received > (1 << 20) && status.models_received == 0;
  };
  const bool caught = nodes_[0]->StatusBecomes(absl::Seconds(20), received);
  nodes_[1]->Kill();
  if (!caught) {
    GTEST_SKIP() << "the transfer was quicker than the look at it";
  }
  const int64_t step = nodes_[0]->Status().step;
  EXPECT_TRUE(nodes_[0]->StatusBecomes(
      absl::Minutes(5),
      [step](const client::NodeStatus& s) { return s.step > step; }));
  EXPECT_EQ(ModelDigest(0), before);
}

}  // namespace
}  // namespace dfl::testing_support
