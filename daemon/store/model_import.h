// Which tensors of a file become which of the node's model.
//
// The model's trained tensors and float buffers are what an import replaces.
// All of them must be in the file, or be left out on purpose. What the file has
// beyond them (counters of steps, frozen tensors, another head) is skipped, and
// told.
#ifndef DFL_STORE_MODEL_IMPORT_H_
#define DFL_STORE_MODEL_IMPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/ports/learner.h"
#include "daemon/store/safetensors_header.h"

namespace dfl::store {

struct ImportOptions {
  // Patterns of names of the model, * and ? as in file names: the others keep
  // the node's values. Empty: all are replaced.
  std::vector<std::string> only;
  // What the file does not have keeps the node's values.
  bool init_missing = false;
  // What names in the file begin with and those of the model do not.
  std::string strip_prefix;

  bool partial() const { return init_missing || !only.empty(); }
};

// Values of a flat vector.
struct ValueRange {
  int64_t offset = 0;
  int64_t size = 0;
};

struct ImportPlan {
  struct Move {
    size_t tensor = 0;    // of SafetensorsHeader::tensors
    bool buffer = false;  // of the buffers, else of the parameters
    ValueRange to;
  };
  std::vector<Move> moves;  // in the order of `tensor`
  // What people should know: what was skipped, kept, or taken under another
  // name.
  std::vector<std::string> notes;
};

// Errors: INVALID_ARGUMENT when tensors are missing, or one has another dtype
// or shape than the model's; the text names all of the first few, and the
// option that helps.
absl::StatusOr<ImportPlan> PlanImport(const ports::ModelInfo& model,
                                      const SafetensorsHeader& header,
                                      const ImportOptions& options);

// Whether `name` is of `pattern`: * stands for any text, ? for one character.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

}  // namespace dfl::store

#endif  // DFL_STORE_MODEL_IMPORT_H_
