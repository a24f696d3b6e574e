// The list of coordinates of a top-k message (daemon/codec/index_code.h). The
// first bytes say how many there are, and of what vector.
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/codec/coordinate_set.h"
#include "daemon/codec/index_code.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(coordinates)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const int64_t n = 1 + pieces.Number();
  const int64_t s = 1 + pieces.Number() % n;
  const absl::string_view list = pieces.Rest();
  const auto set = codec::CoordinateSet::DecodeIndices(n, s, list);
  if (!set.ok()) return;
  const auto length = static_cast<int64_t>(list.size());
  DFL_CHECK(codec::MinIndexBytes(n, s) <= length &&
            length <= codec::MaxIndexBytes(n, s));
  DFL_CHECK(set->n() == n && set->s() == s && set->Rank(n) == s);
  DFL_CHECK(set->EncodeIndices() == list);
  std::vector<uint32_t> members(static_cast<size_t>(s));
  codec::CoordinateSet::Cursor cursor = set->From(0);
  set->Take(&cursor, absl::MakeSpan(members));
  for (size_t q = 0; q < members.size(); ++q) {
    DFL_CHECK(members[q] < n && (q == 0 || members[q - 1] < members[q]));
    DFL_CHECK(set->Contains(members[q]));
    DFL_CHECK(set->Rank(members[q]) == static_cast<int64_t>(q));
  }
}

}  // namespace dfl::fuzz
