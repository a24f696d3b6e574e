// make_torchscript FILE FEATURES CLASSES [endless]: writes a small TorchScript
// model that takes [rows, FEATURES] and gives [rows, CLASSES]: a hidden layer
// of 8 with a running mean (a floating-point buffer), then a linear one. One
// that is endless never comes back from a forward pass while it trains.
//
// make_torchscript --values FILE: writes a line for each parameter and buffer
// of a model: its name, then its values.
#include <torch/script.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

namespace {

int PrintValues(const char* path) {
  const torch::jit::Module net = torch::jit::load(path);
  const auto print = [](const std::string& name, const torch::Tensor& tensor) {
    const torch::Tensor flat = tensor.detach().contiguous().view({-1});
    std::cout << name;
    std::cout.precision(9);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      std::cout << " " << flat[i].item<float>();
    }
    std::cout << "\n";
  };
  for (const auto& named : net.named_parameters()) {
    print(named.name, named.value);
  }
  for (const auto& named : net.named_buffers()) print(named.name, named.value);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--values") {
    return PrintValues(argv[2]);
  }
  const bool endless = argc == 5 && std::string(argv[4]) == "endless";
  if (argc != 4 && !endless) {
    std::cerr << "usage: make_torchscript FILE FEATURES CLASSES [endless]\n"
                 "       make_torchscript --values FILE\n";
    return 2;
  }
  const int64_t features = std::atoll(argv[2]);
  const int64_t classes = std::atoll(argv[3]);
  constexpr int64_t kHidden = 8;
  const auto spread = [](int64_t rows, int64_t columns) {
    return torch::linspace(-0.5, 0.5, rows * columns)
        .view({rows, columns})
        .set_requires_grad(true);
  };
  try {
    torch::jit::Module net("Net");
    if (!net.hasattr("training")) {
      net.register_attribute("training", c10::BoolType::get(), true);
    }
    net.register_attribute("endless", c10::BoolType::get(), endless);
    net.register_parameter("first", spread(kHidden, features), false);
    net.register_parameter("last", spread(classes, kHidden), false);
    net.register_buffer("mean", torch::zeros({kHidden}));
    net.define(R"(
      def forward(self, x):
          h = torch.matmul(x, self.first.t())
          if self.training:
              self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
              turns = 0
              while self.endless:
                  turns = 1 - turns
          return torch.matmul(torch.relu(h), self.last.t())
    )");
    net.save(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "make_torchscript: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
