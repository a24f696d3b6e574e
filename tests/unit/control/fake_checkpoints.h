// A scripted control::Checkpoints: a list, one file, and what was restored.
#ifndef DFL_TESTS_UNIT_CONTROL_FAKE_CHECKPOINTS_H_
#define DFL_TESTS_UNIT_CONTROL_FAKE_CHECKPOINTS_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/control/checkpoints.h"

namespace dfl::control {

// A value in every field.
inline CheckpointInfo SampleCheckpoint(const std::string& node,
                                       int64_t iteration) {
  CheckpointInfo info;
  info.file = absl::StrCat("checkpoint.", iteration % 2);
  info.bytes = 3000000 + iteration;
  info.written = absl::FromUnixSeconds(1700000000 + iteration);
  info.node = node;
  info.run_id = "00c0ffee00c0ffee";
  info.plan_version = 2;
  info.algorithm = "k-gt";
  info.iteration = iteration;
  info.steps = 5 * iteration;
  info.rounds = iteration;
  info.tracker_epoch = 3;
  return info;
}

class FakeCheckpoints final : public Checkpoints {
 public:
  explicit FakeCheckpoints(std::string node) : node_(std::move(node)) {
    list_.checkpoints = {SampleCheckpoint(node_, 200),
                         SampleCheckpoint(node_, 101)};
    list_.aside = {{"checkpoint.1.aside", 77, "it is torn"}};
  }

  // ---- what a test scripts ----

  void SetList(CheckpointList list) {
    const absl::MutexLock lock(&mutex_);
    list_ = std::move(list);
  }
  // What Open reads.
  void SetFile(std::string bytes) {
    const absl::MutexLock lock(&mutex_);
    file_ = std::move(bytes);
  }
  // Save, Open and Restore fail with it.
  void FailWith(absl::Status failure) {
    const absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
  }
  // The first part of a file is refused with it.
  void RefuseHead(absl::Status refusal) {
    const absl::MutexLock lock(&mutex_);
    refusal_ = std::move(refusal);
  }
  // Answers of Save are kept for ever.
  void KeepSaveQuiet() {
    const absl::MutexLock lock(&mutex_);
    quiet_ = true;
  }

  // ---- what a test reads ----

  int saves() const {
    const absl::MutexLock lock(&mutex_);
    return saves_;
  }
  std::string restored() const {
    const absl::MutexLock lock(&mutex_);
    return restored_;
  }
  RestoreRequest request() const {
    const absl::MutexLock lock(&mutex_);
    return request_;
  }
  int open_files() const {
    const absl::MutexLock lock(&mutex_);
    return open_files_;
  }

  // ---- Checkpoints ----

  void List(Done<CheckpointList> done) override {
    CheckpointList list;
    {
      const absl::MutexLock lock(&mutex_);
      list = list_;
    }
    done(std::move(list));
  }

  void Save(Begin /*begin*/, Done<CheckpointInfo> done) override {
    absl::Status failure;
    {
      const absl::MutexLock lock(&mutex_);
      ++saves_;
      if (quiet_) {
        kept_.push_back(std::move(done));
        return;
      }
      failure = failure_;
    }
    if (!failure.ok()) return done(failure);
    done(SampleCheckpoint(node_, 300));
  }

  void Open(Done<std::unique_ptr<CheckpointSource>> done) override {
    absl::Status failure;
    std::string bytes;
    {
      const absl::MutexLock lock(&mutex_);
      failure = failure_;
      bytes = file_;
    }
    if (!failure.ok()) return done(failure);
    done(std::make_unique<Source>(*this, std::move(bytes)));
  }

  void Restore(const RestoreRequest& request,
               Done<std::unique_ptr<CheckpointSink>> done) override {
    absl::Status failure;
    {
      const absl::MutexLock lock(&mutex_);
      failure = failure_;
      request_ = request;
    }
    if (!failure.ok()) return done(failure);
    done(std::make_unique<Sink>(*this));
  }

 private:
  class OpenFile {
   public:
    explicit OpenFile(FakeCheckpoints& all) : all_(all) { Count(1); }
    ~OpenFile() { Count(-1); }

   private:
    void Count(int change) {
      const absl::MutexLock lock(&all_.mutex_);
      all_.open_files_ += change;
    }
    FakeCheckpoints& all_;
  };

  class Source final : public CheckpointSource {
   public:
    Source(FakeCheckpoints& all, std::string bytes)
        : open_(all), node_(all.node_), bytes_(std::move(bytes)) {}
    int64_t total_bytes() const override {
      return static_cast<int64_t>(bytes_.size());
    }
    CheckpointInfo info() const override {
      return SampleCheckpoint(node_, 300);
    }
    absl::StatusOr<std::string> Read(int64_t offset,
                                     int64_t max_bytes) override {
      return bytes_.substr(static_cast<size_t>(offset),
                           static_cast<size_t>(max_bytes));
    }

   private:
    const OpenFile open_;
    const std::string node_;
    const std::string bytes_;
  };

  class Sink final : public CheckpointSink {
   public:
    explicit Sink(FakeCheckpoints& all) : all_(all), open_(all) {}
    absl::Status Append(absl::string_view data) override {
      bytes_.append(data.data(), data.size());
      const absl::MutexLock lock(&all_.mutex_);
      return all_.refusal_;
    }
    void Commit(Done<RestoreResult> done) override {
      if (bytes_[0] == '!') {
        return done(absl::InvalidArgumentError(
            "the checkpoint file cannot be used: it is torn"));
      }
      {
        const absl::MutexLock lock(&all_.mutex_);
        all_.restored_ = bytes_;
      }
      done(RestoreResult{SampleCheckpoint(all_.node_, 300),
                         ports::Phase::kPaused});
    }

   private:
    FakeCheckpoints& all_;
    const OpenFile open_;
    std::string bytes_;
  };

  const std::string node_;
  mutable absl::Mutex mutex_;
  CheckpointList list_ ABSL_GUARDED_BY(mutex_);
  std::string file_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  bool quiet_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done<CheckpointInfo>> kept_ ABSL_GUARDED_BY(mutex_);
  int saves_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string restored_ ABSL_GUARDED_BY(mutex_);
  RestoreRequest request_ ABSL_GUARDED_BY(mutex_);
  int open_files_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dfl::control

#endif  // DFL_TESTS_UNIT_CONTROL_FAKE_CHECKPOINTS_H_
