// Mass over real sockets: whatever algorithm gives some away, what all nodes
// have together stays what it was, in a run without faults and in one in which
// a node dies and comes back. Every entry of the catalogue that gives mass is
// run, a new one by itself: with its default knobs until KnobsOf names others.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "daemon/sim/tasks/analytic_task.h"
#include "daemon/simports/mass_drift.h"
#include "gtest/gtest.h"
#include "tests/integration/linear_parameters.h"
#include "tests/integration/live_node.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr const char* kNames[] = {"a", "b", "c", "d"};
constexpr int64_t kNodes = 4;
constexpr int64_t kVictim = 3;
constexpr int64_t kParameters = 16;
// Of a run without faults, and after the last fault.
constexpr int64_t kSteps = 300;
// Nobody gets there.
constexpr int64_t kEndless = 1000000;
// Before the fault, and without the victim.
constexpr int64_t kSome = 40;
constexpr absl::Duration kPatience = absl::Seconds(60);
// What float32 leaves of sums of some hundred parcels.
constexpr double kTolerance = 1e-5;

// For all of a node's rows at once.
constexpr char kPlan[] =
    "run: mass\n"
    "seed: 11\n"
    "members: [a, b, c, d]\n"
    "model: {kind: linear, classes: 0}\n"
    "batch_size: 20\n"
    "deadline: {exchange: 300ms}\n"
    "evaluation: {every_steps: 0}\n";
const std::string& Network() {
  static const std::string kText = absl::StrCat(
      "network:\n"
      "  problem: {kind: linear, n: ",
      kParameters, ", rows: 20}\n");
  return kText;
}

// Such that some hundred rounds are enough.
std::string KnobsOf(const std::string& algorithm) {
  static const std::map<std::string, std::string> kKnobs = {
      {"anq-nids", "{alpha: 0.1, R0: 8}"},
      {"beer", "{eta: 0.04, gamma: 0.3, rate: 0.3}"},
      {"choco-sgd", "{eta: 0.05, gamma: 0.3, rate: 0.3}"},
      {"depositum", "{T0: 2}"},
      {"g-push-pull", "{eta: 0.05, p_hat: 0.8}"},
      {"k-gt", "{eta_c: 0.02, K: 3}"},
      {"nids", "{alpha: 0.1}"},
      {"push-pull", "{eta: 0.05}"},
      {"sgp", "{eta: 0.05}"},
      {"spod-gt", "{eta: 0.05, p: 0.8, p_hat: 0.8}"},
      {"sporadic-k-gt", "{eta: 0.05, p: 0.8}"},
  };
  const auto found = kKnobs.find(algorithm);
  return found == kKnobs.end() ? "{}" : found->second;
}

// Not all are neighbours, and where they need not be, not both ways. Without
// the victim each of the others still hears one: who hears nobody waits for
// nobody, and is soon thousands of rounds ahead.
std::string TopologyOf(const core::AlgorithmInfo& info) {
  if (info.complete_graph) return "{kind: complete}";
  if (info.star_graph) return "{kind: star}";
  if (info.graphs == core::GraphKind::kUndirected) return "{kind: ring}";
  return "{kind: explicit, directed: true, edges: [[a, b], [b, c], [c, a], "
         "[c, d], [d, a], [d, b]]}";
}

// Where an iteration is a round, all nodes end in the same one.
bool CountsRounds(const std::string& algorithm) {
  return (*core::BuiltInCatalogue().Find(algorithm))->round_is_iteration;
}

// How far a node is, in what its plan ends by.
template <typename Status>
int64_t Count(const Status& status) {
  return CountsRounds(status.algorithm) ? status.round : status.step;
}

std::string PlanText(const std::string& algorithm, uint64_t version,
                     int64_t count) {
  const core::AlgorithmInfo& info = **core::BuiltInCatalogue().Find(algorithm);
  return absl::StrCat(
      kPlan, "version: ", version, "\nalgorithm: {name: ", algorithm,
      ", knobs: ", KnobsOf(algorithm), "}\ntopology: ", TopologyOf(info),
      "\nstop: {", CountsRounds(algorithm) ? "rounds" : "steps", ": ", count,
      "}\n");
}

sim::Scenario MakeScenario(const std::string& algorithm, uint64_t version,
                           int64_t steps) {
  auto scenario = sim::ParseScenario(
      PlanText(algorithm, version, steps) + Network(), "scenario.yaml");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *std::move(scenario) : sim::Scenario();
}

