#include "daemon/store/checkpoint_files.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/status_macros.h"
#include "dfl/storage/v1/storage.pb.h"

namespace dfl::store {
namespace {

namespace v1 = ::dfl::storage::v1;
using runtime::Checkpoint;
using runtime::CheckpointHead;

constexpr absl::string_view kMagic = "DFLCKPT\n";
constexpr uint32_t kFormatVersion = 1;
constexpr int64_t kPrefixBytes = 16;  // magic, version, length of the head
constexpr int64_t kChecksumBytes = 4;
constexpr uint32_t kMaxHeadBytes = 16U << 20;
constexpr size_t kPieceBytes = size_t{1} << 20;

std::string NameOf(int slot) { return absl::StrCat("checkpoint.", slot); }

std::string Raw(uint32_t number) {
  std::string bytes(sizeof(number), '\0');
  for (size_t i = 0; i < sizeof(number); ++i) {
    bytes[i] = static_cast<char>((number >> (8 * i)) & 0xff);
  }
  return bytes;
}

uint32_t NumberAt(absl::string_view bytes, size_t offset) {
  uint32_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i) {
    number |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[offset + i]))
              << (8 * i);
  }
  return number;
}

absl::string_view BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(float)};
}

// ------------------------------------------------------------------- head ----

v1::CheckpointHead ToProto(uint64_t generation, const Checkpoint& checkpoint) {
  const CheckpointHead& head = checkpoint.head;
  v1::CheckpointHead out;
  out.set_generation(generation);
  out.set_node(head.node);
  out.set_run_id(head.run_id);
  out.set_plan_version(head.plan_version);
  out.mutable_contract()->Add(head.contract.begin(), head.contract.end());
  out.set_algorithm(head.algorithm);
  out.set_step(head.step);
  out.set_steps(head.pace.steps);
  out.set_rounds(head.pace.rounds);
  out.set_idle(head.idle);
  out.set_tracker_epoch(head.tracker_epoch);
  for (const std::string& partner : head.partners) out.add_partners(partner);
  v1::Decisions& decisions = *out.mutable_decisions();
  decisions.set_seed(head.decisions.seed);
  decisions.set_stream(head.decisions.stream);
  for (const auto& [purpose, state] : head.decisions.generators) {
    v1::Generator& generator = *decisions.add_generators();
    generator.set_purpose(purpose);
    generator.mutable_state()->Add(state.begin(), state.end());
  }
  out.set_gradients(head.gradients);
  if (head.position) {
    v1::BatchPosition& position = *out.mutable_position();
    position.set_seed(head.position->seed);
    position.set_rows(head.position->rows);
    position.set_pass(head.position->pass);
    position.set_row(head.position->row);
  }
  v1::Epochs& epochs = *out.mutable_epochs();
  epochs.set_per_pass(head.epochs.per_pass);
  epochs.set_before(head.epochs.before);
  epochs.set_from(head.epochs.from);
  epochs.set_counted(head.epochs.counted);
  out.set_parameter_count(checkpoint.model->parameters.size());
  out.set_buffer_count(checkpoint.model->buffers.size());
  out.set_algorithm_bytes(core::SerializedLength(checkpoint.algorithm));
  return out;
}

absl::StatusOr<CheckpointHead> FromProto(const v1::CheckpointHead& in) {
  CheckpointHead head;
  if (in.generation() == 0 ||
      in.contract_size() != static_cast<int>(head.contract.size())) {
    return absl::DataLossError("its head is none of dfld's");
  }
  head.node = in.node();
  head.run_id = in.run_id();
  head.plan_version = in.plan_version();
  std::copy(in.contract().begin(), in.contract().end(), head.contract.begin());
  head.algorithm = in.algorithm();
  head.step = in.step();
  head.pace = {in.steps(), in.rounds()};
  head.idle = in.idle();
  head.tracker_epoch = in.tracker_epoch();
  head.partners.assign(in.partners().begin(), in.partners().end());
  head.decisions.seed = in.decisions().seed();
  head.decisions.stream = in.decisions().stream();
  for (const v1::Generator& generator : in.decisions().generators()) {
    auto& state = head.decisions.generators[generator.purpose()];
    if (generator.state_size() != static_cast<int>(state.size())) {
      return absl::DataLossError("a generator in its head is broken");
    }
    std::copy(generator.state().begin(), generator.state().end(),
              state.begin());
  }
  head.gradients = in.gradients();
  if (in.has_position()) {
    head.position =
        ports::BatchPosition{in.position().seed(), in.position().rows(),
                             in.position().pass(), in.position().row()};
  }
  head.epochs = {in.epochs().per_pass(), in.epochs().before(),
                 in.epochs().from(), in.epochs().counted()};
  if (head.step < 0 || head.gradients < 0 || head.pace.steps < 0 ||
      head.pace.rounds < 0 || head.idle < 0) {
    return absl::DataLossError("a count in its head is negative");
  }
  return head;
}

