#include "daemon/runtime/memory_need.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/header.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/runtime/pushes.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {
namespace {

constexpr int64_t kFloat = 4;

// Bytes of `length` values and `buffers` floats in `format`.
int64_t MessageBytes(const core::MessageFormat& format, double rate,
                     int64_t length, int64_t buffers) {
  codec::EncodedHeader header;
  header.format = format;
  header.n = length;
  header.s = format.coordinates == core::Coordinates::kDense
                 ? length
                 : core::SentCoordinates(rate, length);
  header.buffer_length = buffers;
  return header.value_bytes() + kFloat * buffers;
}

class Estimate {
 public:
  Estimate(const core::RunPlan& plan, const core::NodePlan& node,
           const core::AlgorithmInfo& algorithm, const ports::ModelInfo& model)
      : plan_(plan),
        algorithm_(algorithm),
        edge_(algorithm.edge),
        n_(model.parameter_count),
        buffers_(model.buffer_count) {
    const double rate = algorithm.message_rate
                            ? algorithm.message_rate(node.knobs)
                            : plan.codec.rate;
    need_.message = MessageBytes(plan.codec.format, rate, n_, buffers_);
  }

  void Add(const std::string& what, int64_t bytes) {
    if (bytes <= 0) return;
    need_.parts.push_back({what, bytes});
    need_.total += bytes;
  }

  void AddOwn() {
    Add("model and gradient", Floats(2) + kFloat * buffers_);
    Add(absl::StrCat("vectors of ", algorithm_.name),
        Floats(algorithm_.extra_vectors));
    Add(absl::StrCat("moments of ", plan_.optimizer.name),
        Floats(core::OptimizerVectors(plan_.optimizer.name)));
    if (algorithm_.exchange != core::Exchange::kNone) Add("snapshot", Model());
  }

  void AddNeighbours(int64_t heard, int64_t sent_to) {
    const std::string whose =
        absl::StrCat("for ", std::max(heard, sent_to), " neighbours: ");
    Add(whose + "vectors", sent_to * Given() + heard * Floats(edge_.taken));
    Add(whose + "messages sent", sent_to * Sent());
    Add(whose + "messages received", heard * Received());
  }

  // One that is being written: the algorithm's state is copied, edges and all.
  void AddCheckpoint(int64_t heard, int64_t sent_to) {
    if (plan_.checkpoint.interval <= absl::ZeroDuration()) return;
    Add("checkpoint", Model() +
                          Floats(1 + algorithm_.extra_vectors +
                                 core::OptimizerVectors(plan_.optimizer.name)) +
                          Floats(sent_to * edge_.given + heard * edge_.taken));
  }

  MemoryNeed Take() { return std::move(need_); }

 private:
  int64_t Floats(int64_t vectors) const { return kFloat * n_ * vectors; }
  int64_t Model() const { return kFloat * (n_ + buffers_); }
  bool Pushes() const {
    return algorithm_.exchange == core::Exchange::kPush && edge_.sent > 0;
  }
  bool LossyMass() const {
    return edge_.parcel > 0 && algorithm_.exact_mass.empty() &&
           plan_.codec.mass != core::ValueType::kFp32;
  }

  // What is given to one, and what its next message is chosen by.
  int64_t Given() const {
    const bool ranked =
        Pushes() && plan_.codec.format.coordinates == core::Coordinates::kTopK;
    return Floats(edge_.given + (LossyMass() ? edge_.parcel : 0) +
                  (ranked ? 1 : 0));
  }
  // Replicas' updates are shorter, but for those that had to wait.
  int64_t Parcel() const {
    if (edge_.parcel == 0) return 0;
    const core::MessageFormat format{
        core::Coordinates::kDense,
        LossyMass() ? plan_.codec.mass : core::ValueType::kFp32};
    return MessageBytes(format, 1, edge_.parcel * n_, 0);
  }
  // A model that came: random and top-k coordinates are marked, a bit each.
  int64_t Arrived() const {
    const bool dense =
        plan_.codec.format.coordinates == core::Coordinates::kDense;
    return need_.message + (dense ? 0 : n_ / 8);
  }
  // What of the messages between two is under way at a time.
  int64_t Windows() const {
    const int64_t most = TransfersOptions().window_bytes;
    return std::min(Parcel(), most) +
           (edge_.sent > 0 ? std::min(need_.message, most) : 0);
  }
  // To one: snapshots, what is encoded ahead, and as much in the transport.
  int64_t Sent() const { return edge_.sent * Model() + 2 * Windows(); }
  // Of one. An answer that comes in is the one that waits later; a push is not.
  int64_t Received() const {
    int64_t models = edge_.waiting + (Pushes() ? 1 : 0);
    if (Pushes() && core::TopologyVaries(plan_.topology)) {
      models += static_cast<int64_t>(EarlyPushes::kMost);
    }
    return models * Arrived() + Parcel() + Windows();
  }

  const core::RunPlan& plan_;
  const core::AlgorithmInfo& algorithm_;
  const core::EdgeCost& edge_;
  const int64_t n_;
  const int64_t buffers_;
  MemoryNeed need_;
};

}  // namespace

absl::StatusOr<MemoryNeed> NeedOf(const core::DerivedPlan& derived,
                                  const ports::ModelInfo& model,
                                  const ports::DataInfo& data, int64_t base) {
  const core::RunPlan& plan = derived.plan();
  const core::NodePlan& node = derived.node;
  const core::AlgorithmInfo* algorithm = derived.checked.algorithm;
  core::NeighbourCount count;
  if (node.takes_part) {
    DFL_ASSIGN_OR_RETURN(
        count, core::CountNeighbours(plan, *derived.checked.algorithm,
                                     *derived.checked.graph, node.place));
  }
  if (algorithm->graphs == core::GraphKind::kUndirected) {
    count.heard = count.sent_to = std::max(count.heard, count.sent_to);
  }
  if (algorithm->heard_at_once != nullptr) {
    count.heard = algorithm->heard_at_once(node.knobs, count.heard);
    // Whom it draws for itself; anybody may ask it.
    if (algorithm->exchange == core::Exchange::kPush) {
      count.sent_to = algorithm->heard_at_once(node.knobs, count.sent_to);
    }
  }
  Estimate estimate(plan, node, *algorithm, model);
  estimate.Add("program and libraries", base);
  estimate.Add("data", data.bytes);
  estimate.AddOwn();
  estimate.AddNeighbours(count.heard, count.sent_to);
  estimate.AddCheckpoint(count.heard, count.sent_to);
  return estimate.Take();
}

}  // namespace dfl::runtime
