#include "daemon/app/models/publisher.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/status_macros.h"
#include "daemon/store/safetensors_header.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

constexpr int64_t kPartBytes = int64_t{1} << 20;
// Of the description of a file that is there.
constexpr size_t kMaxDescriptionBytes = size_t{16} << 20;

std::string BesideOf(const std::string& path) {
  return absl::StrCat(path, ".json");
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       AtomicFile::Create(path));
  DFL_RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

// Up to `most` bytes from the beginning of a file; "" if there is none.
std::string ReadBeginning(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The metadata of a safetensors file; empty if it is none.
store::SafetensorsMetadata MetadataAt(const std::string& path) {
  const std::string head = ReadBeginning(path, sizeof(uint64_t));
  uint64_t length = 0;
  if (head.size() < sizeof(length)) return {};
  std::memcpy(&length, head.data(), sizeof(length));
  if (length > kMaxDescriptionBytes) return {};
  const std::string text =
      ReadBeginning(path, sizeof(length) + static_cast<size_t>(length));
  const auto header =
      store::ParseSafetensorsHeader(absl::string_view(text).substr(8));
  return header.ok() ? header->metadata : store::SafetensorsMetadata();
}

// The same of the document beside a TorchScript file.
store::SafetensorsMetadata DescriptionAt(const std::string& path) {
  const auto document = nlohmann::json::parse(
      ReadBeginning(path, kMaxDescriptionBytes), nullptr, false);
  store::SafetensorsMetadata metadata;
  if (!document.is_object()) return metadata;
  for (const auto& [key, value] : document.items()) {
    if (value.is_string()) metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

double ScoreOf(const ports::Evaluation& evaluation) {
  return evaluation.accuracy.value_or(-evaluation.loss);
}

Publisher::Publisher(config::PublishSettings settings, EventLoop& loop,
                     runtime::Node& node, ModelTransfers& transfers,
                     EventHub& events, Logger& log)
    : settings_(std::move(settings)),
      loop_(loop),
      node_(node),
      transfers_(transfers),
      log_(log),
      writer_(loop, "dfld-publish") {
  const Published published = ReadPublished();
  run_ = published.run;
  best_ = published.score;
  if (settings_.when != config::PublishSettings::When::kBest) return;
  subscription_ = events.Subscribe([this](const control::TimedEvent& timed) {
    if (const auto* event = std::get_if<ports::Evaluated>(&timed.event)) {
      // Before the node's next visit to the boundary, which is posted later:
      // the model is still the one that was evaluated.
      loop_.Post([this, alive = std::weak_ptr<bool>(alive_), event = *event] {
        if (!alive.expired()) OnEvaluated(event);
      });
    }
  });
}

Publisher::~Publisher() {
  subscription_.reset();
  writer_.Stop();
  loop_.RunAndWait([this] { alive_.reset(); });
}

control::ModelFileFormat Publisher::format() const {
  const bool torchscript =
      settings_.format == config::PublishSettings::Format::kTorchScript ||
      (settings_.format == config::PublishSettings::Format::kByName &&
       absl::EndsWith(settings_.path, ".pt"));
  return torchscript ? control::ModelFileFormat::kTorchScript
                     : control::ModelFileFormat::kSafetensors;
}

Publisher::Published Publisher::ReadPublished() const {
  const store::SafetensorsMetadata metadata =
      format() == control::ModelFileFormat::kSafetensors
          ? MetadataAt(settings_.path)
          : DescriptionAt(BesideOf(settings_.path));
  Published published;
  const auto run = metadata.find("run");
  const auto score = metadata.find(kScoreKey);
  if (run != metadata.end()) published.run = run->second;
  double value = 0;
  if (score != metadata.end() && absl::SimpleAtod(score->second, &value)) {
    published.score = value;
  }
  return published;
}

void Publisher::Look(const runtime::NodeStatus& status) {
  if (status.run_id.empty()) return;
  if (status.run_id != run_) {
    run_ = status.run_id;
    written_step_ = -1;
    best_.reset();
  }
  if (settings_.when == config::PublishSettings::When::kBest || busy_) return;
  if (status.phase != ports::Phase::kTraining &&
      status.phase != ports::Phase::kFinished) {
    return;
  }
  const bool over =
      status.phase == ports::Phase::kFinished && status.step != written_step_;
  const bool due =
      status.step > 0 &&
      (written_step_ < 0 ? status.step >= settings_.every_steps
                         : status.step / settings_.every_steps >
                               written_step_ / settings_.every_steps);
  if (!due && !over) return;
  busy_ = true;
  node_.CopyModel([this, alive = std::weak_ptr<bool>(alive_)](
                      absl::StatusOr<runtime::SnapshotPtr> snapshot) {
    if (alive.expired()) return;
    busy_ = false;
    if (snapshot.ok()) Write(*std::move(snapshot), "");
  });
}

void Publisher::OnEvaluated(const ports::Evaluated& event) {
  const core::RunPlan* plan = node_.plan();
  if (plan == nullptr) return;
  if (plan->run_id != run_) {
    run_ = plan->run_id;
    best_.reset();
  }
  const double score = ScoreOf(event.result);
  if (best_.has_value() && score <= *best_) return;
  node_.CopyModel(
      [this, alive = std::weak_ptr<bool>(alive_), score,
       step = event.step](absl::StatusOr<runtime::SnapshotPtr> snapshot) {
        // A model that has moved on is another one.
        if (alive.expired() || !snapshot.ok() || (*snapshot)->steps != step)
          return;
        best_ = score;
        const std::string text = absl::StrFormat("%.17g", score);
        if (!busy_) return Write(*std::move(snapshot), text);
        waiting_ = *std::move(snapshot);
        waiting_score_ = text;
      });
}

void Publisher::Write(runtime::SnapshotPtr snapshot, const std::string& score) {
  busy_ = true;
  const int64_t step = snapshot->steps;
  transfers_.MakeFile(
      format(), std::move(snapshot), score,
      [this, alive = std::weak_ptr<bool>(alive_),
       step](absl::StatusOr<std::unique_ptr<control::ModelSource>> made) {
        if (alive.expired()) return;
        if (!made.ok()) return OnWritten(step, made.status());
        const std::shared_ptr<control::ModelSource> source = *std::move(made);
        auto status = std::make_shared<absl::Status>();
        writer_.Run([this, source, status] { *status = WriteFile(*source); },
                    [this, alive, step, status] {
                      if (!alive.expired()) OnWritten(step, *status);
                    });
      });
}

absl::Status Publisher::WriteFile(control::ModelSource& source) const {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       AtomicFile::Create(settings_.path));
  for (int64_t at = 0; at < source.total_bytes();) {
    DFL_ASSIGN_OR_RETURN(const std::string part, source.Read(at, kPartBytes));
    DFL_RETURN_IF_ERROR(file->Append(part));
    at += static_cast<int64_t>(part.size());
  }
  if (format() == control::ModelFileFormat::kTorchScript) {
    DFL_RETURN_IF_ERROR(WriteText(BesideOf(settings_.path),
                                  absl::StrCat(source.description(), "\n")));
  }
  return file->Commit();
}

void Publisher::OnWritten(int64_t step, const absl::Status& status) {
  busy_ = false;
  // What failed is tried again when it is due again.
  written_step_ = step;
  std::string fault;
  if (!status.ok()) {
    fault = absl::StrCat("the model of step ", step,
                         " is not published: ", status.message());
  }
  bool news = false;
  {
    const absl::MutexLock lock(&mutex_);
    news = fault_.empty() != fault.empty();
    fault_ = fault;
  }
  if (!fault.empty()) {
    log_.Warning("publish", fault);
  } else if (news) {
    log_.Info("publish", absl::StrCat("the model of step ", step, " is at ",
                                      settings_.path, " again"));
  }
  if (waiting_ != nullptr) {
    Write(std::exchange(waiting_, nullptr), waiting_score_);
  }
}

void Publisher::Tell(control::DaemonStatus& status) const {
  const absl::MutexLock lock(&mutex_);
  if (!fault_.empty()) status.warnings.push_back(fault_);
}

}  // namespace dfl::app
