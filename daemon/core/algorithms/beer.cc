#include "daemon/core/algorithms/beer.h"

#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

Beer::Beer(AlgorithmContext context, Decisions& decisions)
    : CompressedRounds(std::move(context), decisions, 2, true) {}

void Beer::ResetState() {
  begun_ = moved_ = false;
  v_.assign(n(), 0.0F);
}

void Beer::VisitState(StateFields& fields) {
  CompressedRounds::VisitState(fields);
  fields.Flag("begun", begun_);
  fields.Vector("v", v_, n());
}

void Beer::BeginRound(Actions& actions) {
  moved_ = false;
  if (begun_) {
    Move(actions);
  } else {
    begun_ = true;
    Compute(actions);
  }
}

void Beer::Move(Actions& actions) {
  moved_ = true;
  MixReplicas(0, gamma(), vectors().parameters);
  AddScaled(static_cast<float>(-StepSize()), v_, vectors().parameters);
  Compute(actions);
}

void Beer::AfterGradient(Actions& actions) {
  CountGradient();
  v_ = z();
  AddScaled(1.0F, vectors().gradient, absl::MakeSpan(v_));
  if (!moved_) {
    Move(actions);
    return;
  }
  Compress(0, "h", vectors().parameters);
  Compress(1, "g", v_);
  GiveOwn([&](const Neighbour& neighbour) {
    return MayGiveMass(neighbour) ? gamma() * neighbour.weight : 0.0;
  });
  Exchange(Parts::kMass, Up(plan().neighbours), actions);
}

void Beer::AfterExchange(Arrivals /*arrivals*/, Actions& actions) {
  TakeUpdates();
  EndMassRound(actions);
}

// ---- catalogue entry ----

AlgorithmInfo BeerInfo() {
  AlgorithmInfo info = CompressedInfo(2);
  info.name = "beer";
  info.summary = "Gradient tracking with compressed differences";
  info.source = "[BEER] Alg. 1";
  info.caveats +=
      " When only 1/10 of the coordinates is sent, eta and gamma must be "
      "small: start with gamma = 0.2.";
  info.pace =
      "A round is one step and one exchange; the first round is two steps.";
  info.own_step =
      "its step is the tracker, which sums the gradients of all nodes";
  info.create = Create<Beer>;
  info.auxiliary = {"v"};
  info.gradient_estimate = "v";
  info.extra_vectors = 5;
  info.cost =
      "One gradient per round, and two in the first; to each neighbour at most "
      "12 k bytes, for 2 k values with their coordinates, k = rate n. With the "
      "compressor sign it is n/4 + n/32 bytes.";
  return info;
}

}  // namespace dfl::core
