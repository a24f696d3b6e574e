// What Avahi's daemon and its library in the process have in common: two
// interfaces of the same shape. `Api` names the types and calls of one of them.
// Room-internal.
#ifndef DFL_DISCOVERY_AVAHI_RESPONDER_H_
#define DFL_DISCOVERY_AVAHI_RESPONDER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "avahi-common/alternative.h"
#include "avahi-common/defs.h"
#include "avahi-common/error.h"
#include "avahi-common/malloc.h"
#include "avahi-common/strlst.h"
#include "daemon/base/host_port.h"
#include "daemon/discovery/responder.h"

namespace dfl::discovery {

// The strings of a TXT record.
inline std::vector<std::string> Strings(AvahiStringList* list) {
  std::vector<std::string> strings;
  for (; list != nullptr; list = avahi_string_list_get_next(list)) {
    strings.emplace_back(
        reinterpret_cast<const char*>(avahi_string_list_get_text(list)),
        avahi_string_list_get_size(list));
  }
  return strings;
}

template <typename Api>
class AvahiResponder : public Responder {
 public:
  explicit AvahiResponder(ResponderOptions options)
      : options_(std::move(options)), instance_(options_.service.node) {}

  ~AvahiResponder() override {
    for (auto& [key, heard] : heard_) Release(heard);
    if (browser_ != nullptr) Api::Free(browser_);
    if (server_ != nullptr) Api::Free(server_);  // and its group
  }
  AvahiResponder(const AvahiResponder&) = delete;
  AvahiResponder& operator=(const AvahiResponder&) = delete;

  absl::Status state() const override { return state_; }

  void AskAgain() override {
    for (auto& [key, heard] : heard_) {
      if (!heard.failed) continue;
      Release(heard);
      AskFor(heard);
    }
  }

  // The stack answers on behalf of `server`.
  void OnRunning(typename Api::Server* server) {
    server_ = server;
    Announce();
  }
  // Its host name is being settled; what was announced is announced again.
  void OnRegistering(typename Api::Server* server) {
    server_ = server;
    if (group_ != nullptr) Api::Reset(group_);
  }
  void OnFailure(int error) {
    state_ = absl::UnavailableError(avahi_strerror(error));
  }
  void OnGroup(AvahiEntryGroupState state) {
    if (state == AVAHI_ENTRY_GROUP_COLLISION) {
      TakeAnotherName();
      Api::Reset(group_);
      Announce();
    } else if (state == AVAHI_ENTRY_GROUP_FAILURE) {
      OnFailure(Api::Error(server_));
    }
  }

  void OnBrowser(MdnsKey key, AvahiBrowserEvent event) {
    switch (event) {
      case AVAHI_BROWSER_NEW:
        if (heard_.size() < kMostMdnsServices) {
          const auto [it, added] = heard_.try_emplace(std::move(key));
          if (!added) return;
          it->second.owner = this;
          it->second.key = &it->first;
          AskFor(it->second);
        }
        break;
      case AVAHI_BROWSER_REMOVE: {
        const auto it = heard_.find(key);
        if (it == heard_.end()) return;
        Release(it->second);
        heard_.erase(it);
        options_.gone(key);
        break;
      }
      case AVAHI_BROWSER_FAILURE:
        OnFailure(Api::Error(server_));
        break;
      case AVAHI_BROWSER_CACHE_EXHAUSTED:
      case AVAHI_BROWSER_ALL_FOR_NOW:
        break;
    }
  }

 protected:
  // A service that was heard of, with the question for its records.
  struct Heard {
    AvahiResponder* owner = nullptr;
    const MdnsKey* key = nullptr;
    typename Api::Resolver* resolver = nullptr;
    bool failed = false;
  };

  // Begins to browse; `server` is what the stack's constructor gave.
  absl::Status Begin(typename Api::Server* server) {
    server_ = server;
    browser_ = Api::Browse(server_, kMdnsType, &AvahiResponder::Browsed, this);
    if (browser_ == nullptr) OnFailure(Api::Error(server_));
    return state_;
  }

