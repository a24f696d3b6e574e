// What a daemon finds amiss with itself and its machine, each with its remedy:
// the daemon's half of `dflctl doctor`. What concerns several nodes, such as
// who reaches whom, dflctl finds out by asking them.
#ifndef DFL_APP_EYES_DIAGNOSIS_H_
#define DFL_APP_EYES_DIAGNOSIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/app/eyes/machine_facts.h"
#include "daemon/control/backend.h"
#include "daemon/control/observer.h"

namespace dfl::app {

struct DiagnosisInput {
  const control::DaemonStatus& daemon;
  const MachineFacts& machine;
  std::string state_dir;
  int64_t compute_threads = 0;  // compute.threads; 0: as many as may run
  std::string frozen;           // as web::Sample's
  int64_t loop_delay_ms = 0;    // at the last look
};

// One finding at least for each check, kOk where all is well.
std::vector<control::Finding> Diagnose(const DiagnosisInput& input);

}  // namespace dfl::app

#endif  // DFL_APP_EYES_DIAGNOSIS_H_
