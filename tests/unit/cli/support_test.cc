// What dflctl's support commands are made of: secrets taken out, archives, and
// what is amiss between nodes.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/support/archive.h"
#include "cli/support/network_findings.h"
#include "cli/support/redact.h"
#include "tests/unit/cli/unpack.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

// ------------------------------------------------------------- redaction ----

// Planted where secrets turn up. Nothing of the word "hidden" may be left.
TEST(RedactTest, TakesSecretsOut) {
  const char* planted[] = {
      "password: hidden1",
      "db_password = hidden1 hidden2",
      "  join:\n    token: hidden1\n",
      "{\"api_key\": \"hidden1\", \"x\": 1}",
      "{\"a\":\"{\\\"secret\\\":\\\"hidden1\\\"}\"}",
      "DFLD_JOIN_TOKEN=hidden1",
      "GET /?token=hidden1&x=2",
      "https://anna:hidden1@example.org/data.csv",
      "Authorization: Bearer hidden1hidden2",
      "curl -H 'authorization: Basic hidden1hidden2=='",
      "it said bearer hidden1hidden2.hidden3",
      "token dfl1.hidden1hidden2_- was refused",
      "AKIAHIDDEN1HIDDEN2XX is a key",
      "eyJhidden1hidden2.eyJhidden3hidden4.hidden5 is a token",
      "-----BEGIN PRIVATE KEY-----\nhidden1\nhidden2\n-----END PRIVATE "
      "KEY-----\n",
      "\"-----BEGIN EC PRIVATE KEY-----\\nhidden1\\n-----END EC PRIVATE "
      "KEY-----\\n\"",
      "-----BEGIN RSA PRIVATE KEY-----\nhidden1 and no end",
      "secret: |\n  hidden1\n  hidden2\n\n  hidden3\nnext: seen",
      "'client_secret': 'hidden1'",
      "credentials: {user: hidden1, more: hidden2}",
  };
  for (const char* text : planted) {
    const Redacted redacted = Redact(text);
    EXPECT_GE(redacted.count, 1) << text;
    EXPECT_THAT(redacted.text, HasSubstr(kRemoved));
    EXPECT_THAT(absl::AsciiStrToLower(redacted.text), Not(HasSubstr("hidden")))
        << text;
  }
}

TEST(RedactTest, LeavesWhatAHelperNeeds) {
  const char* plain[] = {
      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
      "run_id: 00c0ffee00c0ffee\nplan_version: 3\n",
      "join.token: \"\"\n",
      "{\"token\": null, \"peers\": [\"https://example.org:7600/x@y\"]}",
      "tls.key: /etc/dfld/tls/key.pem",
      "2026-01-01 warning link-down: bert: the token was refused",
      "tokens are listed by dflctl token list",
      "what follows is a token:",
  };
  for (const char* text : plain) {
    EXPECT_EQ(Redact(text).text, text);
    EXPECT_EQ(Redact(text).count, 0) << text;
  }
}

TEST(RedactTest, KeepsWhatStandsAround) {
  EXPECT_EQ(Redact("{\"a\": 1, \"password\": \"p\\\"q\", \"b\": 2}").text,
            "{\"a\": 1, \"password\": \"(removed)\", \"b\": 2}");
  EXPECT_EQ(Redact("a: 1\npassword: x y\nb: 2\n").text,
            "a: 1\npassword: (removed)\nb: 2\n");
  EXPECT_EQ(Redact("{secret: x}\n").text, "{secret: (removed)}\n");
  EXPECT_EQ(Redact("s:\n  secret: |\n    x\n  b: 2\n").text,
            "s:\n  secret: (removed)\n  b: 2\n");
}

// --------------------------------------------------------------- archive ----

TEST(ArchiveTest, TarReadsIt) {
  const std::string large(1000, 'x');
  const auto packed =
      MakeArchive({{"d/a.txt", "hello"}, {"d/b", large}, {"d/empty", ""}},
                  absl::FromUnixSeconds(1800000000));
  ASSERT_TRUE(packed.ok()) << packed.status();
  const SocketFolder folder;
  std::ofstream(folder.File("x.tar.gz")) << *packed;
  const std::string into = folder.File("");
  ASSERT_EQ(
      system(absl::StrCat("tar xzf ", folder.File("x.tar.gz"), " -C ", into)
                 .c_str()),
      0);
  std::ifstream a(into + "/d/a.txt");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(a), {}), "hello");
  EXPECT_EQ(Files(Unpack(*packed)).at("d/b"), large);
  EXPECT_THAT(Files(Unpack(*packed)), Contains(Key("d/empty")));
  EXPECT_FALSE(MakeArchive({{std::string(100, 'n'), ""}}, absl::Now()).ok());
}

// -------------------------------------------------------------- findings ----

using client::Finding;

