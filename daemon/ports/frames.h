// Frames: the bounded messages that two neighbours exchange. Plain structs with
// a stated encoded size, so that the simulator counts true bytes; exchange/
// maps them to proto/dfl/peer/v1 and a test holds EncodedSize to it.
//
// A model never travels in one frame: it is a *transfer*, announced by
// TransferBegin, cut into Chunks, acknowledged by TransferAck.
#ifndef DFL_PORTS_FRAMES_H_
#define DFL_PORTS_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/edge_books.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/ports/member_frames.h"

namespace dfl::ports {

// Bounds every implementation enforces on what arrives.
inline constexpr int64_t kMaxChunkBytes = 1 << 20;
inline constexpr int64_t kMaxControlFrameBytes = 64 << 10;
// TransferBegin::body.
inline constexpr int64_t kMaxInlineBodyBytes = 32 << 10;
// For run ids and names of algorithms; and for texts for people.
inline constexpr int64_t kMaxNameBytes = 256;
inline constexpr int64_t kMaxTextBytes = 4 << 10;
// Nobody enters that many; the next one can still be named.
inline constexpr uint64_t kMaxTrackerEpoch = uint64_t{1} << 53;
// Numbers beside a pushed model.
inline constexpr int64_t kMaxScalars = 8;
// Of a signed record, proto/dfl/record/v1: the whole of it, a part of it, what
// it is about and its hash. And how many a RecordSummary names.
inline constexpr int64_t kMaxRecordBytes = (8 << 20) + (64 << 10);
inline constexpr int64_t kMaxRecordPartBytes = 32 << 10;
inline constexpr int64_t kMaxSubjectBytes = 512;
inline constexpr int64_t kRecordHashBytes = 32;
inline constexpr int64_t kMaxSummarisedRecords = 64;
// Of a field's value in a data contract: the whole of it, and a part of it.
inline constexpr int64_t kMaxContractBytes = 4 << 20;
inline constexpr int64_t kMaxContractPartBytes = 32 << 10;

// What a node is doing, in the words of `dflctl status`.
enum class Phase {
  kIdle = 1,     // no plan, or not started
  kJoining = 2,  // looking for a neighbour's model to start from
  kTraining = 3,
  kPaused = 4,
  kFinished = 5,  // the stop rule was met; still answers
  kStopped = 6,   // stopped by hand; still answers
  kDegraded = 7,  // training fails; still mixes and answers
  kFailed = 8,    // training failed for good; still answers
};

// The sender's state in its run. Sent when a link comes up and at each change.
struct StateFrame {
  std::string run_id;  // "" = none
  core::ContractDigest contract{};
  std::string algorithm;
  uint64_t plan_version = 0;
  int64_t step = 0;
  Phase phase = Phase::kIdle;
  // What was given or taken in a lower one is void; 0: no mass is given.
  uint64_t tracker_epoch = 0;
  // The receiver is to say its own state; the answer does not want one.
  bool wants_answer = false;
  // Of the edge to the receiver, in this tracker epoch; nullopt: not told.
  std::optional<core::EdgeBooks> books = std::nullopt;
};

enum class AskPurpose {
  kMix = 1,    // to average with; coordinates and values as the plan says
  kState = 2,  // to start from: dense fp32, with step
};

struct AskFrame {
  uint64_t ask = 0;  // unique per asking node and incarnation
  AskPurpose purpose = AskPurpose::kMix;
  int64_t step = 0;  // the asker's
};

enum class RefuseReason {
  kOtherRun = 1,
  kOtherModel = 2,
  kOtherAlgorithm = 3,
  kNotReady = 4,  // has no model yet
  kBusy = 5,      // too many transfers under way
  kBadMessage = 6,
  kNotANeighbour = 7,
  kUnknownCodec = 8,
  kOlderEpoch = 9,  // mass of an older tracker epoch
};

struct RefuseFrame {
  uint64_t ask = 0;
  RefuseReason reason = RefuseReason::kNotReady;
  std::string text;
};

// The asking node does not need an answer any more.
struct CancelAskFrame {
  uint64_t ask = 0;
};

enum class TransferKind {
  kAnswer = 1,
  kPush = 2,
  kMass = 3,  // taken exactly once
};

struct TransferBegin {
  uint64_t transfer = 0;  // unique per sender and incarnation
  TransferKind kind = TransferKind::kAnswer;
  uint64_t ask = 0;  // kAnswer: which ask it answers
  // The sender's step; kPush: the round, kMass: the newest it is of.
  int64_t step = 0;
  std::string header;  // codec::EncodedHeader, serialised
  int64_t body_bytes = 0;
  // Of the sender's algorithm, or a state's steps and rounds; finite, at most
  // kMaxScalars.
  std::vector<double> scalars;
  // kMass, and pushed offers (codec/mod_body.h): the sender's epoch. kMass: the
  // parcel's number on this edge.
  uint64_t tracker_epoch = 0;
  uint64_t sequence = 0;
  // kPush: how long ago the sender's algorithm asked for it, by the sender's
  // clock; >= 0; microseconds on the wire.
  absl::Duration age;
  // The whole body, when it is short; else "", and it comes in chunks.
  std::string body;
};

struct Chunk {
  uint64_t transfer = 0;
  int64_t offset = 0;
  std::string data;
};

// Cumulative: all bytes below `received` are in. With `complete` the message
// was checked and taken. Also sent for every unfinished transfer after a link
// came up again: the sender goes on from there.
struct TransferAck {
  uint64_t transfer = 0;
  int64_t received = 0;
  bool complete = false;
  double taken = 0;  // kMass, complete: core::Delivered::taken; finite
};

// One side ends the transfer.
struct TransferCancel {
  uint64_t transfer = 0;
  // True: said by the sender of the transfer; false: by its receiver.
  bool by_sender = false;
  RefuseReason reason = RefuseReason::kBadMessage;
  std::string text;
};

// Nothing is sent to the receiver in `round`.
struct SkipFrame {
  int64_t round = 0;
};

// Names a signed record.
struct RecordId {
  int32_t kind = 0;      // a dfl.record.v1.RecordKind, from 1; may be unknown
  std::string subject;   // printable ASCII
  uint64_t counter = 0;  // from 1
  std::string hash;      // SHA-256 of its body, kRecordHashBytes