// A file that is open, with what its head says.
struct Opened {
  std::unique_ptr<ports::FileReader> reader;
  v1::CheckpointHead head;
  int64_t body_at = 0;  // the first byte of the parameters
};

absl::StatusOr<Opened> OpenCheckpoint(ports::Files& files,
                                      const std::string& name) {
  Opened opened;
  DFL_ASSIGN_OR_RETURN(opened.reader, files.Open(name));
  ports::FileReader& reader = *opened.reader;
  if (reader.size() == 0) return absl::DataLossError("it is empty");
  if (reader.size() < kPrefixBytes) return absl::DataLossError("it is torn");
  std::string start(kPrefixBytes, '\0');
  DFL_RETURN_IF_ERROR(reader.Read(0, absl::MakeSpan(&start[0], start.size())));
  if (absl::string_view(start).substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("it is no checkpoint of dfld's");
  }
  const uint32_t version = NumberAt(start, kMagic.size());
  if (version > kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has format ", version, " and this dfld knows ",
                     kFormatVersion, "; a newer dfld can read it"));
  }
  const uint32_t length = NumberAt(start, kMagic.size() + 4);
  if (version == 0 || length > kMaxHeadBytes ||
      reader.size() < kPrefixBytes + length + kChecksumBytes) {
    return absl::DataLossError("it is torn");
  }
  std::string head(length + kChecksumBytes, '\0');
  DFL_RETURN_IF_ERROR(
      reader.Read(kPrefixBytes, absl::MakeSpan(&head[0], head.size())));
  const absl::string_view bytes = absl::string_view(head).substr(0, length);
  if (ExtendCrc32c(Crc32c(start), bytes) != NumberAt(head, length)) {
    return absl::DataLossError("the checksum of its head is wrong");
  }
  if (!opened.head.ParseFromArray(bytes.data(),
                                  static_cast<int>(bytes.size()))) {
    return absl::DataLossError("its head is none of dfld's");
  }
  opened.body_at = kPrefixBytes + length + kChecksumBytes;
  // Within what the file has, so that the sums below do not overflow.
  const auto most = static_cast<uint64_t>(reader.size());
  if (opened.head.parameter_count() > most ||
      opened.head.buffer_count() > most ||
      opened.head.algorithm_bytes() > most ||
      static_cast<uint64_t>(opened.body_at) +
              8 * opened.head.parameter_count() +
              4 * opened.head.buffer_count() + opened.head.algorithm_bytes() +
              kChecksumBytes !=
          most) {
    return absl::DataLossError("it is torn");
  }
  return opened;
}

// Reads the body from its beginning, in pieces.
class Body {
 public:
  explicit Body(const Opened& opened)
      : reader_(*opened.reader), at_(opened.body_at) {}

