// An algorithm that is in none of the program's lists: a class, an entry, and
// one line that adds the entry to a catalogue. docs/architecture.md goes
// through it; tests run it by itself and on simulated nodes.
#ifndef DFL_TESTS_SUPPORT_TOY_ALGORITHM_H_
#define DFL_TESTS_SUPPORT_TOY_ALGORITHM_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/push_rounds.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

// ---- the algorithm ----

// What a node of the toy wants to know of the whole network.
struct ToyFacts : AlgorithmFacts {
  double largest_eta = 0;
};

// Mixes by W and steps, no node with a longer step than twice its own.
class Toy : public PushRounds {
 public:
  explicit Toy(AlgorithmContext context)
      : PushRounds(std::move(context)), eta_(plan().knobs.Number("eta")) {}
  bool parameters_settled() const override { return true; }

 private:
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override {
    MixArrivals(arrivals, vectors().parameters, vectors().buffers);
    AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
              vectors().parameters);
  }
  double StepSize() const override {
    return std::min(2 * eta_, FactsOf<ToyFacts>(plan()).largest_eta);
  }
  void OnPlanChanged() override { eta_ = plan().knobs.Number("eta"); }

  double eta_;
};

// ---- catalogue entry ----

inline AlgorithmInfo ToyInfo() {
  return {
      .name = "toy",
      .summary = "Mixes and steps",
      .source = "this test",
      .create = Create<Toy>,
      .derive =
          [](const Network& network) -> std::shared_ptr<const AlgorithmFacts> {
        auto facts = std::make_shared<ToyFacts>();
        for (const double eta : network.Numbers("eta")) {
          facts->largest_eta = std::max(facts->largest_eta, eta);
        }
        return facts;
      },
      .warnings =
          [](const Network& network, const AnyGraph& /*window*/) {
            return std::vector<std::string>{
                absl::StrCat("members: ", network.members.size(),
                             " of them play with a toy")};
          },
      .exchange = Exchange::kPush,
      .lock_step = true,
      .edge = PushCost(),
      .cost = "One gradient a round; to each neighbour 4 n bytes.",
      .knobs = {PositiveKnob("eta", 0.05, "Step size."), MaxLagKnob()}};
}

inline Catalogue WithToy() {
  Catalogue catalogue = BuiltInCatalogue();
  catalogue.Add(ToyInfo());  // the one line
  return catalogue;
}

}  // namespace dfl::core

#endif  // DFL_TESTS_SUPPORT_TOY_ALGORITHM_H_
