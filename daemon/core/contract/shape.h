// Shapes of rows and tensors, as text and as a number of values.
#ifndef DFL_CORE_CONTRACT_SHAPE_H_
#define DFL_CORE_CONTRACT_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace dfl::core {

// "[1, 28, 28]".
std::string ShapeText(const std::vector<int64_t>& shape);

// How many values it has. 0: an extent is below 1, or there are more than 2^40.
int64_t Product(const std::vector<int64_t>& shape);

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_SHAPE_H_
