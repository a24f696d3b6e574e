#include "daemon/app/address_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/host_port.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"

namespace dfl::app {
namespace {

constexpr char kOfSettings[] = "settings";

}  // namespace

AddressBook::AddressBook(const std::vector<std::string>& settings,
                         EventLoop& loop, runtime::Node& node,
                         SharedKeeper& keeper,
                         std::shared_ptr<discovery::NameList> names)
    : loop_(loop), node_(node), keeper_(keeper), names_(std::move(names)) {
  for (const std::string& address : settings) Insert(address, kOfSettings);
}

bool AddressBook::Insert(const std::string& address, const char* origin) {
  control::PeerAddress peer;
  peer.address = address;
  peer.origin = origin;
  const absl::MutexLock lock(&mutex_);
  return peers_.emplace(address, std::move(peer)).second;
}

void AddressBook::DialLater(const std::string& address) {
  if (names_ != nullptr) return names_->Add(address);
  loop_.Post([this, address] { (void)node_.links().AddAddress(address); });
}

void AddressBook::HangUpLater(const std::string& address) {
  if (names_ != nullptr) return names_->Remove(address);
  loop_.Post([this, address] { (void)node_.links().RemoveAddress(address); });
}

void AddressBook::SetSettings(const std::vector<std::string>& settings) {
  std::vector<std::string> gone;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [address, peer] : peers_) {
      if (peer.origin == kOfSettings &&
          std::find(settings.begin(), settings.end(), address) ==
              settings.end()) {
        gone.push_back(address);
      }
    }
    for (const std::string& address : gone) peers_.erase(address);
  }
  for (const std::string& address : gone) HangUpLater(address);
  for (const std::string& address : settings) {
    if (Insert(address, kOfSettings)) DialLater(address);
  }
}

void AddressBook::DialKept() {
  const std::vector<std::string> kept = keeper_.Do(
      [](runtime::RunKeeper& keeper) { return keeper.added_peers(); });
  for (const std::string& address : kept) {
    if (Insert(address, "control")) DialLater(address);
  }
}

void AddressBook::Refresh() {
  std::map<std::string, NodeId> linked;
  for (const auto& [node, peer] : node_.links().peers()) {
    if (peer.link != 0) linked[peer.address] = node;
  }
  std::map<std::string, discovery::Resolved> resolved;
  if (names_ != nullptr) resolved = names_->resolved();
  const absl::MutexLock lock(&mutex_);
  for (auto& [name, peer] : peers_) {
    if (names_ == nullptr) {
      peer.last_error.clear();
      TakeOver(name, linked, peer);
      continue;
    }
    const discovery::Resolved& found = resolved[name];
    peer.last_error = found.trouble;
    for (const std::string& address : found.addresses) {
      TakeOver(address, linked, peer);
    }
  }
}

void AddressBook::TakeOver(const std::string& address,
                           const std::map<std::string, NodeId>& linked,
                           control::PeerAddress& peer) {
  if (!peer.node.empty() && node_.links().IsUp(peer.node)) {
    peer.linked = true;
    return;
  }
  // Once a member has answered there its address may be dialled no more.
  const auto known = linked.find(address);
  const auto dialled = node_.links().addresses().find(address);
  const bool is_dialled = dialled != node_.links().addresses().end();
  if (known != linked.end()) {
    peer.node = known->second;
  } else if (is_dialled && !dialled->second.node.empty()) {
    peer.node = dialled->second.node;
  }
  peer.linked = !peer.node.empty() && node_.links().IsUp(peer.node);
  if (is_dialled && !peer.linked) peer.last_error = dialled->second.last_error;
}

std::vector<control::PeerAddress> AddressBook::List() {
  const absl::MutexLock lock(&mutex_);
  std::vector<control::PeerAddress> peers;
  peers.reserve(peers_.size());
  for (const auto& [name, peer] : peers_) peers.push_back(peer);
  return peers;
}

absl::Status AddressBook::Add(const std::string& address) {
  const absl::Status parsed = ParseHostPort(address).status();
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("peer address \"", address,
                                                   "\": ", parsed.message(),
                                                   "; ", kHostPortForms));
  }
  if (!Insert(address, "control")) {
    return absl::AlreadyExistsError(
        absl::StrCat(address, " is dialled already"));
  }
  const absl::Status saved = keeper_.Do(
      [&](runtime::RunKeeper& keeper) { return keeper.AddPeer(address); });
  if (!saved.ok()) {
    const absl::MutexLock lock(&mutex_);
    peers_.erase(address);
    return Annotate(saved, absl::StrCat("peer address ", address,
                                        " cannot be kept, so it is not added"));
  }
  DialLater(address);
  return absl::OkStatus();
}

absl::Status AddressBook::UnknownAddress(const std::string& address) const {
  std::vector<std::string> known;
  for (const auto& [name, peer] : peers_) known.push_back(name);
  const std::string nearest = NearestName(address, known);
  return absl::NotFoundError(absl::StrCat(
      "no peer ", address, " is dialled",
      nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"),
      known.empty()
          ? "; there are none"
          : absl::StrCat("; there are: ", absl::StrJoin(known, ", "))));
}

absl::Status AddressBook::Remove(const std::string& address) {
  {
    const absl::MutexLock lock(&mutex_);
    if (peers_.erase(address) == 0) return UnknownAddress(address);
  }
  HangUpLater(address);
  const absl::Status saved = keeper_.Do(
      [&](runtime::RunKeeper& keeper) { return keeper.RemovePeer(address); });
  return saved.ok() ? saved
                    : Annotate(saved, absl::StrCat(address,
                                                   " is dialled no more, but "
                                                   "will be after a restart"));
}

}  // namespace dfl::app
