// Ways to end up alone, with real daemons: each is visible in the status, in
// the log once, and in the exit code of `dflctl watch --until-finished`.
//
// The cases run side by side. Node "a" trains by its plan, which gives it the
// neighbour "b", and something is wrong with b. Gates hold their first
// gradients, so that nothing is burnt meanwhile and all end alike.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "tests/support/daemon_process.h"
#include "tests/support/made_credentials.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;

constexpr char kPlan[] =
    "run: together\n"
    "seed: 11\n"
    "members: [a, b]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: d-psgd, knobs: {eta: 0.02}}\n"
    "topology: {kind: complete}\n"
    "batch_size: 10\n"
    "deadline: {exchange: 500ms}\n"
    "evaluation: {every_steps: 0}\n"
    "codec: {coordinates: dense, values: fp32}\n"
    "stop: {steps: 50}\n";
constexpr char kNetwork[] = "network:\n  problem: {kind: linear, n: 40}\n";
constexpr int kLearnedAlone = 10;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// One way to end up alone.
class Pair {
 public:
  explicit Pair(std::string way) : way_(std::move(way)) {}
  ~Pair() {
    if (listener_ >= 0) close(listener_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  const std::string& way() const { return way_; }
  DaemonProcess& a() { return *nodes_.at("a"); }
  DaemonProcess& b() { return *nodes_.at("b"); }

  // Starts a daemon that says it is `name`; `key` tells it from others.
  // `tls_folder`: of its certificate; with one it takes its plan from a file.
  // `own_plan`: from a file, too, and it is this one; else one that is given to
  // a node reaches the other.
  void Start(const std::string& key, const std::string& name,
             const std::vector<std::string>& peers = {},
             const std::string& differs = "",
             const std::string& tls_folder = "",
             const std::string& own_plan = "") {
    const std::string folder = folder_.File(key);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const std::string scenario = folder_.File("scenario.yaml");
    // "bb" learns like the others, and is no member of the plan.
    WriteFile(scenario, absl::StrCat(absl::StrReplaceAll(
                                         kPlan, {{"[a, b]", "[a, b, bb]"}}),
                                     kNetwork));
    DaemonProcess::Options options;
    options.program = "analytic_dfld";
    gates_[key] = absl::StrCat(folder, "/gate");
    ASSERT_EQ(mkfifo(gates_[key].c_str(), 0600), 0);
    options.environment = {{"DFL_SCENARIO", scenario},
                           {"DFL_GATE", gates_[key]}};
    if (!differs.empty()) options.environment["DFL_DIFFERS"] = differs;
    options.name = name;
    options.folder = folder;
    options.train_csv = "unread.csv";
    options.peers = peers;
    options.tls_folder = tls_folder;
    if (!tls_folder.empty() || !own_plan.empty()) {
      WriteFile(absl::StrCat(folder, "/plan.yaml"),
                own_plan.empty() ? kPlan : own_plan);
      options.extra_yaml =
          absl::StrCat("run: {plan: ", folder, "/plan.yaml, autostart: yes}\n");
    }
    nodes_[key] = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(nodes_[key]->Start()) << way_ << "\n" << nodes_[key]->log();
  }

  // Gives a node the plan, and starts it.
  void Train(const std::string& key) {
    client::ApplyPlanOptions apply;
    apply.yaml = kPlan;
    const auto applied = nodes_.at(key)->client().ApplyPlan(apply);
    ASSERT_TRUE(applied.ok()) << way_ << ": " << applied.status();
    const auto started =
        nodes_.at(key)->client().Train(client::TrainAction::kStart);
    ASSERT_TRUE(started.ok()) << way_ << ": " << started.status();
  }

  bool Linked() {
    return a().StatusBecomes(absl::Seconds(20), [](const auto& status) {
      return !status.peers.empty() && status.peers[0].linked;
    });
  }

  // The folder of a certificate for `node` of a network of its own.
  std::string CertificateOf(const std::string& node,
                            const std::string& network) {
    const std::string net = folder_.File(absl::StrCat(network, "-net"));
    const std::string out = folder_.File(absl::StrCat(node, "-tls"));
    const std::map<std::string, std::string> home = {{"HOME", folder_.path()}};
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"cert", "init", network, "--dir", net},
          {"cert", "issue", node, "--dir", net, "--out", out}}) {
      std::vector<std::string> arguments = {Program("dflctl")};
      arguments.insert(arguments.end(), command.begin(), command.end());
      const Outcome made = RunCommand(arguments, home);
      EXPECT_EQ(made.exit_code, 0) << made.err;
    }
    return out;
  }

  // A folder of `node`'s certificate from `authority`, valid for so long.
  std::string CertificateFrom(const tls::Authority& authority,
                              const std::string& node, absl::Duration valid) {
    const std::string out = folder_.File(absl::StrCat(node, "-tls"));
    tls::WriteCredentials(
        out, *tls::MakeCredentials(
                 authority, {authority.cluster(), tls::Role::kNode, node}, {},
                 absl::Now(), valid));
    return out;
  }

  // Both say of each other within two seconds that they differ in `field`.
  void ExpectBothDisagree(const std::string& field) {
    for (const char* key : {"a", "b"}) {
      EXPECT_TRUE(nodes_.at(key)->StatusBecomes(
          absl::Seconds(2),
          [&](const auto& status) {
            return !status.peers.empty() && !status.peers[0].mixing &&
                   absl::StartsWith(status.peers[0].not_mixing,
                                    absl::StrCat(field, ": "));
          }))
          << way_ << ": " << key << "\n"
          << nodes_.at(key)->log();
    }
  }

  // The address of something that listens and is no daemon.
  std::string ListenToNobody() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size),
        0);
    return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }

  // What a says of b.
  client::PeerStatus Neighbour() {
    for (const client::PeerStatus& peer : a().Status().peers) {
      if (peer.neighbour) return peer;
    }
    return {};
  }

  // For what shows when models are sent.
  void OpenBoth() {
    ASSERT_TRUE(Eventually(absl::Seconds(20), [&] {
      return Neighbour().phase == client::Phase::kTraining;
    })) << way_;
    ASSERT_NO_FATAL_FAILURE(OpenGate("a"));
    ASSERT_NO_FATAL_FAILURE(OpenGate("b"));
    opened_ = true;
  }

  void OpenGate(const std::string& key) {
    int file = -1;
    ASSERT_TRUE(Eventually(absl::Seconds(30), [&] {
      file = open(gates_.at(key).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return file >= 0;
    })) << way_;
    close(file);
  }

  // a says that it learns alone and which of the reasons `whys` it is, in one
  // answer of the node and again after the end.
  void ExpectAlone(const std::vector<std::string>& whys) {
    const auto is_alone = [&](const client::NodeStatus& status) {
      for (const client::PeerStatus& peer : status.peers) {
        if (!peer.neighbour) continue;
        return !peer.mixing &&
               std::any_of(
                   whys.begin(), whys.end(), [&](const std::string& why) {
                     return absl::StrContains(status.alone, why) &&
                            absl::StrContains(peer.not_mixing,
                                              absl::StripPrefix(why, "b: "));
                   });
      }
      return false;
    };
    EXPECT_TRUE(a().StatusBecomes(absl::Seconds(30), is_alone))
        << way_ << ": " << a().Status().alone << "; " << Neighbour().not_mixing
        << "\n"
        << a().log();
    if (!opened_) {
      ASSERT_NO_FATAL_FAILURE(OpenGate("a"));
    }
    const Outcome watch =
        RunCommand({Program("dflctl"), "-t", a().target(), "watch",
                    "--until-finished", "--interval", "200ms"});
    EXPECT_EQ(watch.exit_code, kLearnedAlone) << way_ << "\n" << watch.err;
    EXPECT_THAT(watch.err, HasSubstr("learned alone: ")) << way_;
    EXPECT_THAT(watch.out, HasSubstr(" neighbours 0/1 ")) << way_;
    const client::NodeStatus status = a().Status();
    EXPECT_THAT(status.phase_reason,
                HasSubstr(" steps are done; learned alone: no model "))
        << way_;
    const std::string log = a().log();
    EXPECT_EQ(CountOf(log, "learned alone: "), 1) << way_ << "\n" << log;
    // A run that is through at once says it at its end alone.
    EXPECT_LE(CountOf(log, "this node learns alone"), 1) << way_ << "\n" << log;
    if (!opened_) {
      EXPECT_EQ(CountOf(log, "this node learns alone"), 1) << way_ << "\n"
                                                           << log;
    }
  }

 private:
  const std::string way_;
  TemporaryFolder folder_;
  std::map<std::string, std::unique_ptr<DaemonProcess>> nodes_;
  std::map<std::string, std::string> gates_;
  bool opened_ = false;
  int listener_ = -1;
};

