#include "cli/identity.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "cli/cert_folder.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr absl::string_view kGetOne =
    "make a network with `dflctl cert init CLUSTER`, or get a certificate of "
    "yours with `dflctl cert issue NAME --role operator` where the authority's "
    "key is";

std::string Variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

// Folders of people of `roles` in a network's folder that have a key.
std::vector<std::string> PeopleIn(const std::string& network,
                                  absl::Span<const tls::Role> roles) {
  std::vector<std::string> people;
  for (const tls::Role role : roles) {
    const std::string folder = absl::StrCat(network, "/", tls::Name(role));
    for (const std::string& name : FoldersIn(folder)) {
      std::string person = absl::StrCat(folder, "/", name);
      if (access((person + "/key.pem").c_str(), F_OK) == 0) {
        people.push_back(std::move(person));
      }
    }
  }
  return people;
}

std::vector<std::string> PeopleIn(const std::string& network) {
  const tls::Role steering[] = {tls::Role::kOperator, tls::Role::kAdmin};
  std::vector<std::string> people = PeopleIn(network, steering);
  if (!people.empty()) return people;
  const tls::Role reading[] = {tls::Role::kViewer};
  return PeopleIn(network, reading);
}

absl::Status Several(const std::vector<std::string>& folders) {
  return absl::InvalidArgumentError(absl::StrCat(
      "there are several identities: name one with --identity or in "
      "DFLCTL_IDENTITY: ",
      absl::StrJoin(folders, ", ")));
}

}  // namespace

absl::StatusOr<std::string> FindIdentityFolder(const Environment& environment,
                                               const std::string& option) {
  if (!option.empty()) return option;
  const std::string variable = Variable(environment, "DFLCTL_IDENTITY");
  if (!variable.empty()) return variable;
  DFL_ASSIGN_OR_RETURN(const std::string networks,
                       NetworksFolder(environment, "--identity"));
  std::vector<std::string> all;
  std::vector<std::string> last;
  int count = 0;
  for (const std::string& cluster : FoldersIn(networks)) {
    std::vector<std::string> people =
        PeopleIn(absl::StrCat(networks, "/", cluster));
    if (people.empty()) continue;
    ++count;
    all.insert(all.end(), people.begin(), people.end());
    last = std::move(people);
  }
  if (count == 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no certificate and key of yours in ", networks,
                     "; name their folder with --identity, or ", kGetOne));
  }
  if (count > 1) return Several(all);
  if (last.size() == 1) return last[0];
  const std::string user = Variable(environment, "USER");
  for (const std::string& folder : last) {
    if (folder.substr(folder.rfind('/') + 1) == user) return folder;
  }
  return Several(last);
}

}  // namespace dfl::cli
