#include "daemon/app/network/finding.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/discovery/address_file.h"
#include "daemon/discovery/resolver.h"

namespace dfl::app {
namespace {

// Interfaces come and go: DHCP, a cable, a VPN.
constexpr absl::Duration kLookEvery = absl::Seconds(10);
// While no address is there by which others reach this node, as on a box that
// starts before its network.
constexpr absl::Duration kLookWithout = absl::Seconds(1);

}  // namespace

Finding::Finding(const config::NodeSettings& settings, EventLoop& loop,
                 Logger& log)
    : settings_(settings),
      loop_(loop),
      log_(log),
      peers_(std::make_shared<discovery::NameList>(
          "peers", settings.peers, discovery::SystemResolver())) {}

Finding::~Finding() { Stop(); }

absl::Status Finding::Begin(const std::vector<std::string>& bound) {
  listeners_ = {bound, settings_.peer.advertise, settings_.peer.dialable};
  DFL_ASSIGN_OR_RETURN(const std::vector<discovery::InterfaceAddress> all,
                       discovery::SystemInterfaces());
  absl::StatusOr<std::vector<std::string>> told =
      discovery::FindOwnAddresses(listeners_, all);
  if (absl::IsUnavailable(told.status())) {
    trouble_ = std::string(told.status().message());
    Note(true, absl::StrCat(trouble_,
                            "; it starts all the same, and looks again each ",
                            absl::FormatDuration(kLookWithout)));
    told = std::vector<std::string>();
  }
  DFL_ASSIGN_OR_RETURN(told_, std::move(told));
  SetSelf(discovery::SelfAddresses(listeners_, all));
  return absl::OkStatus();
}

void Finding::Start(FindingHooks hooks) {
  loop_.RunAndWait([&] { hooks_ = std::move(hooks); });
  discovery_ = std::make_unique<discovery::Discovery>(discovery::DiscoveryHooks{
      [this](const std::string& source,
             const std::vector<std::string>& addresses) {
        loop_.Post([this, source, addresses] {
          if (!stopped_) hooks_.candidates(source, addresses);
        });
      },
      [this](bool warning, const std::string& text) { Note(warning, text); },
      [this](absl::string_view address) { return IsSelf(address); }});
  const discovery::Resolver resolver = discovery::SystemResolver();
  const config::DiscoverySettings& wanted = settings_.discovery;
  discovery_->Add(peers_);
  if (!wanted.dns.empty()) {
    discovery_->Add(
        std::make_shared<discovery::NameList>("dns", wanted.dns, resolver));
  }
  if (!wanted.srv.empty()) {
    discovery_->Add(discovery::MakeServiceSource(wanted.srv, resolver));
  }
  if (!wanted.file.empty()) {
    discovery_->Add(discovery::MakeFileSource(wanted.file, resolver));
  }
  if (settings_.UsesMdns()) StartMdns();
  // The last: from here on the loop has all that this thread has set.
  loop_.RunAndWait([this] { LookAgain(); });
}

void Finding::LookAgain() {
  loop_.After(trouble_.empty() ? kLookEvery : kLookWithout,
              [this] { LookAtInterfaces(); });
}

void Finding::StartMdns() {
  discovery::MdnsService service;
  service.cluster = settings_.cluster;
  service.node = settings_.name;
  service.addresses = told_;
  const absl::Status valid = discovery::ValidateForMdns(service);
  if (!valid.ok()) return Note(true, std::string(valid.message()));
  mdns_ = std::make_shared<discovery::MdnsSource>(
      std::move(service),
      [this](bool warning, const std::string& text) { Note(warning, text); });
  discovery_->Add(mdns_);
}

void Finding::Stop() {
  loop_.RunAndWait([this] { stopped_ = true; });
  if (discovery_) discovery_->Stop();
}

void Finding::LookAtInterfaces() {
  if (stopped_) return;
  const auto all = discovery::SystemInterfaces();
  const absl::StatusOr<std::vector<std::string>> found =
      all.ok() ? discovery::FindOwnAddresses(listeners_, *all)
               : absl::StatusOr<std::vector<std::string>>(all.status());
  const std::string trouble(found.status().message());
  if (trouble != trouble_) {
    trouble_ = trouble;
    // What was told before is told on: the interface may come back.
    if (!trouble.empty()) Note(true, trouble);
  }
  LookAgain();
  if (all.ok()) SetSelf(discovery::SelfAddresses(listeners_, *all));
  if (!found.ok() || *found == told_) return;
  told_ = *found;
  if (mdns_) mdns_->Announce(told_);
  Note(false,
       absl::StrCat("others reach this node at ",
                    told_.empty() ? "no address" : absl::StrJoin(told_, ", ")));
  hooks_.moved(told_);
}

bool Finding::IsSelf(absl::string_view address) const {
  const absl::MutexLock lock(&mutex_);
  return self_.count(std::string(address)) > 0;
}

void Finding::SetSelf(std::set<std::string> self) {
  const absl::MutexLock lock(&mutex_);
  self_ = std::move(self);
}

void Finding::Note(bool warning, const std::string& text) {
  log_.Keep(warning ? config::LogLevel::kWarning : config::LogLevel::kInfo,
            "discovery", text);
}

}  // namespace dfl::app
