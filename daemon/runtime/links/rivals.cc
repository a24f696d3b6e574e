#include "daemon/runtime/links/rivals.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dfl::runtime {

namespace {

absl::Status BeingAsked(const NodeId& node, uint64_t holder,
                        const char* where) {
  return absl::UnavailableError(absl::StrFormat(
      "a daemon named %s (incarnation %016x) is %s, and %s; try again",
      node.name(), holder, where, ports::kIsBeingAsked));
}

absl::Status HolderLives(const NodeId& node, uint64_t holder,
                         const char* where) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "another daemon of this name (%s), incarnation %016x, is %s and answers: "
      "a cloned image? give each its own name",
      node.name(), holder, where));
}

std::string TextOf(const ports::PeerIdentity& newcomer) {
  return absl::StrFormat(
      "another daemon of this name, incarnation %016x%s%s, asks for its link: "
      "a cloned image? give each its own name",
      newcomer.incarnation, newcomer.advertised.empty() ? "" : " at ",
      newcomer.advertised);
}

}  // namespace

Rivals::Rivals(absl::Duration within, ports::Loop& loop,
               ports::EventSink& events, std::function<void(const NodeId&)> ask,
               std::function<void(const NodeId&, const absl::Status&)> end)
    : within_(within),
      loop_(loop),
      events_(events),
      ask_(std::move(ask)),
      end_(std::move(end)) {}

Rivals::~Rivals() {
  for (const auto& [node, entry] : entries_) loop_.Cancel(entry.timer);
}

void Rivals::Tell(uint64_t& told, const ports::PeerIdentity& newcomer,
                  const std::string& text) {
  if (std::exchange(told, newcomer.incarnation) == newcomer.incarnation) return;
  events_.Report(ports::SecurityNote{
      true, absl::StrCat(newcomer.node.name(), text, TextOf(newcomer))});
}

absl::Status Rivals::Refuse(uint64_t linked,
                            const ports::PeerIdentity& newcomer) {
  const NodeId node = newcomer.node;
  Entry& entry = entries_[node];
  if (entry.timer == 0) {
    ask_(node);
    entry.timer =
        loop_.After(within_, [this, node, rival = newcomer.incarnation] {
          entries_[node].timer = 0;
          entries_[node].answered = false;
          end_(node, absl::UnavailableError(absl::StrFormat(
                         "it is silent while another incarnation (%016x) asks "
                         "for its link",
                         rival)));
        });
  }
  if (!entry.answered) return BeingAsked(node, linked, "still linked");
  entry.text = TextOf(newcomer);
  Tell(entry.told, newcomer, " is linked and answers, and ");
  return HolderLives(node, linked, "linked");
}

absl::Status Rivals::Admit(const ports::PeerIdentity& newcomer) {
  const NodeId& node = newcomer.node;
  const uint64_t holder =
      distant_ == nullptr ? 0 : distant_->IncarnationOf(node);
  if (holder == 0 || holder == newcomer.incarnation) return absl::OkStatus();
  if (distants_.count(node) == 0) MakeRoom();
  Distant& entry = distants_[node];
  if (entry.silent == holder && loop_.Now() - entry.asked < kFree) {
    return absl::OkStatus();
  }
  if (!entry.asking) AskDistant(node, holder, newcomer.incarnation);
  if (!entry.answered) {
    return BeingAsked(node, holder, "a member of the network");
  }
  Tell(entry.told, newcomer, " is a member of the network and answers, and ");
  return HolderLives(node, holder, "a member of the network");
}

void Rivals::AskDistant(const NodeId& node, uint64_t holder,
                        uint64_t newcomer) {
  Distant& entry = distants_[node];
  entry.asking = true;
  entry.asked = loop_.Now();
  distant_->AskIncarnation(
      node, within_, [this, node, holder, newcomer](uint64_t incarnation) {
        const auto found = distants_.find(node);
        if (found == distants_.end()) return;
        found->second.asking = false;
        // The newcomer may have been let in elsewhere.
        found->second.answered = incarnation != 0 && incarnation != newcomer;
        found->second.silent = found->second.answered ? 0 : holder;
        found->second.asked = loop_.Now();
      });
}

void Rivals::MakeRoom() {
  if (distants_.size() < kMostDistant) return;
  distants_.erase(std::min_element(distants_.begin(), distants_.end(),
                                   [](const auto& a, const auto& b) {
                                     return a.second.asked < b.second.asked;
                                   }));
}

void Rivals::Heard(const NodeId& node) {
  if (entries_.empty()) return;
  const auto found = entries_.find(node);
  if (found == entries_.end() || found->second.timer == 0) return;
  loop_.Cancel(std::exchange(found->second.timer, 0));
  found->second.answered = true;
}

void Rivals::End(const NodeId& node) {
  const auto found = entries_.find(node);
  if (found == entries_.end()) return;
  loop_.Cancel(found->second.timer);
  entries_.erase(found);
}

std::string Rivals::Text(const NodeId& node) const {
  const auto found = entries_.find(node);
  return found == entries_.end() ? "" : found->second.text;
}

}  // namespace dfl::runtime
