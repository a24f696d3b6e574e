// The details of a disagreement: where a neighbour's data contract differs from
// ours in a field, by the digests in its State, its value of that field is
// fetched, so that both ends can say what differs.
//
//   State: a field differs --ContractWant--> peer
//   peer --ContractPart, ContractPart ...--> the whole value --> a text
//
// Bounds
//   Only of peers that the caller compares with, which are linked, and only
//   what differs; the same is given only to them.
//   A value has kMaxContractBytes at most and comes in parts. Of one peer one
//   value is under way, of all kMaxPulls. What is kept of it is a short text.
//   A peer that is silent for a while is asked no more about that field. So is
//   one that sends wrong parts, or a value that is not that of its digest; this
//   counts as a bad message.
//
// A ContractWant is always answered. So it also serves to ask a peer whether it
// lives: see Links.
//
// Loop only.
#ifndef DFL_RUNTIME_CONTRACTS_CONTRACT_PULLS_H_
#define DFL_RUNTIME_CONTRACTS_CONTRACT_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

class ContractPulls
    : public FrameReceivers<ports::ContractWant, ports::ContractPart>,
      public LinkObserver {
 public:
  static constexpr int kMaxPulls = 4;

  // Is told of what a peer sent and should not have.
  using BadMessage =
      std::function<void(const NodeId& from, const std::string& text)>;

  // `own` gives this node's contract; null: it has none. All must outlive it.
  ContractPulls(std::function<const core::DataContract*()> own,
                ports::Loop& loop, Links& links, BadMessage bad_message);
  ~ContractPulls() override { loop_.Cancel(timer_); }
  ContractPulls(const ContractPulls&) = delete;
  ContractPulls& operator=(const ContractPulls&) = delete;

  // Our digest and that of `peer`, which may be told what differs. All 0: there
  // is none, or it may not. To be said when one of them is new; a link begins
  // with none.
  void Compare(const NodeId& peer, const core::ContractDigest& here,
               const core::ContractDigest& there);

  // How `peer` differs in `field`, see contract_text.h; just the field's name
  // while its value has not come.
  std::string Difference(const NodeId& peer, core::ContractField field) const;
  // All that differs was fetched, or will not come.
  bool Complete(const NodeId& peer) const;

  // For tests of its bounds.
  int under_way() const { return under_way_; }

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::ContractWant frame) override;
  void OnFrame(const NodeId& from, ports::ContractPart frame) override;

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override;
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override;
  void OnPeerWritable(const NodeId& /*peer*/) override {}
  void OnAddressFailed(const std::string& /*address*/) override {}

 private:
  struct Pull {
    core::ContractField field = core::ContractField::kTask;
    absl::Time heard;
    int64_t total = 0;  // 0: not told yet
    std::string bytes;
  };
  // One that is linked.
  struct Peer {
    // What was compared last.
    core::ContractDigest here{};
    core::ContractDigest there{};
    std::map<core::ContractField, std::string> texts;
    std::set<core::ContractField> given_up;
    std::optional<Pull> pull;
    // Parts that it may have now.
    double allowance = 0;
    absl::Time at;
  };

  static std::vector<core::ContractField> Differing(const Peer& peer);
  void Start(const NodeId& id, Peer& peer);
  void StartAll();
  void Ask(const NodeId& id, const Pull& pull);
  void End(Peer& peer);
  void GiveUp(Peer& peer);
  void TakeWhole(const NodeId& id, Peer& peer);
  bool SpendPart(Peer& peer);
  // Our own value, as it is given in parts.
  const std::string& Own(core::ContractField field, uint64_t digest);
  void KeepTicking();
  void Tick();

  const std::function<const core::DataContract*()> own_;
  ports::Loop& loop_;
  Links& links_;
  const BadMessage bad_message_;
  std::map<NodeId, Peer> peers_;
  int under_way_ = 0;
  ports::TimerId timer_ = 0;
  // The value that was asked for last, and its digest.
  std::string own_text_;
  uint64_t own_digest_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CONTRACTS_CONTRACT_PULLS_H_
