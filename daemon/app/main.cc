// dfld: see daemon/app/daemon.h.
#include <memory>
#include <utility>

#include "daemon/app/compute/bounded_processors.h"
#include "daemon/app/compute/cpu_quota.h"
#include "daemon/app/compute/process_limits.h"
#include "daemon/app/daemon.h"
#include "daemon/app/models/data_learners.h"

int main(int argc, char** argv) {
  dfl::app::SetProcessLimits();
  dfl::app::BoundProcessors(dfl::app::FindCpuQuota().count());
  const auto computing = std::make_shared<dfl::app::Computing>();
  return dfl::app::DaemonMain(
      argc, argv, [computing](const dfl::config::NodeSettings& settings) {
        if (computing->models == nullptr) {
          *computing = dfl::app::MakeComputing(settings);
        }
        return dfl::app::OpenDataLearners(settings, *computing);
      });
}
