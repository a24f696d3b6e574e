// What a node without data has in place of its learners: one that only mixes or
// observes.
#ifndef DFL_APP_NETWORK_WITHOUT_DATA_H_
#define DFL_APP_NETWORK_WITHOUT_DATA_H_

#include <memory>

#include "daemon/app/learner_factory.h"
#include "daemon/core/plan/member_spec.h"

namespace dfl::app {

// It offers nothing and builds nothing: FAILED_PRECONDITION, which says what
// the node would need. A plan that needs its model makes it degraded.
std::unique_ptr<LearnerFactory> MakeFactoryWithoutData(
    core::Participation participation);

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_WITHOUT_DATA_H_