  friend bool operator==(const RecordId&, const RecordId&) = default;
};

// What the sender holds and passes on. In secured networks only.
struct RecordSummary {
  std::vector<RecordId> records;
};

// The sender wants the part from `offset` on.
struct RecordWant {
  RecordId record;
  int64_t offset = 0;
};

struct RecordPart {
  RecordId record;
  int64_t total_bytes = 0;  // 0: the sender no longer has it
  int64_t offset = 0;
  std::string data;  // within total_bytes
};

// The sender wants the receiver's value of a field of the data contract, from
// byte `offset` on. Always answered by a ContractPart.
struct ContractWant {
  core::ContractField field = core::ContractField::kTask;
  int64_t offset = 0;
};

// A part of core::FieldText.
struct ContractPart {
  core::ContractField field = core::ContractField::kTask;
  int64_t total_bytes = 0;  // 0: the sender does not say it
  int64_t offset = 0;
  std::string data;  // within total_bytes
};

using Frame =
    std::variant<StateFrame, AskFrame, RefuseFrame, CancelAskFrame,
                 TransferBegin, Chunk, TransferAck, TransferCancel, SkipFrame,
                 RecordSummary, RecordWant, RecordPart, ContractWant,
                 ContractPart, ProbeFrame, ProbeAckFrame, MembersFrame,
                 MembersDigestFrame, QueryFrame, QueryPartFrame>;

// Bytes of the frame as it is serialised on the wire (the outermost protobuf
// message, without gRPC's 5 bytes and HTTP/2 framing).
int64_t EncodedSize(const Frame& frame);

// OK when `frame` keeps the bounds above, no number is negative, every enum is
// one of its names, run id and algorithm are printable ASCII.
// Transports refuse other frames on both sides.
// Errors: INVALID_ARGUMENT names the frame, the field, the value and what is
// allowed.
absl::Status ValidateFrame(const Frame& frame);

// A short name for logs and traces, e.g. "chunk".
const char* FrameName(const Frame& frame);

const char* PhaseName(Phase phase);
const char* RefuseReasonName(RefuseReason reason);

}  // namespace dfl::ports

#endif  // DFL_PORTS_FRAMES_H_