  // The stack could not be made, so nothing that it told of is there.
  absl::Status Abandon(int error) {
    server_ = nullptr;
    group_ = nullptr;
    return absl::UnavailableError(avahi_strerror(error));
  }

  const ResponderOptions& options() const { return options_; }

 private:
  static void Browsed(typename Api::Browser* /*browser*/,
                      AvahiIfIndex interface, AvahiProtocol protocol,
                      AvahiBrowserEvent event, const char* name,
                      const char* type, const char* domain,
                      AvahiLookupResultFlags /*flags*/, void* self) {
    const auto text = [](const char* maybe) {
      return std::string(maybe == nullptr ? "" : maybe);
    };
    static_cast<AvahiResponder*>(self)->OnBrowser(
        {interface, protocol, text(name), text(type), text(domain)}, event);
  }

  static void Resolved(typename Api::Resolver* /*resolver*/,
                       AvahiIfIndex /*interface*/, AvahiProtocol /*protocol*/,
                       AvahiResolverEvent event, const char* /*name*/,
                       const char* /*type*/, const char* /*domain*/,
                       const char* /*host*/, const AvahiAddress* /*address*/,
                       uint16_t /*port*/, AvahiStringList* txt,
                       AvahiLookupResultFlags /*flags*/, void* entry) {
    auto* heard = static_cast<Heard*>(entry);
    heard->failed = event != AVAHI_RESOLVER_FOUND;
    if (!heard->failed) {
      heard->owner->options_.found(*heard->key, Strings(txt));
    }
  }

  static void GroupChanged(typename Api::Group* group,
                           AvahiEntryGroupState state, void* self) {
    auto* responder = static_cast<AvahiResponder*>(self);
    responder->group_ = group;
    responder->OnGroup(state);
  }

  void AskFor(Heard& heard) {
    heard.resolver =
        Api::Resolve(server_, *heard.key, &AvahiResponder::Resolved, &heard);
    heard.failed = heard.resolver == nullptr;
  }

  static void Release(Heard& heard) {
    if (heard.resolver != nullptr) Api::Free(heard.resolver);
    heard.resolver = nullptr;
  }

  void TakeAnotherName() {
    char* other = avahi_alternative_service_name(instance_.c_str());
    instance_ = other;
    avahi_free(other);
  }

  void Announce() {
    const MdnsService& service = options_.service;
    if (service.addresses.empty()) return;
    if (group_ == nullptr) {
      group_ = Api::NewGroup(server_, &AvahiResponder::GroupChanged, this);
    }
    if (group_ == nullptr) return OnFailure(Api::Error(server_));
    if (!Api::IsEmpty(group_)) return;
    AvahiStringList* txt = nullptr;
    for (const std::string& entry : TxtOf(service)) {
      txt = avahi_string_list_add(txt, entry.c_str());
    }
    const auto address = ParseHostPort(service.addresses.front());
    const auto port = static_cast<uint16_t>(address.ok() ? address->port : 0);
    int error = Api::AddService(server_, group_, instance_, port, txt);
    for (int tries = 0; error == AVAHI_ERR_COLLISION && tries < 100; ++tries) {
      TakeAnotherName();
      error = Api::AddService(server_, group_, instance_, port, txt);
    }
    avahi_string_list_free(txt);
    if (error == AVAHI_OK) error = Api::Commit(group_);
    if (error != AVAHI_OK) OnFailure(error);
  }

  const ResponderOptions options_;
  std::string instance_;
  absl::Status state_;
  typename Api::Server* server_ = nullptr;
  typename Api::Group* group_ = nullptr;
  typename Api::Browser* browser_ = nullptr;
  std::map<MdnsKey, Heard> heard_;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_AVAHI_RESPONDER_H_
