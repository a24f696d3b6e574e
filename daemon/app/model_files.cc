#include "daemon/app/model_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/version.h"
#include "daemon/base/status_macros.h"
#include "daemon/store/safetensors.h"

namespace dfl::app {
namespace {

class SafetensorsFile final : public control::ModelSource {
 public:
  SafetensorsFile(runtime::SnapshotPtr snapshot,
                  store::SafetensorsSource source)
      : snapshot_(std::move(snapshot)), source_(std::move(source)) {}

  int64_t total_bytes() const override {
    return static_cast<int64_t>(source_.size());
  }
  int64_t step() const override { return snapshot_->step; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    std::string bytes(std::min(max_bytes, total_bytes() - offset), '\0');
    bytes.resize(source_.Read(offset, absl::MakeSpan(bytes)));
    return bytes;
  }

 private:
  const runtime::SnapshotPtr snapshot_;  // what source_ reads
  const store::SafetensorsSource source_;
};

class BytesFile final : public control::ModelSource {
 public:
  BytesFile(std::string bytes, int64_t step)
      : bytes_(std::move(bytes)), step_(step) {}

  int64_t total_bytes() const override {
    return static_cast<int64_t>(bytes_.size());
  }
  int64_t step() const override { return step_; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t max_bytes) override {
    return bytes_.substr(offset, max_bytes);
  }

 private:
  const std::string bytes_;
  const int64_t step_;
};

class SafetensorsSink final : public control::ModelSink {
 public:
  SafetensorsSink(ports::ModelInfo model, ReplaceModel replace)
      : model_(std::move(model)),
        snapshot_(std::make_shared<runtime::Snapshot>()),
        replace_(std::move(replace)) {
    snapshot_->parameters.resize(model_.parameter_count);
    snapshot_->buffers.resize(model_.buffer_count);
    reader_ = std::make_unique<store::SafetensorsReader>(
        model_, absl::MakeSpan(snapshot_->parameters),
        absl::MakeSpan(snapshot_->buffers));
  }

  absl::Status Append(absl::string_view data) override {
    return reader_->Feed(data);
  }
  void Commit(control::Done<control::ImportResult> done) override {
    const absl::Status whole = reader_->Finish();
    if (!whole.ok()) {
      done(whole);
      return;
    }
    replace_(std::move(snapshot_), std::move(done));
  }

 private:
  const ports::ModelInfo model_;
  std::shared_ptr<runtime::Snapshot> snapshot_;
  std::unique_ptr<store::SafetensorsReader> reader_;
  const ReplaceModel replace_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<control::ModelSource>> MakeSafetensorsSource(
    const ports::ModelInfo& model, runtime::SnapshotPtr snapshot,
    const std::string& run_id) {
  const store::SafetensorsMetadata metadata = {
      {"dfld_version", kVersion},
      {"fingerprint", model.fingerprint},
      {"model", model.kind},
      {"run", run_id},
      {"step", absl::StrCat(snapshot->step)}};
  DFL_ASSIGN_OR_RETURN(
      store::SafetensorsSource source,
      store::SafetensorsSource::Create(model, snapshot->parameters,
                                       snapshot->buffers, metadata));
  return std::make_unique<SafetensorsFile>(std::move(snapshot),
                                           std::move(source));
}

std::unique_ptr<control::ModelSource> MakeBytesSource(std::string bytes,
                                                      int64_t step) {
  return std::make_unique<BytesFile>(std::move(bytes), step);
}

absl::StatusOr<std::unique_ptr<control::ModelSink>> MakeSafetensorsSink(
    const ports::ModelInfo& model, int64_t total_bytes, ReplaceModel replace) {
  const int64_t values = 4 * (model.parameter_count + model.buffer_count);
  const auto tensors =
      static_cast<int64_t>(model.parameters.size() + model.buffers.size());
  const int64_t largest = values + (1 << 20) + 1024 * tensors;
  if (total_bytes < values || total_bytes > largest) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a file of ", total_bytes, " bytes cannot hold this run's model (",
        model.kind, ", ", model.parameter_count, " parameters and ",
        model.buffer_count, " buffer values): between ", values, " and ",
        largest, " bytes are possible"));
  }
  return std::make_unique<SafetensorsSink>(model, std::move(replace));
}

}  // namespace dfl::app
