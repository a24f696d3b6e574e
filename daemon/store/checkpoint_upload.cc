#include "daemon/store/checkpoint_upload.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::store {
namespace {

// `status` of the reader as the person reads it who brings the file.
absl::Status OfTheFile(const absl::Status& status) {
  if (absl::IsDataLoss(status) || absl::IsInvalidArgument(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the checkpoint file cannot be used: ", status.message(),
        "; give one that `dflctl checkpoint save --to` wrote, as it was "
        "written"));
  }
  if (absl::IsFailedPrecondition(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint file cannot be used: ", status.message()));
  }
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointUpload>> CheckpointUpload::Begin(
    ports::Files& files, std::string name, uint64_t generation,
    int64_t total_bytes, CheckHead check, std::shared_ptr<void> hold) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::FileWriter> writer,
                       files.Replace(name));
  return std::unique_ptr<CheckpointUpload>(new CheckpointUpload(
      files, std::move(name), generation, total_bytes, std::move(check),
      std::move(hold), std::move(writer)));
}

CheckpointUpload::CheckpointUpload(ports::Files& files, std::string name,
                                   uint64_t generation, int64_t total_bytes,
                                   CheckHead check, std::shared_ptr<void> hold,
                                   std::unique_ptr<ports::FileWriter> writer)
    : files_(files),
      name_(std::move(name)),
      generation_(generation),
      total_bytes_(total_bytes),
      check_(std::move(check)),
      hold_(std::move(hold)),
      writer_(std::move(writer)) {}

CheckpointUpload::~CheckpointUpload() {
  if (there_) (void)files_.Remove(name_);
}

absl::Status CheckpointUpload::Append(absl::string_view data) {
  if (begun_) return writer_->Append(data);
  start_.append(data.data(), data.size());
  return ReadStart();
}

absl::Status CheckpointUpload::ReadStart() {
  const absl::StatusOr<std::optional<CheckpointStart>> parsed =
      ParseStart(start_, total_bytes_, generation_);
  if (!parsed.ok()) return OfTheFile(parsed.status());
  if (!parsed->has_value()) return absl::OkStatus();
  const CheckpointStart& start = **parsed;
  DFL_RETURN_IF_ERROR(check_(start.read));
  begun_ = true;
  const std::string came = std::exchange(start_, "");
  DFL_RETURN_IF_ERROR(writer_->Append(start.renumbered));
  return writer_->Append(absl::string_view(came).substr(start.length));
}

absl::StatusOr<runtime::Checkpoint> CheckpointUpload::Finish() {
  if (!begun_) return OfTheFile(absl::DataLossError("it is torn"));
  DFL_RETURN_IF_ERROR(writer_->Commit());
  there_ = true;
  absl::StatusOr<runtime::Checkpoint> read = ReadCheckpoint(files_, name_);
  if (!read.ok()) return OfTheFile(read.status());
  return read;
}

}  // namespace dfl::store
