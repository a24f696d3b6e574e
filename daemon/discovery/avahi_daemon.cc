// Multicast DNS through the Avahi daemon of this machine, over D-Bus.
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "avahi-client/client.h"
#include "avahi-client/lookup.h"
#include "avahi-client/publish.h"
#include "daemon/discovery/avahi_responder.h"
#include "daemon/discovery/responder.h"

namespace dfl::discovery {
namespace {

struct DaemonApi {
  using Server = AvahiClient;
  using Group = AvahiEntryGroup;
  using Browser = AvahiServiceBrowser;
  using Resolver = AvahiServiceResolver;

  static int Error(Server* server) { return avahi_client_errno(server); }
  static Group* NewGroup(Server* server, AvahiEntryGroupCallback changed,
                         void* self) {
    return avahi_entry_group_new(server, changed, self);
  }
  static bool IsEmpty(Group* group) {
    return avahi_entry_group_is_empty(group) != 0;
  }
  static void Reset(Group* group) { avahi_entry_group_reset(group); }
  static int Commit(Group* group) { return avahi_entry_group_commit(group); }
  static int AddService(Server* /*server*/, Group* group,
                        const std::string& instance, uint16_t port,
                        AvahiStringList* txt) {
    return avahi_entry_group_add_service_strlst(
        group, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, AvahiPublishFlags(0),
        instance.c_str(), kMdnsType, nullptr, nullptr, port, txt);
  }
  static Browser* Browse(Server* server, const char* type,
                         AvahiServiceBrowserCallback browsed, void* self) {
    return avahi_service_browser_new(server, AVAHI_IF_UNSPEC,
                                     AVAHI_PROTO_UNSPEC, type, nullptr,
                                     AvahiLookupFlags(0), browsed, self);
  }
  static Resolver* Resolve(Server* server, const MdnsKey& key,
                           AvahiServiceResolverCallback resolved, void* entry) {
    return avahi_service_resolver_new(server, key.interface, key.protocol,
                                      key.instance.c_str(), key.type.c_str(),
                                      key.domain.c_str(), AVAHI_PROTO_UNSPEC,
                                      AVAHI_LOOKUP_NO_ADDRESS, resolved, entry);
  }
  static void Free(Server* server) { avahi_client_free(server); }
  static void Free(Browser* browser) { avahi_service_browser_free(browser); }
  static void Free(Resolver* resolver) {
    avahi_service_resolver_free(resolver);
  }
};

class DaemonResponder final : public AvahiResponder<DaemonApi> {
 public:
  using AvahiResponder::AvahiResponder;

  absl::Status Connect() {
    int error = 0;
    AvahiClient* client =
        avahi_client_new(options().poll, AvahiClientFlags(0),
                         &DaemonResponder::Changed, this, &error);
    if (client == nullptr) return Abandon(error);
    return Begin(client);
  }

 private:
  // Called from inside avahi_client_new for the first time.
  static void Changed(AvahiClient* client, AvahiClientState state, void* self) {
    auto* responder = static_cast<DaemonResponder*>(self);
    switch (state) {
      case AVAHI_CLIENT_S_RUNNING:
        responder->OnRunning(client);
        break;
      case AVAHI_CLIENT_S_REGISTERING:
      case AVAHI_CLIENT_S_COLLISION:
        responder->OnRegistering(client);
        break;
      case AVAHI_CLIENT_FAILURE:
        responder->OnFailure(avahi_client_errno(client));
        break;
      case AVAHI_CLIENT_CONNECTING:
        break;
    }
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Responder>> ConnectToAvahi(
    ResponderOptions options) {
  auto responder = std::make_unique<DaemonResponder>(std::move(options));
  const absl::Status connected = responder->Connect();
  if (!connected.ok()) return connected;
  return responder;
}

}  // namespace dfl::discovery