  absl::Status Fill(absl::Span<char> out) {
    while (!out.empty()) {
      const absl::Span<char> piece = out.subspan(0, kPieceBytes);
      DFL_RETURN_IF_ERROR(reader_.Read(at_, piece));
      checksum_ = ExtendCrc32c(checksum_,
                               absl::string_view(piece.data(), piece.size()));
      at_ += static_cast<int64_t>(piece.size());
      out.remove_prefix(piece.size());
    }
    return absl::OkStatus();
  }
  template <typename Vector>
  absl::Status FillVector(uint64_t count, Vector& out) {
    out.resize(count);
    return Fill(absl::MakeSpan(reinterpret_cast<char*>(out.data()),
                               out.size() * sizeof(float)));
  }
  absl::Status Check() {
    char raw[kChecksumBytes];
    DFL_RETURN_IF_ERROR(reader_.Read(at_, absl::MakeSpan(raw)));
    if (NumberAt(absl::string_view(raw, sizeof(raw)), 0) == checksum_) {
      return absl::OkStatus();
    }
    return absl::DataLossError("the checksum of its vectors is wrong");
  }

 private:
  ports::FileReader& reader_;
  int64_t at_;
  uint32_t checksum_ = Crc32c("");
};

}  // namespace

absl::Status WriteCheckpoint(ports::Files& files, const std::string& name,
                             uint64_t generation, const Checkpoint& checkpoint,
                             const std::atomic<bool>& stop) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::FileWriter> writer,
                       files.Replace(name));
  std::string head;
  if (!ToProto(generation, checkpoint).SerializeToString(&head) ||
      head.size() > kMaxHeadBytes) {
    return absl::InternalError("the head of a checkpoint is too long");
  }
  std::string start =
      absl::StrCat(kMagic, Raw(kFormatVersion),
                   Raw(static_cast<uint32_t>(head.size())), head);
  DFL_RETURN_IF_ERROR(writer->Append(start));
  DFL_RETURN_IF_ERROR(writer->Append(Raw(Crc32c(start))));
  uint32_t checksum = Crc32c("");
  absl::Status status;
  const auto append = [&](absl::string_view bytes) {
    while (status.ok() && !bytes.empty()) {
      if (stop.load()) {
        status = absl::CancelledError("its writing was stopped");
        return;
      }
      const absl::string_view piece = bytes.substr(0, kPieceBytes);
      checksum = ExtendCrc32c(checksum, piece);
      status = writer->Append(piece);
      bytes.remove_prefix(piece.size());
    }
  };
  append(BytesOf(checkpoint.model->parameters));
  append(BytesOf(checkpoint.gradient));
  append(BytesOf(checkpoint.model->buffers));
  core::SerializeState(checkpoint.algorithm, append);
  DFL_RETURN_IF_ERROR(status);
  DFL_RETURN_IF_ERROR(writer->Append(Raw(checksum)));
  return writer->Commit();
}

absl::StatusOr<ReadHead> ReadCheckpointHead(ports::Files& files,
                                            const std::string& name) {
  DFL_ASSIGN_OR_RETURN(const Opened opened, OpenCheckpoint(files, name));
  ReadHead read;
  read.generation = opened.head.generation();
  DFL_ASSIGN_OR_RETURN(read.head, FromProto(opened.head));
  return read;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(ports::Files& files,
                                          const std::string& name) {
  DFL_ASSIGN_OR_RETURN(const Opened opened, OpenCheckpoint(files, name));
  Checkpoint checkpoint;
  DFL_ASSIGN_OR_RETURN(checkpoint.head, FromProto(opened.head));
  auto model = std::make_shared<runtime::Snapshot>();
  model->step = checkpoint.head.step;
  model->steps = checkpoint.head.pace.steps;
  Body body(opened);
  const uint64_t n = opened.head.parameter_count();
  DFL_RETURN_IF_ERROR(body.FillVector(n, model->parameters));
  DFL_RETURN_IF_ERROR(body.FillVector(n, checkpoint.gradient));
  DFL_RETURN_IF_ERROR(
      body.FillVector(opened.head.buffer_count(), model->buffers));
  std::string state(opened.head.algorithm_bytes(), '\0');
  DFL_RETURN_IF_ERROR(body.Fill(absl::MakeSpan(state)));
  DFL_RETURN_IF_ERROR(body.Check());
  DFL_ASSIGN_OR_RETURN(checkpoint.algorithm, core::ParseState(state));
  checkpoint.model = std::move(model);
  return checkpoint;
}

// ---------------------------------------------------------- two generations --

namespace {

// It will never be read, rather than not now.
bool IsUnusable(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status);
}

}  // namespace

