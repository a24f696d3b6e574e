// What each call of observe.proto does once the gate has let it in.
#ifndef DFL_CONTROL_OBSERVE_CALLS_H_
#define DFL_CONTROL_OBSERVE_CALLS_H_

#include "daemon/control/answers.h"
#include "daemon/control/observer.h"
#include "dfl/control/v1/observe.pb.h"

namespace dfl::control {

// Thread-safe.
class ObserveCalls {
 public:
  // Both outlive it. Without an observer every call is UNIMPLEMENTED.
  ObserveCalls(Observer* observer, Answers& answers)
      : observer_(observer), answers_(answers) {}

  // Handlers, in the order of control.proto.
  Reactor* GetMetrics(const Call&, const dfl::control::v1::GetMetricsRequest*,
                      dfl::control::v1::GetMetricsResponse*);
  Reactor* GetLog(const Call&, const dfl::control::v1::GetLogRequest*,
                  dfl::control::v1::GetLogResponse*);
  Reactor* SetLogLevel(const Call&, const dfl::control::v1::SetLogLevelRequest*,
                       dfl::control::v1::SetLogLevelResponse*);
  Reactor* Diagnose(const Call&, const dfl::control::v1::DiagnoseRequest*,
                    dfl::control::v1::DiagnoseResponse*);

 private:
  Observer* const observer_;
  Answers& answers_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_OBSERVE_CALLS_H_
