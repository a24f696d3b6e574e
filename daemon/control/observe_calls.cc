#include "daemon/control/observe_calls.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

constexpr int32_t kMaxLines = 10000;
constexpr double kDefaultSeconds = 600;
constexpr double kMaxSeconds = 86400;

absl::Status NotServed() {
  return absl::UnimplementedError("this daemon tells nothing of that");
}

const char* NameOf(pb::LogLevel level) {
  switch (level) {
    case pb::LOG_LEVEL_DEBUG:
      return "debug";
    case pb::LOG_LEVEL_INFO:
      return "info";
    case pb::LOG_LEVEL_WARNING:
      return "warning";
    case pb::LOG_LEVEL_ERROR:
      return "error";
    default:
      return "as the settings say";
  }
}

// Our levels have the numbers of the contract.
pb::LogLevel ToProto(LogLevel level) {
  return static_cast<pb::LogLevel>(level);
}

absl::Status CheckLevel(pb::LogLevel level) {
  if (pb::LogLevel_IsValid(level)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("level: ", static_cast<int>(level),
                   " is unknown; allowed are 1 (debug) to 4 (error)"));
}

void ToProto(const LogLine& line, pb::LogLine& out) {
  out.set_id(line.id);
  out.set_unix_nanos(absl::ToUnixNanos(line.at));
  out.set_level(ToProto(line.level));
  out.set_event(line.event);
  out.set_text(line.text);
  for (const auto& [name, value] : line.fields) {
    (*out.mutable_fields())[name] = value;
  }
}

}  // namespace

Reactor* ObserveCalls::GetMetrics(const Call& call,
                                  const pb::GetMetricsRequest* /*request*/,
                                  pb::GetMetricsResponse* response) {
  if (observer_ == nullptr) return Answers::Now(call, NotServed());
  response->set_text(observer_->Metrics());
  return Answers::Now(call, absl::OkStatus());
}

Reactor* ObserveCalls::GetLog(const Call& call,
                              const pb::GetLogRequest* request,
                              pb::GetLogResponse* response) {
  if (observer_ == nullptr) return Answers::Now(call, NotServed());
  const absl::Status known = CheckLevel(request->level());
  if (!known.ok()) return Answers::Now(call, known);
  if (request->limit() < 0 || request->limit() > kMaxLines) {
    return Answers::Now(
        call, absl::InvalidArgumentError(absl::StrCat(
                  "limit: ", request->limit(), " is not in 1 to ", kMaxLines)));
  }
  LogQuery query;
  query.after = request->after();
  query.limit = request->limit() == 0 ? kMaxLines : request->limit();
  if (request->level() != pb::LOG_LEVEL_UNSPECIFIED) {
    query.level = static_cast<LogLevel>(request->level());
  }
  const LogPart part = observer_->Log(query);
  for (const LogLine& line : part.lines) ToProto(line, *response->add_lines());
  response->set_forgotten(part.forgotten);
  const LogLevels levels = observer_->Levels();
  response->set_level(ToProto(levels.now));
  response->set_seconds_left(absl::ToDoubleSeconds(levels.left));
  return Answers::Now(call, absl::OkStatus());
}

Reactor* ObserveCalls::SetLogLevel(const Call& call,
                                   const pb::SetLogLevelRequest* request,
                                   pb::SetLogLevelResponse* response) {
  if (observer_ == nullptr) return Answers::Now(call, NotServed());
  const std::string what =
      absl::StrCat("set the log's level to ", NameOf(request->level()));
  const double seconds =
      request->seconds() == 0 ? kDefaultSeconds : request->seconds();
  absl::Status status = CheckLevel(request->level());
  if (status.ok() && !(seconds > 0 && seconds <= kMaxSeconds)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("seconds: ", request->seconds(),
                     " is not above 0 and at most ", kMaxSeconds));
  }
  if (!status.ok()) return answers_.NowAudited(call, what, status);
  if (request->level() == pb::LOG_LEVEL_UNSPECIFIED) {
    observer_->ResetLevel();
  } else {
    observer_->SetLevel(static_cast<LogLevel>(request->level()),
                        absl::Seconds(seconds));
  }
  const LogLevels levels = observer_->Levels();
  response->set_level(ToProto(levels.now));
  response->set_settings_level(ToProto(levels.settings));
  return answers_.NowAudited(call, what, absl::OkStatus());
}

Reactor* ObserveCalls::Diagnose(const Call& call,
                                const pb::DiagnoseRequest* /*request*/,
                                pb::DiagnoseResponse* response) {
  if (observer_ == nullptr) return Answers::Now(call, NotServed());
  for (const Finding& finding : observer_->Diagnose()) {
    pb::Finding& out = *response->add_findings();
    out.set_check(finding.check);
    // Kinds have the numbers of the contract.
    out.set_kind(static_cast<pb::FindingKind>(finding.kind));
    out.set_text(finding.text);
    out.set_remedy(finding.remedy);
  }
  response->set_unix_nanos(absl::ToUnixNanos(absl::Now()));
  return Answers::Now(call, absl::OkStatus());
}

}  // namespace dfl::control