struct Way {
  std::string name;
  // Makes it so that `a` is alone.
  std::function<void(Pair&)> begin;
  // What a may say of it, by how far it has come.
  std::vector<std::string> whys;
};

using Changes = std::vector<std::pair<std::string, std::string>>;

// b, linked to a, with the same plan.
void BeginLinked(Pair& pair, const std::string& differs = "") {
  ASSERT_NO_FATAL_FAILURE(pair.Start("a", "a"));
  ASSERT_NO_FATAL_FAILURE(
      pair.Start("b", "b", {pair.a().peer_address()}, differs));
  ASSERT_TRUE(pair.Linked()) << pair.way();
  ASSERT_NO_FATAL_FAILURE(pair.Train("a"));
  ASSERT_NO_FATAL_FAILURE(pair.Train("b"));
}

// The same, with the plans of their own settings: b's is that of all but for
// `changes`, and a's but for `of_a`.
void BeginApart(Pair& pair, const Changes& changes, const Changes& of_a = {}) {
  ASSERT_NO_FATAL_FAILURE(
      pair.Start("a", "a", {}, "", "", absl::StrReplaceAll(kPlan, of_a)));
  ASSERT_NO_FATAL_FAILURE(pair.Start("b", "b", {pair.a().peer_address()}, "",
                                     "", absl::StrReplaceAll(kPlan, changes)));
  ASSERT_TRUE(pair.Linked()) << pair.way();
}

