#include "daemon/runtime/contracts/contract_pulls.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/contracts/contract_text.h"

namespace dfl::runtime {
namespace {

using core::ContractField;

constexpr int64_t kPart = ports::kMaxContractPartBytes;
constexpr absl::Duration kSilence = absl::Seconds(2);
constexpr absl::Duration kTick = absl::Milliseconds(500);
// A peer may have this many parts at once, the longest value of each field, and
// then so many a second.
constexpr size_t kPartsAtOnce =
    core::kContractFields.size() * (ports::kMaxContractBytes / kPart);
constexpr auto kParts = static_cast<double>(kPartsAtOnce);
constexpr double kPartsPerSecond = 64;

size_t IndexOf(ContractField field) { return static_cast<size_t>(field); }

}  // namespace

ContractPulls::ContractPulls(std::function<const core::DataContract*()> own,
                             ports::Loop& loop, Links& links,
                             BadMessage bad_message)
    : own_(std::move(own)),
      loop_(loop),
      links_(links),
      bad_message_(std::move(bad_message)) {}

std::vector<ContractField> ContractPulls::Differing(const Peer& peer) {
  if (peer.here == core::ContractDigest{} ||
      peer.there == core::ContractDigest{}) {
    return {};
  }
  return core::Differences(peer.here, peer.there);
}

void ContractPulls::Compare(const NodeId& peer,
                            const core::ContractDigest& here,
                            const core::ContractDigest& there) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  Peer& p = found->second;
  if (p.here != here || p.there != there) {
    p.here = here;
    p.there = there;
    p.texts.clear();
    p.given_up.clear();
    End(p);
  }
  Start(peer, p);
}

std::string ContractPulls::Difference(const NodeId& peer,
                                      ContractField field) const {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) {
    const auto text = found->second.texts.find(field);
    if (text != found->second.texts.end()) return text->second;
  }
  return absl::StrCat(core::FieldName(field), "; set ", core::FieldCure(field));
}

bool ContractPulls::Complete(const NodeId& peer) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return true;
  const Peer& p = found->second;
  for (const ContractField field : Differing(p)) {
    if (p.texts.count(field) == 0 && p.given_up.count(field) == 0) return false;
  }
  return true;
}

void ContractPulls::Start(const NodeId& id, Peer& peer) {
  if (peer.pull.has_value() || under_way_ >= kMaxPulls) return;
  for (const ContractField field : Differing(peer)) {
    if (peer.texts.count(field) > 0 || peer.given_up.count(field) > 0) continue;
    Pull pull;
    pull.field = field;
    pull.heard = loop_.Now();
    peer.pull = std::move(pull);
    ++under_way_;
    Ask(id, *peer.pull);
    KeepTicking();
    return;
  }
}

void ContractPulls::StartAll() {
  for (auto& [id, peer] : peers_) Start(id, peer);
}

void ContractPulls::Ask(const NodeId& id, const Pull& pull) {
  // Where it fails the link is about to go.
  (void)links_.Send(
      id,
      ports::ContractWant{pull.field, static_cast<int64_t>(pull.bytes.size())});
}

void ContractPulls::End(Peer& peer) {
  if (!peer.pull.has_value()) return;
  peer.pull.reset();
  --under_way_;
}

void ContractPulls::GiveUp(Peer& peer) {
  peer.given_up.insert(peer.pull->field);
  End(peer);
}

// ----------------------------------------------------------------- theirs ----

