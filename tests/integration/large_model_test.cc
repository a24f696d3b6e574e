// A large model crosses between two real daemons with bounded memory. Reduced
// by default; DFL_LARGE_MODEL=1 (ctest label "large") takes 1 GB with one
// 600 MB tensor.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/tcp_proxy.h"

namespace dfl::testing_support {
namespace {

constexpr int64_t kMega = 1'000'000;

bool FullSize() { return std::getenv("DFL_LARGE_MODEL") != nullptr; }

// An mlp with hidden layers a, a and c: a^2 + a c parameters and some more.
std::string Hidden() {
  // 12247^2 x 4 bytes = 600 MB, 12247 x 8165 x 4 bytes = 400 MB; else 52 and
  // 35 MB. Blocks of up to 32 MiB the process keeps when they are freed, so
  // with smaller tensors the peaks would tell of the heap.
  return FullSize() ? "[12247, 12247, 8165]" : "[3600, 3600, 2400]";
}

// `kappa_a`, `kappa_b`: how often a and b ask; a step so small that the model
// stays as it started.
std::string Plan(const std::string& algorithm, int64_t kappa_a,
                 int64_t kappa_b) {
  const bool pame = algorithm == "pame";
  std::string plan = absl::StrCat(
      "run: large\nseed: 3\nversion: 1\nmembers: [a, b]\n",
      "model: {kind: mlp, classes: 3, hidden: ", Hidden(), "}\n",
      "batch_size: 4\ntopology: {kind: complete}\n",
      "codec: {coordinates: dense, values: fp32}\n",
      "evaluation: {every_steps: 0}\ndeadline: {exchange: 60s}\n",
      "algorithm: {name: ", algorithm, ", knobs: {sigma0: 1.0e+300",
      pame ? ", nu: 1, p: 1" : "", "}}\n");
  if (pame) {
    absl::StrAppend(&plan, "nodes:\n  a: {knobs: {kappa: ", kappa_a,
                    "}}\n  b: {knobs: {kappa: ", kappa_b, "}}\n");
  }
  return plan;
}

constexpr int64_t kNever = 1'000'000'000;
constexpr int64_t kModels = 3;  // that cross while the peaks are taken

class LargeModel : public testing::Test {
 protected:
  // Two daemons with `plan`, training; each has done `steps`. b is reached
  // through a proxy.
  void Run(const std::string& plan, int64_t steps) {
    folder_ = std::make_unique<TemporaryFolder>();
    WriteBlobs(folder_->File("train.csv"), 60, 8, 3, 1);
    nodes_.resize(2);
    StartNode(1, "b", {});
    if (HasFatalFailure()) return;
    proxy_ = std::make_unique<TcpProxy>(nodes_[1]->peer_address());
    StartNode(0, "a", {proxy_->address()});
    if (HasFatalFailure()) return;
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

  // Run, and then some more: step 0, in which every node of PaME asks whatever
  // its kappa, is not in the peaks.
  void Steady(const std::string& plan) {
    Run(plan, 2);
    if (HasFatalFailure()) return;
    std::vector<int64_t> steps;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ASSERT_TRUE(nodes_[i]->process().ForgetPeak());
      const client::NodeStatus status = nodes_[i]->Status();
      received_[i] = status.models_received;
      steps.push_back(status.step);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ASSERT_TRUE(nodes_[i]->StatusBecomes(
          absl::Minutes(10),
          [step = steps[i]](const client::NodeStatus& s) {
            return s.step >= step + kModels + 1;
          }))
          << nodes_[i]->log();
    }
  }

  void StartNode(int index, const std::string& name,
                 const std::vector<std::string>& peers) {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_->path();
    options.train_csv = folder_->File("train.csv");
    options.peers = peers;
    nodes_[index] = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(nodes_[index]->Start()) << nodes_[index]->log();
  }

  int64_t Peak(int node) { return nodes_[node]->process().PeakResidentBytes(); }
  int64_t ModelBytes() { return 4 * nodes_[0]->Status().parameter_count; }

  void EndAll() {
    for (const auto& node : nodes_) node->Stop();
    nodes_.clear();
    proxy_.reset();
  }

  // SHA-256 of the values in the node's model file: all behind the header,
  // whose length is the first 8 bytes.
  std::string ModelDigest(int node) {
    std::string file;
    const auto exported = nodes_[node]->client().ExportModel(
        client::ModelFormat::kSafetensors,
        [&file](absl::string_view data, int64_t) {
          absl::StrAppend(&file, data);
          return absl::OkStatus();
        });
    EXPECT_TRUE(exported.ok()) << exported.status();
    uint64_t header = 0;
    if (file.size() < sizeof(header)) return "";
    std::memcpy(&header, file.data(), sizeof(header));
    return Sha256Hex(absl::string_view(file).substr(sizeof(header) + header));
  }

  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<TcpProxy> proxy_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
  int64_t received_[2] = {};  // models, before the peaks began
};

TEST_F(LargeModel, CrossesWithBoundedMemory) {
  Steady(Plan("local", kNever, kNever));
  if (HasFatalFailure()) return;
  const int64_t model = ModelBytes();
  const int64_t alone = std::min(Peak(0), Peak(1));
  EndAll();

  // Only a asks: a receives, b sends.
  Steady(Plan("pame", 1, kNever));
  if (HasFatalFailure()) return;
  EXPECT_EQ(nodes_[1]->Status().models_received, received_[1]);
  EXPECT_GE(nodes_[0]->Status().models_received - received_[0], kModels);
  const int64_t receiving = Peak(0) - alone;
  const int64_t sending = Peak(1) - alone;
  EndAll();

  Steady(Plan("pame", 1, 1));
  if (HasFatalFailure()) return;
  const int64_t both = std::max(Peak(0), Peak(1)) - alone;
  EndAll();

  std::cout << "model " << model / kMega << " MB; training alone "
            << alone / kMega << " MB; over that: receiving "
            << receiving / kMega << " MB, sending " << sending / kMega
            << " MB, both " << both / kMega << " MB\n";
  EXPECT_LE(receiving, model + 64 * kMega);
  EXPECT_LE(sending, model + 64 * kMega);
  EXPECT_LE(both, 2 * model + 64 * kMega);
}

TEST_F(LargeModel, AnInterruptedAnswerLeavesTheModelAsItWas) {
  Run(Plan("pame", kNever, kNever), 1);
  if (HasFatalFailure()) return;
  const std::string before = ModelDigest(0);
  const int64_t models = nodes_[0]->Status().models_received;
  // The link dies in the middle of the first answer.
  proxy_->CutAfter(ModelBytes() / 2);
  std::string plan = Plan("pame", 1, kNever);
  plan.replace(plan.find("version: 1"), 10, "version: 2");
  ASSERT_TRUE(nodes_[0]->client().ApplyPlan({plan, std::nullopt, false}).ok());
  ASSERT_TRUE(Eventually(absl::Minutes(2), [this] { return proxy_->cut(); }));
  nodes_[1]->Kill();
  const int64_t step = nodes_[0]->Status().step;
  EXPECT_TRUE(nodes_[0]->StatusBecomes(
      absl::Minutes(3),
      [step](const client::NodeStatus& s) { return s.step > step; }));
  EXPECT_EQ(nodes_[0]->Status().models_received, models);
  EXPECT_EQ(ModelDigest(0), before);
}

}  // namespace
}  // namespace dfl::testing_support
