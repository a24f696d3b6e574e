// A whole model by value, for what needs more of it than differences
// (remote_vector.h).
#ifndef DFL_CORE_VECTOR_MODEL_VALUES_H_
#define DFL_CORE_VECTOR_MODEL_VALUES_H_

#include <vector>

#include "daemon/base/aligned_vector.h"

namespace dfl::core {

struct ModelValues {
  FlatVector parameters;       // [n]
  std::vector<float> buffers;  // [b]
};

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_MODEL_VALUES_H_
