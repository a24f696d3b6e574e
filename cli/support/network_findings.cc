#include "cli/support/network_findings.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace dfl::cli {
namespace {

using client::Finding;
using client::PeerStatus;
using Kind = client::Finding::Kind;

constexpr double kMostSkewSeconds = 5;
constexpr double kSoonDays = 14;

// What to do about a link that does not come up, by what the error says.
std::string RemedyOf(absl::string_view error, absl::string_view address) {
  const std::string said = absl::AsciiStrToLower(error);
  if (absl::StrContains(said, "certificate") ||
      absl::StrContains(said, "tls") || absl::StrContains(said, "handshake") ||
      absl::StrContains(said, "authority")) {
    return "compare `dflctl cert show` of both: the same authority, a time "
           "that is not over, the node's own name";
  }
  if (absl::StrContains(said, "refused")) {
    return absl::StrCat("nothing listens at ", address,
                        ": start dfld there, or mend the address in peers");
  }
  if (absl::StrContains(said, "resolve") || absl::StrContains(said, "name")) {
    return absl::StrCat("no address is known by the name in ", address,
                        ": mend it, or the name server");
  }
  if (absl::StrContains(said, "version")) {
    return "install the same version of dfld on both";
  }
  return absl::StrCat("let TCP to ", address,
                      " through firewalls and NAT, or set peer.advertise there "
                      "to an address that others reach");
}

const PeerStatus* PeerOf(const MemberReport& report, const std::string& node) {
  if (!report.status.ok()) return nullptr;
  const std::vector<PeerStatus>& peers = report.status->node.peers;
  const auto found = std::find_if(
      peers.begin(), peers.end(),
      [&node](const PeerStatus& peer) { return peer.node == node; });
  return found == peers.end() ? nullptr : &*found;
}

// The findings of one kind of check: all is well unless one is added.
class Findings {
 public:
  explicit Findings(std::vector<Finding>& all) : all_(all) {}

  void Bad(const std::string& check, Kind kind, std::string text,
           std::string remedy) {
    bad_.insert(check);
    all_.push_back({check, kind, std::move(text), std::move(remedy)});
  }
  void GoodUnlessBad(const std::string& check, std::string text) {
    if (bad_.count(check) == 0) {
      all_.push_back({check, Kind::kOk, std::move(text), ""});
    }
  }

 private:
  std::vector<Finding>& all_;
  std::set<std::string> bad_;
};

void CheckMembers(const Survey& survey, Findings& findings) {
  int answered = 0;
  for (const MemberReport& report : survey.members) {
    if (report.status.ok()) ++answered;
    if (!Failed(report)) continue;
    findings.Bad("members", Kind::kWarning,
                 absl::StrCat(report.member.node, " does not answer: ",
                              report.status.status().message()),
                 "look whether dfld runs there: systemctl status dfld");
  }
  findings.GoodUnlessBad("members",
                         absl::StrCat(answered, " of ", survey.members.size(),
                                      " members answered"));
}

void CheckWaysOut(const MemberReport& self, Findings& findings) {
  int up = 0;
  for (const PeerStatus& peer : self.status->node.peers) {
    if (peer.linked) {
      ++up;
      continue;
    }
    if (peer.last_error.empty() || !peer.neighbour) continue;
    findings.Bad("ways out", Kind::kFault,
                 absl::StrCat(peer.node.empty() ? peer.address : peer.node,
                              " is not reached: ", peer.last_error),
                 RemedyOf(peer.last_error, peer.address));
  }
  findings.GoodUnlessBad(
      "ways out", absl::StrCat(up, " links are up, no neighbour is cut off"));
}

void CheckWaysIn(const Survey& survey, const MemberReport& self,
                 Findings& findings) {
  const std::string& name = self.member.node;
  int linked = 0;
  for (const MemberReport& report : survey.members) {
    if (report.member.node == name) continue;
    const PeerStatus* us = PeerOf(report, name);
    if (us == nullptr) continue;
    if (us->linked) {
      ++linked;
    } else if (!us->last_error.empty() && us->neighbour) {
      findings.Bad("ways in", Kind::kFault,
                   absl::StrCat(report.member.node, " does not reach ", name,
                                ": ", us->last_error),
                   RemedyOf(us->last_error, us->address));
    }
  }
  if (self.member.addresses.empty() && survey.members.size() > 1) {
    findings.Bad("ways in", Kind::kWarning,
                 absl::StrCat(name,
                              " tells no address: it dials out only, and "
                              "two such nodes cannot be linked"),
                 "set peer.listen and peer.advertise where others can reach "
                 "this node");
  }
  findings.GoodUnlessBad(
      "ways in", absl::StrCat(linked, " members have a link to ", name));
}

// Nodes by what they say. Only of those that answered.
template <typename Told>
std::map<std::string, std::vector<std::string>> Groups(const Survey& survey,
                                                       Told told) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const MemberReport& report : survey.members) {
    if (!report.status.ok()) continue;
    const std::string text = told(*report.status);
    if (!text.empty()) groups[text].push_back(report.member.node);
  }
  return groups;
}

