#include "daemon/app/service/life_signs.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/service/service_manager.h"
#include "daemon/ports/frames.h"

namespace dfl::app {
namespace {

// "step 3 of 10".
std::string Progress(const char* what, int64_t done, int64_t of) {
  return absl::StrCat(what, " ", done, of > 0 ? absl::StrCat(" of ", of) : "");
}

}  // namespace

std::string StatusLine(const runtime::NodeStatus& status) {
  std::string line = absl::StrCat(
      ports::PhaseName(status.phase), ", ",
      Progress("step", status.step, status.stop_steps), ", ",
      Progress("round", status.round, status.stop_rounds));
  if (status.loss.has_value()) {
    absl::StrAppendFormat(&line, ", loss %.4g", *status.loss);
  }
  const auto neighbours =
      std::count_if(status.peers.begin(), status.peers.end(),
                    [](const auto& peer) { return peer.neighbour; });
  if (neighbours > 0) {
    const auto mixing = std::count_if(
        status.peers.begin(), status.peers.end(),
        [](const auto& peer) { return peer.neighbour && peer.mixing; });
    absl::StrAppend(&line, ", ", mixing, " of ", neighbours, " neighbours");
  }
  return line;
}

std::string FrozenLine(const FrozenWatch::Frozen& frozen) {
  return absl::StrCat(
      "frozen: the training is at one mini-batch since ",
      absl::FormatDuration(absl::Trunc(frozen.since, absl::Seconds(1))),
      frozen.usual == absl::ZeroDuration()
          ? ", and has not finished one before"
          : absl::StrCat(", which takes ",
                         absl::FormatDuration(
                             absl::Trunc(frozen.usual, absl::Milliseconds(1))),
                         " usually"));
}

void LifeSigns::Tell(const runtime::NodeStatus& status,
                     const std::optional<FrozenWatch::Frozen>& frozen) {
  if (frozen.has_value()) {
    const std::string line = FrozenLine(*frozen);
    if (!frozen_) {
      log_.Error("frozen", absl::StrCat(line,
                                        "; systemd's watchdog is fed no more "
                                        "(compute.frozen_after)"));
    }
    NotifyStatus(line);
  } else {
    if (frozen_) log_.Info("frozen", "the training moves again");
    NotifyAlive(StatusLine(status));
  }
  frozen_ = frozen.has_value();
}

}  // namespace dfl::app
