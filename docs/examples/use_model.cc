// Predicts with a TorchScript model: use_model model.pt 5.1 3.5 1.4 0.2
#include <torch/script.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  torch::jit::Module model = torch::jit::load(argv[1]);
  model.eval();
  const auto about =
      nlohmann::json::parse(std::ifstream(std::string(argv[1]) + ".json"));
  const auto& contract = about.at("dfl.contract");
  const auto& scale = contract.at("input");
  const auto numbers = [&](const char* key, double none) {
    return torch::tensor(scale.value(key, std::vector<double>{none}));
  };
  std::vector<double> row;
  for (int i = 2; i < argc; ++i) row.push_back(std::stod(argv[i]));
  torch::Tensor input = torch::tensor(row) / scale.at("divide").get<double>();
  input = (input - numbers("mean", 0)) / numbers("std", 1);
  const torch::Tensor scores =
      model.forward({input.to(torch::kFloat).unsqueeze(0)}).toTensor();
  std::cout << contract.at("classes")
                   .at(scores.argmax().item<int64_t>())
                   .get<std::string>()
            << "\n";
}
