// Every golden vector, played through the core objects by the driver of its
// algorithm. DFL_GOLDEN_DIR=folder takes other cases of the same format.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/table_checks.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// All that there are. One that is not in the folder fails.
constexpr const char* kVectors[] = {
    "anq_nids",
    "async_dsgd",
    "barrier_dsgd",
    "beer_mask",
    "beer_topk",
    "choco_mask",
    "choco_topk",
    "decefl_constant_metropolis",
    "decefl_decaying_laplacian",
    "decefl_join_leave",
    "decefl_local_epochs",
    "decefl_local_epochs_mu1",
    "decefl_local_lone_node",
    "decefl_lone_node",
    "decefl_sample_weighting",
    "decefl_time_varying",
    "depositum_complete_t0_3",
    "depositum_dsgt_limit",
    "depositum_nesterov_l1",
    "depositum_nesterov_mcp",
    "depositum_nesterov_none",
    "depositum_nesterov_scad",
    "depositum_polyak_l1",
    "depositum_polyak_mcp",
    "depositum_polyak_none",
    "depositum_polyak_scad",
    "dfedavgm",
    "dfedsam",
    "dpsgd",
    "draco_own_update",
    "draco_periodic_send",
    "draco_plain",
    "draco_unification",
    "draco_window_deadline_cap",
    "epidemic",
    "fedavg_plus",
    "fedavg_uniform",
    "fedmid_l1",
    "gossip_nids_events",
    "gossip_nids_mass",
    "gossip_nids_pair",
    "gpushpull",
    "kdpdfl",
    "kdpdfl_adopt",
    "kdpdfl_literal_rounds",
    "kgt",
    "local",
    "local_pame_steps",
    "mod_roundtrip",
    "mod_scale_table",
    "nids",
    "pame_full_exchange",
    "pame_heterogeneous",
    "pame_homogeneous",
    "pame_logistic",
    "pame_missing_answers",
    "pame_zero_coordinate",
    "pme_random",
    "pme_worked_example",
    "pushpull",
    "sgp",
    "spodgt_general",
    "spodgt_rare",
    "sporadic_kgt",
    "swarm",
    "swarm_local_lost",
    "sync_dsgd",
    "table_mixing",
    "table_prox",
};

std::string PathOf(const std::string& vector) {
  return absl::StrCat(DFL_GOLDEN_VECTORS, "/", vector, ".json");
}

// The names of the JSON files in `folder`.
std::set<std::string> StemsIn(const std::string& folder) {
  std::set<std::string> stems;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") {
      stems.insert(entry.path().stem().string());
    }
  }
  return stems;
}

// The vectors of the list, or the files of DFL_GOLDEN_DIR.
std::vector<std::string> CaseFiles() {
  std::vector<std::string> files;
  const char* chosen = std::getenv("DFL_GOLDEN_DIR");
  if (chosen == nullptr) {
    for (const char* vector : kVectors) files.push_back(PathOf(vector));
    return files;
  }
  for (const std::string& stem : StemsIn(chosen)) {
    files.push_back(absl::StrCat(chosen, "/", stem, ".json"));
  }
  return files;
}

class Golden : public testing::TestWithParam<std::string> {};

void Play(const Case& golden) {
  CheckMatrices(golden);
  const Driver driver = FindDriver(golden.algorithm());
  Require(driver != nullptr, "no driver for " + golden.algorithm());
  driver(golden);
}

TEST_P(Golden, Reproduces) {
  const Case golden(GetParam());
  if (!golden.contains("schedule")) return CheckTables(golden);
  if (const State* start = golden.StateAfter(-1)) {
    for (size_t i = 0; i < golden.at("x0").size(); ++i) {
      const json& x0 = golden.at("x0").at(i);
      if (!x0.is_null())
        ExpectRow(*start, "x", i, x0.get<std::vector<float>>());
    }
  }
  Play(golden);
  // After a failure the rest has not been reached.
  if (!HasFailure()) {
    EXPECT_EQ(golden.Uncompared(), std::vector<std::string>());
  }
}

// Only letters, digits and underscores, and no two alike.
std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  const std::string stem = std::filesystem::path(info.param).stem().string();
  std::string name = stem;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name == stem ? name : absl::StrCat(name, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(Vectors, Golden, testing::ValuesIn(CaseFiles()),
                         CaseName);

TEST(GoldenVectors, AreThoseOfTheList) {
  EXPECT_EQ(StemsIn(DFL_GOLDEN_VECTORS),
            std::set<std::string>(std::begin(kVectors), std::end(kVectors)));
  EXPECT_FALSE(CaseFiles().empty());
}

TEST(GoldenVectors, CoverTheCatalogue) {
  std::set<std::string> covered;
  for (const char* vector : kVectors) {
    covered.insert(Case(PathOf(vector)).algorithm());
  }
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    EXPECT_EQ(covered.count(info.name), 1U) << info.name;
  }
}

TEST(GoldenVectors, ARefusedKnobEndsItsCaseAndNoOther) {
  std::set<std::string> played;
  for (const char* vector : kVectors) {
    const Case golden(PathOf(vector));
    if (!golden.contains("schedule")) continue;
    if (!played.insert(golden.algorithm()).second) continue;
    json document = golden.document();
    json& params = document["params"];
    for (const char* knob : {"eta", "eta_c", "alpha", "gamma"}) {
      if (!params.contains(knob)) continue;
      json& value = params[knob];
      value = value.is_array() ? json(std::vector<double>(value.size(), -1))
                               : json(-1.0);
    }
    EXPECT_THROW(Play(Case(document)), std::invalid_argument) << vector;
  }
}

}  // namespace
}  // namespace dfl::golden