// a dials `address`, where b is not.
void BeginDialling(Pair& pair, const std::string& address) {
  ASSERT_NO_FATAL_FAILURE(pair.Start("a", "a", {address}));
  ASSERT_NO_FATAL_FAILURE(pair.Train("a"));
}

std::vector<Way> Ways() {
  std::vector<Way> ways = {
      {"another run",
       [](Pair& p) { BeginApart(p, {{"run: together", "run: another"}}); },
       {"b: run: together here, another there"}},
      {"another algorithm",
       [](Pair& p) {
         BeginApart(p, {{"d-psgd, knobs: {eta: 0.02}", "decefl"}});
       },
       {"b: algorithm: d-psgd here, decefl there"}},
      // Each round waits for a model that can be taken.
      {"another codec",
       [](Pair& p) {
         const Changes few = {{"steps: 50", "steps: 8"}};
         Changes other = few;
         other.emplace_back("values: fp32", "values: int8");
         ASSERT_NO_FATAL_FAILURE(BeginApart(p, other, few));
         p.OpenBoth();
       },
       {"b: its messages are refused: the model is sent as dense int8; the "
        "plan says dense fp32"}},
      {"not a member",
       [](Pair& p) {
         p.Start("b", "bb");
         BeginDialling(p, p.b().peer_address());
       },
       {"is bb, which is no member of this plan"}},
      {"unreachable",
       [](Pair& p) { BeginDialling(p, "127.0.0.1:1"); },
       {"b: it is not linked: dialling 127.0.0.1:1"}},
      {"refused by TLS",
       [](Pair& p) {
         ASSERT_NO_FATAL_FAILURE(
             p.Start("b", "b", {}, "", p.CertificateOf("b", "plant-5")));
         ASSERT_NO_FATAL_FAILURE(p.Start("a", "a", {p.b().peer_address()}, "",
                                         p.CertificateOf("a", "plant-4")));
       },
       {"this node does not admit the peer"}},
      {"TLS that ends later",
       [](Pair& p) {
         const tls::Authority authority =
             tls::MakeAuthority("plant-4", absl::Now());
         ASSERT_NO_FATAL_FAILURE(
             p.Start("b", "b", {}, "",
                     p.CertificateFrom(authority, "b", absl::Seconds(15))));
         ASSERT_NO_FATAL_FAILURE(
             p.Start("a", "a", {p.b().peer_address()}, "",
                     p.CertificateFrom(authority, "a", absl::Hours(24))));
         ASSERT_TRUE(p.Linked()) << p.way();
       },
       {"b: it is not linked: "}},
      {"a wrong port",
       [](Pair& p) { BeginDialling(p, p.ListenToNobody()); },
       {"b: it is not linked: dialling 127.0.0.1:"}},
      {"not started",
       [](Pair& p) {
         ASSERT_NO_FATAL_FAILURE(p.Start("a", "a"));
         ASSERT_NO_FATAL_FAILURE(p.Start("b", "b", {p.a().peer_address()}));
         ASSERT_NO_FATAL_FAILURE(p.Train("a"));
       },
       {"b: it has not been started"}},
      {"frozen",
       [](Pair& p) {
         ASSERT_NO_FATAL_FAILURE(BeginLinked(p));
         ASSERT_TRUE(Eventually(absl::Seconds(20), [&] {
           return p.Neighbour().phase == client::Phase::kTraining;
         }));
         p.b().process().Signal(SIGSTOP);
       },
       {"b: it is linked and silent",
        "b: it is not linked: b has been silent for three heartbeats"}},
      // Both are "a" for the hub "b": of the two the one that came first stays.
      {"a clone",
       [](Pair& p) {
         ASSERT_NO_FATAL_FAILURE(p.Start("b", "b"));
         ASSERT_NO_FATAL_FAILURE(p.Start("first", "a", {p.b().peer_address()}));
         ASSERT_TRUE(p.b().StatusBecomes(absl::Seconds(20), [](const auto& s) {
           return !s.peers.empty() && s.peers[0].linked;
         }));
         BeginDialling(p, p.b().peer_address());
       },
       {"a cloned image? give each its own name"}},
  };
  for (const std::string field :
       {"classes", "features", "shape", "input", "loss", "task", "model"}) {
    ways.push_back({absl::StrCat("another ", field),
                    [field](Pair& p) {
                      ASSERT_NO_FATAL_FAILURE(BeginLinked(p, field));
                      p.ExpectBothDisagree(field);
                    },
                    {absl::StrCat("b: ", field, ": ")}});
  }
  return ways;
}

