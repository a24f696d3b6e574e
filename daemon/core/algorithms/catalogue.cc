#include "daemon/core/algorithms/catalogue.h"
#include "daemon/base/names.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/algorithms/anq_nids.h"
#include "daemon/core/algorithms/async_dsgd.h"
#include "daemon/core/algorithms/beer.h"
#include "daemon/core/algorithms/choco_sgd.h"
#include "daemon/core/algorithms/decefl.h"
#include "daemon/core/algorithms/depositum.h"
#include "daemon/core/algorithms/dfedavgm.h"
#include "daemon/core/algorithms/dfedsam.h"
#include "daemon/core/algorithms/dpsgd.h"
#include "daemon/core/algorithms/draco.h"
#include "daemon/core/algorithms/epidemic.h"
#include "daemon/core/algorithms/fedavg.h"
#include "daemon/core/algorithms/fedmid.h"
#include "daemon/core/algorithms/kd_pdfl.h"
#include "daemon/core/algorithms/kgt.h"
#include "daemon/core/algorithms/local.h"
#include "daemon/core/algorithms/nids.h"
#include "daemon/core/algorithms/pame.h"
#include "daemon/core/algorithms/sgp.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/algorithms/swarm.h"

namespace dfl::core {

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

}  // namespace dfl::core
