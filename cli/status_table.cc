#include "cli/status_table.h"

#include <cmath>
#include <cstdint>

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

// "3/4": neighbours that are linked, of all.
std::string NeighbourText(const client::NodeStatus& node) {
  int64_t all = 0;
  int64_t up = 0;
  for (const client::PeerStatus& peer : node.peers) {
    if (!peer.neighbour) continue;
    ++all;
    if (peer.linked) ++up;
  }
  return absl::StrCat(up, "/", all);
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

}  // namespace

std::string StepText(const client::NodeStatus& node) {
  return node.stop_steps > 0 ? absl::StrCat(node.step, "/", node.stop_steps)
                             : absl::StrCat(node.step);
}

std::string PlanText(const client::NodeStatus& node) {
  if (node.pending_plan_version != 0) {
    return absl::StrCat(node.plan_version, " (", node.pending_plan_version,
                        " waits)");
  }
  return node.plan_version == 0 ? "-" : absl::StrCat(node.plan_version);
}

std::vector<std::string> StatusTitles() {
  return {"NODE",     "PHASE", ">STEP",       ">LOSS", ">ACCURACY", "ALGORITHM",
          "TOPOLOGY", "PLAN",  ">NEIGHBOURS", ">SENT", ">RECEIVED", "NETWORK"};
}

std::vector<std::string> StatusRow(const client::DaemonStatus& status) {
  const client::NodeStatus& node = status.node;
  const std::string accuracy =
      node.evaluation.has_value() ? Fixed(node.evaluation->accuracy, 3) : "-";
  return {node.node,
          client::PhaseName(node.phase),
          StepText(node),
          node.gradients > 0 ? Fixed(node.loss, 4) : "-",
          accuracy,
          OrDash(node.algorithm),
          OrDash(node.topology),
          PlanText(node),
          NeighbourText(node),
          HumanBytes(node.bytes_sent),
          HumanBytes(node.bytes_received),
          NetworkText(status)};
}

Table PeerTable(const std::vector<client::PeerStatus>& peers) {
  Table table({"PEER", "ADDRESS", "LINK", ">WEIGHT", "PHASE", ">STEP", ">PLAN",
               ">SENT", ">RECEIVED", ">MISSED", "LAST ERROR"});
  for (const client::PeerStatus& peer : peers) {
    const bool heard = peer.phase != client::Phase::kUnknown;
    table.Add({peer.node, OrDash(peer.address), peer.linked ? "up" : "down",
               peer.neighbour ? Fixed(peer.weight, 3) : "-",
               heard ? client::PhaseName(peer.phase) : "-",
               heard ? absl::StrCat(peer.step) : "-",
               peer.plan_version > 0 ? absl::StrCat(peer.plan_version) : "-",
               HumanBytes(peer.bytes_sent), HumanBytes(peer.bytes_received),
               absl::StrCat(peer.missed), peer.last_error});
  }
  return table;
}

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
  // Why a node trains or has ended is no warning.
  const client::Phase phase = status.node.phase;
  const bool hindered = phase == client::Phase::kIdle ||
                        phase == client::Phase::kJoining ||
                        phase == client::Phase::kDegraded;
  if (hindered && !status.node.phase_reason.empty()) {
    notes.push_back(absl::StrCat(name, " is ",
                                 client::PhaseName(status.node.phase), ": ",
                                 status.node.phase_reason));
  }
  if (!status.node.last_error.empty()) {
    notes.push_back(absl::StrCat(name, ": ", status.node.last_error));
  }
  return notes;
}

}  // namespace dfl::cli
