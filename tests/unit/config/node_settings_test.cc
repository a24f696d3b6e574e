#include "daemon/config/node_settings.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/config/default_places.h"
#include "daemon/config/settings_table.h"
#include "daemon/config/yaml_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

SettingsSources Sources(std::string text = "") {
  SettingsSources sources;
  sources.files.push_back({"dfld.yaml", std::move(text)});
  sources.host_name = "host-1";
  return sources;
}

absl::StatusOr<NodeSettings> ParseNodeSettings(const SettingsSources& sources) {
  absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded->settings);
}

std::string ErrorOf(const SettingsSources& sources) {
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
  if (loaded.ok()) return "OK";
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(loaded.status().message());
}

std::string ErrorOf(const std::string& text) { return ErrorOf(Sources(text)); }

const EffectiveSetting& Effective(const LoadedSettings& loaded,
                                  const std::string& key) {
  for (const EffectiveSetting& entry : loaded.effective) {
    if (entry.key == key) return entry;
  }
  ADD_FAILURE() << key << " is not listed";
  return loaded.effective[0];
}

TEST(NodeSettings, DefaultsAreThoseOfAService) {
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(Sources());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->settings.name, "host-1");
  EXPECT_EQ(loaded->settings.state_dir, "/var/lib/dfld");
  EXPECT_EQ(loaded->settings.control.socket, "/run/dfld/control.sock");
  EXPECT_THAT(loaded->settings.peer.listen, ElementsAre("0.0.0.0:7600"));
  EXPECT_EQ(loaded->effective.size(), SettingsTable().size());
  for (const EffectiveSetting& entry : loaded->effective) {
    EXPECT_EQ(entry.origin, "default");
  }
}

TEST(NodeSettings, DefaultsOfAPersonsOwnSession) {
  SettingsSources sources = Sources();
  sources.is_root = false;
  sources.environment = {{"HOME", "/home/ada"},
                         {"XDG_RUNTIME_DIR", "/run/user/1000"}};
  absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->settings.state_dir, "/home/ada/.local/state/dfld");
  EXPECT_EQ(loaded->settings.control.socket,
            "/run/user/1000/dfld/control.sock");
  EXPECT_THAT(ControlSocketCandidates(sources.environment, false),
              ElementsAre("/run/user/1000/dfld/control.sock",
                          "/run/dfld/control.sock"));
  EXPECT_THAT(ControlSocketCandidates({}, true),
              ElementsAre("/run/dfld/control.sock"));

  // A service without root: systemd names the folders.
  sources.environment["STATE_DIRECTORY"] = "/var/lib/other:/var/lib/second";
  sources.environment["RUNTIME_DIRECTORY"] = "/run/other";
  loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->settings.state_dir, "/var/lib/other");
  EXPECT_EQ(loaded->settings.control.socket, "/run/other/control.sock");
}

// A service may not write below /etc.
TEST(NodeSettings, ACertificateForATokenIsKeptWithTheState) {
  const std::string token = "join: {token: dfl1.x, at: \"issuer:7602\"}\n";
  const auto folder = [](const SettingsSources& sources) {
    const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
    return loaded.ok() ? loaded->settings.tls.folder
                       : loaded.status().ToString();
  };
  const std::string state = "/var/lib/dfld/tls";
  const std::string etc = "/etc/dfld/tls";
  SettingsSources sources = Sources(token);
  EXPECT_EQ(folder(sources), etc) << "root writes where it likes";
  sources.environment = {{"STATE_DIRECTORY", "/var/lib/dfld"}};
  EXPECT_EQ(folder(sources), state);
  // It joined by hand before.
  sources.folders_with_certificate = {etc};
  EXPECT_EQ(folder(sources), etc);
  // The token was taken out of the settings afterwards.
  sources.files.clear();
  sources.folders_with_certificate = {state};
  EXPECT_EQ(folder(sources), state);
  sources.folders_with_certificate = {};
  EXPECT_EQ(folder(sources), etc);
  sources.folders_with_certificate = {etc, state};
  EXPECT_EQ(folder(sources), etc);
  sources.flags = {{"tls.folder", "/there"}};
  EXPECT_EQ(folder(sources), "/there");
}

