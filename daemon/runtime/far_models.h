// Refuses models of neighbours that lie too far from the node's own
// (guards/model_distances.h), counts and reports them. Never looked at are
// mass, the model that a joiner takes, pushes that come too late to be mixed,
// and what draco pushes, which is mostly no model.
//
// Loop only.
#ifndef DFL_RUNTIME_FAR_MODELS_H_
#define DFL_RUNTIME_FAR_MODELS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "daemon/base/ids.h"
#include "daemon/core/vector/flat_vector.h"
#include "daemon/core/vector/remote_vector.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/guards/model_distances.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"

namespace dfl::runtime {

class FarModels {
 public:
  // All must outlive it.
  FarModels(const OwnState& own, PeerTable& peers, ports::Loop& loop,
            ports::EventSink& events)
      : own_(own), peers_(peers), loop_(loop), events_(events) {}

  // The node's model begins anew, or moves by another algorithm.
  void Begin() { distances_.Begin(own_.algorithm.step(), loop_.Now()); }
  // Whether `model` of `from` is not to be mixed with.
  // Cost: one pass over what came and over the own model.
  bool Refuses(const NodeId& from, core::RemoteVector& model);

 private:
  static double RootMean(double squares, int64_t count) {
    return std::sqrt(squares /
                     static_cast<double>(std::max<int64_t>(count, 1)));
  }

  const OwnState& own_;
  PeerTable& peers_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  ModelDistances distances_;
};

inline bool FarModels::Refuses(const NodeId& from, core::RemoteVector& model) {
  const core::AlgorithmInfo* algorithm = own_.run.algorithm();
  if (algorithm == nullptr || algorithm->continuous ||
      model.size() != own_.model.parameter_count()) {
    return false;
  }
  const core::Distance distance =
      core::DistanceTo(model, own_.model.parameters());
  ModelDistances::Model judged;
  judged.distance = RootMean(distance.squares, model.carried());
  judged.own = RootMean(distance.own_squares, model.size());
  judged.round = own_.algorithm.step();
  judged.now = loop_.Now();
  const std::optional<double> bound = distances_.Judge(from, judged);
  if (!bound) {
    if (judged.own > 0) {
      peers_.HearDistance(from, judged.distance / judged.own);
    }
    return false;
  }
  peers_.CountFar(from);
  events_.Report(ports::MessageRejected{
      from, ports::RefuseReason::kBadMessage,
      absl::StrFormat("its model is not mixed with: it lies %.4g from this "
                      "node's (root mean square), and models up to %.4g are "
                      "taken now",
                      judged.distance, *bound)});
  return true;
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_FAR_MODELS_H_