TEST(Alone, IsToldInStatusLogAndExitCodeWhateverTheWay) {
  const std::vector<Way> ways = Ways();
  std::vector<std::unique_ptr<Pair>> pairs;
  for (const Way& way : ways) {
    pairs.push_back(std::make_unique<Pair>(way.name));
    ASSERT_NO_FATAL_FAILURE(way.begin(*pairs.back()));
  }
  // The grace has begun for all of them.
  for (size_t i = 0; i < ways.size(); ++i) {
    SCOPED_TRACE(ways[i].name);
    pairs[i]->ExpectAlone(ways[i].whys);
  }
}

// A pair with nothing wrong: together, and 0.
TEST(Alone, IsNotSaidOfThoseThatLearnTogether) {
  Pair pair("together");
  ASSERT_NO_FATAL_FAILURE(BeginLinked(pair));
  ASSERT_TRUE(Eventually(absl::Seconds(20), [&] {
    return pair.Neighbour().phase == client::Phase::kTraining;
  }));
  ASSERT_NO_FATAL_FAILURE(pair.OpenGate("a"));
  ASSERT_NO_FATAL_FAILURE(pair.OpenGate("b"));
  const Outcome watch = RunCommand({Program("dflctl"), "-t", pair.a().target(),
                                    "-t", pair.b().target(), "watch",
                                    "--until-finished", "--interval", "200ms"});
  EXPECT_EQ(watch.exit_code, 0) << watch.err << pair.a().log();
  EXPECT_THAT(watch.out, HasSubstr(" neighbours 1/1 "));
  EXPECT_EQ(pair.a().Status().phase_reason, "50 steps are done");
  EXPECT_EQ(CountOf(pair.a().log(), "alone"), 0) << pair.a().log();
}

}  // namespace
}  // namespace dfl::testing_support
