#include "daemon/console/interrupt.h"

#include <atomic>

namespace dfl::console {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach nothing else. Lock-free, so it may be set there.
std::atomic<bool> requested{false};

void OnSignal(int) { requested = true; }

}  // namespace

InterruptScope::InterruptScope() {
  requested = false;
  struct sigaction action{};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &former_[i]);
}

InterruptScope::~InterruptScope() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &former_[i], nullptr);
}

bool InterruptScope::Requested() { return requested; }

}  // namespace dfl::console