// The loss, over all nodes' rows, of the mean of `models`.
double LossOfMean(sim::Task& task,
                  const std::vector<std::vector<float>>& models) {
  std::vector<float> mean(kParameters, 0.0F);
  for (const std::vector<float>& model : models) {
    if (model.size() != mean.size()) return -1;
    for (size_t l = 0; l < mean.size(); ++l) mean[l] += model[l] / kNodes;
  }
  const auto score =
      task.ScoreForAll({mean, {}}, std::vector<bool>(kNodes, true));
  EXPECT_TRUE(score.ok()) << score.status();
  return score.ok() ? score->loss : -1;
}

class MassTest : public testing::TestWithParam<std::string> {
 protected:
  MassTest()
      : scenario_(MakeScenario(GetParam(), 1, kSteps)),
        task_(sim::MakeAnalyticTask(scenario_.problem, scenario_.plan)) {}

  // One crash ends one epoch. But replicas are given to a neighbour that is
  // away as well: one that has entered the epoch before it meets the victim
  // again takes that for an exchange and begins another one. The victim has two
  // neighbours.
  static uint64_t MostEpochs() {
    return (*core::BuiltInCatalogue().Find(GetParam()))->keeps_replicas ? 3 : 2;
  }

  // The models end as good as those of a simulated run without faults.
  void ExpectTrained(const std::vector<std::vector<float>>& models) {
    auto simulation = sim::Simulation::Create(scenario_);
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    const sim::Result result =
        (*simulation)->Run([](const sim::Progress&) { return true; });
    ASSERT_EQ(result.end, sim::End::kFinished) << result.why;
    std::vector<std::vector<float>> simulated;
    for (int64_t i = 0; i < kNodes; ++i) {
      const absl::Span<const float> model = (*simulation)->parameters(i);
      simulated.emplace_back(model.begin(), model.end());
    }
    const double at_first =
        LossOfMean(*task_, std::vector<std::vector<float>>(
                               kNodes, std::vector<float>(kParameters, 0.0F)));
    const double faultless = LossOfMean(*task_, simulated);
    const double loss = LossOfMean(*task_, models);
    EXPECT_LT(faultless, at_first);
    EXPECT_LE(std::fabs(loss - faultless), 0.01 * (at_first - faultless))
        << loss << ", without faults " << faultless;
  }

  const sim::Scenario scenario_;
  const std::unique_ptr<sim::Task> task_;
};

// -------------------------------------------------- within this process ----

class MassOverSockets : public MassTest {
 protected:
  void SetUp() override {
    std::vector<std::string> addresses;
    for (int64_t i = 0; i < kNodes; ++i) {
      nodes_.push_back(
          std::make_unique<LiveNode>(scenario_, *task_, i, 1, addresses));
      addresses.push_back(nodes_.back()->address());
    }
  }

  // Runs `look` while no node does anything, and then `go_on` for each on its
  // own loop. Nodes that are gone are left out.
  void Halted(const std::function<void()>& look,
              const std::function<void(LiveNode&)>& go_on = nullptr,
              size_t from = 0) {
    if (from == nodes_.size()) {
      look();
    } else if (nodes_[from] == nullptr) {
      Halted(look, go_on, from + 1);
    } else {
      nodes_[from]->Run([&] {
        Halted(look, go_on, from + 1);
        if (go_on) go_on(*nodes_[from]);
      });
    }
  }
  const runtime::Node& node(int64_t i) const {
    return nodes_[static_cast<size_t>(i)]->node();
  }
  const core::MassRounds& rounds(int64_t i) const {
    return dynamic_cast<const core::MassRounds&>(*node(i).algorithm());
  }

  // Looks at all nodes, each time what they conserve as well, until `all` holds
  // at one moment.
  bool Becomes(const std::function<bool()>& all) {
    return Eventually(kPatience, [&] {
      bool holds = false;
      Halted([&] {
        CheckConserved();
        holds = all();
      });
      return holds || HasFatalFailure();
    });
  }
  // At any moment, whatever is on its way, once all are of one epoch.
  void CheckConserved() {
    std::map<NodeId, const core::Algorithm*> nodes;
    std::set<uint64_t> epochs;
    for (int64_t i = 0; i < kNodes; ++i) {
      if (nodes_[i] == nullptr || node(i).algorithm() == nullptr) return;
      nodes[nodes_[i]->self()] = &rounds(i);
      epochs.insert(node(i).parcels().epoch());
    }
    if (epochs.size() != 1) return;
    ++looks_;
    const std::optional<double> drift = simports::MassDrift(nodes);
    if (!drift.has_value()) return;
    ASSERT_LE(*drift, kTolerance) << "step " << node(0).algorithm()->step();
  }

