#include "daemon/runtime/ask_book.h"

#include <algorithm>

namespace dfl::runtime {

uint64_t AskBook::OpenStateAsk(const NodeId& peer) {
  const uint64_t ask = ++last_state_ask_;
  out_[ask] = {peer};
  return ask;
}

bool AskBook::IsOut(uint64_t ask, const NodeId& peer) const {
  const auto it = out_.find(ask);
  return it != out_.end() && it->second.count(peer) > 0;
}

bool AskBook::Close(uint64_t ask, const NodeId& peer) {
  const auto it = out_.find(ask);
  if (it == out_.end() || it->second.erase(peer) == 0) return false;
  if (it->second.empty()) out_.erase(it);
  return true;
}

std::set<NodeId> AskBook::CloseAll(uint64_t ask) {
  const auto it = out_.find(ask);
  if (it == out_.end()) return {};
  std::set<NodeId> peers = std::move(it->second);
  out_.erase(it);
  return peers;
}

std::vector<std::pair<uint64_t, std::set<NodeId>>> AskBook::CloseAlgorithms() {
  std::vector<std::pair<uint64_t, std::set<NodeId>>> closed;
  for (auto it = out_.begin(); it != out_.end();) {
    if (IsStateAsk(it->first)) {
      ++it;
      continue;
    }
    closed.emplace_back(it->first, std::move(it->second));
    it = out_.erase(it);
  }
  return closed;
}

std::vector<uint64_t> AskBook::OutTo(const NodeId& peer) const {
  std::vector<uint64_t> asks;
  for (const auto& [ask, asked] : out_) {
    if (asked.count(peer) > 0) asks.push_back(ask);
  }
  return asks;
}

bool AskBook::Wait(const NodeId& from, const ports::AskFrame& ask) {
  for (Waiting& waiting : waiting_) {
    if (waiting.from == from && waiting.ask.purpose == ask.purpose) {
      waiting.ask = ask;
      return true;
    }
  }
  waiting_.push_back(Waiting{from, ask});
  return false;
}

void AskBook::Forget(const NodeId& from, std::optional<uint64_t> ask) {
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [&](const Waiting& w) {
                                  return w.from == from &&
                                         (!ask || w.ask.ask == *ask);
                                }),
                 waiting_.end());
}

AskBook::Waiting AskBook::TakeFirst() {
  Waiting first = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return first;
}

}  // namespace dfl::runtime
