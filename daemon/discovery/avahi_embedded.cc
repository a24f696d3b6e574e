// Multicast DNS in this process, with Avahi's library.
#include <memory>
#include <string>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "avahi-common/alternative.h"
#include "avahi-common/malloc.h"
#include "avahi-core/core.h"
#include "avahi-core/log.h"
#include "avahi-core/lookup.h"
#include "avahi-core/publish.h"
#include "daemon/discovery/avahi_responder.h"
#include "daemon/discovery/responder.h"

namespace dfl::discovery {
namespace {

struct CoreApi {
  using Server = AvahiServer;
  using Group = AvahiSEntryGroup;
  using Browser = AvahiSServiceBrowser;
  using Resolver = AvahiSServiceResolver;
  using GroupChanged = void (*)(Group* group, AvahiEntryGroupState state,
                                void* self);

  static int Error(Server* server) { return avahi_server_errno(server); }
  // The library's callback has one argument more; `changed` is the same for
  // all groups.
  template <typename Changed>
  static Group* NewGroup(Server* server, Changed changed, void* self) {
    static const GroupChanged kChanged = changed;
    return avahi_s_entry_group_new(
        server,
        [](AvahiServer* /*server*/, Group* group, AvahiEntryGroupState state,
           void* data) { kChanged(group, state, data); },
        self);
  }
  static bool IsEmpty(Group* group) {
    return avahi_s_entry_group_is_empty(group) != 0;
  }
  static void Reset(Group* group) { avahi_s_entry_group_reset(group); }
  static int Commit(Group* group) { return avahi_s_entry_group_commit(group); }
  static int AddService(Server* server, Group* group,
                        const std::string& instance, uint16_t port,
                        AvahiStringList* txt) {
    return avahi_server_add_service_strlst(
        server, group, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC,
        AvahiPublishFlags(0), instance.c_str(), kMdnsType, nullptr, nullptr,
        port, txt);
  }
  static Browser* Browse(Server* server, const char* type,
                         AvahiSServiceBrowserCallback browsed, void* self) {
    return avahi_s_service_browser_new(server, AVAHI_IF_UNSPEC,
                                       AVAHI_PROTO_UNSPEC, type, nullptr,
                                       AvahiLookupFlags(0), browsed, self);
  }
  static Resolver* Resolve(Server* server, const MdnsKey& key,
                           AvahiSServiceResolverCallback resolved,
                           void* entry) {
    return avahi_s_service_resolver_new(
        server, key.interface, key.protocol, key.instance.c_str(),
        key.type.c_str(), key.domain.c_str(), AVAHI_PROTO_UNSPEC,
        AVAHI_LOOKUP_NO_ADDRESS, resolved, entry);
  }
  static void Free(Server* server) { avahi_server_free(server); }
  static void Free(Browser* browser) { avahi_s_service_browser_free(browser); }
  static void Free(Resolver* resolver) {
    avahi_s_service_resolver_free(resolver);
  }
};

// A host name of our own, so that it is nobody else's, such as that of a
// container on the same bridge: what "dfl-" and the node's name give of
// letters, digits and '-'.
std::string HostNameFor(const std::string& node) {
  constexpr size_t kLongestLabel = 63;
  std::string name = absl::StrCat("dfl-", node).substr(0, kLongestLabel);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return name;
}

class EmbeddedResponder final : public AvahiResponder<CoreApi> {
 public:
  using AvahiResponder::AvahiResponder;

  absl::Status Start() {
    AvahiServerConfig config;
    avahi_server_config_init(&config);
    avahi_free(config.host_name);
    config.host_name =
        avahi_strdup(HostNameFor(options().service.node).c_str());
    config.publish_hinfo = 0;
    config.publish_workstation = 0;
    config.publish_domain = 0;
    config.enable_wide_area = 0;
    int error = 0;
    AvahiServer* server = avahi_server_new(
        options().poll, &config, &EmbeddedResponder::Changed, this, &error);
    avahi_server_config_free(&config);
    if (server == nullptr) return Abandon(error);
    return Begin(server);
  }

 private:
  // Called from inside avahi_server_new for the first time.
  static void Changed(AvahiServer* server, AvahiServerState state, void* self) {
    auto* responder = static_cast<EmbeddedResponder*>(self);
    switch (state) {
      case AVAHI_SERVER_RUNNING:
        responder->OnRunning(server);
        break;
      case AVAHI_SERVER_REGISTERING:
        responder->OnRegistering(server);
        break;
      case AVAHI_SERVER_COLLISION: {
        responder->OnRegistering(server);
        char* other =
            avahi_alternative_host_name(avahi_server_get_host_name(server));
        const int error = avahi_server_set_host_name(server, other);
        avahi_free(other);
        if (error < 0) responder->OnFailure(error);
        break;
      }
      case AVAHI_SERVER_FAILURE:
        responder->OnFailure(avahi_server_errno(server));
        break;
      case AVAHI_SERVER_INVALID:
        break;
    }
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Responder>> EmbedAvahi(
    ResponderOptions options) {
  // The library writes to stderr, past the log; what matters comes as errors.
  static absl::once_flag silenced;
  absl::call_once(silenced, [] {
    avahi_set_log_function([](AvahiLogLevel, const char*) {});
  });
  auto responder = std::make_unique<EmbeddedResponder>(std::move(options));
  const absl::Status started = responder->Start();
  if (!started.ok()) return started;
  return responder;
}

}  // namespace dfl::discovery
