// What a checkpoint costs: the boundary, which stands still while the model is
// copied, and the thread that writes the copy; and reading it again after a
// start. Beside each round a plain write of as many bytes (write, fsync).
//
//   checkpoint_bench [rounds] [megabytes of model] [folder]
//
// 44.7 MB are an 11 M parameter model. Two algorithms: one without a state of
// its own, and one that keeps replicas. Prints every round and the medians.
// Exits 1 when boundary and CPU time together take more than 300 ms (median,
// the algorithm without a state).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/store/checkpoint_files.h"
#include "daemon/store/disk_files.h"

namespace dfl {
namespace {

constexpr double kBarMs = 300;
constexpr int64_t kKeep = 2;  // generations

struct Job {
  size_t rounds = 9;
  int64_t bytes = 44'700'000;
  std::string folder = "checkpoint-bench";
};

double CpuMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) +
         1e-6 * static_cast<double>(now.tv_nsec);
}

double WallMs() {
  return absl::ToDoubleMilliseconds(absl::Now() - absl::UnixEpoch());
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

class Ignoring final : public core::Actions {
 public:
  void Do(core::Action /*action*/) override {}
};

// A node of two that runs `algorithm`, at a boundary.
class Subject {
 public:
  Subject(const std::string& algorithm, int64_t n) {
    core::RunPlan plan;
    plan.run_id = "bench";
    plan.seed = 1;
    plan.version = 1;
    plan.members = {{.node = NodeId("a")}, {.node = NodeId("b")}};
    plan.algorithm.name = algorithm;
    plan.codec.format.coordinates = core::Coordinates::kDense;
    auto derived = core::CheckAndDerive(std::move(plan), NodeId("a"));
    DFL_CHECK(derived.ok());
    plan_ = *std::move(derived);
    model_.Resize(n, 0);
    Rng rng(1);
    for (float& value : model_.parameters()) {
      value = static_cast<float>(rng.Uniform());
    }
    model_.SetInitialised(true);
    core::AlgorithmContext context;
    context.plan = plan_.node;
    context.vectors = {model_.parameters(), model_.gradient(),
                       model_.buffers()};
    algorithm_ = core::CreateAlgorithm(*plan_.checked.algorithm,
                                       std::move(context), decisions_);
    Ignoring actions;
    algorithm_->Handle(core::Started{}, actions);
  }

  // As runtime/checkpointing.h does it at a boundary.
  runtime::Checkpoint Capture(int64_t step) {
    runtime::Checkpoint taken;
    taken.head.node = "a";
    taken.head.run_id = "bench";
    taken.head.algorithm = plan_.plan().algorithm.name;
    taken.head.step = step;
    model_.Changed();
    taken.model = model_.Share(/*at_boundary=*/true, step);
    taken.gradient.assign(model_.gradient().begin(), model_.gradient().end());
    taken.algorithm = algorithm_->ExportState();
    return taken;
  }

 private:
  core::DerivedPlan plan_;
  core::SeededDecisions decisions_{1};
  runtime::FlatModel model_;
  std::unique_ptr<core::Algorithm> algorithm_;
};

// CPU time of a plain write of `bytes`.
double PlainWrite(const std::string& path, const std::vector<char>& bytes) {
  const double before = CpuMs();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  DFL_CHECK(fd >= 0);
  constexpr size_t kPiece = size_t{1} << 20;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const size_t size = std::min(kPiece, bytes.size() - at);
    DFL_CHECK(write(fd, bytes.data() + at, size) == static_cast<ssize_t>(size));
  }
  DFL_CHECK(fsync(fd) == 0);
  close(fd);
  return CpuMs() - before;
}

// The median of boundary and CPU time together, in ms.
double Measure(const std::string& algorithm, const Job& job,
               store::DiskFiles& disk) {
  Subject subject(algorithm, job.bytes / 4);
  store::CheckpointFiles files(disk);
  std::printf("%s\n%6s %12s %10s %10s %12s %10s %8s\n", algorithm.c_str(),
              "round", "boundary ms", "CPU ms", "write ms", "plain CPU ms",
              "read ms", "MB");
  std::vector<double> both;
  std::vector<double> ratios;
  for (size_t round = 0; round < job.rounds; ++round) {
    const auto step = static_cast<int64_t>(round + 1);
    const double began = WallMs();
    const runtime::Checkpoint taken = subject.Capture(step);
    const double boundary = WallMs() - began;
    const double cpu_before = CpuMs();
    const double write_began = WallMs();
    DFL_CHECK(files.Write(taken, kKeep).ok());
    const double cpu = CpuMs() - cpu_before;
    const double written = WallMs() - write_began;
    const double read_began = WallMs();
    store::CheckpointFiles again(disk);
    std::vector<std::string> notes;
    DFL_CHECK(!again.List(notes).empty() && notes.empty());
    DFL_CHECK(again.Read("bench", step).ok());
    const double read = WallMs() - read_began;
    int64_t size = 0;
    for (const char* name : {"checkpoint.0", "checkpoint.1"}) {
      std::error_code none;
      const auto bytes =
          std::filesystem::file_size(absl::StrCat(job.folder, "/", name), none);
      if (!none) size = std::max(size, static_cast<int64_t>(bytes));
    }
    const double plain =
        PlainWrite(absl::StrCat(job.folder, "/plain"),
                   std::vector<char>(static_cast<size_t>(size), 'x'));
    std::printf("%6zu %12.1f %10.1f %10.1f %12.1f %10.1f %8.1f\n", round + 1,
                boundary, cpu, written, plain, read,
                1e-6 * static_cast<double>(size));
    both.push_back(boundary + cpu);
    ratios.push_back((boundary + cpu) / plain);
  }
  std::printf("median: boundary and CPU %.1f ms, %.2f x a plain write\n\n",
              Median(both), Median(ratios));
  return Median(both);
}

int Run(const Job& job) {
  std::filesystem::remove_all(job.folder);
  double without_state = 0;
  {
    const auto disk = store::DiskFiles::OpenFolder(job.folder);
    DFL_CHECK(disk.ok());
    without_state = Measure("d-psgd", job, **disk);
    Measure("choco-sgd", job, **disk);
  }
  std::filesystem::remove_all(job.folder);
  if (without_state <= kBarMs) return 0;
  std::printf("more than %.0f ms\n", kBarMs);
  return 1;
}

}  // namespace
}  // namespace dfl

int main(int argc, char** argv) {
  dfl::Job job;
  if (argc > 1) job.rounds = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) {
    job.bytes = static_cast<int64_t>(1e6 * std::strtod(argv[2], nullptr));
  }
  if (argc > 3) job.folder = argv[3];
  if (job.rounds == 0 || job.bytes < 4) {
    std::fputs("usage: checkpoint_bench [rounds] [megabytes] [folder]\n",
               stderr);
    return 2;
  }
  return dfl::Run(job);
}
