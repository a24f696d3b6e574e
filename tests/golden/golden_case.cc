#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/check.h"

namespace dfl::golden {

using nlohmann::json;

bool Close(double a, double b) {
  return std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(b));
}

std::vector<std::string> CaseFiles() {
  const char* chosen = std::getenv("DFL_GOLDEN_DIR");
  const std::string folder = chosen != nullptr ? chosen : DFL_GOLDEN_VECTORS;
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

json LoadCase(const std::string& path) {
  std::ifstream in(path);
  return json::parse(in);
}

namespace {

// A matrix as one row-major vector.
std::vector<double> Flatten(const json& rows) {
  std::vector<double> flat;
  for (const json& row : rows) {
    for (const json& value : row) flat.push_back(value.get<double>());
  }
  return flat;
}

}  // namespace

std::vector<std::unique_ptr<core::Problem>> MakeProblems(const json& problem) {
  const std::string type = problem.at("type");
  std::vector<std::unique_ptr<core::Problem>> problems;
  for (const json& node : problem.at("nodes")) {
    if (type == "softmax") {
      problems.push_back(std::make_unique<core::Softmax>(
          Flatten(node.at("X")), node.at("labels").get<std::vector<int64_t>>(),
          problem.at("classes").get<int64_t>()));
      continue;
    }
    std::vector<double> a = Flatten(node.at("A"));
    std::vector<double> b = node.at("b").get<std::vector<double>>();
    if (type == "least_squares") {
      problems.push_back(
          std::make_unique<core::LeastSquares>(std::move(a), std::move(b)));
    } else {
      DFL_CHECK(type == "logistic");
      problems.push_back(std::make_unique<core::Logistic>(
          std::move(a), std::move(b), problem.at("lambda").get<double>()));
    }
  }
  return problems;
}

namespace {

bool Recorded(const json& golden, int64_t k) {
  if (!golden.contains("record")) return true;
  const auto& record = golden.at("record");
  return std::find(record.begin(), record.end(), json(k)) != record.end();
}

}  // namespace

const json* StateAfter(const json& golden, int64_t k) {
  if (!Recorded(golden, k)) return nullptr;
  for (const json& entry : golden.at("trajectory")) {
    if (entry.at("k").get<int64_t>() == k) return &entry;
  }
  return nullptr;
}

NodeId NodeName(int64_t index) {
  return NodeId(absl::StrFormat("node-%03d", index));
}

int64_t NodeIndex(const NodeId& node) {
  int64_t index = -1;
  DFL_CHECK(absl::SimpleAtoi(node.name().substr(5), &index));
  return index;
}

std::vector<int64_t> ReadBatch(const json& batch) {
  if (batch.is_null()) return {};
  return batch.get<std::vector<int64_t>>();
}

std::string Difference(const std::string& what, const std::vector<float>& got,
                       const json& want) {
  if (got.size() != want.size()) {
    return absl::StrCat(what, ": ", got.size(), " values, not ", want.size());
  }
  for (size_t l = 0; l < got.size(); ++l) {
    const double wanted = want[l].get<double>();
    if (!Close(got[l], wanted)) {
      return absl::StrCat(what, "[", l, "] = ", got[l], ", not ", wanted);
    }
  }
  return "";
}

}  // namespace dfl::golden
