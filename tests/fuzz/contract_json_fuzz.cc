// The data contract in the metadata of a model file.
#include <string>
#include <vector>

#include "daemon/app/models/contract_json.h"
#include "daemon/base/check.h"
#include "daemon/core/contract/data_contract.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

core::DataContract Own() {
  core::DataContract own;
  own.classes = {"cat", "dog"};
  own.shape = {1, 2, 2};
  own.input.divide = 255;
  own.input.per = core::InputScaling::Per::kAll;
  own.input.over = core::InputScaling::Over::kGiven;
  own.input.mean = {0.5F};
  own.input.std = {0.25F};
  own.loss = "cross-entropy";
  return own;
}

}  // namespace

DFL_FUZZ_TARGET(contract_json)(absl::string_view bytes) {
  const auto contract = app::ParseContractJson(bytes);
  if (!contract.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(contract.status()));
    return;
  }
  for (const bool part : {false, true}) {
    for (const bool forced : {false, true}) {
      (void)app::CheckFileContract(*contract, Own(), {part, forced});
    }
  }
  const std::string written = app::ContractJson(*contract);
  const auto again = app::ParseContractJson(written);
  DFL_CHECK(again.ok() && app::ContractJson(*again) == written);
}

}  // namespace dfl::fuzz
