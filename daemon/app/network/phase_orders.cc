#include "daemon/app/network/phase_orders.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/app/node_orders.h"
#include "daemon/base/ids.h"

namespace dfl::app {
namespace {

using runtime::DesiredPhase;

// What the keeper remembers of an order that was obeyed: eight bytes of its
// hash. Its counter would not do: of two orders with one counter one wins, and
// an order that takes the place of a thief's may have a lower one.
uint64_t MarkOf(const std::string& hash) {
  uint64_t mark = 0;
  for (size_t i = 0; i < sizeof(mark) && i < hash.size(); ++i) {
    mark = mark << 8 | static_cast<uint8_t>(hash[i]);
  }
  return mark == 0 ? 1 : mark;
}

}  // namespace

void PhaseOrders::Connect(runtime::Node& node, SharedKeeper& keeper,
                          Worker& setup, uint64_t obeyed) {
  node_ = &node;
  keeper_ = &keeper;
  setup_ = &setup;
  obeyed_ = obeyed;
}

void PhaseOrders::ObeyPhase(const runtime::RecordBook& book,
                            const records::Labels& labels) {
  if (node_ == nullptr || node_->plan() == nullptr) return;
  const std::optional<records::WantedPhase> wanted =
      records::PhaseWantedOf(book, self_, labels);
  if (!wanted.has_value() || wanted->run_id != node_->plan()->run_id) return;
  const uint64_t mark = MarkOf(wanted->hash);
  if (mark == obeyed_) return;
  // A node that gets its model has nothing to pause yet.
  awaits_model_ = wanted->phase == DesiredPhase::kPaused &&
                  node_->phase() == ports::Phase::kJoining;
  if (awaits_model_) return;
  obeyed_ = mark;
  if (!draining() || wanted->phase != DesiredPhase::kTraining) {
    const absl::Status given = Give(*node_, wanted->phase).status;
    if (!given.ok()) {
      Note(absl::StrCat("the order with counter ", wanted->counter,
                        " cannot be obeyed: ", given.message()));
    }
  }
  Keep(*wanted);
}

void PhaseOrders::Keep(const records::WantedPhase& wanted) {
  auto saved = std::make_shared<absl::Status>();
  setup_->Run(
      [keeper = keeper_, wanted, mark = obeyed_, saved] {
        *saved = keeper->Do([&](runtime::RunKeeper& kept) {
          return kept.Obey(wanted.phase, wanted.run_id, mark);
        });
      },
      [this, saved] {
        if (saved->ok()) return;
        Note(
            absl::StrCat("the node obeys, but will not know of it after a "
                         "restart: ",
                         saved->message()));
      });
}

void PhaseOrders::ObeyDrain(const runtime::RecordBook& book) {
  if (node_ == nullptr) return;
  std::optional<std::string> drain = records::DrainWantedOf(book, self_);
  const bool wanted = drain.has_value();
  drain.swap(drain_);
  if (drain.has_value() == wanted) return;
  {
    const absl::MutexLock lock(&mutex_);
    warning_ = !wanted ? ""
                       : absl::StrCat(
                             "this node drains and does not train: it may be "
                             "stopped, or takes part again after `dflctl node "
                             "undrain ",
                             self_, "`");
  }
  if (!wanted) return GoOn();
  // What has no model yet has nothing to pause.
  const absl::Status halted =
      Give(*node_, node_->phase() == ports::Phase::kJoining
                       ? DesiredPhase::kStopped
                       : DesiredPhase::kPaused)
          .status;
  if (halted.ok()) return;
  Note(absl::StrCat("the node cannot halt to drain: ", halted.message()));
}

void PhaseOrders::GoOn() {
  auto desired = std::make_shared<DesiredPhase>();
  setup_->Run(
      [keeper = keeper_, desired] {
        *desired = keeper->Do(
            [](runtime::RunKeeper& kept) { return kept.desired_phase(); });
      },
      [this, desired] {
        if (node_ == nullptr || draining() || node_->plan() == nullptr ||
            *desired != DesiredPhase::kTraining) {
          return;
        }
        const absl::Status given = Give(*node_, *desired).status;
        if (given.ok()) return;
        Note(
            absl::StrCat("the node cannot take part again: ", given.message()));
      });
}

std::string PhaseOrders::warning() const {
  const absl::MutexLock lock(&mutex_);
  return warning_;
}

void PhaseOrders::Note(std::string text) {
  events_.Report(ports::RecordCame{false, NodeId(), std::move(text)});
}

}  // namespace dfl::app
