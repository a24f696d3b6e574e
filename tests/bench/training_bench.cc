// What exchanging costs training: two daemons side by side that run PaME with
// kappa = 5 against two bare LibTorch loops side by side, the same model,
// batch and threads, in interleaved pairs.
//
//   training_bench [pairs=9] [steps=500] [folder]
//
// Prints each pair, the median ratio of steps a second (bar: >= 0.95) and the
// peak resident memory (bar: <= 1.25 x the bare loop's + 40 MB).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

struct Figures {
  double steps_per_second = 0;  // mean of the two
  int64_t peak_bytes = 0;       // the larger of the two
};

Figures BareLoops(int64_t steps, const std::string& data) {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<Process>> loops;
  for (const char* name : {"1", "2"}) {
    Process::Options options;
    options.command = {Program("bare_loop"), absl::StrCat(steps), "32", "1",
                       data};
    // What the daemon tells glibc of itself: freed memory is kept. A loop
    // without it spends two thirds of its time on page faults, and the ratio
    // would be of that.
    options.environment = {{"OPENBLAS_NUM_THREADS", "1"},
                           {"MALLOC_MMAP_THRESHOLD_", "33554432"},
                           {"MALLOC_TRIM_THRESHOLD_", "1073741824"}};
    options.stdout_file = folder.File(name);
    loops.push_back(std::make_unique<Process>(options));
  }
  Figures figures;
  for (size_t i = 0; i < loops.size(); ++i) {
    loops[i]->Wait(absl::Minutes(10));
    const auto line =
        nlohmann::json::parse(ReadFile(folder.File(absl::StrCat(i + 1))));
    figures.steps_per_second += line.at("steps_per_second").get<double>() / 2;
    figures.peak_bytes =
        std::max(figures.peak_bytes, line.at("peak_rss_bytes").get<int64_t>());
  }
  return figures;
}

// Steps a second of a node between its 20th step and its last, as seen here.
class Pace {
 public:
  void See(int64_t step, absl::Time now) {
    if (step < 20 || step == last_step_) return;
    if (first_step_ == 0) {
      first_step_ = step;
      first_ = now;
    }
    last_step_ = step;
    last_ = now;
  }
  double steps_per_second() const {
    return static_cast<double>(last_step_ - first_step_) /
           absl::ToDoubleSeconds(last_ - first_);
  }

 private:
  int64_t first_step_ = 0;
  int64_t last_step_ = 0;
  absl::Time first_;
  absl::Time last_;
};

Figures Daemons(int64_t steps, const std::string& data) {
  const TemporaryFolder folder;
  const std::string plan = absl::StrCat(
      "run: bench\nseed: 1\nversion: 1\nmembers: [a, b]\n",
      "model: {kind: cnn, classes: 10}\nbatch_size: 32\n",
      "algorithm: {name: pame, knobs: {kappa: 5}}\n",
      "topology: {kind: complete}\ncodec: {coordinates: random, values: "
      "fp32}\n",
      "evaluation: {every_steps: 0}\nstop: {steps: ", steps + 20, "}\n");
  std::vector<std::unique_ptr<DaemonProcess>> nodes;
  for (const char* name : {"a", "b"}) {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder.path();
    options.data_yaml = absl::StrCat(
        "data:\n  format: idx\n  standardise: {mean: [0.286], std: [0.353]}\n",
        "  train: {paths: [", data, "/train-images-idx3-ubyte.gz, ", data,
        "/train-labels-idx1-ubyte.gz]}\n");
    if (!nodes.empty()) options.peers = {nodes[0]->peer_address()};
    nodes.push_back(std::make_unique<DaemonProcess>(options));
    if (!nodes.back()->Start()) {
      std::fprintf(stderr, "%s\n", nodes.back()->log().c_str());
      std::exit(1);
    }
    const auto applied =
        nodes.back()->client().ApplyPlan({plan, std::nullopt, false});
    if (!applied.ok()) {
      std::fprintf(stderr, "%s\n%s\n", applied.status().ToString().c_str(),
                   nodes.back()->log().c_str());
      std::exit(1);
    }
  }
  for (const auto& node : nodes) {
    (void)node->client().Train(client::TrainAction::kStart);
  }
  std::vector<Pace> paces(nodes.size());
  Eventually(absl::Minutes(10), [&] {
    bool done = true;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const client::NodeStatus status = nodes[i]->Status();
      paces[i].See(status.step, SteadyNow());
      done = done && status.step >= steps + 20;
    }
    return done;
  });
  Figures figures;
  for (size_t i = 0; i < nodes.size(); ++i) {
    figures.steps_per_second += paces[i].steps_per_second() / 2;
    figures.peak_bytes =
        std::max(figures.peak_bytes, nodes[i]->process().PeakResidentBytes());
    nodes[i]->Stop();
  }
  return figures;
}

template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 9;
  const int64_t steps = argc > 2 ? std::atoll(argv[2]) : 500;
  const std::string data =
      argc > 3 ? argv[3] : "/usr/share/datasets/fashion-mnist";
  std::vector<double> ratios;
  std::vector<int64_t> bare_bytes;
  std::vector<int64_t> daemon_bytes;
  for (int pair = 0; pair < pairs; ++pair) {
    // Who goes first changes, so that a drift of the machine cancels.
    Figures bare;
    Figures daemons;
    if (pair % 2 == 0) bare = BareLoops(steps, data);
    daemons = Daemons(steps, data);
    if (pair % 2 == 1) bare = BareLoops(steps, data);
    ratios.push_back(daemons.steps_per_second / bare.steps_per_second);
    bare_bytes.push_back(bare.peak_bytes);
    daemon_bytes.push_back(daemons.peak_bytes);
    std::printf("pair %d: bare %.1f steps/s, daemons %.1f steps/s, %.3f\n",
                pair + 1, bare.steps_per_second, daemons.steps_per_second,
                ratios.back());
    std::fflush(stdout);
  }
  const double ratio = Median(ratios);
  const double bare_mb = static_cast<double>(Median(bare_bytes)) / 1e6;
  const double daemon_mb = static_cast<double>(Median(daemon_bytes)) / 1e6;
  const double most_mb = 1.25 * bare_mb + 40;
  std::printf("training: median ratio %.3f (bar 0.95): %s\n", ratio,
              ratio >= 0.95 ? "met" : "MISSED");
  std::printf("memory: bare %.0f MB, daemon %.0f MB (bar %.0f MB): %s\n",
              bare_mb, daemon_mb, most_mb,
              daemon_mb <= most_mb ? "met" : "MISSED");
  return 0;
}

}  // namespace
}  // namespace dfl::testing_support

int main(int argc, char** argv) {
  return dfl::testing_support::Main(argc, argv);
}
