#include "daemon/app/train_orders.h"

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "daemon/app/node_orders.h"
#include "daemon/base/status_macros.h"

namespace dfl::app {

namespace {

// How long the answer to an order waits for the disk. A busy one may take ten
// seconds to sync a file.
constexpr absl::Duration kDiskPatience = absl::Seconds(1);

}  // namespace

void TrainOrders::Give(control::TrainAction action, Worker& writer,
                       const control::Done<ports::Phase>& done) {
  const NodeOrder order = app::Give(node_, action);
  if (!order.status.ok()) return done(order.status);
  obeyed_();
  auto answer = std::make_shared<control::Done<ports::Phase>>(done);
  loop_.After(kDiskPatience, [answer, phase = order.phase, &log = log_] {
    if (*answer == nullptr) return;
    log.Warning("store",
                "the disk is slow: an order is obeyed and answered before it "
                "is written down");
    std::exchange(*answer, nullptr)(phase);
  });
  auto saved = std::make_shared<absl::Status>();
  writer.Run(
      [this, wanted = order.wanted, run = node_.plan()->run_id, saved] {
        *saved = keeper_.Do([&](runtime::RunKeeper& keeper) {
          return keeper.Want(wanted, run);
        });
        if (!saved->ok()) log_.Error("store", saved->message());
      },
      [answer, phase = order.phase, saved] {
        if (*answer == nullptr) return;  // a fault is in the log
        const auto done = std::exchange(*answer, nullptr);
        if (saved->ok()) return done(phase);
        done(Annotate(*saved,
                      "the node obeys, but will not know of it after a "
                      "restart"));
      });
}

absl::Status TrainOrders::Start() {
  absl::Status status;
  const bool ran = loop_.RunAndWait([&] {
    status = node_.Start();
    obeyed_();
  });
  return ran ? status : absl::UnavailableError("the daemon is shutting down");
}

}  // namespace dfl::app
