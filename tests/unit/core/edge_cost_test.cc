// What the catalogue says that is kept for each neighbour holds for every
// algorithm: one node whose parcels are never known to be taken, while its
// neighbours are rounds ahead and send all they may.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

constexpr int64_t kLength = 8;  // n
constexpr int64_t kSteps = 12;

// A model that came, of which it is known how many there are.
class CountedModel : public PlainRemoteVector {
 public:
  CountedModel(std::vector<float> values, int64_t& alive)
      : PlainRemoteVector(std::move(values)), alive_(alive) {
    ++alive_;
  }
  ~CountedModel() override { --alive_; }

 private:
  int64_t& alive_;
};

// No two weights are alike, so no two neighbours share a parcel.
std::vector<Neighbour> Neighbours() {
  return {{Id("a"), 0.1}, {Id("b"), 0.2}, {Id("c"), 0.25}};
}

// Something is exchanged in every step that may.
KnobValues KnobsOf(const std::string& name) {
  if (name == "pame") return {{"kappa", IntRange{1, 1}}, {"nu", 0.5}};
  if (name == "kd-pdfl") return {{"T_ex", int64_t{3}}, {"subset", int64_t{2}}};
  if (name == "depositum") return {{"T0", int64_t{1}}};
  if (name == "draco")
    return {{"send", std::string("every")}, {"psi", int64_t{9}}};
  if (name == "choco-sgd" || name == "beer") {
    return {{"compressor", std::string("sign")}};
  }
  return {};
}

class WorstCase {
 public:
  explicit WorstCase(const AlgorithmInfo& info)
      : info_(info),
        machine_(info.name, KnobsOf(info.name), Neighbours(), kLength) {
    for (const Neighbour& n : Neighbours()) machine_.Handle(PeerUp{n.node});
  }

  void Run() {
    for (int64_t k = 0; k < kSteps; ++k) {
      HearAhead();
      Step();
      LookAtState();
    }
  }

  // The most of each that there was.
  const EdgeCost& most() const { return most_; }
  int64_t own() const { return own_; }
  int64_t heard_at_once() const { return heard_at_once_; }
  int64_t models_predicted() const { return models_predicted_; }
  int64_t MassLength() { return machine_->MassLength(1); }

 private:
  std::vector<float> Values(int64_t length) {
    std::vector<float> values;
    for (int64_t l = 0; l < length; ++l) {
      values.push_back(0.01F * static_cast<float>((7 * ++drawn_) % 13 - 5));
    }
    return values;
  }

  RemoteModel ModelOf(const NodeId& from, int64_t round, int64_t length) {
    RemoteModel model;
    model.parameters =
        std::make_unique<CountedModel>(Values(length), alive_[from]);
    model.buffers = {0};
    model.step = round;
    return model;
  }

  // Everybody is up to three rounds ahead.
  void HearAhead() {
    for (const Neighbour& n : Neighbours()) {
      for (int64_t ahead = 0; ahead <= 3; ++ahead) {
        const int64_t round = machine_->step() + ahead;
        if (info_.exchange == Exchange::kPush) {
          Handle(PushArrived{n.node, ModelOf(n.node, round, kLength)});
        }
        if (!info_.gives_mass) continue;
        MassArrived mass;
        mass.from = n.node;
        mass.sequence = ++sequence_[n.node];
        mass.model = ModelOf(n.node, round, machine_->MassLength(kLength));
        mass.model.scalars = {0.01};
        Handle(std::move(mass));
      }
    }
  }

  void Handle(Event event) {
    machine_.Handle(std::move(event));
    for (const Action& action : machine_.actions) Note(action);
    int64_t heard = 0;
    for (const auto& [from, count] : alive_) {
      most_.waiting = std::max(most_.waiting, count);
      heard += count > 0 ? 1 : 0;
    }
    heard_at_once_ = std::max(heard_at_once_, heard);
  }

  void Note(const Action& action) {
    if (std::holds_alternative<ComputeGradient>(action)) gradient_ = true;
    if (std::holds_alternative<StepDone>(action)) done_ = true;
    if (const auto* ask = std::get_if<Ask>(&action)) asks_.push_back(*ask);
    if (const auto* predict = std::get_if<Predict>(&action)) {
      predict_ = static_cast<int64_t>(predict->models->size());
      models_predicted_ = std::max(models_predicted_, predict_);
    }
    if (const auto* wake = std::get_if<WakeAfter>(&action)) {
      timers_.insert(wake->timer);
    }
    if (const auto* cancel = std::get_if<CancelTimer>(&action)) {
      timers_.erase(cancel->timer);
    }
  }

  // Deadlines pass, nothing is ever known to be taken.
  void Step() {
    done_ = false;
    Handle(StepBegins{});
    for (int events = 0; !done_; ++events) {
      ASSERT_LT(events, 1000) << info_.name << " does not end its step";
      if (!asks_.empty()) {
        const Ask ask = asks_.back();
        asks_.pop_back();
        for (const NodeId& peer : ask.peers) {
          Handle(AnswerArrived{peer, ask.ask,
                               ModelOf(peer, machine_->step(), kLength)});
        }
      } else if (gradient_) {
        gradient_ = false;
        const std::vector<float> g = Values(kLength);
        std::copy(g.begin(), g.end(), machine_.gradient.begin());
        Handle(GradientReady{1, 1});
      } else if (predict_ > 0) {
        Handle(Predicted{1, std::vector<std::vector<double>>(
                                1 + std::exchange(predict_, 0), {0.5, 0.5})});
      } else {
        ASSERT_FALSE(timers_.empty()) << info_.name << " waits for nothing";
        const uint64_t timer = *timers_.begin();
        timers_.erase(timer);
        Handle(TimerFired{timer});
      }
    }
  }

