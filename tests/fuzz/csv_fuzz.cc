// A data file of separated values, plain or gzip: alone, and a second time as
// both of two files, whose columns must fit each other.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(csv)(absl::string_view bytes) {
  Pieces pieces(bytes);
  data::DataSpec spec = SpecOf(data::Format::kCsv, pieces);
  const uint8_t choice = pieces.Byte();
  constexpr char kDelimiters[] = ",;\t ";
  spec.delimiter = kDelimiters[choice & 3];
  if ((choice & 4) != 0) spec.label_column = "0";
  if ((choice & 8) != 0) spec.label_column = "y";
  if ((choice & 16) != 0) spec.drop_columns = {"1"};
  if ((choice & 32) != 0) spec.label_values = {"a", "b"};
  const MemoryFile file(pieces.Rest());
  spec.paths = {file.path()};
  CheckData(spec);
  spec.paths = {file.path(), file.path()};
  CheckData(spec);
}

}  // namespace dfl::fuzz
