#include "cli/status_table.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

// Sums of probes are rounded; lost mass shows by far more.
constexpr double kLargestImbalance = 0.01;
// A certificate that expires this soon is a reason for a note.
constexpr double kFewDays = 30;

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// "plant-4 (364 d)": days until the certificate expires. "-": it speaks to
// nobody over the network.
std::string NetworkText(const client::DaemonStatus& status) {
  if (status.insecure) return "insecure";
  if (status.cluster.empty()) return "-";
  if (status.certificate_days == 0) return status.cluster;
  return absl::StrCat(status.cluster, " (",
                      static_cast<int64_t>(std::floor(status.certificate_days)),
                      " d)");
}

// Why no models are exchanged with a neighbour; what else is wrong with a peer.
std::string WhyNotText(const client::PeerStatus& peer) {
  if (peer.not_mixing.empty()) return peer.last_error;
  if (peer.last_error.empty() ||
      absl::StrContains(peer.not_mixing, peer.last_error)) {
    return peer.not_mixing;
  }
  return absl::StrCat(peer.not_mixing, " (", peer.last_error, ")");
}

// "1 (others use 1.0 of 2 processors)".
std::string ThreadsText(const client::DaemonStatus& status) {
  if (status.threads == 0) return "-";
  return absl::StrCat(status.threads, " (", status.threads_reason, ")");
}

}  // namespace

std::string StepText(const client::NodeStatus& node) {
  return node.stop_steps > 0 ? absl::StrCat(node.step, "/", node.stop_steps)
                             : absl::StrCat(node.step);
}

std::string RoundText(const client::NodeStatus& node) {
  return node.stop_rounds > 0 ? absl::StrCat(node.round, "/", node.stop_rounds)
                              : absl::StrCat(node.round);
}

std::string NeighbourText(const client::NodeStatus& node) {
  int64_t all = 0;
  int64_t mixing = 0;
  for (const client::PeerStatus& peer : node.peers) {
    if (!peer.neighbour) continue;
    ++all;
    if (peer.mixing) ++mixing;
  }
  return absl::StrCat(mixing, "/", all);
}

std::string ScoreText(const client::NodeStatus& node) {
  if (!node.evaluation.has_value()) return "-";
  const client::Evaluation& evaluation = *node.evaluation;
  if (evaluation.accuracy.has_value()) return Fixed(*evaluation.accuracy, 3);
  if (evaluation.r2.has_value()) {
    return absl::StrCat("R2 ", Fixed(*evaluation.r2, 3));
  }
  if (evaluation.mae.has_value()) {
    return absl::StrCat("MAE ", Fixed(*evaluation.mae, 4));
  }
  return "-";
}

std::string PlanText(const client::NodeStatus& node) {
  if (node.pending_plan_version != 0) {
    return absl::StrCat(node.plan_version, " (", node.pending_plan_version,
                        " waits)");
  }
  return node.plan_version == 0 ? "-" : absl::StrCat(node.plan_version);
}

std::string SavedText(const client::NodeStatus& node) {
  if (node.dense_bytes_sent <= 0) return "-";
  const double share = 1 - static_cast<double>(node.bytes_sent) /
                               static_cast<double>(node.dense_bytes_sent);
  return absl::StrCat(static_cast<int64_t>(std::floor(100 * share)), "%");
}

std::vector<std::string> StatusTitles(bool wide) {
  std::vector<std::string> titles = {
      "NODE",   "PHASE",     ">STEP",    ">ROUND", ">LOSS",
      ">SCORE", "ALGORITHM", "TOPOLOGY", "PLAN",   ">NEIGHBOURS",
      ">SENT",  ">RECEIVED", "NETWORK"};
  if (wide) {
    titles.insert(titles.end(),
                  {">SAVED", ">EPOCHS", ">STEPS/S", ">ROWS", ">MEMORY",
                   "FORMAT", "LEARNER", "THREADS", "RUN", "VERSION"});
  }
  return titles;
}

std::vector<std::string> StatusRow(const client::DaemonStatus& status,
                                   bool wide) {
  const client::NodeStatus& node = status.node;
  std::vector<std::string> row = {
      node.node,
      client::PhaseName(node.phase),
      StepText(node),
      RoundText(node),
      node.loss.has_value() ? Fixed(*node.loss, 4) : "-",
      ScoreText(node),
      OrDash(node.algorithm),
      OrDash(node.topology),
      PlanText(node),
      NeighbourText(node),
      HumanBytes(node.bytes_sent),
      HumanBytes(node.bytes_received),
      NetworkText(status)};
  if (wide) {
    row.insert(row.end(),
               {SavedText(node), Fixed(node.epochs, 2),
                Fixed(node.steps_per_second, 1), absl::StrCat(node.train_rows),
                HumanBytes(status.memory_bytes), OrDash(node.format),
                OrDash(status.learner), ThreadsText(status),
                OrDash(node.run_id), OrDash(status.version)});
  }
  return row;
}

