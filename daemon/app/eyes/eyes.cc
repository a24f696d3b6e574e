#include "daemon/app/eyes/eyes.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/app/eyes/diagnosis.h"
#include "daemon/app/eyes/machine_facts.h"
#include "daemon/base/status_macros.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/web/metrics.h"
#include "daemon/web/resources.h"

namespace dfl::app {
namespace {

// The table of members may be long, and it changes slowly.
constexpr int64_t kLooksPerCount = 10;

const char* NameOf(control::MemberState state) {
  switch (state) {
    case control::MemberState::kAlone:
      return "alone";
    case control::MemberState::kJoining:
      return "joining";
    case control::MemberState::kMember:
      return "member";
    case control::MemberState::kDegraded:
      return "degraded";
    case control::MemberState::kDraining:
      return "draining";
    case control::MemberState::kLeft:
      return "left";
    case control::MemberState::kDead:
      return "dead";
  }
  return "member";
}

std::map<std::string, int64_t> CountMembers(const control::MemberTable& table) {
  std::map<std::string, int64_t> counts;
  for (int state = static_cast<int>(control::MemberState::kAlone);
       state <= static_cast<int>(control::MemberState::kDead); ++state) {
    counts[NameOf(static_cast<control::MemberState>(state))] = 0;
  }
  counts["suspect"] = 0;
  for (const control::MemberInfo& member : table.members) {
    ++counts[NameOf(member.state)];
    if (member.suspect) ++counts["suspect"];
  }
  return counts;
}

config::LogLevel ToConfig(control::LogLevel level) {
  switch (level) {
    case control::LogLevel::kDebug:
      return config::LogLevel::kDebug;
    case control::LogLevel::kInfo:
      return config::LogLevel::kInfo;
    case control::LogLevel::kWarning:
      return config::LogLevel::kWarning;
    case control::LogLevel::kError:
      return config::LogLevel::kError;
  }
  return config::LogLevel::kInfo;
}

std::set<web::Group> GroupsOf(const std::vector<std::string>& names) {
  std::set<web::Group> groups;
  for (const std::string& name : names) {
    groups.insert(name == "health"    ? web::Group::kHealth
                  : name == "metrics" ? web::Group::kMetrics
                                      : web::Group::kPage);
  }
  return groups;
}

}  // namespace

Eyes::Eyes(EyesOptions options, EventLoop& loop, EventHub& events, Logger& log,
           control::Backend& backend, const MeasuredTransport& transport,
           web::Meters& meters, StepMeter& steps)
    : options_(std::move(options)),
      loop_(loop),
      log_(log),
      backend_(backend),
      transport_(transport),
      meters_(meters),
      subscription_(events.Subscribe([&steps](const control::TimedEvent& e) {
        if (std::holds_alternative<ports::StepFinished>(e.event)) {
          steps.OnStep();
        } else if (std::holds_alternative<ports::PhaseChanged>(e.event)) {
          steps.OnPhase();
        }
      })) {}

Eyes::~Eyes() { Stop(); }

void Eyes::CountBytes(const runtime::NodeStatus& node) {
  // A peer that is forgotten takes its count with it.
  const int64_t sent = std::max<int64_t>(0, node.bytes_sent - counted_.sent);
  const int64_t received =
      std::max<int64_t>(0, node.bytes_received - counted_.received);
  counted_ = {node.bytes_sent, node.bytes_received};
  web::Traffic& traffic = bytes_[node.format.empty() ? "none" : node.format];
  traffic.sent += sent;
  traffic.received += received;
}

std::vector<std::string> Eyes::NotReady(
    const control::DaemonStatus& status) const {
  std::vector<std::string> missing;
  if (!status.insecure && options_.on_network && status.certificate_days <= 0) {
    missing.push_back(
        "there is no valid certificate; `dflctl doctor` says what to do");
  }
  return missing;
}

void Eyes::Look(control::DaemonStatus status, std::string frozen) {
  const absl::Time now = SteadyNow();
  CountBytes(status.node);
  if (looks_++ % kLooksPerCount == 0) {
    members_ = CountMembers(backend_.Members());
  }
  if (status.node.checkpoint_step != checkpoint_step_) {
    checkpoint_step_ = status.node.checkpoint_step;
    checkpoint_at_ = now;
  }
  auto sample = std::make_shared<web::Sample>();
  sample->at = now;
  sample->not_ready = NotReady(status);
  sample->daemon = std::move(status);
  sample->members = members_;
  sample->bytes = bytes_;
  sample->queued_bytes = transport_.QueuedBytes();
  sample->links = transport_.links();
  if (checkpoint_at_) sample->checkpoint_age = now - *checkpoint_at_;
  if (looked_ != absl::InfinitePast()) {
    sample->loop_delay =
        std::max(absl::ZeroDuration(), now - looked_ - options_.period);
  }
  looked_ = now;
  sample->loop_turns = loop_.turns();
  sample->frozen = std::move(frozen);
  const auto counts = log_.tail().Counts();
  sample->log_lines = {{"debug", counts[0]},
                       {"info", counts[1]},
                       {"warning", counts[2]},
                       {"error", counts[3]}};
  latest_.Offer(std::move(sample));
}

absl::Status Eyes::Serve(const std::function<void(web::HttpServer&)>& add) {
  if (options_.web.listen.empty()) return absl::OkStatus();
  web::HttpServerOptions options;
  options.addresses = options_.web.listen;
  options.network = GroupsOf(options_.web.open);
  auto bound = web::HttpServer::Bind(std::move(options));
  if (!bound.ok()) return Annotate(bound.status(), "web.listen");
  server_ = *std::move(bound);
  server_->Add(
      {"/livez", web::Group::kHealth, [this](const web::HttpRequest& request) {
         return web::AnswerLive(CheckNow(), request);
       }});
  server_->Add(
      {"/readyz", web::Group::kHealth, [this](const web::HttpRequest& request) {
         return web::AnswerReady(CheckNow(), request);
       }});
  server_->Add({"/metrics", web::Group::kMetrics,
                [this](const web::HttpRequest& /*request*/) {
                  web::HttpResponse response;
                  response.content_type = web::kMetricsType;
                  response.body = Metrics();
                  return response;
                }});
  if (add) add(*server_);
  server_->Start();
  if (server_->on_network()) {
    log_.Keep(config::LogLevel::kInfo, "web",
              absl::StrCat("whoever reaches ",
                           absl::StrJoin(server_->addresses(), ", "),
                           " reads: ", absl::StrJoin(options_.web.open, ", ")));
  }
  return absl::OkStatus();
}

std::vector<std::string> Eyes::addresses() const {
  return server_ ? server_->addresses() : std::vector<std::string>();
}

void Eyes::Stop() {
  SetStopping();
  if (server_) server_->Stop();
}

web::Health Eyes::CheckNow() const {
  web::Health health =
      web::CheckHealth(latest_.Get().get(), SteadyNow(), stopping_.load());
  web::HealthCheck state = {"state", ""};
  if (access(options_.state_dir.c_str(), W_OK | X_OK) != 0) {
    state.fault = absl::StrCat(options_.state_dir, " cannot be written to");
  }
  health.ready.push_back(std::move(state));
  return health;
}

std::map<std::string, bool> Eyes::Serving() const {
  const web::Health health = CheckNow();
  const bool live = health.IsLive();
  const bool ready = health.IsReady();
  return {{"", ready},
          {"liveness", live},
          {"readiness", ready},
          {"dfl.control.v1.ControlService", live}};
}

std::string Eyes::Metrics() {
  const std::shared_ptr<const web::Sample> sample = latest_.Get();
  return web::MetricsText(
      {sample.get(), meters_, web::ReadResources(options_.state_dir)});
}

void Eyes::SetLevel(control::LogLevel level, absl::Duration time) {
  log_.SetLevelFor(ToConfig(level), time);
}

std::vector<control::Finding> Eyes::Diagnose() {
  const std::shared_ptr<const web::Sample> sample = latest_.Get();
  if (sample == nullptr) {
    return {{"start", control::Finding::Kind::kWarning,
             "the daemon is starting", "ask again in a moment"}};
  }
  std::vector<std::string> peers;
  for (const runtime::PeerStatus& peer : sample->daemon.node.peers) {
    if (peer.linked && !peer.address.empty()) peers.push_back(peer.address);
  }
  const MachineFacts machine = ReadMachineFacts(options_.state_dir, peers);
  std::vector<control::Finding> findings = app::Diagnose(
      {sample->daemon, machine, options_.state_dir, options_.compute_threads,
       sample->frozen, absl::ToInt64Milliseconds(sample->loop_delay)});
  const absl::Duration silent = SteadyNow() - sample->at;
  if (silent > web::kLoopPatience) {
    findings.push_back(
        {"loop", control::Finding::Kind::kFault,
         absl::StrCat("it has not moved for ", absl::FormatDuration(silent)),
         "restart dfld, and report it with `dflctl debug "
         "bundle`"});
  }
  return findings;
}

}  // namespace dfl::app
