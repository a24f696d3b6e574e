#include "daemon/app/eyes/diagnosis.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/ports/frames.h"

namespace dfl::app {
namespace {

using control::Finding;
using Kind = control::Finding::Kind;

constexpr int64_t kMiB = 1 << 20;
// Below this no checkpoint of a small model is safe either.
constexpr int64_t kLeastDisk = 256 * kMiB;
// A checkpoint holds the model and the algorithm's vectors, twice while it is
// replaced.
constexpr int64_t kCheckpointVectors = 8;
// What IPv6 asks of every way.
constexpr int64_t kLeastMtu = 1280;
constexpr int64_t kUsualMtu = 1500;
constexpr int64_t kLeastFiles = 1024;
constexpr int64_t kSlowLoopMs = 1000;

class Diagnosis {
 public:
  explicit Diagnosis(const DiagnosisInput& input)
      : input_(input), node_(input.daemon.node) {}

  std::vector<Finding> Run() {
    CheckTraining();
    CheckTogether();
    CheckContract();
    CheckCertificate();
    CheckPlan();
    CheckData();
    CheckClock();
    CheckDisk();
    CheckMemory();
    CheckThreads();
    CheckBlas();
    CheckMtu();
    CheckFiles();
    CheckLoop();
    CheckWarnings();
    return std::move(findings_);
  }

 private:
  void Add(std::string check, Kind kind, std::string text,
           std::string remedy = "") {
    findings_.push_back(
        {std::move(check), kind, std::move(text), std::move(remedy)});
  }

  void CheckTraining() {
    const std::string phase =
        absl::StrCat("the node is ", ports::PhaseName(node_.phase));
    if (!input_.frozen.empty()) {
      Add("training", Kind::kFault, input_.frozen,
          "restart dfld; if it comes again, look for a full disk or device "
          "under data.train, or for a model that waits for something");
    } else if (node_.phase == ports::Phase::kFailed ||
               node_.phase == ports::Phase::kDegraded) {
      Add("training", Kind::kFault,
          absl::StrCat(
              phase, ": ",
              node_.last_error.empty() ? node_.phase_reason : node_.last_error),
          "mend what the error names (data, model or device); a failed run "
          "goes on with `dflctl train start`");
    } else if (node_.failed_gradients > 0 || node_.skipped_batches > 0) {
      Add("training", Kind::kWarning,
          absl::StrCat(phase, "; ", node_.failed_gradients,
                       " gradients failed and ", node_.skipped_batches,
                       " batches were passed over"),
          "`dflctl log --level error` says why; look at these rows, or lower "
          "the learning rate");
    } else {
      Add("training", Kind::kOk, phase);
    }
  }

  void CheckTogether() {
    if (!node_.alone.empty()) {
      Add("exchange", Kind::kFault,
          absl::StrCat("the node learns alone: ", node_.alone),
          "`dflctl peer list` shows each neighbour and why it does not mix");
      return;
    }
    std::vector<std::string> apart;
    int64_t neighbours = 0;
    for (const runtime::PeerStatus& peer : node_.peers) {
      if (!peer.neighbour) continue;
      ++neighbours;
      if (!peer.mixing && !peer.not_mixing.empty()) {
        apart.push_back(
            absl::StrCat(peer.node.name(), " (", peer.not_mixing, ")"));
      }
    }
    if (apart.empty()) {
      Add("exchange", Kind::kOk,
          absl::StrCat(neighbours,
                       " neighbours in the plan, none of them "
                       "left out"));
      return;
    }
    Add("exchange", Kind::kWarning,
        absl::StrCat(apart.size(), " of ", neighbours,
                     " neighbours do not mix: ", absl::StrJoin(apart, ", ")),
        "start or mend these nodes; `dflctl doctor` there says more");
  }

  void CheckContract() {
    std::vector<std::string> apart;
    for (const runtime::PeerStatus& peer : node_.peers) {
      if (peer.disagrees.empty()) continue;
      apart.push_back(absl::StrCat(peer.node.name(), " in ",
                                   absl::StrJoin(peer.disagrees, ", ")));
    }
    if (apart.empty()) {
      Add("data contract", Kind::kOk, "no peer differs");
      return;
    }
    Add("data contract", Kind::kFault,
        absl::StrCat("peers mean something else: ", absl::StrJoin(apart, "; ")),
        "`dflctl data show` on both sides; make data.classes, data.features or "
        "the scaling the same");
  }

