#include "daemon/core/algorithm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/anq_nids.h"
#include "daemon/core/async_dsgd.h"
#include "daemon/core/beer.h"
#include "daemon/core/choco_sgd.h"
#include "daemon/core/decefl.h"
#include "daemon/core/depositum.h"
#include "daemon/core/dfedavgm.h"
#include "daemon/core/dfedsam.h"
#include "daemon/core/dpsgd.h"
#include "daemon/core/draco.h"
#include "daemon/core/epidemic.h"
#include "daemon/core/fedavg.h"
#include "daemon/core/fedmid.h"
#include "daemon/core/kd_pdfl.h"
#include "daemon/core/kgt.h"
#include "daemon/core/local.h"
#include "daemon/core/nids.h"
#include "daemon/core/pame.h"
#include "daemon/core/sgp.h"
#include "daemon/core/spod_gt.h"
#include "daemon/core/state_fields.h"
#include "daemon/core/swarm.h"

namespace dfl::core {

SeededDecisions::SeededDecisions(uint64_t seed, uint64_t stream)
    : seed_(seed),
      neighbours_(DeriveSeed(seed, "neighbours", stream)),
      coordinates_(DeriveSeed(seed, "coordinates", stream)),
      happenings_(DeriveSeed(seed, "happenings", stream)),
      waits_(DeriveSeed(seed, "waits", stream)) {}

std::vector<NodeId> SeededDecisions::ChooseNeighbours(
    absl::Span<const NodeId> candidates, int64_t count) {
  DFL_CHECK(count >= 0 && count <= static_cast<int64_t>(candidates.size()));
  std::vector<NodeId> chosen(candidates.begin(), candidates.end());
  // The first `count` places of a Fisher-Yates shuffle.
  for (int64_t i = 0; i < count; ++i) {
    using std::swap;
    swap(chosen[i], chosen[i + neighbours_.Below(chosen.size() - i)]);
  }
  chosen.resize(count);
  return chosen;
}

uint64_t SeededDecisions::NameCoordinates(const NodeId& /*to*/) {
  return coordinates_.Next();
}

int64_t SeededDecisions::DrawFrom(absl::string_view purpose, IntRange range) {
  Rng rng(DeriveSeed(DeriveSeed(seed_, purpose), "range",
                     static_cast<uint64_t>(range.lo),
                     static_cast<uint64_t>(range.hi)));
  return range.lo + static_cast<int64_t>(rng.Below(range.hi - range.lo + 1));
}

bool SeededDecisions::Happens(absl::string_view /*purpose*/,
                              const NodeId& /*peer*/, double probability) {
  return happenings_.Uniform() < probability;
}

std::vector<int64_t> SeededDecisions::ChooseTogether(uint64_t run_seed,
                                                     absl::string_view purpose,
                                                     int64_t round,
                                                     int64_t candidates,
                                                     int64_t count) {
  DFL_CHECK(count >= 0 && count <= candidates);
  Rng rng(DeriveSeed(DeriveSeed(run_seed, purpose), "together",
                     static_cast<uint64_t>(round)));
  // Floyd's sampling: O(count), whatever the number of candidates.
  std::vector<int64_t> chosen;
  for (int64_t last = candidates - count; last < candidates; ++last) {
    const auto place = static_cast<int64_t>(rng.Below(last + 1));
    const bool taken =
        std::find(chosen.begin(), chosen.end(), place) != chosen.end();
    chosen.push_back(taken ? last : place);
  }
  return chosen;
}

double SeededDecisions::DrawWait(absl::string_view /*purpose*/, double mean) {
  return mean * Exponential(waits_);
}

std::vector<int64_t> SeededDecisions::ChooseCoordinates(
    absl::string_view /*purpose*/, int64_t n, int64_t count) {
  DFL_CHECK(count >= 0 && count <= n);
  std::vector<int64_t> chosen;
  chosen.reserve(count);
  // Selection sampling (Knuth's algorithm S).
  for (int64_t l = 0; static_cast<int64_t>(chosen.size()) < count; ++l) {
    const int64_t wanted = count - static_cast<int64_t>(chosen.size());
    if (static_cast<int64_t>(coordinates_.Below(n - l)) < wanted) {
      chosen.push_back(l);
    }
  }
  return chosen;
}

absl::Span<const AlgorithmInfo> AlgorithmCatalogue() {
  static const std::vector<AlgorithmInfo>* const kCatalogue =
      new std::vector<AlgorithmInfo>{
          AnqNidsInfo(),     AsyncDsgdInfo(),  BarrierDsgdInfo(),
          BeerInfo(),        ChocoSgdInfo(),   DeceflInfo(),
          DepositumInfo(),   DfedavgmInfo(),   DfedsamInfo(),
          DpsgdInfo(),       DracoInfo(),      EpidemicInfo(),
          FedavgInfo(),      FedavgPlusInfo(), FedmidInfo(),
          GPushPullInfo(),   KGtInfo(),        KdPdflInfo(),
          LocalInfo(),       NidsInfo(),       PameInfo(),
          PushPullInfo(),    SgpInfo(),        SpodGtInfo(),
          SporadicKGtInfo(), SwarmInfo(),      SyncDsgdInfo()};
  return *kCatalogue;
}

absl::StatusOr<const AlgorithmInfo*> FindAlgorithm(absl::string_view name) {
  for (const AlgorithmInfo& info : AlgorithmCatalogue()) {
    if (info.name == name) return &info;
  }
  std::vector<std::string> known;
  for (const AlgorithmInfo& info : AlgorithmCatalogue()) {
    known.push_back(info.name);
  }
  const std::string nearest = NearestName(name, known);
  return absl::NotFoundError(absl::StrCat(
      "there is no algorithm \"", name, "\"",
      nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?"),
      " allowed: ", absl::StrJoin(known, ", ")));
}

namespace {

// Null: there is none of that name.
std::unique_ptr<Algorithm> MakeAlgorithm(absl::string_view name,
                                         AlgorithmContext context,
                                         Decisions& decisions) {
  if (name == "pame") {
    return std::make_unique<Pame>(std::move(context), decisions);
  }
  if (name == "d-psgd") return std::make_unique<Dpsgd>(std::move(context));
  if (name == "async-dsgd" || name == "barrier-dsgd") {
    return std::make_unique<AsyncDsgd>(std::move(context),
                                       AsyncDsgd::Clock::kRounds);
  }
  if (name == "sync-dsgd") {
    return std::make_unique<AsyncDsgd>(std::move(context),
                                       AsyncDsgd::Clock::kNone);
  }
  if (name == "decefl" || name == "fedavg") {
    return std::make_unique<Decefl>(context);
  }
  if (name == "depositum") {
    return std::make_unique<Depositum>(std::move(context));
  }
  if (name == "nids") return std::make_unique<Nids>(std::move(context));
  if (name == "anq-nids") return std::make_unique<AnqNids>(std::move(context));
  if (name == "choco-sgd") {
    return std::make_unique<ChocoSgd>(std::move(context), decisions);
  }
  if (name == "beer") {
    return std::make_unique<Beer>(std::move(context), decisions);
  }
  if (name == "k-gt") return std::make_unique<KGt>(std::move(context));
  if (name == "sgp") return std::make_unique<Sgp>(std::move(context));
  if (name == "spod-gt" || name == "push-pull" || name == "g-push-pull" ||
      name == "sporadic-k-gt") {
    return std::make_unique<SpodGt>(std::move(context), decisions);
  }
  if (name == "dfedavgm") {
    return std::make_unique<Dfedavgm>(std::move(context));
  }
  if (name == "dfedsam") return std::make_unique<Dfedsam>(std::move(context));
  if (name == "draco") {
    return std::make_unique<Draco>(std::move(context), decisions);
  }
  if (name == "epidemic") {
    return std::make_unique<Epidemic>(std::move(context), decisions);
  }
  if (name == "fedavg+") {
    return std::make_unique<FedavgPlus>(std::move(context));
  }
  if (name == "fedmid") return std::make_unique<Fedmid>(std::move(context));
  if (name == "kd-pdfl") {
    return std::make_unique<KdPdfl>(std::move(context), decisions);
  }
  if (name == "swarm") {
    return std::make_unique<Swarm>(std::move(context), decisions);
  }
  if (name == "local") return std::make_unique<Local>(std::move(context));
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(
    absl::string_view name, AlgorithmContext context, Decisions& decisions) {
  auto made = MakeAlgorithm(name, std::move(context), decisions);
  if (!made) return FindAlgorithm(name).status();
  made->name_ = std::string(name);
  return made;
}

// ------------------------------------------------------------------- state ----

AlgorithmState Algorithm::ExportState() {
  AlgorithmState state;
  state.algorithm = name_;
  StateFields fields(&state);
  VisitState(fields);
  return state;
}

absl::Status Algorithm::ImportState(const AlgorithmState& state,
                                    Actions& actions) {
  if (state.version != kAlgorithmStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("state of ", state.algorithm, ": version ", state.version,
                     "; allowed: ", kAlgorithmStateVersion));
  }
  if (state.algorithm != name_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state of \"", state.algorithm, "\"; allowed: of \"", name_, "\""));
  }
  StateFields check(state, StateFields::Reading::kCheck);
  VisitState(check);
  DFL_RETURN_IF_ERROR(check.Finish());
  StateFields read(state, StateFields::Reading::kRead);
  VisitState(read);
  DFL_CHECK(read.Finish().ok());
  Resume(actions);
  return absl::OkStatus();
}

}  // namespace dfl::core
