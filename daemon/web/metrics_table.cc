#include "daemon/web/metrics_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "daemon/ports/frames.h"

namespace dfl::web {
namespace {

using prometheus::MetricType;
using runtime::NodeStatus;
using runtime::PeerStatus;

constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A metric of one value, made from the node's status or from the whole sample.
Metric OfNode(std::string name, MetricType type, std::string help,
              double (*value)(const NodeStatus&)) {
  return {std::move(name), type, std::move(help), "",
          [value](const Reading& reading, Series& series) {
            if (reading.sample != nullptr) {
              series.Set(value(reading.sample->daemon.node));
            }
          }};
}

Metric OfSample(std::string name, MetricType type, std::string help,
                double (*value)(const Sample&)) {
  return {std::move(name), type, std::move(help), "",
          [value](const Reading& reading, Series& series) {
            if (reading.sample != nullptr) series.Set(value(*reading.sample));
          }};
}

// A metric with a label, filled from the sample.
Metric Labelled(std::string name, MetricType type, std::string help,
                std::string labels, void (*fill)(const Sample&, Series&)) {
  return {std::move(name), type, std::move(help), std::move(labels),
          [fill](const Reading& reading, Series& series) {
            if (reading.sample != nullptr) fill(*reading.sample, series);
          }};
}

Metric OfProcess(std::string name, MetricType type, std::string help,
                 double (*value)(const Resources&)) {
  return {std::move(name), type, std::move(help), "",
          [value](const Reading& reading, Series& series) {
            series.Set(value(reading.resources));
          }};
}

Metric OfTimes(std::string name, std::string help,
               TimeHistogram Meters::* times) {
  return {std::move(name), MetricType::Histogram, std::move(help), "",
          [times](const Reading& reading, Series& series) {
            series.Set((reading.meters.*times).Read());
          }};
}

Metric OfCount(std::string name, std::string help, Count Meters::* count) {
  return {std::move(name), kCounter, std::move(help), "",
          [count](const Reading& reading, Series& series) {
            series.Set(static_cast<double>(
                (reading.meters.*count).load(std::memory_order_relaxed)));
          }};
}

// What a status counts in integers.
template <int64_t NodeStatus::* kField>
double Integer(const NodeStatus& node) {
  return static_cast<double>(node.*kField);
}

double GaugeOf(const NodeStatus& node, const char* name) {
  const auto found = node.gauges.find(name);
  return found == node.gauges.end() ? kUnknown : found->second;
}

double Truth(bool value) { return value ? 1 : 0; }

// Steps that a neighbour is behind this node; below 0: it is ahead.
double Lag(const NodeStatus& node, const PeerStatus& peer) {
  return static_cast<double>(node.step - peer.step);
}

template <typename Wanted>
double CountPeers(const NodeStatus& node, Wanted wanted) {
  return static_cast<double>(
      std::count_if(node.peers.begin(), node.peers.end(), wanted));
}

void FillPhase(const Sample& sample, Series& series) {
  for (int i = static_cast<int>(ports::Phase::kIdle);
       i <= static_cast<int>(ports::Phase::kFailed); ++i) {
    const auto phase = static_cast<ports::Phase>(i);
    series.Set(Truth(sample.daemon.node.phase == phase),
               {{"phase", ports::PhaseName(phase)}});
  }
}

void FillPlanInfo(const Sample& sample, Series& series) {
  const NodeStatus& node = sample.daemon.node;
  if (node.plan_version == 0) return;
  series.Set(1, {{"algorithm", node.algorithm},
                 {"topology", node.topology},
                 {"format", node.format},
                 {"model", node.model}});
}

void FillNeighbours(const Sample& sample, Series& series) {
  const NodeStatus& node = sample.daemon.node;
  series.Set(CountPeers(node, [](const PeerStatus& p) { return p.neighbour; }),
             {{"state", "planned"}});
  series.Set(
      CountPeers(node,
                 [](const PeerStatus& p) { return p.neighbour && p.linked; }),
      {{"state", "linked"}});
  series.Set(
      CountPeers(node,
                 [](const PeerStatus& p) { return p.neighbour && p.mixing; }),
      {{"state", "mixing"}});
}

void FillBytes(const Sample& sample, Series& series) {
  for (const auto& [format, traffic] : sample.bytes) {
    series.Set(static_cast<double>(traffic.sent),
               {{"direction", "sent"}, {"format", format}});
    series.Set(static_cast<double>(traffic.received),
               {{"direction", "received"}, {"format", format}});
  }
}

void FillModels(const Sample& sample, Series& series) {
  const NodeStatus& node = sample.daemon.node;
  series.Set(static_cast<double>(node.models_sent), {{"direction", "sent"}});
  series.Set(static_cast<double>(node.models_received),
             {{"direction", "received"}});
}

template <typename Counts>
void FillCounts(const Counts& counts, const char* label, Series& series) {
  for (const auto& [name, count] : counts) {
    series.Set(static_cast<double>(count), {{label, name}});
  }
}

// The largest lag, or the mean, over the neighbours that mix.
double WorstLag(const NodeStatus& node) {
  double worst = kUnknown;
  for (const PeerStatus& peer : node.peers) {
    if (peer.mixing) worst = std::fmax(worst, Lag(node, peer));
  }
  return worst;
}

double MeanLag(const NodeStatus& node) {
  double sum = 0;
  int mixing = 0;
  for (const PeerStatus& peer : node.peers) {
    if (!peer.mixing) continue;
    sum += Lag(node, peer);
    ++mixing;
  }
  return mixing == 0 ? kUnknown : sum / mixing;
}

double NewestPlan(const NodeStatus& node) {
  uint64_t newest = std::max(node.plan_version, node.pending_plan_version);
  for (const PeerStatus& peer : node.peers) {
    newest = std::max(newest, peer.plan_version);
  }
  return static_cast<double>(newest);
}

// ------------------------------------------------------------ sections ----

std::vector<Metric> NodeMetrics() {
  return {
      Labelled("dfl_build_info", kGauge, "1; says which program this is.",
               "version",
               [](const Sample& s, Series& series) {
                 series.Set(1, {{"version", s.daemon.version}});
               }),
      Labelled("dfl_phase", kGauge,
               "1 for the phase that the node is in, 0 for the others.",
               "phase: idle, joining, training, paused, finished, stopped, "
               "degraded, failed",
               FillPhase),
      OfSample("dfl_ready", kGauge,
               "1 if the node can take part: what /readyz says.",
               [](const Sample& s) { return Truth(s.not_ready.empty()); }),
      OfSample("dfl_training_frozen", kGauge,
               "1 if the training thread has been at one piece of work for "
               "too long.",
               [](const Sample& s) { return Truth(!s.frozen.empty()); }),
      OfSample("dfl_insecure", kGauge, "1 if the node runs without TLS.",
               [](const Sample& s) { return Truth(s.daemon.insecure); }),
      OfNode("dfl_alone", kGauge,
             "1 if the node learns alone although its plan gives it "
             "neighbours.",
             [](const NodeStatus& n) { return Truth(!n.alone.empty()); }),
      OfSample("dfl_warnings", kGauge,
               "Warnings for an operator that dflctl status shows.",
               [](const Sample& s) {
                 return static_cast<double>(s.daemon.warnings.size());
               }),
      OfSample("dfl_uptime_seconds", kGauge, "Since the daemon started.",
               [](const Sample& s) {
                 return absl::ToDoubleSeconds(s.daemon.uptime);
               }),
  };
}

std::vector<Metric> TrainingMetrics() {
  return {
      OfNode("dfl_steps", kGauge,
             "Finished steps of the run. It goes on from a checkpoint or from "
             "a neighbour's model.",
             Integer<&NodeStatus::step>),
      OfNode("dfl_stop_steps", kGauge,
             "Steps after which the run ends; left out without such a rule.",
             [](const NodeStatus& n) {
               return n.stop_steps > 0 ? static_cast<double>(n.stop_steps)
                                       : kUnknown;
             }),
      OfNode("dfl_rounds", kGauge, "Finished exchanges of the run.",
             Integer<&NodeStatus::round>),
      OfNode("dfl_epochs", kGauge, "Passes over the node's rows in the run.",
             [](const NodeStatus& n) { return n.epochs; }),
      OfNode("dfl_gradients", kGauge,
             "Gradients that were computed in the run.",
             Integer<&NodeStatus::gradients>),
      OfNode("dfl_failed_gradients_total", kCounter, "Gradients that failed.",
             Integer<&NodeStatus::failed_gradients>),
      OfNode(
          "dfl_skipped_batches_total", kCounter,
          "Batches passed over, since no gradient could be computed of them.",
          Integer<&NodeStatus::skipped_batches>),
      OfNode("dfl_steps_per_second", kGauge,
             "Over about the last 10 s of training.",
             [](const NodeStatus& n) { return n.steps_per_second; }),
      OfNode("dfl_training_seconds_total", kCounter,
             "Time spent in phase training.",
             [](const NodeStatus& n) {
               return absl::ToDoubleSeconds(n.training_time);
             }),
      OfNode("dfl_train_rows", kGauge, "Rows that the node trains on.",
             Integer<&NodeStatus::train_rows>),
      OfNode("dfl_loss", kGauge,
             "Training loss, smoothed over about 50 gradients.",
             [](const NodeStatus& n) { return n.loss.value_or(kUnknown); }),
      OfNode("dfl_evaluation_step", kGauge, "Step of the last evaluation.",
             [](const NodeStatus& n) {
               return n.evaluated ? static_cast<double>(n.evaluated_step)
                                  : kUnknown;
             }),
      OfNode("dfl_evaluation_loss", kGauge, "Loss on the node's test rows.",
             [](const NodeStatus& n) {
               return n.evaluated ? n.evaluation.loss : kUnknown;
             }),
      OfNode("dfl_evaluation_accuracy", kGauge,
             "Share of the test rows that are classified rightly, 0 to 1.",
             [](const NodeStatus& n) {
               return n.evaluated ? n.evaluation.accuracy.value_or(kUnknown)
                                  : kUnknown;
             }),
      OfNode("dfl_evaluation_macro_f1", kGauge,
             "Mean F1 over the classes on the test rows, 0 to 1.",
             [](const NodeStatus& n) {
               return n.evaluated ? n.evaluation.macro_f1.value_or(kUnknown)
                                  : kUnknown;
             }),
      OfNode("dfl_evaluation_mae", kGauge,
             "Mean absolute error on the test rows (regression).",
             [](const NodeStatus& n) {
               return n.evaluated ? n.evaluation.mae.value_or(kUnknown)
                                  : kUnknown;
             }),
      OfTimes("dfl_step_seconds",
              "From the end of a step to the end of the next.", &Meters::step),
      OfTimes("dfl_gradient_seconds", "A gradient of one mini-batch.",
              &Meters::gradient),
      OfTimes("dfl_mix_seconds",
              "The algorithm's own work in a step: mixing, the step, copies of "
              "the model to be sent.",
              &Meters::mix),
      OfTimes("dfl_wait_seconds",
              "The rest of a step: the wait for neighbours.", &Meters::wait),
      OfTimes("dfl_encode_seconds",
              "A piece of work of the encoding thread: a model encoded, or a "
              "message checked.",
              &Meters::encode),
      OfTimes("dfl_exchange_seconds",
              "From the announcement of a model to a neighbour until it has "
              "taken it.",
              &Meters::exchange),
  };
}

std::vector<Metric> ExchangeMetrics() {
  return {
      Labelled("dfl_models_total", kCounter,
               "Models that were sent and taken, or received, whole.",
               "direction: sent, received", FillModels),
      Labelled("dfl_bytes_total", kCounter,
               "Bytes of frames to and from peers, by the format of the plan "
               "that was in force.",
               "direction: sent, received; format: such as \"random int8\"",
               FillBytes),
      OfNode("dfl_dense_bytes_total", kCounter,
             "Bytes that the models sent would have taken as dense fp32.",
             Integer<&NodeStatus::dense_bytes_sent>),
      OfCount("dfl_frames_sent_total", "Messages that were sent to peers.",
              &Meters::frames_sent),
      OfCount("dfl_frames_received_total", "Messages that came from peers.",
              &Meters::frames_received),
      Labelled("dfl_refusals_total", kCounter,
               "Neighbours' messages that were refused.",
               "reason: such as other-run, busy, bad-message",
               [](const Sample& s, Series& series) {
                 FillCounts(s.daemon.node.rejected, "reason", series);
               }),
      OfNode("dfl_far_models_total", kCounter,
             "Neighbours' models that were refused since they lay too far "
             "away.",
             Integer<&NodeStatus::far_models>),
      OfNode("dfl_missed_total", kCounter,
             "Asks or rounds that a neighbour left without an answer in time.",
             Integer<&NodeStatus::missed>),
      OfCount("dfl_retries_total",
              "Models and mass that were announced again, after a cut or for "
              "want of an acknowledgement.",
              &Meters::transfers_resumed),
      OfSample(
          "dfl_queued_bytes", kGauge,
          "Bytes that wait to leave, over all links.",
          [](const Sample& s) { return static_cast<double>(s.queued_bytes); }),
      OfSample("dfl_links", kGauge, "Links that are up.",
               [](const Sample& s) { return static_cast<double>(s.links); }),
      Labelled("dfl_connections_refused_total", kCounter,
               "Connections that were refused.",
               "reason: such as plaintext, handshake-timeout",
               [](const Sample& s, Series& series) {
                 FillCounts(s.daemon.refused, "reason", series);
               }),
  };
}

std::vector<Metric> AgreementMetrics() {
  return {
      OfNode(
          "dfl_consensus_distance", kGauge,
          "Root mean square over the neighbours of the distance between "
          "their models and this node's.",
          [](const NodeStatus& n) { return GaugeOf(n, "consensus_distance"); }),
      OfNode("dfl_neighbour_lag_steps", kGauge,
             "Steps by which the slowest neighbour that mixes is behind this "
             "node; below 0: it is ahead.",
             WorstLag),
      OfNode("dfl_neighbour_lag_steps_mean", kGauge,
             "The same, the mean over the neighbours that mix.", MeanLag),
      OfNode("dfl_invariant_drift", kGauge,
             "Largest difference between what this node gave a neighbour and "
             "what that took, of the algorithms that give mass. More than "
             "rounding says that mass was lost.",
             [](const NodeStatus& n) { return GaugeOf(n, "mass_imbalance"); }),
      OfNode(
          "dfl_spectral_gap", kGauge, "Of the mixing matrix in force, 0 to 1.",
          [](const NodeStatus& n) {
            return n.plan_version == 0 || n.spectral_gap == 0 ? kUnknown
                                                              : n.spectral_gap;
          }),
      Labelled("dfl_algorithm_value", kGauge,
               "Numbers that the algorithm tells about itself.",
               "name: such as sigma, omega, sparsity",
               [](const Sample& s, Series& series) {
                 for (const auto& [name, value] : s.daemon.node.gauges) {
                   series.Set(value, {{"name", name}});
                 }
               }),
      OfNode("dfl_contract_disagreements", kGauge,
             "Peers whose data contract differs from this node's: no models "
             "are exchanged with them.",
             [](const NodeStatus& n) {
               return CountPeers(
                   n, [](const PeerStatus& p) { return !p.disagrees.empty(); });
             }),
  };
}

std::vector<Metric> NetworkMetrics() {
  return {
      Labelled("dfl_members", kGauge,
               "Members of the network as this node believes them to be, "
               "itself included.",
               "state: alone, joining, member, degraded, draining, left, dead, "
               "suspect (also counted in another)",
               [](const Sample& s, Series& series) {
                 FillCounts(s.members, "state", series);
               }),
      Labelled("dfl_neighbours", kGauge,
               "Neighbours in the graph in force: all, those with a link, and "
               "those with which models are exchanged.",
               "state: planned, linked, mixing", FillNeighbours),
      OfNode("dfl_plan_members", kGauge, "Members of the run.",
             Integer<&NodeStatus::member_count>),
      Labelled("dfl_plan_info", kGauge, "1; what the plan in force is.",
               "algorithm, topology, format, model", FillPlanInfo),
      OfNode("dfl_plan_version", kGauge,
             "Version of the plan in force; 0: none.",
             [](const NodeStatus& n) {
               return static_cast<double>(n.plan_version);
             }),
      OfNode("dfl_plan_newest_version", kGauge,
             "The newest version that this node or a peer of it has.",
             NewestPlan),
      OfSample("dfl_banned", kGauge, "Identities that are banned.",
               [](const Sample& s) {
                 return static_cast<double>(s.daemon.banned.size());
               }),
      OfSample("dfl_certificate_seconds_left", kGauge,
               "Until this node's certificate expires; 0: none is valid. Left "
               "out without TLS.",
               [](const Sample& s) {
                 return s.daemon.insecure ? kUnknown
                                          : s.daemon.certificate_days * 86400;
               }),
  };
}

std::vector<Metric> StateMetrics() {
  return {
      OfNode("dfl_checkpoint_step", kGauge,
             "Step of the last checkpoint that this process wrote; 0: none.",
             Integer<&NodeStatus::checkpoint_step>),
      OfSample("dfl_checkpoint_age_seconds", kGauge,
               "Since this process wrote its last checkpoint.",
               [](const Sample& s) {
                 return s.checkpoint_age
                            ? absl::ToDoubleSeconds(*s.checkpoint_age)
                            : kUnknown;
               }),
      OfNode("dfl_checkpoint_failing", kGauge,
             "1 if the last checkpoint could not be written.",
             [](const NodeStatus& n) {
               return Truth(!n.checkpoint_error.empty());
             }),
      OfNode("dfl_data_failing", kGauge,
             "1 if data files have changed and cannot be taken up.",
             [](const NodeStatus& n) { return Truth(!n.data_error.empty()); }),
      OfProcess("dfl_state_free_bytes", kGauge,
                "Free for the daemon on the file system of state_dir.",
                [](const Resources& r) {
                  return r.state_free_bytes < 0
                             ? kUnknown
                             : static_cast<double>(r.state_free_bytes);
                }),
  };
}

std::vector<Metric> ProcessMetrics() {
  return {
      OfSample("dfl_memory_need_bytes", kGauge,
               "Memory that the plan may need at worst; left out when unknown.",
               [](const Sample& s) {
                 return s.daemon.memory_bytes > 0
                            ? static_cast<double>(s.daemon.memory_bytes)
                            : kUnknown;
               }),
      OfSample("dfl_memory_limit_bytes", kGauge,
               "Memory that a plan may need; left out where there is no limit.",
               [](const Sample& s) {
                 return s.daemon.memory_limit_bytes > 0
                            ? static_cast<double>(s.daemon.memory_limit_bytes)
                            : kUnknown;
               }),
      OfSample(
          "dfl_loop_delay_seconds", kGauge,
          "How late a timer of the node's loop came, at the last look.",
          [](const Sample& s) { return absl::ToDoubleSeconds(s.loop_delay); }),
      OfSample(
          "dfl_loop_turns_total", kCounter,
          "Tasks and timers that the node's loop has run.",
          [](const Sample& s) { return static_cast<double>(s.loop_turns); }),
      Labelled("dfl_log_lines_total", kCounter,
               "Lines of the log that were written.",
               "level: debug, info, warning, error",
               [](const Sample& s, Series& series) {
                 FillCounts(s.log_lines, "level", series);
               }),
      OfProcess("process_cpu_seconds_total", kCounter,
                "Processor time of the process.",
                [](const Resources& r) { return r.cpu_seconds; }),
      OfProcess("process_resident_memory_bytes", kGauge,
                "Memory that the process has in use.",
                [](const Resources& r) {
                  return static_cast<double>(r.resident_bytes);
                }),
      OfProcess("process_virtual_memory_bytes", kGauge,
                "Address space of the process.",
                [](const Resources& r) {
                  return static_cast<double>(r.virtual_bytes);
                }),
      OfProcess(
          "process_open_fds", kGauge, "Files that are open.",
          [](const Resources& r) { return static_cast<double>(r.open_files); }),
      OfProcess("process_max_fds", kGauge, "Files that may be open.",
                [](const Resources& r) {
                  return static_cast<double>(r.max_open_files);
                }),
      OfProcess(
          "process_threads", kGauge, "Threads of the process.",
          [](const Resources& r) { return static_cast<double>(r.threads); }),
      OfProcess("process_start_time_seconds", kGauge,
                "When the process started, in seconds since 1970.",
                [](const Resources& r) { return r.start_time; }),
  };
}

}  // namespace

const std::vector<MetricSection>& MetricsTable() {
  static const auto& table = *new std::vector<MetricSection>{
      {"The node", NodeMetrics()},
      {"Training", TrainingMetrics()},
      {"Exchange", ExchangeMetrics()},
      {"Agreement", AgreementMetrics()},
      {"Network and plan", NetworkMetrics()},
      {"State on disk", StateMetrics()},
      {"Process", ProcessMetrics()},
  };
  return table;
}

}  // namespace dfl::web
