// A model file that is imported (safetensors). The first byte chooses the
// options and whether the input is a file, or the header's text and the values
// apart.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/ports/learner.h"
#include "daemon/store/safetensors.h"
#include "daemon/store/safetensors_header.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

constexpr int64_t kParameters = 9;
constexpr int64_t kBuffers = 2;

ports::ModelInfo Model() {
  ports::ModelInfo model;
  model.kind = "fuzz";
  model.parameters = {{"w", {2, 3}, 0, 6}, {"b", {3}, 6, 3}};
  model.buffers = {{"m", {2}, 0, 2}};
  model.parameter_count = kParameters;
  model.buffer_count = kBuffers;
  model.aliases = {{"tied", "w"}};
  return model;
}

store::ImportOptions OptionsOf(uint8_t choice) {
  store::ImportOptions options;
  if ((choice & 2) != 0) options.init_missing = true;
  if ((choice & 4) != 0) options.strip_prefix = "net.";
  if ((choice & 8) != 0) options.only = {"w*"};
  return options;
}

struct Imported {
  absl::Status status;
  std::vector<float> parameters = std::vector<float>(kParameters);
  std::vector<float> buffers = std::vector<float>(kBuffers);
  store::SafetensorsMetadata metadata;
};

// In pieces of `step` bytes.
Imported Import(absl::string_view file, size_t step,
                const store::ImportOptions& options) {
  Imported imported;
  store::SafetensorsReader reader(Model(), absl::MakeSpan(imported.parameters),
                                  absl::MakeSpan(imported.buffers), options);
  for (size_t at = 0; at < file.size() && imported.status.ok(); at += step) {
    imported.status = reader.Feed(file.substr(at, step));
  }
  if (imported.status.ok()) imported.status = reader.Finish();
  imported.metadata = reader.metadata();
  return imported;
}

std::string FileOf(const Imported& imported) {
  const auto source = store::SafetensorsSource::Create(
      Model(), imported.parameters, imported.buffers, imported.metadata);
  DFL_CHECK(source.ok());
  std::string file(source->size(), '\0');
  DFL_CHECK(source->Read(0, absl::MakeSpan(file.data(), file.size())) ==
            file.size());
  return file;
}

void CheckHeader(absl::string_view text) {
  const auto header = store::ParseSafetensorsHeader(text);
  if (!header.ok()) return;
  uint64_t end = 0;
  for (const store::FileTensor& tensor : header->tensors) {
    DFL_CHECK(tensor.begin == end && tensor.end >= tensor.begin);
    DFL_CHECK(store::DtypeBytes(tensor.dtype) > 0);
    end = tensor.end;
  }
  DFL_CHECK(header->data_bytes == end);
}

}  // namespace

DFL_FUZZ_TARGET(safetensors)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const uint8_t choice = pieces.Byte();
  std::string file;
  if ((choice & 1) == 0) {
    file = std::string(pieces.Rest());
  } else {
    const absl::string_view header = pieces.Part();
    CheckHeader(header);
    file.resize(sizeof(uint64_t));
    Put(uint64_t{header.size()}, 0, &file);
    absl::StrAppend(&file, header, pieces.Rest());
  }
  const store::ImportOptions options = OptionsOf(choice);
  const Imported whole =
      Import(file, std::max<size_t>(1, file.size()), options);
  const Imported in_pieces = Import(file, 7, options);
  DFL_CHECK(whole.status == in_pieces.status);
  if (!whole.status.ok()) return;
  DFL_CHECK(whole.parameters == in_pieces.parameters &&
            whole.buffers == in_pieces.buffers);
  for (const float value : whole.parameters) DFL_CHECK(std::isfinite(value));
  for (const float value : whole.buffers) DFL_CHECK(std::isfinite(value));
  const Imported again = Import(FileOf(whole), 11, {});
  DFL_CHECK(again.status.ok() && again.parameters == whole.parameters &&
            again.buffers == whole.buffers);
}

}  // namespace dfl::fuzz
