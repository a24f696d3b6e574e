// The records that count on this node, and those that they replaced; on disk.
//
// Which of two records of one kind and subject counts
//   The one with the larger counter; of the same counter, the one with the
//   larger hash. So all nodes that have seen the same records agree.
//   A record counts as long as newer ones have not taken all names of its
//   scope: an order to pause one node leaves the order to all others in force.
//
// An author may lose the judge's trust afterwards: banned, expired, or of an
// authority that was removed. Their records stay in force, for a ban must not
// end with the certificate of its author, but they are not passed on. A trusted
// record that was signed later takes their place whatever its counter is, so a
// thief of a key cannot make an order that nobody can take back; one that was
// signed before does not, so that nobody can bring back what was replaced.
#ifndef DFL_RUNTIME_GOSSIP_RECORD_BOOK_H_
#define DFL_RUNTIME_GOSSIP_RECORD_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ports/files.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/gossip/book_file.h"
#include "daemon/runtime/gossip/record.h"

namespace dfl::runtime {

// Thread-compatible.
class RecordBook {
 public:
  static constexpr char kFile[] = "records";
  // Of the records that count.
  static constexpr size_t kMaxCurrent = 1024;
  static constexpr int64_t kMaxBytes = int64_t{48} << 20;
  // Of those that were replaced, for each kind.
  static constexpr size_t kMaxHistory = 64;

  enum class Answer {
    kTaken,
    kUnchanged,  // it is held already
    kOlder,      // others count; if its counter is theirs, the history has it
  };

  struct Held {
    std::shared_ptr<const Record> record;  // never null
    bool trusted = false;                  // the judge's word on its author
  };

  // Both must outlive it. Without `files` the book is kept in memory alone.
  RecordBook(const RecordJudge& judge, ports::Files* files)
      : judge_(judge), files_(files) {}

  // Reads the file; once, before all else. What is damaged in it is left out,
  // and the answer says so in a sentence for the log; "" when all is well.
  // Errors: as Files::Read, but for a file that is not there.
  absl::StatusOr<std::string> Load();

  // Whether a record that cannot be put on disk is taken all the same.
  enum class Disk { kMust, kMay };

  // Takes a record that the judge has just opened. It is on disk when this
  // returns, unless `disk` is kMay and not_on_disk() says why: the file is
  // written as a whole, at most kMaxBytes, and the caller waits for it.
  // Errors: RESOURCE_EXHAUSTED when the book is full; with kMust also when the
  // disk is, otherwise as Files. Nothing has changed then.
  absl::StatusOr<Answer> Offer(Record record, Disk disk = Disk::kMust);

  // Takes a record that counted in a former life of this node, and that was
  // kept elsewhere than in the file, which need not have it. The judge has just
  // reopened it; its author may have lost the judge's trust since.
  // Errors: RESOURCE_EXHAUSTED when the book is full.
  absl::StatusOr<Answer> Restore(Record record);

  // Why what is held is not all on disk; OK: it is.
  const absl::Status& not_on_disk() const { return not_on_disk_; }
  // Tries that once more.
  void SaveAgain() { not_on_disk_ = Save(current_, history_); }

  // Whether a record of this name would change something, as far as its name
  // tells.
  bool Wants(const ports::RecordId& id) const;

  // Asks the judge again about all authors. Returns whether it trusts one that
  // it did not trust before.
  bool Recheck();

  // Null when it does not count here.
  const Held* Find(const ports::RecordId& id) const;

  // By kind and subject; of one kind and subject, the one that overrides the
  // others comes first.
  const std::vector<Held>& current() const { return current_; }
  // The oldest replacement first.
  const std::vector<PastRecord>& history() const { return history_; }

 private:
  absl::StatusOr<Answer> Add(Held held, Disk disk);
  // Puts `held` where it belongs; kOlder when it does not count.
  Answer Insert(Held held, std::vector<Held>& current,
                std::vector<PastRecord>& history) const;
  // Whether the history has it.
  bool IsPast(const ports::RecordId& id) const;
  static absl::Status CheckRoom(const std::vector<Held>& current);
  absl::Status Save(const std::vector<Held>& current,
                    const std::vector<PastRecord>& history);

  const RecordJudge& judge_;
  ports::Files* const files_;
  std::vector<Held> current_;
  std::vector<PastRecord> history_;
  absl::Status not_on_disk_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GOSSIP_RECORD_BOOK_H_