// One of several services on a host: dfld@.service.
TEST(NodeSettings, ServicesHaveFoldersOfTheirOwn) {
  SettingsSources sources = Sources();
  sources.is_root = false;
  sources.environment = {{"STATE_DIRECTORY", "/var/lib/dfld-b"},
                         {"RUNTIME_DIRECTORY", "/run/dfld-b"},
                         {"CONFIGURATION_DIRECTORY", "/etc/dfld-b"}};
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->settings.state_dir, "/var/lib/dfld-b");
  EXPECT_EQ(loaded->settings.control.socket, "/run/dfld-b/control.sock");
  EXPECT_EQ(loaded->settings.tls.folder, "/etc/dfld-b/tls");
}

TEST(NodeSettings, FlagBeatsEnvironmentBeatsFolderBeatsFile) {
  SettingsSources sources = Sources(
      "name: file\nlog: {level: debug, format: json}\ncompute:\n  threads: 1\n"
      "peers: [a:1, b:2]\n");
  sources.files.push_back(
      {"conf.d/10.yaml", "name: folder\ncompute: {threads: 2}\npeers: [c:3]"});
  sources.files.push_back({"conf.d/20.yaml", "compute: {threads: 3}\n"});
  sources.environment = {{"DFLD_COMPUTE_THREADS", "4"}, {"DFLD_NAME", "env"}};
  sources.flags = {{"name", "flag"}};
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->settings.name, "flag");
  EXPECT_EQ(loaded->settings.compute.threads, 4);
  EXPECT_EQ(loaded->settings.log.level, LogLevel::kDebug);
  EXPECT_THAT(loaded->settings.peers, ElementsAre("c:3"));  // replaced
  EXPECT_EQ(Effective(*loaded, "name").origin, "flag --name");
  EXPECT_EQ(Effective(*loaded, "compute.threads").origin,
            "environment DFLD_COMPUTE_THREADS");
  EXPECT_EQ(Effective(*loaded, "peers").origin, "conf.d/10.yaml:3");
  EXPECT_EQ(Effective(*loaded, "peers").value, "[\"c:3\"]");
  EXPECT_EQ(Effective(*loaded, "log.format").origin, "dfld.yaml:2");
  EXPECT_EQ(Effective(*loaded, "log.format").value, "json");
}

TEST(NodeSettings, TheMemoryLimitIsASizeOrNothing) {
  absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(Sources());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->settings.compute.memory_limit, 0U);
  EXPECT_EQ(Effective(*loaded, "compute.memory_limit").value, "0");
  SettingsSources sources = Sources("compute: {memory_limit: 2GB}\n");
  EXPECT_EQ(ParseNodeSettings(sources)->compute.memory_limit, 2'000'000'000U);
  sources.environment = {{"DFLD_COMPUTE_MEMORY_LIMIT", "512MiB"}};
  EXPECT_EQ(ParseNodeSettings(sources)->compute.memory_limit, 512U << 20);
  sources.flags = {{"compute.memory_limit", "0"}};
  EXPECT_EQ(ParseNodeSettings(sources)->compute.memory_limit, 0U);
  EXPECT_THAT(ErrorOf("compute: {memory_limit: -2GB}\n"),
              AllOf(HasSubstr("dfld.yaml:1: compute.memory_limit: found "
                              "\"-2GB\": that is no size"),
                    HasSubstr("allowed: a size, such as 512MiB, 2GB or 4096")));
}

TEST(NodeSettings, ListsComeFromCommasAndRepeatedFlags) {
  SettingsSources sources = Sources("peers: a:1, b:2\n");
  absl::StatusOr<NodeSettings> settings = ParseNodeSettings(sources);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->peers, ElementsAre("a:1", "b:2"));
  sources.flags = {{"peers", "c:3"}, {"peers", "d:4,e:5"}};
  settings = ParseNodeSettings(sources);
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->peers, ElementsAre("c:3", "d:4", "e:5"));
  sources.flags = {{"peers", ""}};
  settings = ParseNodeSettings(sources);
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->peers, IsEmpty());
}

