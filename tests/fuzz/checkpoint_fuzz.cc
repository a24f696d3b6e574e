// A node's checkpoint on its disk or given back by a person, and what the node
// makes of it. The input is tried as a file. It is also tried as the head of
// one and what follows it, with right checksums: with the lengths that the head
// says, and with those that it has.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/simports/sim_files.h"
#include "daemon/store/checkpoint_files.h"
#include "daemon/store/checkpoint_format.h"
#include "daemon/store/checkpoint_upload.h"
#include "dfl/storage/v1/storage.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/live_algorithm.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

namespace v1 = ::dfl::storage::v1;

constexpr char kName[] = "checkpoint.0";
constexpr absl::string_view kMagic = "DFLCKPT\n";

// With its checksum behind it.
std::string Sealed(std::string bytes) {
  bytes.append(sizeof(uint32_t), '\0');
  SealEnd(&bytes);
  return bytes;
}

std::string FileOf(absl::string_view head, absl::string_view body) {
  std::string start = absl::StrCat(kMagic, std::string(8, '\0'), head);
  Put(uint32_t{1}, kMagic.size(), &start);
  Put(static_cast<uint32_t>(head.size()), kMagic.size() + 4, &start);
  return Sealed(start) + Sealed(std::string(body));
}

// The head with the lengths of what is in `body`, whose end becomes the state
// of an algorithm.
std::string Fitting(absl::string_view head, std::string* body) {
  v1::CheckpointHead out;
  if (!out.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
    return std::string(head);
  }
  std::string state = body->substr(
      body->size() - std::min<uint64_t>(body->size(), out.algorithm_bytes()));
  body->resize((body->size() - state.size()) / 4 * 4);
  SealState(&state);
  const uint64_t floats = body->size() / 4;
  const uint64_t parameters =
      std::min<uint64_t>(out.parameter_count(), floats / 2);
  out.set_parameter_count(parameters);
  out.set_buffer_count(floats - 2 * parameters);
  out.set_algorithm_bytes(state.size());
  body->append(state);
  return out.SerializeAsString();
}

void CheckCode(const absl::Status& status) {
  DFL_CHECK(absl::IsDataLoss(status) || absl::IsFailedPrecondition(status) ||
            absl::IsInvalidArgument(status));
}

// What a node does with a head: its learner, its chance and its epochs.
void CheckHead(const runtime::CheckpointHead& head) {
  DFL_CHECK(head.step >= 0 && head.idle >= 0 && head.gradients >= 0);
  DFL_CHECK(head.pace.steps >= 0 && head.pace.rounds >= 0);
  core::SeededDecisions decisions(1);
  if (decisions.ImportState(head.decisions).ok()) {
    DFL_CHECK(decisions.ExportState() == head.decisions);
    (void)decisions.NameCoordinates(NodeId("box-1"));
  }
  if (head.position.has_value()) {
    data::BatchSampler sampler(10, 3, 1);
    const data::BatchSampler::State state{
        head.position->seed, head.position->rows, head.position->pass,
        head.position->row};
    if (sampler.Restore(state).ok()) DFL_CHECK(!sampler.Next().empty());
  }
  core::EpochCount epochs;
  epochs.SetState(head.epochs);
  DFL_CHECK(std::isfinite(epochs.At(head.pace.steps)));
  epochs.Count(head.pace.steps, 7);
  DFL_CHECK(std::isfinite(epochs.At(head.pace.steps + 1)));
}

bool SameBytes(absl::Span<const float> a, absl::Span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

// It is read again as it was written again.
void CheckWhole(const runtime::Checkpoint& checkpoint) {
  simports::SimFiles files;
  const std::atomic<bool> go{false};
  DFL_CHECK(store::WriteCheckpoint(files, kName, 3, checkpoint, go).ok());
  const auto again = store::ReadCheckpoint(files, kName);
  DFL_CHECK(again.ok() && again->head == checkpoint.head);
  DFL_CHECK(SameBytes(again->model->parameters, checkpoint.model->parameters) &&
            SameBytes(again->model->buffers, checkpoint.model->buffers) &&
            SameBytes(again->gradient, checkpoint.gradient));
  DFL_CHECK(core::SerializeState(again->algorithm) ==
            core::SerializeState(checkpoint.algorithm));
  CheckImport(checkpoint.algorithm);
}

// One that a person gives back is taken where one on the disk would be.
void CheckUpload(absl::string_view bytes, bool is_whole) {
  simports::SimFiles files;
  store::CheckpointFiles store(files);
  const auto begun =
      store.Receive(static_cast<int64_t>(bytes.size()),
                    [](const store::ReadHead&) { return absl::OkStatus(); });
  DFL_CHECK(begun.ok());
  store::CheckpointUpload& upload = **begun;
  absl::Status status;
  constexpr size_t kPiece = 61;
  for (size_t at = 0; status.ok() && at < bytes.size(); at += kPiece) {
    status = upload.Append(bytes.substr(at, kPiece));
  }
  if (status.ok()) status = upload.Finish().status();
  DFL_CHECK(status.ok() == is_whole);
  if (status.ok()) DFL_CHECK(store.Place().ok());
}

void CheckFile(const std::string& bytes) {
  simports::SimFiles files;
  DFL_CHECK(files.WriteAtomically(kName, bytes).ok());
  const auto head = store::ReadCheckpointHead(files, kName);
  const auto whole = store::ReadCheckpoint(files, kName);
  if (!head.ok()) {
    CheckCode(head.status());
    DFL_CHECK(whole.status() == head.status());
  } else {
    DFL_CHECK(head->generation > 0);
    CheckHead(head->head);
  }
  if (whole.ok()) {
    DFL_CHECK(whole->head == head->head);
    CheckWhole(*whole);
  } else {
    CheckCode(whole.status());
  }
  CheckUpload(bytes, whole.ok());
  // As one of two.
  store::CheckpointFiles store(files);
  std::vector<std::string> notes;
  const std::vector<runtime::CheckpointHead> listed = store.List(notes);
  DFL_CHECK(listed.size() == (head.ok() ? 1 : 0));
  DFL_CHECK(notes.size() == (head.ok() ? 0 : 1));
  if (!head.ok()) return;
  DFL_CHECK(store.Read(head->head.run_id, head->head.step).ok() == whole.ok());
}

}  // namespace

DFL_FUZZ_TARGET(checkpoint)(absl::string_view bytes) {
  CheckFile(std::string(bytes));
  Pieces pieces(bytes);
  const absl::string_view head = pieces.Part();
  std::string body(pieces.Rest());
  CheckFile(FileOf(head, body));
  const std::string fitting = Fitting(head, &body);
  CheckFile(FileOf(fitting, body));
}

}  // namespace dfl::fuzz
