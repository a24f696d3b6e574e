// What a plan states of the data contract: its section `data:`. What it leaves
// open is fixed by the first apply, from what the nodes say (data_offer.h).
#ifndef DFL_CORE_CONTRACT_DATA_SECTION_H_
#define DFL_CORE_CONTRACT_DATA_SECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/contract/data_contract.h"

namespace dfl::core {

// ModelSpec::classes of a plan that leaves them to the data contract.
inline constexpr int64_t kClassesOfData = -1;

// Each field as in DataContract and InputScaling; absent: open.
struct DataSection {
  std::optional<Task> task;
  std::optional<std::vector<std::string>> classes;
  std::optional<std::vector<std::string>> features;
  std::optional<std::vector<int64_t>> shape;
  std::optional<double> divide;
  std::optional<InputScaling::Per> per;
  std::optional<InputScaling::Over> over;  // with `per`
  // Empty where there are none, and where those over the network are open.
  std::vector<float> mean;
  std::vector<float> std;
  std::string model;  // 64 hex digits; "": open

  friend bool operator==(const DataSection&, const DataSection&) = default;
};

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_DATA_SECTION_H_