  void CheckCertificate() {
    const control::DaemonStatus& daemon = input_.daemon;
    if (daemon.insecure) {
      Add("certificate", Kind::kWarning,
          "security is off: anybody on the network can take part and listen",
          "security: tls, with certificates of `dflctl cert init` and `cert "
          "issue`");
    } else if (daemon.certificate_days <= 0) {
      Add("certificate", Kind::kFault, "this node has no valid certificate",
          "`dflctl cert issue` or `cert renew` on the authority's box, and "
          "copy the folder to tls.folder; is the clock right?");
    } else if (daemon.certificate_days < 30) {
      Add("certificate", Kind::kWarning,
          absl::StrFormat("it expires in %.1f days", daemon.certificate_days),
          "`dflctl cert renew`");
    } else {
      Add("certificate", Kind::kOk,
          absl::StrFormat("valid for %.0f days", daemon.certificate_days));
    }
  }

  void CheckPlan() {
    uint64_t newest = node_.plan_version;
    for (const runtime::PeerStatus& peer : node_.peers) {
      newest = std::max(newest, peer.plan_version);
    }
    if (node_.plan_version == 0 && node_.pending_plan_version == 0) {
      Add("plan", Kind::kWarning, "the node has no plan",
          "`dflctl plan apply FILE`, from any node of the network");
    } else if (newest >
               std::max(node_.plan_version, node_.pending_plan_version)) {
      Add("plan", Kind::kWarning,
          absl::StrCat("a peer has version ", newest, ", this node ",
                       node_.plan_version),
          "wait a moment; if it stays, `dflctl status` says why the plan is "
          "not taken");
    } else {
      Add("plan", Kind::kOk,
          absl::StrCat("version ", node_.plan_version, ", the newest known"));
    }
  }

  void CheckData() {
    if (!node_.data_error.empty()) {
      Add("data", Kind::kFault,
          absl::StrCat("files that have changed are not taken up: ",
                       node_.data_error),
          "mend the files; the node looks again by itself");
    } else {
      Add("data", Kind::kOk,
          absl::StrCat(node_.train_rows, " rows to train on, ", node_.test_rows,
                       " to evaluate on"));
    }
  }

  void CheckClock() {
    const std::optional<bool>& synchronised = input_.machine.clock_synchronised;
    if (!synchronised) {
      Add("clock", Kind::kOk, "the system does not say whether it is right");
    } else if (*synchronised) {
      Add("clock", Kind::kOk, "kept right by the system");
    } else {
      Add("clock", Kind::kWarning,
          "nothing keeps the clock right; certificates are refused by a clock "
          "that is far off",
          "`timedatectl set-ntp true`, or run chrony");
    }
  }

  void CheckDisk() {
    const MachineFacts& machine = input_.machine;
    if (!machine.disk_writable) {
      Add("disk", Kind::kFault,
          absl::StrCat(input_.state_dir, " cannot be written to"),
          "give the daemon's user the folder, or remount it for writing");
      return;
    }
    if (!node_.checkpoint_error.empty()) {
      Add("disk", Kind::kFault,
          absl::StrCat("the last checkpoint is not written: ",
                       node_.checkpoint_error),
          "make room, or mend the disk; the node tries again by itself");
      return;
    }
    if (machine.disk_free_bytes < 0) return;
    const int64_t wanted =
        std::max(kLeastDisk, kCheckpointVectors * 4 * node_.parameter_count);
    const std::string text = absl::StrCat(
        machine.disk_free_bytes / kMiB, " MiB are free in ", input_.state_dir);
    if (machine.disk_free_bytes < wanted) {
      Add("disk", Kind::kWarning,
          absl::StrCat(text, "; checkpoints of this model want ",
                       wanted / kMiB),
          "make room, or have state_dir on another disk");
    } else {
      Add("disk", Kind::kOk, text);
    }
  }

  void CheckMemory() {
    const int64_t need = input_.daemon.memory_bytes;
    const int64_t limit = input_.daemon.memory_limit_bytes;
    const std::string text = absl::StrCat("the plan may need ", need / kMiB,
                                          " MiB of ", limit / kMiB);
    if (need > 0 && limit > 0 && need > limit) {
      Add("memory", Kind::kWarning, text,
          "a smaller model, fewer neighbours, or more memory; `dflctl plan "
          "apply --dry-run` lists the parts");
    } else if (need > 0 && limit > 0) {
      Add("memory", Kind::kOk, text);
    }
  }