  void StartAll(int64_t steps) {
    const core::RunPlan plan = MakeScenario(GetParam(), 1, steps).plan;
    for (const auto& one : nodes_) {
      const absl::Status set = one->SetPlan(plan);
      ASSERT_TRUE(set.ok()) << set;
    }
    // All know that the others are in the run, so that they begin together.
    ASSERT_TRUE(Becomes([&] {
      for (int64_t i = 0; i < kNodes; ++i) {
        const runtime::NodeStatus status = node(i).Status();
        const auto ready = std::count_if(
            status.peers.begin(), status.peers.end(), [](const auto& peer) {
              return peer.linked && peer.plan_version == 1;
            });
        if (ready != kNodes - 1) return false;
      }
      return true;
    }));
    for (const auto& one : nodes_) ASSERT_TRUE(one->Start().ok());
  }
  bool AllReach(int64_t step) {
    return Becomes([&] {
      for (int64_t i = 0; i < kNodes; ++i) {
        if (nodes_[i] == nullptr) continue;
        const runtime::NodeStatus status = node(i).Status();
        if (status.algorithm.empty() || Count(status) < step) return false;
      }
      return true;
    });
  }
  // All have met their stop rule, and nothing is on its way.
  bool AllFinish() {
    return Becomes([&] {
      for (int64_t i = 0; i < kNodes; ++i) {
        if (node(i).phase() != ports::Phase::kFinished ||
            node(i).parcels().out() > 0) {
          return false;
        }
      }
      return true;
    });
  }

  // When all is quiet: what each node sees, and what all see together.
  void CheckEnd(uint64_t least_epoch, uint64_t most_epoch) {
    const uint64_t epoch = node(0).parcels().epoch();
    EXPECT_GE(epoch, least_epoch);
    EXPECT_LE(epoch, most_epoch);
    std::map<NodeId, const core::Algorithm*> nodes;
    std::vector<std::vector<float>> models;
    for (int64_t i = 0; i < kNodes; ++i) {
      SCOPED_TRACE(absl::StrCat("node ", kNames[i]));
      nodes[nodes_[i]->self()] = &rounds(i);
      models.emplace_back(node(i).parameters().begin(),
                          node(i).parameters().end());
      EXPECT_EQ(node(i).parcels().epoch(), epoch);
      const runtime::NodeStatus status = node(i).Status();
      EXPECT_LE(status.gauges.at("mass_imbalance"), kTolerance);
      EXPECT_GT(status.models_received, kSteps / 4);
      CheckReplicas(i);
    }
    EXPECT_GT(looks_, 0);
    const std::optional<double> drift = simports::MassDrift(nodes);
    if (drift.has_value()) {
      EXPECT_LE(*drift, kTolerance);
      // Of what one node takes away the others have it to the last.
      if (!rounds(0).conserved_weight().has_value()) {
        nodes.erase(nodes.begin());
        EXPECT_GT(simports::MassDrift(nodes).value_or(0), 10 * kTolerance);
      }
    }
    ExpectTrained(models);
  }
  // What neighbours hold as the replica of `i` is what `i` has.
  void CheckReplicas(int64_t i) {
    const auto* own = dynamic_cast<const core::ReplicaRounds*>(&rounds(i));
    if (own == nullptr) return;
    for (int64_t j = 0; j < kNodes; ++j) {
      if (i == j) continue;
      const auto& taker = dynamic_cast<const core::ReplicaRounds&>(rounds(j));
      const FlatVector* held = taker.replica_of(nodes_[i]->self());
      if (held == nullptr) continue;  // no neighbour
      FlatVector copy = *held;
      for (const core::MassLedger::Taken* taken : taker.ledger().held()) {
        if (taken->from != nodes_[i]->self()) continue;
        core::ApplyParcel(taken->mass, taken->increments, absl::MakeSpan(copy));
      }
      EXPECT_EQ(copy, own->replica()) << "at " << kNames[j];
    }
  }

  std::vector<std::unique_ptr<LiveNode>> nodes_;
  int64_t looks_ = 0;
};

