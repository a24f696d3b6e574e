#include "daemon/control/unix_roles.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"

namespace dfl::control {
namespace {

// An entry of the users' or the groups' data base may have many members.
constexpr size_t kMaxEntryBytes = size_t{1} << 20;

// `look_up` is getpwnam_r or getgrnam_r. nullopt: there is no such entry, or
// the data base does not answer.
template <typename Entry, typename Id>
std::optional<Id> IdOf(const std::string& name,
                       int (*look_up)(const char*, Entry*, char*, size_t,
                                      Entry**),
                       Id Entry::* id) {
  std::vector<char> buffer(4096);
  Entry entry{};
  Entry* found = nullptr;
  while (look_up(name.c_str(), &entry, buffer.data(), buffer.size(), &found) ==
             ERANGE &&
         buffer.size() < kMaxEntryBytes) {
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr) return std::nullopt;
  return entry.*id;
}

std::optional<uint32_t> ToNumber(const std::string& text) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  return std::nullopt;
}

}  // namespace

bool UnixRoles::People::Has(const UnixPeer& peer) const {
  return users.count(peer.user) > 0 || groups.count(peer.group) > 0 ||
         std::any_of(peer.groups.begin(), peer.groups.end(),
                     [this](gid_t group) { return groups.count(group) > 0; });
}

absl::StatusOr<UnixRoles::People> UnixRoles::Parse(
    const std::string& key, const std::vector<std::string>& names) {
  People people;
  for (const std::string& text : names) {
    absl::string_view rest = text;
    const bool is_group = absl::ConsumePrefix(&rest, "@");
    const std::string name(rest);
    std::optional<uint32_t> id = ToNumber(name);
    if (!id.has_value() && !name.empty()) {
      id = is_group ? IdOf(name, getgrnam_r, &group::gr_gid)
                    : IdOf(name, getpwnam_r, &passwd::pw_uid);
    }
    if (!id.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, ": found \"", text, "\", and this machine knows no such ",
          is_group ? "group" : "user",
          "; allowed: users by name or number, groups as \"@name\" or "
          "\"@number\"; see `getent ",
          is_group ? "group" : "passwd", "`"));
    }
    if (is_group) {
      people.groups.insert(*id);
    } else {
      people.users.insert(*id);
    }
  }
  return people;
}

absl::StatusOr<UnixRoles> UnixRoles::Resolve(
    const std::vector<std::string>& admins,
    const std::vector<std::string>& viewers, const UnixPeer& daemon) {
  UnixRoles roles;
  DFL_ASSIGN_OR_RETURN(roles.admins_, Parse("control.admins", admins));
  DFL_ASSIGN_OR_RETURN(roles.viewers_, Parse("control.viewers", viewers));
  roles.admins_.users.insert(0);
  if (admins.empty()) {
    roles.admins_.users.insert(daemon.user);
    roles.admins_.groups.insert(daemon.group);
  }
  return roles;
}

Role UnixRoles::RoleOf(const UnixPeer& peer) const {
  if (admins_.Has(peer)) return Role::kAdmin;
  return viewers_.Has(peer) ? Role::kViewer : Role::kNone;
}

}  // namespace dfl::control
