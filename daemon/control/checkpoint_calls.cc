#include "daemon/control/checkpoint_calls.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/control/status_proto.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

void ToProto(const CheckpointInfo& info, pb::CheckpointInfo& out) {
  out.set_file(info.file);
  out.set_bytes(info.bytes);
  out.set_written_unix_nanos(absl::ToUnixNanos(info.written));
  out.set_node(info.node);
  out.set_run_id(info.run_id);
  out.set_plan_version(info.plan_version);
  out.set_algorithm(info.algorithm);
  out.set_iteration(info.iteration);
  out.set_steps(info.steps);
  out.set_rounds(info.rounds);
  out.set_tracker_epoch(info.tracker_epoch);
}

}  // namespace

CheckpointCalls::CheckpointCalls(Backend& backend, Answers& answers,
                                 std::shared_ptr<TokenFiles> files)
    : backend_(backend), answers_(answers), files_(std::move(files)) {}

Reactor* CheckpointCalls::ListCheckpoints(const Call& call,
                                          const pb::ListCheckpointsRequest*,
                                          pb::ListCheckpointsResponse* out) {
  out->set_node(backend_.Version().node.name());
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "", Answers::Patience::kDisk);
  backend_.checkpoints().List(
      [later, out](const absl::StatusOr<CheckpointList>& list) {
        if (!later->Take()) return;
        if (!list.ok()) return later->Finish(list.status());
        for (const CheckpointInfo& info : list->checkpoints) {
          ToProto(info, *out->add_checkpoints());
        }
        for (const AsideCheckpoint& aside : list->aside) {
          pb::AsideCheckpoint& file = *out->add_aside();
          file.set_file(aside.file);
          file.set_bytes(aside.bytes);
          file.set_reason(aside.reason);
        }
        later->Finish(absl::OkStatus());
      });
  return reactor;
}

Reactor* CheckpointCalls::SaveCheckpoint(const Call& call,
                                         const pb::SaveCheckpointRequest*,
                                         pb::SaveCheckpointResponse* out) {
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.LaterOrder(call, reactor, "save a checkpoint",
                                   Answers::Patience::kDisk);
  backend_.checkpoints().Save(
      [later] { return later->Begin(); },
      [later, out](const absl::StatusOr<CheckpointInfo>& info) {
        if (!later->Take()) return;
        if (info.ok()) ToProto(*info, *out->mutable_checkpoint());
        later->Finish(info.status());
      });
  return reactor;
}

Reactor* CheckpointCalls::BeginCheckpointExport(
    const Call& call, const pb::BeginCheckpointExportRequest*,
    pb::BeginCheckpointExportResponse* out) {
  const absl::Status room = files_->CheckRoom();
  if (!room.ok()) return Answers::Now(call, room);
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "export a checkpoint",
                              Answers::Patience::kDisk);
  backend_.checkpoints().Open(
      [later, out, files = files_](
          absl::StatusOr<std::unique_ptr<CheckpointSource>> source) {
        if (!later->Take()) return;
        if (!source.ok()) return later->Finish(source.status());
        out->set_total_bytes((*source)->total_bytes());
        ToProto((*source)->info(), *out->mutable_checkpoint());
        const absl::StatusOr<std::string> token =
            files->AddExport(*std::move(source));
        if (token.ok()) out->set_token(*token);
        later->Finish(token.status());
      });
  return reactor;
}

Reactor* CheckpointCalls::BeginRestore(const Call& call,
                                       const pb::BeginRestoreRequest* request,
                                       pb::BeginRestoreResponse* out) {
  RestoreRequest wanted;
  wanted.total_bytes = request->total_bytes();
  wanted.other_version = request->other_version();
  const std::string what =
      absl::StrCat("begin to restore a checkpoint of ", wanted.total_bytes,
                   " bytes", wanted.other_version ? " by force" : "");
  absl::Status room = files_->CheckRoom();
  if (room.ok() && wanted.total_bytes < 1) {
    room = absl::InvalidArgumentError(
        absl::StrCat("total_bytes: ", wanted.total_bytes,
                     " is not allowed; a checkpoint has at least 1 byte"));
  }
  if (!room.ok()) return answers_.NowAudited(call, what, room);
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, what, Answers::Patience::kDisk);
  backend_.checkpoints().Restore(
      wanted, [later, out, files = files_, bytes = wanted.total_bytes](
                  absl::StatusOr<std::unique_ptr<CheckpointSink>> sink) {
        // Whoever gave up sends nothing more.
        if (!later->Take()) return;
        if (!sink.ok()) return later->Finish(sink.status());
        const absl::StatusOr<std::string> token =
            files->AddRestore(*std::move(sink), bytes);
        if (token.ok()) out->set_token(*token);
        later->Finish(token.status());
      });
  return reactor;
}

Reactor* CheckpointCalls::CommitRestore(const Call& call,
                                        const pb::CommitRestoreRequest* request,
                                        pb::CommitRestoreResponse* out) {
  absl::StatusOr<std::shared_ptr<CheckpointSink>> sink =
      files_->TakeRestore(request->token());
  if (!sink.ok()) {
    return answers_.NowAudited(call, "restore a checkpoint", sink.status());
  }
  Reactor* reactor = call.context->DefaultReactor();
  auto later = answers_.Later(call, reactor, "restore a checkpoint",
                              Answers::Patience::kDisk);
  CheckpointSink& committed = **sink;
  committed.Commit([later, out, keep = *std::move(sink)](
                       const absl::StatusOr<RestoreResult>& result) {
    if (!later->Take()) return;
    if (result.ok()) {
      ToProto(result->checkpoint, *out->mutable_checkpoint());
      out->set_phase(control::ToProto(result->phase));
    }
    later->Finish(result.status());
  });
  return reactor;
}

}  // namespace dfl::control
