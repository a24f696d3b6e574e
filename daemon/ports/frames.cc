#include "daemon/ports/frames.h"

namespace dfl::ports {
namespace {

// Protobuf's sizes. Field numbers in proto/dfl/peer/v1/peer.proto are all below
// 16, so a tag is one byte; a field that holds its default is not written.
int64_t VarintSize(uint64_t value) {
  int64_t size = 1;
  while (value >= 128) {
    value >>= 7;
    ++size;
  }
  return size;
}

int64_t NumberField(uint64_t value) {
  return value == 0 ? 0 : 1 + VarintSize(value);
}

int64_t BytesField(int64_t length) {
  return length == 0 ? 0 : 1 + VarintSize(length) + length;
}

int64_t FlagField(bool value) { return value ? 2 : 0; }

// int64 fields are written as their two's complement.
int64_t SignedField(int64_t value) {
  return NumberField(static_cast<uint64_t>(value));
}

struct Sizer {
  int64_t operator()(const StateFrame& f) const {
    return BytesField(f.run_id.size()) + BytesField(f.fingerprint.size()) +
           BytesField(f.algorithm.size()) + NumberField(f.plan_version) +
           SignedField(f.step) + NumberField(static_cast<uint64_t>(f.phase));
  }
  int64_t operator()(const AskFrame& f) const {
    return NumberField(f.ask) + NumberField(static_cast<uint64_t>(f.purpose)) +
           SignedField(f.step);
  }
  int64_t operator()(const RefuseFrame& f) const {
    return NumberField(f.ask) + NumberField(static_cast<uint64_t>(f.reason)) +
           BytesField(f.text.size());
  }
  int64_t operator()(const CancelAskFrame& f) const {
    return NumberField(f.ask);
  }
  int64_t operator()(const TransferBegin& f) const {
    return NumberField(f.transfer) +
           NumberField(static_cast<uint64_t>(f.kind)) + NumberField(f.ask) +
           SignedField(f.step) + BytesField(f.header.size()) +
           SignedField(f.body_bytes);
  }
  int64_t operator()(const Chunk& f) const {
    return NumberField(f.transfer) + SignedField(f.offset) +
           BytesField(f.data.size());
  }
  int64_t operator()(const TransferAck& f) const {
    return NumberField(f.transfer) + SignedField(f.received) +
           FlagField(f.complete);
  }
  int64_t operator()(const TransferCancel& f) const {
    return NumberField(f.transfer) + FlagField(f.by_sender) +
           NumberField(static_cast<uint64_t>(f.reason)) +
           BytesField(f.text.size());
  }
};

}  // namespace

int64_t EncodedSize(const Frame& frame) {
  const int64_t inner = std::visit(Sizer{}, frame);
  // A Chunk is a message of its own (the bulk stream carries nothing else); the
  // others stand in the oneof of ControlFrame, written even when empty.
  if (std::holds_alternative<Chunk>(frame)) return inner;
  return 1 + VarintSize(inner) + inner;
}

const char* FrameName(const Frame& frame) {
  static constexpr const char* kNames[] = {
      "state",          "ask",   "refuse", "cancel-ask",
      "transfer-begin", "chunk", "ack",    "cancel"};
  return kNames[frame.index()];
}

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "idle";
    case Phase::kJoining:
      return "joining";
    case Phase::kTraining:
      return "training";
    case Phase::kPaused:
      return "paused";
    case Phase::kFinished:
      return "finished";
    case Phase::kStopped:
      return "stopped";
    case Phase::kDegraded:
      return "degraded";
  }
  return "unknown";
}

const char* RefuseReasonName(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::kOtherRun:
      return "other-run";
    case RefuseReason::kOtherModel:
      return "other-model";
    case RefuseReason::kOtherAlgorithm:
      return "other-algorithm";
    case RefuseReason::kNotReady:
      return "not-ready";
    case RefuseReason::kBusy:
      return "busy";
    case RefuseReason::kBadMessage:
      return "bad-message";
    case RefuseReason::kNotANeighbour:
      return "not-a-neighbour";
    case RefuseReason::kUnknownCodec:
      return "unknown-codec";
  }
  return "unknown";
}

}  // namespace dfl::ports
