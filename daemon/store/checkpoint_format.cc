#include "daemon/store/checkpoint_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "dfl/storage/v1/storage.pb.h"

namespace dfl::store {
namespace {

namespace v1 = ::dfl::storage::v1;
using runtime::Checkpoint;
using runtime::CheckpointHead;

constexpr absl::string_view kMagic = "DFLCKPT\n";
constexpr int64_t kPrefixBytes = 16;  // magic, version, length of the head
constexpr int64_t kChecksumBytes = 4;
constexpr uint32_t kMaxHeadBytes = 16U << 20;
constexpr size_t kPieceBytes = size_t{1} << 20;

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
  out.set_written_unix_nanos(absl::ToUnixNanos(head.written));
  out.set_parameter_count(checkpoint.model->parameters.size());
  out.set_buffer_count(checkpoint.model->buffers.size());
  out.set_algorithm_bytes(core::SerializedLength(checkpoint.algorithm));
  return out;
}

// As an algorithm's state has them: adding to them is safe.
bool AreCounts(std::initializer_list<int64_t> numbers) {
  constexpr int64_t kMost = int64_t{1} << 53;
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t number) {
    return number >= 0 && number <= kMost;
  });
}

absl::Status CheckHeadCounts(const CheckpointHead& head) {
  const core::EpochCount::State& epochs = head.epochs;
  const ports::BatchPosition position =
      head.position.value_or(ports::BatchPosition());
  const bool good =
      AreCounts({head.step, head.pace.steps, head.pace.rounds, head.idle,
                 head.gradients, epochs.per_pass, epochs.from, epochs.counted,
                 position.rows, position.row}) &&
      std::isfinite(epochs.before) && epochs.before >= 0;
  if (good) return absl::OkStatus();
  return absl::DataLossError("a count in its head is negative or beyond 2^53");
}

absl::Status CheckPartners(const std::vector<std::string>& partners) {
  for (size_t i = 0; i < partners.size(); ++i) {
    if (!ValidateNodeName(partners[i]).ok() ||
        (i > 0 && partners[i] <= partners[i - 1])) {
      return absl::DataLossError("the partners in its head are broken");
    }
  }
  return absl::OkStatus();
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
    const auto [it, is_new] =
        head.decisions.generators.try_emplace(generator.purpose());
    auto& state = it->second;
    if (!is_new || generator.state_size() != static_cast<int>(state.size())) {
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
  head.written = absl::FromUnixNanos(in.written_unix_nanos());
  DFL_RETURN_IF_ERROR(CheckHeadCounts(head));
  DFL_RETURN_IF_ERROR(CheckPartners(head.partners));
  return head;
}

// `start` is the first kPrefixBytes of a file of `total` bytes. Returns how
// many bytes lie before the vectors.
absl::StatusOr<size_t> StartLength(absl::string_view start, int64_t total) {
  if (start.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("it is no checkpoint of dfld's");
  }
  const uint32_t version = NumberAt(start, kMagic.size());
  if (version > kCheckpointFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has format ", version, " and this dfld knows ",
                     kCheckpointFormat, "; a newer dfld can read it"));
  }
  const uint32_t length = NumberAt(start, kMagic.size() + 4);
  if (version == 0 || length > kMaxHeadBytes ||
      total < kPrefixBytes + length + kChecksumBytes) {
    return absl::DataLossError("it is torn");
  }
  if (version < kOldestCheckpointFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has format ", version, " and this dfld reads ",
        kOldestCheckpointFormat, " to ", kCheckpointFormat,
        "; a dfld between the two can read it and write a newer one"));
  }
  return static_cast<size_t>(kPrefixBytes + length + kChecksumBytes);
}

// `start` is all that lies before the vectors.
absl::StatusOr<v1::CheckpointHead> ParseHead(absl::string_view start,
                                             int64_t total) {
  const absl::string_view checked =
      start.substr(0, start.size() - kChecksumBytes);
  if (Crc32c(checked) != NumberAt(start, checked.size())) {
    return absl::DataLossError("the checksum of its head is wrong");
  }
  const absl::string_view bytes = checked.substr(kPrefixBytes);
  v1::CheckpointHead head;
  if (!head.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("its head is none of dfld's");
  }
  // Within what the file has, so that the sums below do not overflow.
  const auto most = static_cast<uint64_t>(total);
  if (head.parameter_count() > most || head.buffer_count() > most ||
      head.algorithm_bytes() > most ||
      start.size() + 8 * head.parameter_count() + 4 * head.buffer_count() +
              head.algorithm_bytes() + kChecksumBytes !=
          most) {
    return absl::DataLossError("it is torn");
  }
  return head;
}

absl::StatusOr<ReadHead> ReadOf(const v1::CheckpointHead& head, int64_t total) {
  ReadHead read;
  read.generation = head.generation();
  DFL_ASSIGN_OR_RETURN(read.head, FromProto(head));
  read.lengths = {head.parameter_count(), head.buffer_count()};
  read.bytes = total;
  return read;
}