std::string GroupsText(
    const std::map<std::string, std::vector<std::string>>& groups) {
  std::vector<std::string> texts;
  for (const auto& [told, nodes] : groups) {
    texts.push_back(absl::StrCat(told, " (", absl::StrJoin(nodes, ", "), ")"));
  }
  return absl::StrJoin(texts, ", ");
}

void CheckCertificates(const Survey& survey, Findings& findings) {
  for (const MemberReport& report : survey.members) {
    if (!report.status.ok() || report.status->insecure) continue;
    const double days = report.status->certificate_days;
    if (days >= kSoonDays) continue;
    findings.Bad("certificates", days <= 0 ? Kind::kFault : Kind::kWarning,
                 days <= 0 ? absl::StrCat(report.member.node,
                                          " has no valid certificate")
                           : absl::StrFormat("that of %s ends in %.1f days",
                                             report.member.node, days),
                 "`dflctl cert renew` on the box that has the authority");
  }
  findings.GoodUnlessBad("certificates",
                         "none ends within 14 days, of those that answered");
}

void CheckVersions(const Survey& survey, Findings& findings) {
  const auto versions =
      Groups(survey, [](const client::DaemonStatus& s) { return s.version; });
  if (versions.size() > 1) {
    findings.Bad(
        "versions", Kind::kWarning,
        absl::StrCat("nodes run different ones: ", GroupsText(versions)),
        "upgrade the older ones; neighbours of one minor version "
        "apart work together");
  }
  findings.GoodUnlessBad("versions", GroupsText(versions));
}

void CheckPlans(const Survey& survey, Findings& findings) {
  const auto plans =
      Groups(survey, [](const client::DaemonStatus& s) -> std::string {
        if (s.node.plan_version == 0) return "none";
        return absl::StrCat("version ", s.node.plan_version, " of run ",
                            s.node.run_id);
      });
  if (plans.size() > 1) {
    findings.Bad("plans", Kind::kWarning,
                 absl::StrCat("nodes have different ones: ", GroupsText(plans)),
                 "wait for a boundary; nodes of another run join by `dflctl "
                 "plan apply` of this run's plan");
  }
  findings.GoodUnlessBad("plans", GroupsText(plans));
}

void CheckContracts(const Survey& survey, Findings& findings) {
  std::set<std::string> fields;
  for (const MemberReport& report : survey.members) {
    if (!report.status.ok()) continue;
    for (const auto& [field, hash] : report.status->node.contract) {
      fields.insert(field);
    }
  }
  for (const std::string& field : fields) {
    const auto groups =
        Groups(survey, [&field](const client::DaemonStatus& s) -> std::string {
          const auto found = s.node.contract.find(field);
          return found == s.node.contract.end() ? "" : found->second;
        });
    if (groups.size() <= 1) continue;
    findings.Bad(
        "data contract", Kind::kFault,
        absl::StrCat("nodes differ in ", field, ": ", GroupsText(groups)),
        "`dflctl data show` on both sides shows what each means");
  }
  findings.GoodUnlessBad("data contract", "all nodes mean the same");
}

}  // namespace

std::vector<Finding> NetworkFindings(const Survey& survey) {
  std::vector<Finding> all;
  Findings findings(all);
  const MemberReport* self = survey.self();
  CheckMembers(survey, findings);
  if (self != nullptr && self->status.ok()) {
    CheckWaysOut(*self, findings);
    CheckWaysIn(survey, *self, findings);
  }
  CheckCertificates(survey, findings);
  CheckVersions(survey, findings);
  CheckPlans(survey, findings);
  CheckContracts(survey, findings);
  return all;
}

Finding ClockFinding(int64_t daemon_nanos, int64_t sent, int64_t received) {
  // Anything within the time of the call may be the call's.
  const int64_t off = daemon_nanos < sent       ? daemon_nanos - sent
                      : daemon_nanos > received ? daemon_nanos - received
                                                : 0;
  const double seconds = static_cast<double>(off) * 1e-9;
  if (std::abs(seconds) <= kMostSkewSeconds) {
    return {"clocks", Kind::kOk, "as this machine's, within 5 s", ""};
  }
  return {
      "clocks", Kind::kWarning,
      absl::StrFormat("the daemon's is %.0f s %s this machine's",
                      std::abs(seconds), seconds > 0 ? "ahead of" : "behind"),
      "`timedatectl set-ntp true` on the one that is wrong"};
}

Finding UnreachableFinding(const absl::Status& status) {
  const std::string remedy =
      absl::IsPermissionDenied(status)
          ? "call it as root, or have your user named in control.viewers"
          : "systemctl status dfld; journalctl -u dfld -n 50; `dfld --check` "
            "looks at the configuration";
  return {"daemon", Kind::kFault, std::string(status.message()), remedy};
}

}  // namespace dfl::cli