Table PeerTable(const std::vector<client::PeerStatus>& peers) {
  Table table({"PEER", "ADDRESS", "LINK", ">WEIGHT", "PHASE", ">STEP", ">PLAN",
               ">SENT", ">RECEIVED", ">MISSED", "MIXES", "WHY NOT"});
  for (const client::PeerStatus& peer : peers) {
    const bool heard = peer.phase != client::Phase::kUnknown;
    table.Add({peer.node, OrDash(peer.address), peer.linked ? "up" : "down",
               peer.neighbour ? Fixed(peer.weight, 3) : "-",
               heard ? client::PhaseName(peer.phase) : "-",
               heard ? absl::StrCat(peer.step) : "-",
               peer.plan_version > 0 ? absl::StrCat(peer.plan_version) : "-",
               HumanBytes(peer.bytes_sent), HumanBytes(peer.bytes_received),
               absl::StrCat(peer.missed),
               !peer.neighbour ? "-"
               : peer.mixing   ? "yes"
                               : "no",
               WhyNotText(peer)});
  }
  return table;
}

namespace {

// What did not happen in training, and in mixing.
void AddTrainingNotes(const client::NodeStatus& node,
                      std::vector<std::string>& notes) {
  const auto add = [&](int64_t count, absl::string_view what) {
    if (count <= 0) return;
    notes.push_back(absl::StrCat(node.node, ": ", count, " ", what));
  };
  add(node.skipped_batches,
      "mini-batches gave no gradient and were passed over");
  add(node.failed_gradients - node.skipped_batches, "gradients failed");
  add(node.far_models,
      "models of neighbours were not mixed with, since they lay too far away");
}

}  // namespace

std::vector<std::string> StatusNotes(const client::DaemonStatus& status) {
  std::vector<std::string> notes;
  const std::string& name = status.node.node;
  if (status.insecure && status.warnings.empty()) {
    notes.push_back(absl::StrCat(
        name, " is insecure: it speaks in plain text over the network"));
  }
  for (const std::string& warning : status.warnings) {
    notes.push_back(absl::StrCat(name, ": ", warning));
  }
  if (status.certificate_days < 0) {
    notes.push_back(absl::StrCat(
        name,
        ": its certificate has expired: renew it with `dflctl cert renew ",
        name, "` and copy it there"));
  } else if (status.certificate_days > 0 &&
             status.certificate_days < kFewDays) {
    notes.push_back(absl::StrCat(name, ": its certificate expires in ",
                                 Fixed(status.certificate_days, 1),
                                 " days: renew it with `dflctl cert renew ",
                                 name, "` and copy it there"));
  }
  if (status.memory_limit_bytes > 0 &&
      status.memory_bytes > status.memory_limit_bytes) {
    notes.push_back(absl::StrCat(
        name, ": its plan may need ", HumanBytes(status.memory_bytes),
        " of memory, more than the ", HumanBytes(status.memory_limit_bytes),
        " allowed"));
  }
  const auto imbalance = status.node.gauges.find("mass_imbalance");
  if (imbalance != status.node.gauges.end() &&
      imbalance->second > kLargestImbalance) {
    notes.push_back(absl::StrCat(
        name, ": what it gave to a neighbour and what was taken differ by ",
        Fixed(imbalance->second, 3),
        " (mass_imbalance): its trackers are not exact"));
  }
  if (!status.node.alone.empty()) {
    const bool ended = status.node.phase == client::Phase::kFinished ||
                       status.node.phase == client::Phase::kFailed ||
                       status.node.phase == client::Phase::kStopped;
    notes.push_back(absl::StrCat(
        name,
        ended ? " learned alone: " : " learns alone: ", status.node.alone));
  }
  AddTrainingNotes(status.node, notes);
  // Why a node trains or has ended is no warning.
  const client::Phase phase = status.node.phase;
  const bool hindered =
      phase == client::Phase::kIdle || phase == client::Phase::kJoining ||
      phase == client::Phase::kDegraded || phase == client::Phase::kFailed;
  if (hindered && !status.node.phase_reason.empty()) {
    notes.push_back(absl::StrCat(name, " is ",
                                 client::PhaseName(status.node.phase), ": ",
                                 status.node.phase_reason));
  }
  if (!status.node.last_error.empty()) {
    notes.push_back(absl::StrCat(name, ": ", status.node.last_error));
  }
  if (!status.node.checkpoint_error.empty()) {
    notes.push_back(absl::StrCat(name, ": ", status.node.checkpoint_error));
  }
  if (!status.node.data_error.empty()) {
    notes.push_back(absl::StrCat(name, ": ", status.node.data_error));
  }
  return notes;
}

}  // namespace dfl::cli