TEST_P(MassOverSockets, IsConservedWithoutFaults) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kSteps));
  ASSERT_TRUE(AllFinish());
  Halted([&] { CheckEnd(1, 1); });
}

TEST_P(MassOverSockets, IsConservedAgainAfterACrash) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kEndless));
  ASSERT_TRUE(AllReach(kSome));
  nodes_[kVictim].reset();
  int64_t step = 0;
  Halted([&] { step = Count(node(0).Status()); });
  ASSERT_TRUE(AllReach(step + kSome));
  Halted([&] {
    for (int64_t i = 0; i < kVictim; ++i) {
      EXPECT_EQ(node(i).parcels().epoch(), 1U) << "it may come back";
    }
  });

  std::vector<std::string> addresses;
  for (int64_t i = 0; i < kVictim; ++i) {
    addresses.push_back(nodes_[i]->address());
  }
  nodes_[kVictim] =
      std::make_unique<LiveNode>(scenario_, *task_, kVictim, 2, addresses);
  core::RunPlan plan = MakeScenario(GetParam(), 1, kEndless).plan;
  ASSERT_TRUE(nodes_[kVictim]->SetPlan(plan).ok());
  ASSERT_TRUE(nodes_[kVictim]->Start().ok());
  ASSERT_TRUE(Becomes([&] {
    for (int64_t i = 0; i < kNodes; ++i) {
      if (node(i).parcels().epoch() < 2) return false;
    }
    return node(kVictim).phase() == ports::Phase::kTraining;
  }));

  // A plan for all at one moment, lest some be through it before the others.
  Halted(
      [&] {
        for (int64_t i = 0; i < kNodes; ++i) {
          step = std::max(step, Count(node(i).Status()));
        }
        plan = MakeScenario(GetParam(), 2, step + kSteps).plan;
      },
      [&](LiveNode& one) { EXPECT_TRUE(one.SetPlanOnLoop(plan).ok()); });
  ASSERT_TRUE(AllFinish());
  Halted([&] { CheckEnd(2, MostEpochs()); });
}

// --------------------------------------------------------- real daemons ----

// Links itself to daemons and hears what they say of themselves.
class Listener final : public ports::Transport::Handler {
 public:
  Listener() : loop_("listener") {
    exchange::GrpcTransportOptions options;
    options.self.node = NodeId("listener");
    options.self.incarnation = 1;
    transport_ = std::make_unique<exchange::GrpcTransport>(loop_, options);
    transport_->SetHandler(this);
  }
  ~Listener() override {
    loop_.RunAndWait([this] { transport_.reset(); });
    loop_.Stop();
  }

  void Dial(const std::string& address) {
    loop_.RunAndWait([&] { transport_->Dial(address); });
  }
  // As the daemon last said on its newest link; 0: nothing yet.
  uint64_t Epoch(const std::string& node) {
    uint64_t epoch = 0;
    loop_.RunAndWait([&] {
      for (const auto& [link, said] : said_) {
        if (said.node == node) epoch = said.epoch;
      }
    });
    return epoch;
  }

  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& peer,
                const std::string& /*dialled_address*/) override {
    said_[link].node = peer.node.name();
  }
  void OnDialFailed(const std::string& address,
                    const absl::Status& status) override {
    ADD_FAILURE() << address << ": " << status;
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override {
    if (const auto* state = std::get_if<ports::StateFrame>(&frame)) {
      said_[link].epoch = state->tracker_epoch;
    }
  }
  void OnWritable(ports::LinkId /*link*/) override {}
  void OnLinkDown(ports::LinkId link, const absl::Status& /*why*/) override {
    said_.erase(link);
  }

 private:
  struct Said {
    std::string node;
    uint64_t epoch = 0;
  };

  app::EventLoop loop_;
  std::unique_ptr<exchange::GrpcTransport> transport_;
  std::map<ports::LinkId, Said> said_;
};

