// The yardstick for training: a plain LibTorch loop, nothing of ours in it but
// the reader of IDX files. The cnn of the learner on Fashion-MNIST, stochastic
// gradient descent, the same batch and threads.
//
//   bare_loop [steps=500] [batch=32] [threads=1] [folder]
//
// Prints one JSON line: steps per second after 20 steps of warming up, peak
// resident bytes, the last loss.
#include <dlfcn.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "daemon/data/load.h"

namespace {

namespace nn = torch::nn;

nn::Sequential Cnn() {
  return nn::Sequential(nn::ConstantPad2d(nn::ConstantPad2dOptions(2, 0)),
                        nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)),
                        nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(2048, 128), nn::ReLU(), nn::Linear(128, 10));
}

void SetThreads(int threads) {
  at::set_num_threads(threads);
  using Setter = void (*)(int);
  const auto set = reinterpret_cast<Setter>(
      ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr) set(1);  // as the learner: one pool of threads, not two
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 500;
  const int64_t batch = argc > 2 ? std::atoi(argv[2]) : 32;
  SetThreads(argc > 3 ? std::atoi(argv[3]) : 1);
  const std::string folder =
      argc > 4 ? argv[4] : "/usr/share/datasets/fashion-mnist";
  const auto data = dfl::data::Load(dfl::data::MnistTrainingSpec(folder));
  if (!data.ok()) {
    std::fprintf(stderr, "%s\n", data.status().ToString().c_str());
    return 1;
  }
  const int64_t rows = data->rows();
  const torch::Tensor images =
      torch::from_blob(const_cast<uint8_t*>(data->bytes().data()),
                       {rows, 1, 28, 28}, torch::kByte);
  const torch::Tensor labels = torch::from_blob(
      const_cast<int64_t*>(data->labels().data()), {rows}, torch::kLong);
  nn::Sequential model = Cnn();
  torch::optim::SGD optimiser(model->parameters(), 0.05);
  torch::Tensor order = torch::randperm(rows);
  int64_t position = 0;
  double loss_value = 0;
  constexpr int kWarmUp = 20;
  auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < kWarmUp + steps; ++step) {
    if (step == kWarmUp) begin = std::chrono::steady_clock::now();
    if (position + batch > rows) {
      order = torch::randperm(rows);
      position = 0;
    }
    const torch::Tensor index = order.narrow(0, position, batch);
    position += batch;
    const torch::Tensor x =
        images.index_select(0, index).to(torch::kFloat).div_(255);
    optimiser.zero_grad();
    torch::Tensor loss = nn::functional::cross_entropy(
        model->forward(x.sub_(0.286F).div_(0.353F)),
        labels.index_select(0, index));
    loss.backward();
    optimiser.step();
    loss_value = loss.item<double>();
  }
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"program\": \"bare_loop\", \"steps_per_second\": %.2f, "
      "\"peak_rss_bytes\": %lld, \"loss\": %.4f}\n",
      steps / seconds.count(), static_cast<long long>(usage.ru_maxrss) * 1024,
      loss_value);
  return 0;
}
