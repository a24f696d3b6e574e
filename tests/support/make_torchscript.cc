// make_torchscript FILE FEATURES CLASSES [KIND]: writes a small TorchScript
// model that takes [rows, FEATURES] and gives [rows, CLASSES]: a hidden layer
// of 8, then a linear one. What KIND adds:
//   (nothing)   a running mean, which is a floating-point buffer
//   endless     as well; a later forward pass never comes back while it trains:
//               not those in which a node tries it before it accepts a plan
//   frozen      the hidden layer is a frozen part, saved in evaluation mode,
//               with a batch normalisation
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

constexpr int64_t kHidden = 8;

torch::Tensor Spread(int64_t rows, int64_t columns) {
  return torch::linspace(-0.5, 0.5, rows * columns).view({rows, columns});
}

torch::jit::Module Part(const std::string& name, bool training) {
  torch::jit::Module part(name);
  if (!part.hasattr("training")) {
    part.register_attribute("training", c10::BoolType::get(), training);
  }
  part.setattr("training", training);
  return part;
}

// With a running mean.
void DefinePlain(torch::jit::Module& net) {
  net.register_buffer("mean", torch::zeros({kHidden}));
  net.define(R"(
    def forward(self, x):
        h = torch.matmul(x, self.first.t())
        if self.training:
            self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return torch.matmul(torch.relu(h), self.last.t())
  )");
}

void DefineEndless(torch::jit::Module& net) {
  net.register_buffer("mean", torch::zeros({kHidden}));
  net.register_buffer("passes", torch::zeros({}, torch::kLong));
  net.define(R"(
    def forward(self, x):
        h = torch.matmul(x, self.first.t())
        if self.training:
            self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
            self.passes.add_(1)
            turns = 0
            while int(self.passes) > 10:
                turns = 1 - turns
        return torch.matmul(torch.relu(h), self.last.t())
  )");
}

torch::jit::Module FrozenBatchNorm() {
  torch::jit::Module norm = Part("Norm", false);
  norm.register_parameter("weight", torch::ones({kHidden}), false);
  norm.register_parameter("bias", torch::zeros({kHidden}), false);
  norm.register_buffer("running_mean", torch::zeros({kHidden}));
  norm.register_buffer("running_var", torch::ones({kHidden}));
  norm.register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
  norm.define(R"(
    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)
        return torch.batch_norm(x, self.weight, self.bias, self.running_mean,
                                self.running_var, self.training, 0.1, 1e-5,
                                False)
  )");
  return norm;
}

void DefineFrozen(torch::jit::Module& net, int64_t features) {
  torch::jit::Module backbone = Part("Backbone", false);
  backbone.register_parameter("first", Spread(kHidden, features), false);
  backbone.register_module("norm", FrozenBatchNorm());
  backbone.define(R"(
    def forward(self, x):
        return self.norm.forward(torch.matmul(x, self.first.t()))
  )");
  net.register_module("backbone", backbone);
  net.define(R"(
    def forward(self, x):
        return torch.matmul(torch.relu(self.backbone.forward(x)), self.last.t())
  )");
}

torch::jit::Module MakeNet(const std::string& kind, int64_t features,
                           int64_t classes) {
  torch::jit::Module net = Part("Net", true);
  if (kind != "frozen") {
    net.register_parameter(
        "first", Spread(kHidden, features).set_requires_grad(true), false);
  }
  net.register_parameter(
      "last", Spread(classes, kHidden).set_requires_grad(true), false);
  if (kind == "frozen") {
    DefineFrozen(net, features);
  } else if (kind == "endless") {
    DefineEndless(net);
  } else {
    DefinePlain(net);
  }
  return net;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--values") {
    return PrintValues(argv[2]);
  }
  const std::string kind = argc == 5 ? argv[4] : "";
  if (argc != 4 && kind != "endless" && kind != "frozen") {
    std::cerr << "usage: make_torchscript FILE FEATURES CLASSES "
                 "[endless|frozen]\n"
                 "       make_torchscript --values FILE\n";
    return 2;
  }
  try {
    MakeNet(kind, std::atoll(argv[2]), std::atoll(argv[3])).save(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "make_torchscript: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
