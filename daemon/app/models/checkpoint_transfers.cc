#include "daemon/app/models/checkpoint_transfers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/runtime/checkpoints/restore_check.h"

namespace dfl::app {
namespace {

using control::CheckpointInfo;
using store::KeptCheckpoint;

// What a file may have beside what its node has in memory.
constexpr int64_t kMostHeadBytes = int64_t{16} << 20;

absl::Status KeepsNone() {
  return absl::FailedPreconditionError("this node keeps no checkpoints");
}

CheckpointInfo ToInfo(const KeptCheckpoint& kept) {
  const runtime::CheckpointHead& head = kept.read.head;
  CheckpointInfo info;
  info.file = kept.file;
  info.bytes = kept.read.bytes;
  info.written = head.written;
  info.node = head.node;
  info.run_id = head.run_id;
  info.plan_version = head.plan_version;
  info.algorithm = head.algorithm;
  info.iteration = head.step;
  info.steps = head.pace.steps;
  info.rounds = head.pace.rounds;
  info.tracker_epoch = head.tracker_epoch;
  return info;
}

control::CheckpointList ToList(const store::KeptCheckpoints& kept) {
  control::CheckpointList list;
  for (const KeptCheckpoint& one : kept.whole) {
    list.checkpoints.push_back(ToInfo(one));
  }
  for (const store::AsideCheckpoint& aside : kept.aside) {
    list.aside.push_back({aside.file, aside.bytes, aside.reason});
  }
  return list;
}

class Source final : public control::CheckpointSource {
 public:
  explicit Source(store::OpenedCheckpoint opened)
      : opened_(std::move(opened)) {}

  int64_t total_bytes() const override { return opened_.reader->size(); }
  CheckpointInfo info() const override { return ToInfo(opened_.kept); }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    std::string data(
        static_cast<size_t>(std::min(max_bytes, total_bytes() - offset)), '\0');
    DFL_RETURN_IF_ERROR(
        opened_.reader->Read(offset, absl::MakeSpan(data.data(), data.size())));
    return data;
  }

 private:
  const store::OpenedCheckpoint opened_;
};

}  // namespace

// A checkpoint on its way into the node.
struct CheckpointTransfers::Incoming {
  std::unique_ptr<store::CheckpointUpload> upload;
  std::shared_ptr<runtime::RestoreOrder> order =
      std::make_shared<runtime::RestoreOrder>();
  // Where it lies; an error: it is not whole, or cannot be placed.
  absl::StatusOr<KeptCheckpoint> placed = absl::UnknownError("");
  control::RestoreResult result;
  control::Done<control::RestoreResult> done;
};

class CheckpointTransfers::Sink final : public control::CheckpointSink {
 public:
  Sink(CheckpointTransfers& transfers,
       std::unique_ptr<store::CheckpointUpload> upload, bool other_version)
      : transfers_(transfers), incoming_(std::make_shared<Incoming>()) {
    incoming_->upload = std::move(upload);
    incoming_->order->other_version = other_version;
  }

  absl::Status Append(absl::string_view data) override {
    return incoming_->upload->Append(data);
  }
  void Commit(control::Done<control::RestoreResult> done) override {
    incoming_->done = std::move(done);
    transfers_.Commit(std::move(incoming_));
  }

 private:
  CheckpointTransfers& transfers_;
  std::shared_ptr<Incoming> incoming_;
};

CheckpointTransfers::CheckpointTransfers(EventLoop& loop, runtime::Node& node,
                                         PlanTaker& plans,
                                         store::CheckpointFiles* files,
                                         ports::Worker* worker,
                                         std::function<void()> changed)
    : loop_(loop),
      node_(node),
      plans_(plans),
      files_(files),
      worker_(worker),
      changed_(std::move(changed)) {}

void CheckpointTransfers::OnWorker(std::function<void()> work,
                                   std::function<void()> then) {
  loop_.Post([worker = worker_, work = std::move(work),
              then = std::move(then)] { worker->Run(work, then); });
}

absl::Status CheckpointTransfers::CheckAlive(const std::weak_ptr<bool>& alive) {
  if (!alive.expired()) return absl::OkStatus();
  return absl::UnavailableError("the daemon is shutting down");
}

void CheckpointTransfers::List(control::Done<control::CheckpointList> done) {
  if (files_ == nullptr) return done(KeepsNone());
  auto list = std::make_shared<control::CheckpointList>();
  OnWorker([files = files_, list] { *list = ToList(files->Kept()); },
           [list, done = std::move(done)] { done(std::move(*list)); });
}

void CheckpointTransfers::Save(control::Begin begin,
                               control::Done<CheckpointInfo> done) {
  if (files_ == nullptr) return done(KeepsNone());
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_),
              begin = std::move(begin), done = std::move(done)] {
    const absl::Status here = CheckAlive(alive);
    if (!here.ok()) return done(here);
    if (begin && !begin()) {
      return done(absl::CancelledError("nobody waits for this order any more"));
    }
    node_.SaveCheckpoint([files = files_, worker = worker_,
                          done](const absl::StatusOr<int64_t>& iteration) {
      if (!iteration.ok()) return done(iteration.status());
      auto list = std::make_shared<control::CheckpointList>();
      worker->Run([files, list] { *list = ToList(files->Kept()); },
                  [list, done, step = *iteration] {
                    for (const CheckpointInfo& info : list->checkpoints) {
                      if (info.iteration == step) return done(info);
                    }
                    done(absl::InternalError(
                        absl::StrCat("the checkpoint of iteration ", step,
                                     " is written, and gone already")));
                  });
    });
  });
}

