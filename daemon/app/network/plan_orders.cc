#include "daemon/app/network/plan_orders.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/ids.h"

namespace dfl::app {

void PlanOrders::Disconnect() {
  ++turn_;
  owed_.reset();
  node_ = nullptr;
  plans_ = nullptr;
  keeper_ = nullptr;
  setup_ = nullptr;
}

void PlanOrders::Take(const runtime::Record& record) {
  if (plans_ == nullptr) return;
  if (IsTaken(record)) {
    ++turn_;
    owed_.reset();
    (void)SetFault("");
    return looked_();
  }
  Plan plan;
  plan.options.yaml = std::string(record.content());
  plan.options.record = record.bytes;
  plan.counter = record.id.counter;
  plan.author = record.author;
  owed_ = std::move(plan);
  Try();
}

// A person's order is taken by the node before it is a record.
bool PlanOrders::IsTaken(const runtime::Record& record) const {
  const core::RunPlan* plan = node_->plan();
  return plan != nullptr && plan->version == record.id.counter &&
         keeper_->known()->text == record.content();
}

bool PlanOrders::SetFault(const std::string& fault) {
  const absl::MutexLock lock(&mutex_);
  const bool news = fault != fault_;
  fault_ = fault;
  return news;
}

void PlanOrders::TryAgain() {
  // Before the first try has ended there is nothing to mend.
  if (owed_.has_value() && !fault().empty()) Try();
}

void PlanOrders::Try() {
  const uint64_t turn = ++turn_;
  const auto taken = std::make_shared<absl::Status>();
  setup_->Run(
      [this, plans = plans_, turn, plan = *owed_, taken] {
        if (turn != turn_) return;  // a newer one waits
        *taken = plans
                     ->ApplySigned(plan.options, plan.counter, plan.author,
                                   PlanTaker::Order::kByRecord)
                     .status();
      },
      [this, turn, taken] {
        if (turn != turn_ || !owed_.has_value()) return;
        OnTried(*owed_, *taken);
      });
}

void PlanOrders::OnTried(const Plan& plan, const absl::Status& taken) {
  std::string fault;
  if (!taken.ok()) {
    fault = absl::StrCat("plan version ", plan.counter, " of ", plan.author,
                         " is not taken up: ", taken.message());
  }
  const bool news = SetFault(fault);
  if (taken.ok()) {
    owed_.reset();
  } else {
    if (news) events_.Report(ports::RecordCame{false, NodeId(), fault});
    const bool missing = absl::IsNotFound(taken);
    loop_.After(missing ? pauses_.missing_file : pauses_.retry,
                [this, turn = turn_.load()] {
                  if (turn == turn_ && owed_.has_value()) Try();
                });
  }
  looked_();
}

std::string PlanOrders::fault() const {
  const absl::MutexLock lock(&mutex_);
  return fault_;
}

}  // namespace dfl::app
