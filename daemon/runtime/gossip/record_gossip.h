// Passes records on from node to node, until all have them.
//
//   a link comes up, a record is taken --RecordSummary--> neighbours
//   neighbours --RecordWant--> the part they want --RecordPart--> them
//   a whole record --RecordJudge--> RecordBook --> listener, neighbours
//
// Nothing is believed that the judge has not opened, whoever passed it on, and
// nothing else is passed on.
//
// Without a judge, as in a simulation of one plan for ever, it holds nothing,
// sends nothing, and refuses the frames of others.
//
// Loop only.
#ifndef DFL_RUNTIME_GOSSIP_RECORD_GOSSIP_H_
#define DFL_RUNTIME_GOSSIP_RECORD_GOSSIP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/files.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/gossip/record.h"
#include "daemon/runtime/gossip/record_book.h"
#include "daemon/runtime/gossip/record_pulls.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

// Is told of each record that is taken.
class RecordListener {
 public:
  virtual ~RecordListener() = default;
  // `record` is in the book, and on disk where there is room; `from` is who
  // passed it on, empty when control or this node itself did. It may call
  // RecordGossip::TrustChanged.
  virtual void OnRecordTaken(const Record& record, const NodeId& from) = 0;
};

// All must outlive the gossip.
struct RecordOptions {
  const RecordJudge* judge = nullptr;  // null: there are no records
  ports::Files* files = nullptr;       // null: they are kept in memory alone
  RecordListener* listener = nullptr;  // null: nobody is told
};

class RecordGossip
    : public FrameReceivers<ports::RecordSummary, ports::RecordWant,
                            ports::RecordPart>,
      public LinkObserver {
 public:
  // Is told of what a peer sent and should not have.
  using BadMessage =
      std::function<void(const NodeId& from, const std::string& text)>;

  // All must outlive it.
  RecordGossip(const RecordOptions& options, ports::Loop& loop, Links& links,
               ports::EventSink& events, BadMessage bad_message);
  ~RecordGossip() override { loop_.Cancel(save_timer_); }

  // Reads the book; before the first link. See RecordBook::Load.
  absl::StatusOr<std::string> Load() { return book_.Load(); }

  // A record that a person brought.
  // Errors: FAILED_PRECONDITION without a judge; the judge's; those of
  // RecordBook::Offer, for which it also waits.
  absl::StatusOr<RecordBook::Answer> Offer(
      absl::string_view bytes, RecordBook::Disk disk = RecordBook::Disk::kMust);

  // A record that this node obeyed before it started, as it was kept with what
  // came of it. If it counts, it is passed on as if it came now.
  // Errors: as Offer's, but for a disk that is full; those of
  // RecordJudge::Reopen.
  absl::Status Restore(absl::string_view bytes);

  // What the judge trusts has changed: authorities, bans, or a clock that was
  // set. Records are judged again, and what was refused is fetched again.
  void TrustChanged();

  const RecordBook& book() const { return book_; }
  // For tests of its bounds.
  const RecordPulls& pulls() const { return pulls_; }

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::RecordSummary frame) override;
  void OnFrame(const NodeId& from, ports::RecordWant frame) override;
  void OnFrame(const NodeId& from, ports::RecordPart frame) override;

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override;
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override;
  void OnPeerWritable(const NodeId& /*peer*/) override {}
  void OnAddressFailed(const std::string& /*address*/) override {}

 private:
  // How many parts a peer may have now.
  struct Allowance {
    double parts = 0;
    absl::Time at;
  };

  const RecordJudge& judge() const {
    return options_.judge != nullptr ? *options_.judge : *no_judge_;
  }
  bool HasJudge(const NodeId& from);
  void Refuse(const NodeId& from, const ports::RecordId& id,
              const absl::Status& why);
  void TakeWhole(const NodeId& from, RecordPulls::Whole whole);
  // The book has answered so to a record of this node's own.
  void Taken(const ports::RecordId& id, RecordBook::Answer answer);
  // If what is held is not on disk, says so, and tries again until it is.
  void SaveLater();
  void SaveAgain();
  // Tells everybody but `from`.
  void Announce(std::shared_ptr<const Record> record, const NodeId& from);
  void SendAll(const NodeId& peer);
  bool SpendPart(const NodeId& peer);

  const RecordOptions options_;
  ports::Loop& loop_;
  Links& links_;
  ports::EventSink& events_;
  const BadMessage bad_message_;
  const std::unique_ptr<const RecordJudge> no_judge_;
  RecordBook book_;
  RecordPulls pulls_;
  std::map<NodeId, Allowance> allowances_;  // of those that are linked
  ports::TimerId save_timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GOSSIP_RECORD_GOSSIP_H_