class MassOfDaemons : public MassTest {
 protected:
  void SetUp() override {
    WriteFile(folder_.File("scenario.yaml"),
              PlanText(GetParam(), 1, kEndless) + Network());
    const std::string gate = folder_.File("gate");
    ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
    std::vector<std::string> addresses;
    for (const char* name : kNames) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
      if (nodes_.size() == kVictim) options.environment["DFL_GATE"] = gate;
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
      listener_.Dial(addresses.back());
    }
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  void Apply(uint64_t version, int64_t steps) {
    client::ApplyPlanOptions apply;
    apply.yaml = PlanText(GetParam(), version, steps);
    for (const auto& node : nodes_) {
      const auto applied = node->client().ApplyPlan(apply);
      ASSERT_TRUE(applied.ok()) << applied.status();
    }
  }
  void WaitForAll(const std::function<bool(const client::NodeStatus&)>& is) {
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->StatusBecomes(kPatience, is))
          << node->Status().node << ", step " << node->Status().step;
    }
  }
  // Lets the victim have its first gradient.
  void OpenGate() {
    int file = -1;
    ASSERT_TRUE(Eventually(kPatience, [&] {
      file =
          open(folder_.File("gate").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return file >= 0;
    }));
    close(file);
  }
  bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(kPatience, [step](const auto& status) {
      return !status.algorithm.empty() && Count(status) >= step;
    });
  }
  // All say that they are in one epoch of these.
  bool AllAreIn(uint64_t least_epoch, uint64_t most_epoch) {
    return Eventually(kPatience, [&] {
      const uint64_t epoch = listener_.Epoch(kNames[0]);
      return epoch >= least_epoch && epoch <= most_epoch &&
             std::all_of(std::begin(kNames), std::end(kNames),
                         [&](const char* name) {
                           return listener_.Epoch(name) == epoch;
                         });
    });
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
  Listener listener_;
};

TEST_P(MassOfDaemons, IsConservedAgainAfterAKill) {
  ASSERT_NO_FATAL_FAILURE(Apply(1, kEndless));
  ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
    return std::count_if(status.peers.begin(), status.peers.end(),
                         [](const auto& peer) {
                           return peer.linked && peer.plan_version == 1;
                         }) == kNodes - 1;
  }));
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
  }
  ASSERT_NO_FATAL_FAILURE(OpenGate());
  for (const auto& node : nodes_) ASSERT_TRUE(Reaches(*node, kSome));
  ASSERT_TRUE(AllAreIn(1, 1));

  DaemonProcess& victim = *nodes_[kVictim];
  victim.Kill();
  for (int64_t i = 0; i < kVictim; ++i) {
    DaemonProcess& node = *nodes_[i];
    ASSERT_TRUE(Reaches(node, Count(node.Status()) + kSome));
    EXPECT_EQ(listener_.Epoch(kNames[i]), 1U) << "it may come back";
  }

  ASSERT_TRUE(victim.Start()) << victim.log();
  listener_.Dial(victim.peer_address());
  ASSERT_TRUE(AllAreIn(2, MostEpochs()));
  ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
    return status.phase == client::Phase::kTraining;
  }));
  EXPECT_NE(victim.log().find("took the model of"), std::string::npos);

  // While they wait for it all learn where to stop.
  int64_t step = 0;
  for (const auto& node : nodes_) step = std::max(step, Count(node->Status()));
  ASSERT_NO_FATAL_FAILURE(Apply(2, step + kSteps));
  ASSERT_NO_FATAL_FAILURE(OpenGate());
  ASSERT_NO_FATAL_FAILURE(WaitForAll([](const client::NodeStatus& status) {
    return status.phase == client::Phase::kFinished;
  }));
  std::vector<std::vector<float>> models;
  for (const auto& node : nodes_) {
    models.push_back(LinearParameters(*node));
    EXPECT_EQ(models.back().size(), size_t{kParameters});
    const client::NodeStatus status = node->Status();
    EXPECT_LE(status.gauges.at("mass_imbalance"), kTolerance) << status.node;
  }
  EXPECT_TRUE(AllAreIn(2, MostEpochs()));
  ExpectTrained(models);
}

std::vector<std::string> ThatGiveMass() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    // Those whose mass is a vector that MassRounds conserves.
    if (info.gives_mass && !info.offers) names.push_back(info.name);
  }
  return names;
}
std::string TestName(const testing::TestParamInfo<std::string>& info) {
  return absl::StrReplaceAll(info.param, {{"-", "_"}});
}

INSTANTIATE_TEST_SUITE_P(Catalogue, MassOverSockets,
                         testing::ValuesIn(ThatGiveMass()), TestName);
INSTANTIATE_TEST_SUITE_P(Catalogue, MassOfDaemons,
                         testing::ValuesIn(ThatGiveMass()), TestName);

}  // namespace
}  // namespace dfl::testing_support