// What stands before the vectors; `head` is serialised.
std::string StartOf(absl::string_view head) {
  std::string start =
      absl::StrCat(kMagic, Raw(kCheckpointFormat),
                   Raw(static_cast<uint32_t>(head.size())), head);
  absl::StrAppend(&start, Raw(Crc32c(start)));
  return start;
}

// A file that is open, with what its head says.
struct Opened {
  v1::CheckpointHead head;
  int64_t body_at = 0;  // the first byte of the parameters
};

absl::StatusOr<Opened> OpenCheckpoint(ports::FileReader& reader) {
  if (reader.size() == 0) return absl::DataLossError("it is empty");
  if (reader.size() < kPrefixBytes) return absl::DataLossError("it is torn");
  std::string start(kPrefixBytes, '\0');
  DFL_RETURN_IF_ERROR(reader.Read(0, absl::MakeSpan(&start[0], start.size())));
  DFL_ASSIGN_OR_RETURN(const size_t length, StartLength(start, reader.size()));
  start.resize(length);
  DFL_RETURN_IF_ERROR(reader.Read(0, absl::MakeSpan(&start[0], start.size())));
  Opened opened;
  DFL_ASSIGN_OR_RETURN(opened.head, ParseHead(start, reader.size()));
  opened.body_at = static_cast<int64_t>(length);
  return opened;
}

// Reads the body from its beginning, in pieces.
class Body {
 public:
  Body(ports::FileReader& reader, int64_t at) : reader_(reader), at_(at) {}

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
  // Passes over `count` bytes.
  absl::Status Skip(uint64_t count) {
    std::string piece(std::min<uint64_t>(count, kPieceBytes), '\0');
    for (; count > 0; count -= piece.size()) {
      piece.resize(std::min<uint64_t>(count, piece.size()));
      DFL_RETURN_IF_ERROR(Fill(absl::MakeSpan(&piece[0], piece.size())));
    }
    return absl::OkStatus();
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

absl::StatusOr<ReadHead> WriteCheckpoint(ports::Files& files,
                                         const std::string& name,
                                         uint64_t generation,
                                         const Checkpoint& checkpoint,
                                         const std::atomic<bool>& stop) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::FileWriter> writer,
                       files.Replace(name));
  std::string head;
  if (!ToProto(generation, checkpoint).SerializeToString(&head) ||
      head.size() > kMaxHeadBytes) {
    return absl::InternalError("the head of a checkpoint is too long");
  }
  const std::string start = StartOf(head);
  DFL_RETURN_IF_ERROR(writer->Append(start));
  ReadHead written{
      generation,
      checkpoint.head,
      {checkpoint.model->parameters.size(), checkpoint.model->buffers.size()},
      static_cast<int64_t>(start.size()) + kChecksumBytes};
  uint32_t checksum = Crc32c("");
  absl::Status status;
  const auto append = [&](absl::string_view bytes) {
    written.bytes += static_cast<int64_t>(bytes.size());
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
  DFL_RETURN_IF_ERROR(writer->Commit());
  return written;
}

absl::StatusOr<ReadHead> ReadCheckpointHead(ports::Files& files,
                                            const std::string& name) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<ports::FileReader> reader,
                       files.Open(name));
  DFL_ASSIGN_OR_RETURN(const Opened opened, OpenCheckpoint(*reader));
  return ReadOf(opened.head, reader->size());
}

absl::StatusOr<Checkpoint> ReadCheckpoint(ports::Files& files,
                                          const std::string& name) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<ports::FileReader> reader,
                       files.Open(name));
  DFL_ASSIGN_OR_RETURN(const Opened opened, OpenCheckpoint(*reader));
  Checkpoint checkpoint;
  DFL_ASSIGN_OR_RETURN(checkpoint.head, FromProto(opened.head));
  auto model = std::make_shared<runtime::Snapshot>();
  model->step = checkpoint.head.step;
  model->steps = checkpoint.head.pace.steps;
  Body body(*reader, opened.body_at);
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

absl::Status CheckWhole(ports::FileReader& reader) {
  DFL_ASSIGN_OR_RETURN(const Opened opened, OpenCheckpoint(reader));
  Body body(reader, opened.body_at);
  DFL_RETURN_IF_ERROR(body.Skip(
      static_cast<uint64_t>(reader.size() - opened.body_at - kChecksumBytes)));
  return body.Check();
}

absl::StatusOr<std::optional<CheckpointStart>> ParseStart(
    absl::string_view bytes, int64_t total_bytes, uint64_t generation) {
  if (total_bytes < kPrefixBytes) return absl::DataLossError("it is torn");
  if (bytes.size() < kPrefixBytes) return std::nullopt;
  DFL_ASSIGN_OR_RETURN(const size_t length, StartLength(bytes, total_bytes));
  if (bytes.size() < length) return std::nullopt;
  DFL_ASSIGN_OR_RETURN(v1::CheckpointHead head,
                       ParseHead(bytes.substr(0, length), total_bytes));
  CheckpointStart start;
  DFL_ASSIGN_OR_RETURN(start.read, ReadOf(head, total_bytes));
  start.length = length;
  head.set_generation(generation);
  start.renumbered = StartOf(head.SerializeAsString());
  return start;
}

}  // namespace dfl::store