class NetworkFindingsTest : public ::testing::Test {
 protected:
  NetworkFindingsTest() {
    survey_.node = "a";
    for (const char* name : {"a", "b", "c"}) {
      MemberReport report;
      report.member.node = name;
      report.member.state = client::MemberState::kMember;
      report.member.self = std::string(name) == "a";
      report.member.addresses = {absl::StrCat(name, ":7600")};
      client::DaemonStatus status;
      status.version = "0.1.0";
      status.certificate_days = 90;
      status.node.node = name;
      status.node.plan_version = 2;
      status.node.run_id = "r";
      status.node.contract = {{"classes", "01"}};
      for (const char* peer : {"a", "b", "c"}) {
        if (std::string(peer) == name) continue;
        client::PeerStatus entry;
        entry.node = peer;
        entry.neighbour = entry.linked = true;
        entry.address = absl::StrCat(peer, ":7600");
        status.node.peers.push_back(entry);
      }
      report.status = status;
      survey_.members.push_back(report);
    }
  }
  client::DaemonStatus& Status(int i) { return *survey_.members[i].status; }
  // The link between member `i` and its peer number `peer`.
  void Cut(int i, int peer, const std::string& error) {
    Status(i).node.peers[peer].linked = false;
    Status(i).node.peers[peer].last_error = error;
  }
  void ExpectOnly(const std::string& check, Finding::Kind kind,
                  const std::string& text, const std::string& remedy) {
    bool found = false;
    for (const Finding& finding : NetworkFindings(survey_)) {
      if (finding.kind == Finding::Kind::kOk) continue;
      EXPECT_EQ(finding.check, check) << finding.text;
      EXPECT_EQ(finding.kind, kind);
      EXPECT_THAT(finding.text, HasSubstr(text));
      EXPECT_THAT(finding.remedy, HasSubstr(remedy));
      found = true;
    }
    EXPECT_TRUE(found);
  }

  Survey survey_;
};

TEST_F(NetworkFindingsTest, FindsNothingWhereAllIsWell) {
  const std::vector<Finding> findings = NetworkFindings(survey_);
  EXPECT_EQ(findings.size(), 7U);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.kind, Finding::Kind::kOk) << finding.text;
  }
}

TEST_F(NetworkFindingsTest, FindsAWayOutThatIsShut) {
  Cut(0, 0, "dialling b:7600: Connection refused");
  ExpectOnly("ways out", Finding::Kind::kFault, "b is not reached",
             "nothing listens at b:7600");
  Cut(0, 0, "no answer within 5s");
  ExpectOnly("ways out", Finding::Kind::kFault, "b is not reached",
             "let TCP to b:7600 through firewalls");
  Cut(0, 0, "the certificate of b is of another authority");
  ExpectOnly("ways out", Finding::Kind::kFault, "b is not reached",
             "dflctl cert show");
}

TEST_F(NetworkFindingsTest, FindsAWayInThatIsShut) {
  Cut(2, 0, "no answer within 5s");
  ExpectOnly("ways in", Finding::Kind::kFault, "c does not reach a",
             "let TCP to a:7600 through");
}

TEST_F(NetworkFindingsTest, FindsANodeWithoutAnAddress) {
  survey_.members[0].member.addresses.clear();
  ExpectOnly("ways in", Finding::Kind::kWarning, "it dials out only",
             "peer.advertise");
}

TEST_F(NetworkFindingsTest, FindsAMemberThatIsSilent) {
  survey_.members[1].status = absl::DeadlineExceededError("no answer in 5 s");
  ExpectOnly("members", Finding::Kind::kWarning, "b does not answer",
             "systemctl status dfld");
}

TEST_F(NetworkFindingsTest, FindsCertificatesThatEnd) {
  Status(1).certificate_days = 2.5;
  ExpectOnly("certificates", Finding::Kind::kWarning, "that of b ends in 2.5",
             "dflctl cert renew");
  Status(1).certificate_days = 0;
  ExpectOnly("certificates", Finding::Kind::kFault, "b has no valid", "renew");
}

TEST_F(NetworkFindingsTest, FindsWhatNodesDifferIn) {
  Status(1).version = "0.2.0";
  ExpectOnly("versions", Finding::Kind::kWarning, "0.1.0 (a, c), 0.2.0 (b)",
             "upgrade");
  Status(1).version = "0.1.0";
  Status(2).node.plan_version = 1;
  ExpectOnly("plans", Finding::Kind::kWarning, "version 1 of run r (c)",
             "boundary");
  Status(2).node.plan_version = 2;
  Status(2).node.contract["classes"] = "02";
  ExpectOnly("data contract", Finding::Kind::kFault,
             "nodes differ in classes: 01 (a, b), 02 (c)", "dflctl data show");
}

TEST(ClockFindingTest, TheTimeOfTheCallIsNoSkew) {
  constexpr int64_t kSecond = 1000000000;
  EXPECT_EQ(ClockFinding(100 * kSecond, 95 * kSecond, 101 * kSecond).kind,
            Finding::Kind::kOk);
  EXPECT_EQ(ClockFinding(97 * kSecond, 101 * kSecond, 102 * kSecond).kind,
            Finding::Kind::kOk);
  const Finding behind = ClockFinding(0, 3600 * kSecond, 3601 * kSecond);
  EXPECT_EQ(behind.kind, Finding::Kind::kWarning);
  EXPECT_THAT(behind.text, HasSubstr("3600 s behind"));
}

}  // namespace
}  // namespace dfl::cli
