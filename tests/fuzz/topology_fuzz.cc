// The topology of a plan: the input is the section of that name, in a plan for
// six nodes. The first byte chooses the algorithm, and so the kind of graph.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/check.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/console/topology_text.h"
#include "daemon/core/graph/mixing.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

constexpr char kPlan[] =
    "version: 1\nrun: r\nseed: 5\nmembers: [a, b, c, d, e, f]\n"
    "model: {kind: linear, classes: 0, input: [4]}\n"
    "codec: {coordinates: dense, values: fp32}\n";

// The longest text that TopologyText makes for six nodes.
constexpr size_t kMostText = 16384;

void CheckSums(const std::vector<double>& sums) {
  for (const double sum : sums) DFL_CHECK(std::fabs(sum - 1) < 1e-6);
}

void CheckWeights(const core::PlanTopology& topology) {
  if (topology.directed) {
    CheckSums(core::RowSums(topology.directed_weights.a));
    CheckSums(core::ColumnSums(topology.directed_weights.b));
  } else {
    CheckSums(core::RowSums(topology.weights));
  }
}

}  // namespace

DFL_FUZZ_TARGET(topology)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const char* const algorithm = pieces.Byte() % 2 == 0 ? "d-psgd" : "sgp";
  std::string text =
      absl::StrCat(kPlan, "algorithm: {name: ", algorithm, "}\ntopology:\n");
  for (const absl::string_view line : absl::StrSplit(pieces.Rest(), '\n')) {
    absl::StrAppend(&text, "  ", line, "\n");
  }
  const auto plan = config::ParsePlan(text, "plan.yaml");
  if (!plan.ok()) return;
  for (const int64_t round : {0, 1, 1000}) {
    const auto report = console::ReportTopology(*plan, round);
    if (!report.ok()) continue;
    CheckWeights(report->topology);
    DFL_CHECK(console::TopologyText(*plan, *report).size() <= kMostText);
    DFL_CHECK(!console::TopologyJson(*plan, *report).dump().empty());
  }
}

}  // namespace dfl::fuzz