  // By what their names say: "giving/a/out/mass", "replicas/a/values", "z".
  void LookAtState() {
    const AlgorithmState state = machine_->ExportState();
    std::map<std::string, int64_t> given;
    std::map<std::string, int64_t> taken;
    int64_t own = 0;
    for (const auto& [field, value] : state.fields) {
      const auto* vector = std::get_if<FlatVector>(&value);
      if (vector == nullptr || vector->empty()) continue;
      const auto vectors = static_cast<int64_t>(vector->size()) / kLength;
      const std::vector<std::string> path = absl::StrSplit(field, '/');
      if (path[0] == "giving") {
        // Increments that are out are the parcel itself.
        if (absl::EndsWith(field, "/out/steps")) continue;
        given[path[1]] += vectors;
      } else if (path[0] == "taking" || path[0] == "replicas" ||
                 path[0] == "unmatched") {
        taken[path[1]] += vectors;
      } else {
        own += vectors;
      }
    }
    for (const auto& [node, count] : given) {
      most_.given = std::max(most_.given, count);
    }
    for (const auto& [node, count] : taken) {
      most_.taken = std::max(most_.taken, count);
    }
    own_ = std::max(own_, own);
  }

  const AlgorithmInfo& info_;
  std::map<NodeId, int64_t> alive_;  // outlives the algorithm's models
  Machine machine_;
  std::map<NodeId, uint64_t> sequence_;
  std::set<uint64_t> timers_;
  std::vector<Ask> asks_;
  int64_t predict_ = 0;
  bool gradient_ = false;
  bool done_ = false;
  int64_t drawn_ = 0;

  EdgeCost most_;
  int64_t own_ = 0;
  int64_t heard_at_once_ = 0;
  int64_t models_predicted_ = 0;
};

class EdgeCostOf : public testing::TestWithParam<std::string> {};

TEST_P(EdgeCostOf, IsNeverPassed) {
  const AlgorithmInfo& info = **BuiltInCatalogue().Find(GetParam());
  WorstCase worst(info);
  worst.Run();
  EXPECT_LE(worst.most().given, info.edge.given);
  EXPECT_LE(worst.most().taken, info.edge.taken);
  // What gives nothing but mass is sent no models.
  if (info.edge.sent > 0) {
    EXPECT_LE(worst.most().waiting, info.edge.waiting);
  }
  EXPECT_LE(worst.own(), info.extra_vectors);
  EXPECT_EQ(info.edge.parcel, info.gives_mass ? worst.MassLength() : 0);
  if (info.exchange == Exchange::kPull) {
    const auto knobs = Knobs::Resolve(info.knobs, KnobsOf(info.name));
    const int64_t heard = info.heard_at_once(*knobs, 3);
    EXPECT_EQ(worst.heard_at_once(), heard);
    EXPECT_LE(worst.models_predicted(), heard * info.edge.taken);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EdgeCostOf, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const AlgorithmInfo& info :
                                BuiltInCatalogue().entries()) {
                             names.push_back(info.name);
                           }
                           return names;
                         }()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = absl::StrReplaceAll(
                               info.param, {{"-", "_"}, {"+", "Plus"}});
                           return name;
                         });

// What is stated is no more than what there may be.
TEST(EdgeCost, IsReached) {
  for (const char* name : {"depositum", "spod-gt", "push-pull", "k-gt", "sgp",
                           "choco-sgd", "beer"}) {
    const AlgorithmInfo& info = **BuiltInCatalogue().Find(name);
    WorstCase worst(info);
    worst.Run();
    EXPECT_EQ(worst.most().given, info.edge.given) << name;
    EXPECT_EQ(worst.most().taken, info.edge.taken) << name;
  }
  for (const char* name : {"d-psgd", "epidemic", "async-dsgd", "pame", "swarm",
                           "kd-pdfl", "k-gt"}) {
    const AlgorithmInfo& info = **BuiltInCatalogue().Find(name);
    WorstCase worst(info);
    worst.Run();
    EXPECT_EQ(worst.most().waiting, info.edge.waiting) << name;
  }
  // A share that was given and not looked at yet is none of the state's.
  for (const char* name : {"nids", "anq-nids"}) {
    const AlgorithmInfo& info = **BuiltInCatalogue().Find(name);
    WorstCase worst(info);
    worst.Run();
    EXPECT_EQ(worst.most().given, info.edge.given - 1) << name;
    EXPECT_EQ(worst.most().taken, info.edge.taken) << name;
  }
}

// Ten standard deviations beyond the mean, and no more than there are.
TEST(EdgeCost, OfEpidemicGrowsWithWhatIsSentAndNotWithTheNetwork) {
  const AlgorithmInfo& info = **BuiltInCatalogue().Find("epidemic");
  const auto heard = [&](int64_t s, int64_t degree) {
    return info.heard_at_once(*Knobs::Resolve(info.knobs, {{"s", s}}), degree);
  };
  EXPECT_EQ(heard(4, 3), 3);
  EXPECT_EQ(heard(4, 999), 34);
  EXPECT_EQ(heard(100, 999), 210);
}

}  // namespace
}  // namespace dfl::core