TEST(NodeSettings, EveryKindOfValueIsRead) {
  const absl::StatusOr<NodeSettings> settings = ParseNodeSettings(
      Sources("name: box-7\n"
              "state_dir: /srv/dfld\n"
              "security: insecure\n"
              "peer: {listen: ['[::]:0'], advertise: 'box-7.site:7600'}\n"
              "control: {socket: /tmp/c.sock, listen: ['127.0.0.1:7601']}\n"
              "data:\n"
              "  format: csv\n"
              "  classes: 3\n"
              "  label_values: [cat, dog, 'the, third']\n"
              "  shape: [1, 8, 8]\n"
              "  label_column: species\n"
              "  drop_columns: [id]\n"
              "  header: yes\n"
              "  delimiter: tab\n"
              "  max_bytes: 64MiB\n"
              "  watch: 1m30s\n"
              "  train: {paths: [a.csv, b.csv], rows: 100}\n"
              "  test: {paths: [t.csv]}\n"
              "  standardise: {mean: [0.5], std: [0.25]}\n"
              "  partition: {kind: dirichlet, count: 4, index: 3, seed: 9, "
              "theta: 0.3}\n"
              "compute: {device: 'cuda:1', threads: 2}\n"
              "limits: {max_model_bytes: 1GiB, max_transfers_per_peer: 2}\n"
              "log: {level: warning, format: json}\n"
              "model: {publish: {path: m.pt, when: best, every_steps: 7, "
              "format: torchscript}}\n"
              "run: {plan: plan.yaml, autostart: on}\n"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->security, Security::kInsecure);
  EXPECT_EQ(settings->peer.advertise, "box-7.site:7600");
  EXPECT_THAT(settings->control.listen, ElementsAre("127.0.0.1:7601"));
  const data::DataSpec train = settings->data.TrainSpec();
  EXPECT_EQ(train.format, data::Format::kCsv);
  EXPECT_THAT(train.paths, ElementsAre("a.csv", "b.csv"));
  EXPECT_EQ(train.rows, 100);
  EXPECT_EQ(train.header, data::Header::kYes);
  EXPECT_EQ(train.delimiter, '\t');
  EXPECT_EQ(train.max_bytes, uint64_t{64} << 20);
  EXPECT_THAT(train.shape, ElementsAre(1, 8, 8));
  EXPECT_THAT(train.label_values, ElementsAre("cat", "dog", "the, third"));
  EXPECT_THAT(settings->data.TestSpec().paths, ElementsAre("t.csv"));
  EXPECT_EQ(settings->data.TestSpec().rows, 0);
  EXPECT_EQ(settings->data.watch, absl::Seconds(90));
  EXPECT_THAT(settings->data.standardise.mean, ElementsAre(0.5f));
  EXPECT_EQ(settings->data.partition.kind, "dirichlet");
  EXPECT_EQ(settings->data.partition.index, 3);
  EXPECT_EQ(settings->data.partition.theta, 0.3);
  EXPECT_EQ(settings->compute.device, "cuda:1");
  EXPECT_EQ(settings->limits.max_model_bytes, uint64_t{1} << 30);
  EXPECT_EQ(settings->log.level, LogLevel::kWarning);
  EXPECT_TRUE(settings->run.autostart);
  EXPECT_EQ(settings->publish.path, "m.pt");
  EXPECT_EQ(settings->publish.when, PublishSettings::When::kBest);
  EXPECT_EQ(settings->publish.every_steps, 7);
  EXPECT_EQ(settings->publish.format, PublishSettings::Format::kTorchScript);
}

// [DeceFL] supplement, Table 3.
TEST(NodeSettings, AnExplicitPartitionIsReadFromFileAndFlagsAlike) {
  const std::vector<std::vector<double>> ratios = {
      {1, 99}, {99, 1}, {3, 7}, {6, 4}};
  const SettingsSources file = Sources(
      "data:\n  partition:\n    kind: explicit\n    count: 4\n"
      "    sizes: [0.1, 0.1, 0.2, 0.4]\n"
      "    ratios: [\"1:99\", 99:1, 3:7, 6:4]\n");
  SettingsSources flags = Sources("");
  flags.flags = {{"data.partition.kind", "explicit"},
                 {"data.partition.count", "4"},
                 {"data.partition.sizes", "0.1,0.1,0.2,0.4"},
                 {"data.partition.ratios", "1:99,99:1,3:7,6:4"}};
  for (const SettingsSources& sources : {file, flags}) {
    const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(sources);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const data::PartitionSpec& partition = loaded->settings.data.partition;
    EXPECT_EQ(partition.kind, "explicit");
    EXPECT_THAT(partition.sizes, ElementsAre(0.1, 0.1, 0.2, 0.4));
    EXPECT_EQ(partition.ratios, ratios);
    EXPECT_EQ(Effective(*loaded, "data.partition.sizes").value,
              "[0.1, 0.1, 0.2, 0.4]");
    // As it would stand in a file.
    const absl::StatusOr<NodeSettings> again = ParseNodeSettings(Sources(
        "data: {partition: {kind: explicit, count: 4, sizes: [0.1, 0.1, 0.2, "
        "0.4], ratios: " +
        Effective(*loaded, "data.partition.ratios").value + "}}\n"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->data.partition.ratios, ratios);
  }
}

// File and line, key, value found, what is allowed.
TEST(NodeSettings, RefusesBadValuesWithPlaceValueAndWhatIsAllowed) {
  struct Case {
    const char* text;
    std::vector<const char*> parts;
  };
  for (const Case& c : {
           Case{"name: ok\ncompute:\n  threads: many\n",
                {"dfld.yaml:3: compute.threads: found \"many\"", "no integer",
                 "allowed: an integer from 0 to 1024"}},
           Case{"compute: {threads: -1}",
                {"dfld.yaml:1: compute.threads: found \"-1\"; allowed: an "
                 "integer from 0 to 1024"}},
           Case{"security: insecur",
                {"dfld.yaml:1: security: found \"insecur\"",
                 "did you mean insecure?", "allowed: tls or insecure"}},
           Case{"limits:\n  max_model_bytes: 4gib\n",
                {"dfld.yaml:2: limits.max_model_bytes: found \"4gib\"",
                 "512MiB"}},
           Case{"model: {publish: {path: m, when: best}}",
                {"dfld.yaml:1: model.publish.when: found best; allowed: steps, "
                 "for there are no data.test.paths"}},
           Case{"run: {autostart: maybe}",
                {"run.autostart: found \"maybe\"; allowed: on or off"}},
           Case{"peers: [a:1, b]",
                {"dfld.yaml:1: peers: found [\"a:1\", b]: \"b\": it has no "
                 "port",
                 "allowed: host:port"}},
           Case{"peers: ['0.0.0.0:7600']", {"no address to reach"}},
           Case{"peers: ['a:0']", {"port 0 cannot be dialled"}},
           Case{"peer: {advertise: '[::]:7600'}",
                {"peer.advertise: found \"[::]:7600\"", "no address to reach"}},
           Case{"name: 'box 7'",
                {"name: found \"box 7\"", "character 4", "allowed: 1 to 63"}},
           Case{"control: {socket: run.sock}",
                {"control.socket: found \"run.sock\"; allowed: an absolute "
                 "path of at most 107"}},
           Case{"compute: {device: gpu}",
                {"compute.device: found \"gpu\"; allowed: cpu, cuda or "
                 "cuda:N"}},
           Case{"data: {partition: {theta: 0}}",
                {"data.partition.theta: found \"0\"; allowed: a number above "
                 "0"}},
           Case{"data: {partition: {kind: explicit, count: 3}}",
                {"default: data.partition.sizes: 0 numbers",
                 "each of the 3 parts"}},
           Case{"data: {partition: {kind: explicit, count: 2, sizes: [0.7,\n"
                "  0.4]}}",
                {"dfld.yaml:1: data.partition.sizes: they sum to 1.1",
                 "at most 1"}},
           Case{"data: {partition: {kind: explicit, count: 2, sizes: [0.5, "
                "0.4],\n  ratios: [\"1:9\", \"0:0\"]}}",
                {"dfld.yaml:2: data.partition.ratios[1]: no class"}},
           Case{"data: {partition: {ratios: [\"1:x\"]}}",
                {"data.partition.ratios: found [\"1:x\"]: \"1:x\" is not "
                 "allowed"}},
           Case{"data: {partition: {count: 4, index: 4}}",
                {"dfld.yaml:1: data.partition.index: found 4; allowed: 0 to 3",
                 "data.partition.count is 4"}},
           Case{"data: {watch: 30}",
                {"data.watch: found \"30\": that is no duration; allowed: 0s, "
                 "or a duration from 100ms to 24h"}},
           Case{"data: {watch: 1ms}", {"data.watch: found \"1ms\"; allowed"}},
           Case{"data: {watch: inf}", {"data.watch: found \"inf\"; allowed"}},
           Case{"data: {shape: [1, 0]}", {"data.shape: found [1, 0]", "\"0\""}},
           Case{"data: {delimiter: ab}",
                {"data.delimiter: found \"ab\"; allowed: one character"}},
           Case{"data:\n  format: idx\n  train: {paths: [a]}\n",
                {"dfld.yaml:3: data.train.paths: ", "allowed: "}},
           Case{"data:\n  task: regression\n  train: {paths: [a, b]}\n",
                {"dfld.yaml:2: data.task: ", "regression"}},
           Case{"data: {standardise: {mean: [0.1, 0.2], std: [1]}}",
                {"data.standardise.std: found 1 numbers",
                 "as many as in data.standardise.mean, 2"}},
           Case{"data: {standardise: {per: all, file: x.csv}}",
                {"data.standardise.file: found beside data.standardise.per"}},
           Case{"state_dir:\n",
                {"dfld.yaml:1: state_dir: found nothing; allowed: a path; "
                 "remove the line"}},
           Case{"name: [a]", {"name: found [a]", "a list is not taken here"}},
           Case{"name: {a: b}", {"name: found a section"}},
           Case{"peers: [[a]]", {"peers: found a list of more than values"}},
           Case{"control: 5",
                {"dfld.yaml:1: control: found \"5\"; allowed: a section of "
                 "socket, listen, admins or viewers"}},
           Case{"- a\n", {"dfld.yaml:1: found a list"}},
       }) {
    const std::string error = ErrorOf(c.text);
    for (const char* part : c.parts) {
      EXPECT_THAT(error, HasSubstr(part)) << c.text;
    }
  }
}

TEST(NodeSettings, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(ErrorOf("name: a\ncontrol:\n  sokcet: /x\n"),
            "dfld.yaml:3: control.sokcet: unknown setting; did you mean "
            "control.socket?");
  EXPECT_THAT(ErrorOf("contrl: {socket: /x}"),
              HasSubstr("dfld.yaml:1: contrl: unknown setting; did you mean "
                        "control?"));
  EXPECT_THAT(ErrorOf("log: {xyzzyxyzzy: 1}"),
              HasSubstr("allowed in log: level or format"));

  SettingsSources sources = Sources();
  sources.environment = {{"DFLD_LOG_LEVL", "info"}};
  EXPECT_EQ(ErrorOf(sources),
            "environment DFLD_LOG_LEVL: no setting has this variable; did you "
            "mean DFLD_LOG_LEVEL?");
  sources.environment = {{"DFLD_LOG_LEVEL", "loud"}};
  EXPECT_EQ(ErrorOf(sources),
            "environment DFLD_LOG_LEVEL: log.level: found \"loud\"; allowed: "
            "debug, info, warning or error");
  sources.environment.clear();
  sources.flags = {{"log.level", "loud"}};
  EXPECT_THAT(ErrorOf(sources), HasSubstr("flag --log.level: log.level: "));
}

TEST(NodeSettings, VariablesThatKubernetesSetsAreNotTakenForSettings) {
  SettingsSources sources = Sources();
  sources.environment = {{"DFLD_SERVICE_HOST", "10.0.0.1"},
                         {"DFLD_SERVICE_PORT_PEER", "7600"},
                         {"DFLD_PORT", "tcp://10.0.0.1:7600"},
                         {"DFLD_PORT_7600_TCP", "tcp://10.0.0.1:7600"},
                         {"DFLD_PORT_7600_TCP_ADDR", "10.0.0.1"},
                         {"DFLD_PEER_SERVICE_HOST", "10.0.0.2"},
                         {"DFLD_CONFIG", "dfld.yaml"},
                         {"DFLDX", "not ours"}};
  EXPECT_EQ(ErrorOf(sources), "OK");
}

TEST(NodeSettings, AJoinTokenIsNeverShownOrQuoted) {
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(
      Sources("join: {token: dfl1.SECRET, at: \"issuer:7602\"}\n"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->settings.join.token, "dfl1.SECRET");
  EXPECT_EQ(Effective(*loaded, "join.token").value, "(hidden)");
  EXPECT_EQ(Effective(*loaded, "join.at").value, "\"issuer:7602\"");
  // Who has none may know it.
  EXPECT_EQ(Effective(*LoadNodeSettings(Sources()), "join.token").value,
            "\"\"");
  EXPECT_THAT(
      ErrorOf("join: {token: SECRET}\n"),
      AllOf(HasSubstr("dfld.yaml:1: join.token: found (hidden): a join token "
                      "begins with dfl1."),
            Not(HasSubstr("SECRET"))));
  EXPECT_THAT(ErrorOf("join: {at: \"0.0.0.0:1\"}\n"), HasSubstr("join.at"));
  EXPECT_THAT(ErrorOf("enrol: {listen: nowhere}\n"),
              HasSubstr("enrol.listen: found \"nowhere\""));
}

TEST(NodeSettings, TheFilesOfTheCertificateAreInItsFolderOrElsewhere) {
  const absl::StatusOr<NodeSettings> settings = ParseNodeSettings(
      Sources("tls: {folder: /tls, key: /run/credentials/key}\n"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  const tls::CredentialPaths paths = settings->tls.Paths();
  EXPECT_EQ(paths.bundle, "/tls/ca.pem");
  EXPECT_EQ(paths.certificate, "/tls/cert.pem");
  EXPECT_EQ(paths.key, "/run/credentials/key");
}

TEST(NodeSettings, SeveralMistakesAreToldTogether) {
  const std::string error = ErrorOf(
      "nam: x\nlog: {level: loud}\ncompute:\n  threads: none\n  devic: cpu\n");
  EXPECT_THAT(error, HasSubstr("dfld.yaml:1: nam: "));
  EXPECT_THAT(error, HasSubstr("\ndfld.yaml:2: log.level: "));
  EXPECT_THAT(error, HasSubstr("\ndfld.yaml:4: compute.threads: "));
  EXPECT_THAT(error, HasSubstr("\ndfld.yaml:5: compute.devic: "));
}

TEST(NodeSettings, ABadHostNameSaysToSetOne) {
  SettingsSources sources = Sources();
  sources.host_name = "-odd";
  EXPECT_THAT(ErrorOf(sources), HasSubstr("found the host's name \"-odd\""));
  EXPECT_THAT(ErrorOf(sources), HasSubstr("; set name"));
  sources.flags = {{"name", "fine"}};
  EXPECT_EQ(ErrorOf(sources), "OK");
}

std::string StartError(const std::string& text) {
  const absl::StatusOr<LoadedSettings> loaded = LoadNodeSettings(Sources(text));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  const absl::Status status = CheckStartable(*loaded);
  return status.ok() ? "OK" : std::string(status.message());
}

// ------------------------------------------ a data section elsewhere ----

absl::StatusOr<DataSettings> ReadProblem(const std::string& text,
                                         int64_t parts = 4) {
  const absl::StatusOr<YamlNode> root = ParseYaml(text, "s.yaml");
  EXPECT_TRUE(root.ok()) << root.status();
  DataSurroundings around;
  around.path = "net.problem";
  around.keys = {"kind", "eval_rows"};
  around.parts = parts;
  return ReadDataSettings(*root, "s.yaml", around);
}

std::string ErrorOfProblem(const std::string& text) {
  return std::string(ReadProblem(text).status().message());
}

TEST(ReadDataSettings, TakesTheKeysOfTheSectionAndLeavesOthers) {
  const auto data = ReadProblem(
      "kind: data\neval_rows: x\nformat: csv\ntask: regression\n"
      "train: {paths: [a.csv], rows: 7}\ntest: {paths: [b.csv]}\n"
      "standardise: {per: feature}\npartition: {kind: iid, seed: 3}\n");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->common.format, data::Format::kCsv);
  EXPECT_EQ(data->common.task, data::Task::kRegression);
  EXPECT_THAT(data->train_paths, ElementsAre("a.csv"));
  EXPECT_EQ(data->train_rows, 7);
  EXPECT_THAT(data->test_paths, ElementsAre("b.csv"));
  EXPECT_EQ(data->standardise.per, StandardiseSettings::Per::kFeature);
  EXPECT_EQ(data->partition.kind, "iid");
  EXPECT_EQ(data->partition.seed, 3U);
  EXPECT_EQ(data->partition.count, 4);
}

TEST(ReadDataSettings, NamesKeysAsTheDocumentHasThem) {
  EXPECT_THAT(
      ErrorOfProblem("format: cvs\n"),
      HasSubstr("s.yaml:1: net.problem.format: found \"cvs\": did you mean "
                "csv?; allowed: idx, cifar10"));
  EXPECT_THAT(ErrorOfProblem("kind: data\nformt: csv\n"),
              HasSubstr("s.yaml:2: net.problem.formt: unknown setting; did you "
                        "mean net.problem.format?"));
  EXPECT_THAT(ErrorOfProblem("eval_row: 3\n"),
              HasSubstr("did you mean net.problem.eval_rows?"));
  EXPECT_THAT(ErrorOfProblem("partition: {index: 1}\n"),
              HasSubstr("s.yaml:1: net.problem.partition.index: follows from "
                        "the nodes; remove it"));
  EXPECT_THAT(
      ErrorOfProblem("standardise: {mean: [1], std: []}\n"),
      HasSubstr("net.problem.standardise.std: found 0 numbers; allowed: as "
                "many as in net.problem.standardise.mean, 1"));
  EXPECT_THAT(ErrorOfProblem("format: idx\ntrain: {paths: [a]}\n"),
              HasSubstr("net.problem.train.paths"));
  EXPECT_THAT(
      ErrorOfProblem("partition: {kind: explicit, sizes: [0.5, 0.5]}\n"),
      HasSubstr("net.problem.partition.sizes"));
}

TEST(CheckStartable, DataToTrainOnMustBeThere) {
  EXPECT_THAT(StartError("security: insecure\n"),
              HasSubstr("default: data.train.paths: found []; allowed: the "
                        "files to train on"));
}

TEST(SettingsTable, NamesAreUniqueAndDefaultsAreAllowed) {
  std::set<std::string> keys;
  std::set<std::string> variables;
  const NodeSettings defaults;
  for (const Setting& setting : SettingsTable()) {
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    EXPECT_TRUE(variables.insert(EnvironmentName(setting.key)).second)
        << setting.key;
    EXPECT_THAT(setting.help, Not(IsEmpty())) << setting.key;
    EXPECT_THAT(setting.allowed, Not(IsEmpty())) << setting.key;
    EXPECT_FALSE(setting.key.find("_port") != std::string::npos ||
                 setting.key.find("service_") != std::string::npos)
        << setting.key << " would be taken for a variable of Kubernetes";
    if (setting.key == "name") continue;  // the host's, when loaded
    std::string yaml;
    const size_t dot = setting.key.find_last_of('.');
    SettingsSources sources;
    sources.host_name = "host-1";
    // As the file would have it: "a: {b: {c: value}}".
    std::string key = setting.key;
    std::string end;
    for (size_t at = key.find('.'); at != std::string::npos;
         at = key.find('.', at)) {
      key.replace(at, 1, ": {");
      end += "}";
    }
    (void)dot;
    yaml = key + ": " + setting.get(defaults) + end + "\n";
    sources.files.push_back({"f", yaml});
    const absl::StatusOr<NodeSettings> read = ParseNodeSettings(sources);
    ASSERT_TRUE(read.ok()) << yaml << read.status();
    EXPECT_EQ(setting.get(*read), setting.get(defaults)) << yaml;
  }
}

TEST(NodeSettings, AnyBytesGiveSettingsOrAnError) {
  const std::string sample =
      "name: a\npeers: [a:1, b:2]\ndata:\n  shape: [1, 2]\n  delimiter: ';'\n";
  for (size_t at = 0; at < sample.size(); ++at) {
    EXPECT_NE(ErrorOf(sample.substr(0, at)), "");
    for (const int flip : {0x01, 0x10, 0x80}) {
      std::string bytes = sample;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      EXPECT_NE(ErrorOf(bytes), "");
    }
  }
}

}  // namespace
}  // namespace dfl::config
