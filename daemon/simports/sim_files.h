// A state directory in memory, with a disk's bad days: full, failing, lying
// about what is safe, tearing what was not.
//
// It outlives the node that writes to it: keep it over a simulated crash.
#ifndef DFL_SIMPORTS_SIM_FILES_H_
#define DFL_SIMPORTS_SIM_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/rng.h"
#include "daemon/ports/files.h"

namespace dfl::simports {

class SimFiles final : public ports::Files {
 public:
  absl::StatusOr<std::unique_ptr<ports::FileReader>> Open(
      const std::string& name) override;
  absl::StatusOr<std::unique_ptr<ports::FileWriter>> Replace(
      const std::string& name) override;
  absl::Status Remove(const std::string& name) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;

  // Room for all contents together, old and new one of a file that is being
  // replaced included; < 0: no limit.
  void set_capacity(int64_t bytes) { capacity_ = bytes; }

  // Every call fails with `status` and changes nothing; OK ends that.
  void FailWith(absl::Status status) { failure_ = std::move(status); }

  // A disk that says "synced" when it is not: from here on a Crash undoes or
  // tears what was not Sync()ed.
  void set_lies(bool lies) { lies_ = lies; }
  void Sync() { durable_ = contents_; }

  // Power is lost. Without lies nothing happens to what was written. With them
  // each unsynced file, by the draws of `rng`, keeps its new content, goes back
  // to the old one or is torn: its new content up to some byte.
  void Crash(Rng& rng);

  // Power is lost while a file is written, on a disk that does not keep its
  // word: what was written last is there by its first half. Nothing when
  // nothing was.
  void TearLastWrite();

  // Another disk, an empty one, is put in.
  void Empty();

  // Flips one bit; the file must exist and hold bit / 8 < size.
  void FlipBit(const std::string& name, int64_t bit);

  std::vector<std::string> names() const;  // sorted
  int64_t writes() const { return writes_; }

 private:
  class Reader;
  class Writer;
  using Contents = std::map<std::string, std::string>;

  // Whether `bytes` more fit for a file that is being written.
  absl::Status CheckRoom(const std::string& name, size_t bytes) const;
  absl::Status Put(const std::string& name, std::string content);

  Contents contents_;
  Contents durable_;
  std::string last_written_;  // the name; "": none
  int64_t capacity_ = -1;
  bool lies_ = false;
  absl::Status failure_;
  int64_t writes_ = 0;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_FILES_H_
