// What a neighbour says of a field of its data contract, compared with ours for
// a person. The first byte chooses the field.
#include <string>

#include "absl/strings/ascii.h"
#include "daemon/base/check.h"
#include "daemon/base/utf8.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/runtime/contracts/contract_text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

core::DataContract Own() {
  core::DataContract own;
  own.classes = {"cat", "dog \"two\"",
                 "\xc3\xa9"
                 "l\xc3\xa8ve"};
  own.features = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  own.shape = {1, 28, 28};
  own.loss = "cross-entropy";
  own.model = std::string(64, 'f');
  return own;
}

}  // namespace

DFL_FUZZ_TARGET(contract_text)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const auto& fields = core::kContractFields;
  const core::ContractField field = fields[pieces.Byte() % fields.size()];
  static const core::DataContract& own = *new core::DataContract(Own());
  const std::string text = runtime::DifferenceText(
      field, core::FieldText(own, field), pieces.Rest());
  DFL_CHECK(text.size() <= runtime::kMostDifferenceBytes && IsUtf8(text));
  for (const char c : text) {
    DFL_CHECK(!absl::ascii_iscntrl(static_cast<unsigned char>(c)));
  }
}

}  // namespace dfl::fuzz