void ContractPulls::OnFrame(const NodeId& from, ports::ContractPart frame) {
  const auto found = peers_.find(from);
  // Parts that nobody waits for are dropped: the answer to another question, or
  // one that came too late.
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  if (!peer.pull.has_value() || peer.pull->field != frame.field) return;
  Pull& pull = *peer.pull;
  const auto come = static_cast<int64_t>(pull.bytes.size());
  if (frame.total_bytes > 0 && frame.offset < come) return;  // said twice
  if (frame.total_bytes == 0) {
    // It does not say it.
    GiveUp(peer);
    StartAll();
    return;
  }
  const int64_t expected = std::min(kPart, frame.total_bytes - frame.offset);
  if (frame.offset != come ||
      (pull.total != 0 && pull.total != frame.total_bytes) ||
      static_cast<int64_t>(frame.data.size()) != expected) {
    const std::string text = absl::StrCat(
        "a part of ", core::FieldName(frame.field),
        " of the data contract "
        "begins at ",
        frame.offset, " of ", frame.total_bytes, " and has ", frame.data.size(),
        " bytes; ", come, " bytes of ",
        pull.total == 0 ? frame.total_bytes : pull.total, " had come");
    GiveUp(peer);
    bad_message_(from, text);
    StartAll();
    return;
  }
  pull.total = frame.total_bytes;
  pull.heard = loop_.Now();
  pull.bytes += frame.data;
  if (static_cast<int64_t>(pull.bytes.size()) < pull.total) {
    Ask(from, pull);
  } else {
    TakeWhole(from, peer);
  }
}

void ContractPulls::TakeWhole(const NodeId& id, Peer& peer) {
  const ContractField field = peer.pull->field;
  const std::string text = std::move(peer.pull->bytes);
  const core::DataContract* own = own_();
  if (own == nullptr) {
    GiveUp(peer);
  } else if (core::FieldDigest(field, text) != peer.there[IndexOf(field)]) {
    GiveUp(peer);
    bad_message_(id, absl::StrCat("what it sent as ", core::FieldName(field),
                                  " of its data contract is not what its "
                                  "state says"));
  } else {
    End(peer);
    peer.texts[field] =
        DifferenceText(field, core::FieldText(*own, field), text);
  }
  StartAll();
}

void ContractPulls::KeepTicking() {
  if (timer_ != 0 || under_way_ == 0) return;
  timer_ = loop_.After(kTick, [this] {
    timer_ = 0;
    Tick();
  });
}

void ContractPulls::Tick() {
  const absl::Time now = loop_.Now();
  for (auto& [id, peer] : peers_) {
    if (peer.pull.has_value() && now >= peer.pull->heard + kSilence) {
      GiveUp(peer);
    }
  }
  StartAll();
  KeepTicking();
}

// ------------------------------------------------------------------- ours ----

bool ContractPulls::SpendPart(Peer& peer) {
  const absl::Time now = loop_.Now();
  peer.allowance = std::min(
      kParts,
      peer.allowance + kPartsPerSecond * absl::ToDoubleSeconds(now - peer.at));
  peer.at = now;
  if (peer.allowance < 1) return false;
  peer.allowance -= 1;
  return true;
}

const std::string& ContractPulls::Own(ContractField field, uint64_t digest) {
  if (digest != own_digest_) {
    const core::DataContract* own = own_();
    own_text_ = own == nullptr ? "" : core::FieldText(*own, field);
    own_digest_ = digest;
  }
  return own_text_;
}

void ContractPulls::OnFrame(const NodeId& from, ports::ContractWant frame) {
  const auto found = peers_.find(from);
  if (found == peers_.end() || !SpendPart(found->second)) return;
  ports::ContractPart part;
  part.field = frame.field;
  const std::vector<ContractField> differing = Differing(found->second);
  if (std::find(differing.begin(), differing.end(), frame.field) !=
      differing.end()) {
    const std::string& text =
        Own(frame.field, found->second.here[IndexOf(frame.field)]);
    const auto total = static_cast<int64_t>(text.size());
    // Beyond the end: we had another value when it asked first.
    if (frame.offset < total && total <= ports::kMaxContractBytes) {
      part.total_bytes = total;
      part.offset = frame.offset;
      part.data = text.substr(static_cast<size_t>(frame.offset), kPart);
    }
  }
  (void)links_.Send(from, std::move(part));
}

// ------------------------------------------------------------------ links ----

void ContractPulls::OnPeerUp(const NodeId& peer, bool /*restarted*/) {
  Peer& p = peers_[peer];
  End(p);
  p = Peer();
  p.allowance = kParts;
  p.at = loop_.Now();
}

void ContractPulls::OnPeerDown(const NodeId& peer,
                               const absl::Status& /*reason*/) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  End(found->second);
  peers_.erase(found);
  StartAll();
}

}  // namespace dfl::runtime
