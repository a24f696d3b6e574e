#include "tests/golden/drivers.h"

#include <map>
#include <string>

#include "daemon/core/algorithms/catalogue.h"

namespace dfl::golden {

Driver FindDriver(const std::string& algorithm) {
  static const auto* const kOwn = new std::map<std::string, Driver>{
      {"async-dsgd", RunClocked}, {"barrier-dsgd", RunClocked},
      {"draco", RunDraco},        {"epidemic", RunEpidemic},
      {"fedmid", RunFedmid},      {"gossip-nids", RunGossip},
      {"kd-pdfl", RunKdPdfl},     {"pame", RunPame},
      {"swarm", RunSwarm},        {"sync-dsgd", RunClocked}};
  const auto info = core::BuiltInCatalogue().Find(algorithm);
  if (!info.ok()) return nullptr;
  const auto own = kOwn->find(algorithm);
  if (own != kOwn->end()) return own->second;
  return (*info)->gives_mass ? RunMass : RunRounds;
}

}  // namespace dfl::golden
