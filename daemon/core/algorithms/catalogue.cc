#include "daemon/core/algorithms/catalogue.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/names.h"
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
#include "daemon/core/algorithms/gossip_nids.h"
#include "daemon/core/algorithms/kd_pdfl.h"
#include "daemon/core/algorithms/kgt.h"
#include "daemon/core/algorithms/local.h"
#include "daemon/core/algorithms/nids.h"
#include "daemon/core/algorithms/pame.h"
#include "daemon/core/algorithms/sgp.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/algorithms/swarm.h"

namespace dfl::core {

Catalogue::Catalogue(std::vector<AlgorithmInfo> entries) {
  entries_.reserve(entries.size());
  for (AlgorithmInfo& entry : entries) Add(std::move(entry));
}

absl::StatusOr<const AlgorithmInfo*> Catalogue::Find(
    absl::string_view name) const {
  std::vector<std::string> known;
  for (const AlgorithmInfo& info : entries_) {
    if (info.name == name) return &info;
    known.push_back(info.name);
  }
  const std::string nearest = NearestName(name, known);
  return absl::NotFoundError(absl::StrCat(
      "there is no algorithm \"", name, "\"",
      nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?"),
      " allowed: ", absl::StrJoin(known, ", ")));
}

void Catalogue::Add(AlgorithmInfo entry) {
  DFL_CHECK(entry.create != nullptr);
  for (const AlgorithmInfo& other : entries_) {
    DFL_CHECK(other.name != entry.name);
  }
  entries_.push_back(std::move(entry));
}

const Catalogue& BuiltInCatalogue() {
  static const Catalogue* const kBuiltIn = new Catalogue({
      AnqNidsInfo(),    AsyncDsgdInfo(),   BarrierDsgdInfo(), BeerInfo(),
      ChocoSgdInfo(),   DeceflInfo(),      DepositumInfo(),   DfedavgmInfo(),
      DfedsamInfo(),    DpsgdInfo(),       DracoInfo(),       EpidemicInfo(),
      FedavgInfo(),     FedavgPlusInfo(),  FedmidInfo(),      GPushPullInfo(),
      GossipNidsInfo(), KGtInfo(),         KdPdflInfo(),      LocalInfo(),
      NidsInfo(),       PameInfo(),        PushPullInfo(),    SgpInfo(),
      SpodGtInfo(),     SporadicKGtInfo(), SwarmInfo(),       SyncDsgdInfo(),
  });
  return *kBuiltIn;
}

}  // namespace dfl::core