void CheckpointTransfers::Open(
    control::Done<std::unique_ptr<control::CheckpointSource>> done) {
  if (files_ == nullptr) return done(KeepsNone());
  auto opened = std::make_shared<absl::StatusOr<store::OpenedCheckpoint>>(
      absl::UnknownError(""));
  OnWorker([files = files_, opened] { *opened = files->OpenNewest(); },
           [opened, done = std::move(done)] {
             if (!opened->ok()) return done(opened->status());
             done(std::make_unique<Source>(*std::move(*opened)));
           });
}

// ---------------------------------------------------------------- restoring --

absl::StatusOr<runtime::RestoreTarget> CheckpointTransfers::MayRestore(
    int64_t total_bytes) {
  DFL_ASSIGN_OR_RETURN(runtime::RestoreTarget here, node_.MayRestore());
  // A checkpoint holds less than its node has in memory. Without a plan its
  // head is all that is looked at.
  const int64_t most = plans_.learner().need_bytes() + kMostHeadBytes;
  if (!here.run_id.empty() && total_bytes > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has ", total_bytes,
        " bytes, and a checkpoint of the plan in "
        "force has at most ",
        most, "; give one that `dflctl checkpoint save --to` wrote"));
  }
  return here;
}

void CheckpointTransfers::Restore(
    const control::RestoreRequest& request,
    control::Done<std::unique_ptr<control::CheckpointSink>> done) {
  if (files_ == nullptr) return done(KeepsNone());
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_), request,
              done = std::move(done)] {
    const absl::Status here = CheckAlive(alive);
    if (!here.ok()) return done(here);
    const absl::StatusOr<runtime::RestoreTarget> target =
        MayRestore(request.total_bytes);
    if (!target.ok()) return done(target.status());
    auto upload = std::make_shared<
        absl::StatusOr<std::unique_ptr<store::CheckpointUpload>>>(
        absl::UnknownError(""));
    worker_->Run(
        [files = files_, request, target = *target, upload] {
          *upload = files->Receive(
              request.total_bytes,
              [target, request](const store::ReadHead& read) {
                return runtime::CheckRestorable(read.head, read.lengths, target,
                                                request.other_version);
              });
        },
        [this, alive, request, upload, done] {
          const absl::Status still = CheckAlive(alive);
          if (!still.ok()) return done(still);
          if (!upload->ok()) return done(upload->status());
          done(std::make_unique<Sink>(*this, *std::move(*upload),
                                      request.other_version));
        });
  });
}

void CheckpointTransfers::Commit(std::shared_ptr<Incoming> incoming) {
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_),
              incoming = std::move(incoming)] {
    const absl::Status here = CheckAlive(alive);
    if (!here.ok()) return incoming->done(here);
    worker_->Run(
        [files = files_, incoming] {
          absl::StatusOr<runtime::Checkpoint> read = incoming->upload->Finish();
          if (!read.ok()) {
            incoming->placed = read.status();
            return;
          }
          const std::string run_id = read->head.run_id;
          std::vector<std::string> notes;  // told when the node started
          for (const runtime::CheckpointHead& head : files->List(notes)) {
            if (head.run_id == run_id && head.step != read->head.step) {
              incoming->order->older.push_back(head.step);
            }
          }
          incoming->order->checkpoint = *std::move(read);
          incoming->placed = files->Place();
        },
        [this, alive, files = files_, incoming] {
          if (!incoming->placed.ok()) {
            return incoming->done(incoming->placed.status());
          }
          const absl::Status still = CheckAlive(alive);
          if (still.ok()) return Take(incoming);
          files->Withdraw(incoming->placed->read.generation);
          incoming->done(still);
        });
  });
}

void CheckpointTransfers::Take(const std::shared_ptr<Incoming>& incoming) {
  node_.Restore(incoming->order, [this, alive = std::weak_ptr<bool>(alive_),
                                  incoming](const absl::Status& taken) {
    const absl::Status here = CheckAlive(alive);
    if (here.ok()) return Conclude(incoming, taken);
    incoming->done(here);
  });
}

void CheckpointTransfers::Conclude(const std::shared_ptr<Incoming>& incoming,
                                   const absl::Status& taken) {
  incoming->order.reset();  // its vectors
  incoming->result.phase = node_.phase();
  int64_t keep = 0;
  if (taken.ok()) {
    keep = node_.plan_in_force()->checkpoint.keep;
    changed_();
  }
  worker_->Run(
      [files = files_, incoming, taken, keep] {
        const uint64_t generation = incoming->placed->read.generation;
        if (!taken.ok()) return files->Withdraw(generation);
        files->Settle(keep);
        incoming->result.checkpoint = ToInfo(*incoming->placed);
        for (const KeptCheckpoint& kept : files->Kept().whole) {
          if (kept.read.generation != generation) continue;
          incoming->result.checkpoint = ToInfo(kept);
        }
      },
      [incoming, taken] {
        if (!taken.ok()) return incoming->done(taken);
        incoming->done(incoming->result);
      });
}

}  // namespace dfl::app
