// The learner alone, driven as an algorithm drives it: gradient, then w -= step
// size x gradient on the flat vector. Beside bare_loop it shows what the room
// costs without exchange.
//
//   learner_loop [steps=500] [batch=32] [threads=1] [folder] [model=cnn]
//
// Prints the same JSON line as bare_loop.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/load.h"
#include "daemon/learner/torch_learner.h"

namespace {

using dfl::FlatVector;

absl::Status Run(int steps, int64_t batch, int threads,
                 const std::string& folder, const std::string& kind) {
  DFL_ASSIGN_OR_RETURN(dfl::data::Dataset dataset,
                       dfl::data::Load(dfl::data::MnistTrainingSpec(folder)));
  dfl::learner::LearnerData data{dfl::data::DatasetView(
      std::make_shared<const dfl::data::Dataset>(std::move(dataset)))};
  DFL_ASSIGN_OR_RETURN(
      data.standardizer,
      dfl::data::Standardizer::FromValues({0.286F}, {0.353F}, "learner_loop"));
  dfl::core::ModelSpec spec;
  spec.kind = kind;
  dfl::learner::LearnerOptions options;
  options.threads = [threads] { return threads; };
  DFL_ASSIGN_OR_RETURN(
      const std::unique_ptr<dfl::ports::Learner> learner,
      dfl::learner::CreateTorchLearner(spec, std::move(data), options));
  const size_t n = static_cast<size_t>(learner->model().parameter_count);
  FlatVector parameters(n);
  FlatVector gradient(n);
  FlatVector buffers(static_cast<size_t>(learner->model().buffer_count));
  DFL_RETURN_IF_ERROR(learner->Bind(absl::MakeSpan(parameters),
                                    absl::MakeSpan(gradient),
                                    absl::MakeSpan(buffers)));
  DFL_RETURN_IF_ERROR(learner->Initialise(1));
  constexpr int kWarmUp = 20;
  double loss = 0;
  auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < kWarmUp + steps; ++step) {
    if (step == kWarmUp) begin = std::chrono::steady_clock::now();
    dfl::ports::GradientRequest request;
    request.step = step;
    request.batch_size = batch;
    DFL_ASSIGN_OR_RETURN(const auto result, learner->Gradient(request));
    loss = result.loss;
    for (size_t i = 0; i < n; ++i) parameters[i] -= 0.05F * gradient[i];
  }
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"program\": \"learner_loop\", \"steps_per_second\": %.2f, "
      "\"peak_rss_bytes\": %lld, \"loss\": %.4f}\n",
      steps / seconds.count(), static_cast<long long>(usage.ru_maxrss) * 1024,
      loss);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, const char* otherwise) {
    return argc > i ? argv[i] : otherwise;
  };
  absl::Status status;
  // On a thread of its own, as in the daemon.
  std::thread([&] {
    status = Run(std::atoi(argument(1, "500")), std::atoi(argument(2, "32")),
                 std::atoi(argument(3, "1")),
                 argument(4, "/usr/share/datasets/fashion-mnist"),
                 argument(5, "cnn"));
  }).join();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