  void CheckThreads() {
    const int64_t processors = input_.machine.processors;
    const int64_t threads =
        input_.compute_threads > 0 ? input_.compute_threads : processors;
    const std::string text =
        absl::StrCat(threads, " threads for a gradient, ", processors,
                     " processors by quota and affinity");
    if (threads > processors) {
      Add("threads", Kind::kWarning, text,
          "compute.threads: 0 takes as many as there are");
    } else {
      Add("threads", Kind::kOk, text);
    }
  }

  void CheckBlas() {
    const std::vector<std::string>& blas = input_.machine.blas;
    if (blas.empty()) return;
    const bool fast =
        std::any_of(blas.begin(), blas.end(), [](const std::string& path) {
          return absl::StrContains(path, "openblas") ||
                 absl::StrContains(path, "mkl") ||
                 absl::StrContains(path, "atlas") ||
                 absl::StrContains(path, "blis");
        });
    if (!fast) {
      Add("OpenBLAS", Kind::kFault,
          absl::StrCat("matrices are multiplied by the reference BLAS (",
                       blas.front(), "), which is about 60 times slower"),
          "apt install libopenblas0-pthread, and restart dfld");
    } else if (!input_.machine.openblas_threads.empty() &&
               input_.machine.openblas_threads != "1") {
      Add("OpenBLAS", Kind::kWarning,
          absl::StrCat("OPENBLAS_NUM_THREADS is ",
                       input_.machine.openblas_threads,
                       ": its threads fight with those of LibTorch"),
          "OPENBLAS_NUM_THREADS=1 in the unit or the environment");
    } else {
      Add("OpenBLAS", Kind::kOk, blas.front());
    }
  }

  void CheckMtu() {
    std::vector<std::string> small;
    std::vector<std::string> tunnels;
    for (const PathFacts& path : input_.machine.paths) {
      const std::string text = absl::StrCat(path.address, " (", path.mtu, ")");
      if (path.mtu < kLeastMtu) {
        small.push_back(text);
      } else if (path.mtu < kUsualMtu) {
        tunnels.push_back(text);
      }
    }
    if (!small.empty()) {
      Add("MTU", Kind::kFault,
          absl::StrCat("packets of 1280 bytes do not pass to ",
                       absl::StrJoin(small, ", ")),
          "set the MTU of the interface or tunnel to 1280 or more");
    } else if (!tunnels.empty()) {
      Add("MTU", Kind::kOk,
          absl::StrCat("below 1500 bytes, as in a tunnel, to ",
                       absl::StrJoin(tunnels, ", ")));
    } else {
      Add("MTU", Kind::kOk,
          absl::StrCat(input_.machine.paths.size(),
                       " ways to peers, none below 1500 bytes"));
    }
  }

  void CheckFiles() {
    const int64_t limit = input_.machine.open_files_limit;
    const std::string text = absl::StrCat("up to ", limit, " open files");
    if (limit < kLeastFiles) {
      Add("open files", Kind::kWarning, text,
          "LimitNOFILE=4096 in the unit, or ulimit -n 4096");
    } else {
      Add("open files", Kind::kOk, text);
    }
  }

  void CheckLoop() {
    if (input_.loop_delay_ms > kSlowLoopMs) {
      Add("loop", Kind::kWarning,
          absl::StrCat("the node's loop answered ", input_.loop_delay_ms,
                       " ms late"),
          "the machine is short of processors for this model: fewer programs "
          "beside it, or a smaller model");
    } else {
      Add("loop", Kind::kOk,
          absl::StrCat("it answers within ", input_.loop_delay_ms + 1, " ms"));
    }
  }

  // What the status warns of, which its own text explains.
  void CheckWarnings() {
    for (const std::string& warning : input_.daemon.warnings) {
      Add("status", Kind::kWarning, warning, "as the text says");
    }
  }

  const DiagnosisInput& input_;
  const runtime::NodeStatus& node_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> Diagnose(const DiagnosisInput& input) {
  return Diagnosis(input).Run();
}

}  // namespace dfl::app