void CheckpointFiles::SetAside(int slot, const absl::Status& why,
                               std::vector<std::string>& notes) {
  const std::string name = NameOf(slot);
  heads_[static_cast<size_t>(slot)].reset();
  const absl::Status moved = files_.Rename(name, name + ".aside");
  notes.push_back(absl::StrCat(
      name, " cannot be used: ", why.message(),
      moved.ok() ? absl::StrCat("; it is kept as ", name, ".aside") : ""));
}

void CheckpointFiles::Look(std::vector<std::string>& notes) {
  if (looked_) return;
  looked_ = true;
  for (size_t slot = 0; slot < 2; ++slot) {
    if (heads_[slot]) continue;
    const std::string name = NameOf(static_cast<int>(slot));
    absl::StatusOr<ReadHead> read = ReadCheckpointHead(files_, name);
    unread_[slot] = false;
    if (read.ok()) {
      heads_[slot] = *std::move(read);
    } else if (IsUnusable(read.status())) {
      SetAside(static_cast<int>(slot), read.status(), notes);
    } else if (!absl::IsNotFound(read.status())) {
      notes.push_back(
          absl::StrCat(name, " cannot be read: ", read.status().message()));
      unread_[slot] = true;
      looked_ = false;
    }
  }
}

size_t CheckpointFiles::NextSlot(const CheckpointHead& head) const {
  const auto age = [](const std::optional<ReadHead>& read) {
    return read ? read->generation : 0;
  };
  const size_t newest = age(heads_[0]) > age(heads_[1]) ? 0 : 1;
  if (heads_[newest] && heads_[newest]->head.run_id == head.run_id &&
      heads_[newest]->head.step == head.step) {
    return newest;
  }
  if (unread_[0] != unread_[1]) return unread_[0] ? 1 : 0;
  return 1 - newest;
}

absl::Status CheckpointFiles::Write(const Checkpoint& checkpoint) {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;  // told by List
  Look(notes);
  const size_t slot = NextSlot(checkpoint.head);
  uint64_t generation = 1;
  for (const auto& head : heads_) {
    if (head) generation = std::max(generation, head->generation + 1);
  }
  DFL_RETURN_IF_ERROR(WriteCheckpoint(files_, NameOf(static_cast<int>(slot)),
                                      generation, checkpoint, stop_));
  heads_[slot] = ReadHead{generation, checkpoint.head};
  unread_[slot] = false;
  return absl::OkStatus();
}

std::vector<CheckpointHead> CheckpointFiles::List(
    std::vector<std::string>& notes) {
  const absl::MutexLock lock(&mutex_);
  Look(notes);
  std::vector<const ReadHead*> there;
  for (const auto& head : heads_) {
    if (head) there.push_back(&*head);
  }
  std::sort(there.begin(), there.end(),
            [](const ReadHead* a, const ReadHead* b) {
              return a->generation > b->generation;
            });
  std::vector<CheckpointHead> heads;
  heads.reserve(there.size());
  for (const ReadHead* read : there) heads.push_back(read->head);
  return heads;
}

absl::StatusOr<Checkpoint> CheckpointFiles::Read(const std::string& run_id,
                                                 int64_t step) {
  const absl::MutexLock lock(&mutex_);
  std::vector<std::string> notes;
  Look(notes);
  int found = -1;
  for (int slot = 0; slot < 2; ++slot) {
    const auto& head = heads_[static_cast<size_t>(slot)];
    if (!head || head->head.run_id != run_id || head->head.step != step) {
      continue;
    }
    if (found < 0 ||
        head->generation > heads_[static_cast<size_t>(found)]->generation) {
      found = slot;
    }
  }
  if (found < 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint of step ", step));
  }
  absl::StatusOr<Checkpoint> read = ReadCheckpoint(files_, NameOf(found));
  if (read.ok() || !IsUnusable(read.status())) return read;
  SetAside(found, read.status(), notes);
  return absl::Status(read.status().code(), notes.back());
}

}  // namespace dfl::store
