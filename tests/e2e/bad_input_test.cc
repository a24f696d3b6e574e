// What a person can get wrong: a configuration file, a run plan, a data file, a
// model file, the command line, the environment. The program ends with the
// documented exit code, says where the mistake is, what was found there and
// what is allowed, and writes nothing to stdout.
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using ::testing::Values;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kUnreachable = 3;
constexpr int kConfig = 78;

// What stderr must say; "{}" stands for the test's folder.
struct Complaint {
  std::string place;    // file and line, key, flag or variable
  std::string found;    // the value, or that it is missing
  std::string allowed;  // what would have been right
};

class BadInput : public testing::Test {
 protected:
  std::string InFolder(const std::string& text) const {
    return absl::StrReplaceAll(text, {{"{}", folder_.path()}});
  }

  // Settings that dfld would start with.
  std::string GoodSettings() const {
    return InFolder(
        "name: a\n"
        "state_dir: \"{}/state\"\n"
        "security: insecure\n"
        "peer: {listen: [\"127.0.0.1:0\"]}\n"
        "control: {socket: \"{}/a.sock\"}\n"
        "compute: {threads: 1}\n");
  }
  std::string GoodData() {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    return InFolder(
        "data: {format: csv, header: no, label_column: -1, classes: 3, "
        "train: {paths: [\"{}/train.csv\"]}}\n");
  }

  static Outcome RunProgram(
      const std::string& program, const std::vector<std::string>& arguments,
      std::map<std::string, std::string> environment = {}) {
    std::vector<std::string> command = {Program(program)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    environment.emplace("OPENBLAS_NUM_THREADS", "1");
    return RunCommand(command, environment, absl::Seconds(30));
  }

  // dfld with the settings `yaml`, written to {}/dfld.yaml.
  Outcome RunDfld(const std::string& yaml,
                  const std::vector<std::string>& flags = {},
                  const std::map<std::string, std::string>& environment = {}) {
    WriteFile(folder_.File("dfld.yaml"), yaml);
    std::vector<std::string> arguments = {"--config",
                                          folder_.File("dfld.yaml")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunProgram("dfld", arguments, environment);
  }

  void ExpectComplaint(const Outcome& outcome, int exit_code,
                       const Complaint& complaint,
                       const std::string& program) const {
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat(program, ": ")));
    EXPECT_THAT(outcome.err, HasSubstr(InFolder(complaint.place)));
    EXPECT_THAT(outcome.err, HasSubstr(InFolder(complaint.found)));
    EXPECT_THAT(outcome.err, HasSubstr(InFolder(complaint.allowed)));
    EXPECT_EQ(outcome.out, "");
    RecordProperty("stderr", outcome.err);
  }

  TemporaryFolder folder_;
};

template <typename Case>
std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

// ----------------------------------------------------- configuration file ----

struct ConfigCase {
  std::string name;
  std::string yaml;  // appended to good settings from line 7 on
  Complaint complaint;
};
void PrintTo(const ConfigCase& c, std::ostream* out) { *out << c.name; }

class BadConfiguration : public BadInput,
                         public testing::WithParamInterface<ConfigCase> {};

TEST_P(BadConfiguration, IsRefusedBeforeAPortIsBound) {
  const ConfigCase& c = GetParam();
  const std::string settings = GoodSettings() + GoodData() + c.yaml;
  ExpectComplaint(RunDfld(settings), kConfig, c.complaint, "dfld");
  // Nothing was made yet: neither state folder nor socket.
  EXPECT_EQ(ReadFile(folder_.File("state/lock")), "");
  ExpectComplaint(
      RunProgram("dflctl", {"config", "validate", folder_.File("dfld.yaml")}),
      kFailed, c.complaint, "dflctl");
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadConfiguration,
    Values(ConfigCase{"UnknownKey",
                      "limits: {max_modell_bytes: 1GiB}\n",
                      {"{}/dfld.yaml:8", "limits.max_modell_bytes: unknown",
                       "did you mean limits.max_model_bytes?"}},
           ConfigCase{"WordForANumber",
                      "limits: {max_transfers_per_peer: many}\n",
                      {"{}/dfld.yaml:8: limits.max_transfers_per_peer",
                       "found \"many\"", "an integer from 1 to 1024"}},
           ConfigCase{"SizeWithoutAUnitThatIs",
                      "limits:\n  max_model_bytes: 3 elephants\n",
                      {"{}/dfld.yaml:9: limits.max_model_bytes",
                       "found \"3 elephants\"", "such as 512MiB"}},
           ConfigCase{"NoneOfTheChoices",
                      "log: {level: loud}\n",
                      {"{}/dfld.yaml:8: log.level", "found \"loud\"",
                       "debug, info, warning or error"}},
           ConfigCase{"PeerWithoutAPort",
                      "peers: [\"box-2\"]\n",
                      {"{}/dfld.yaml:8: peers", "box-2", "allowed: host:port"}},
           ConfigCase{"PortBeyondTheLast",
                      "peers: [\"box-2:99999\"]\n",
                      {"{}/dfld.yaml:8: peers", "box-2:99999", "65535"}},
           ConfigCase{
               "ValueForASection",
               "run: now\n",
               {"{}/dfld.yaml:8: run", "found \"now\"", "plan or autostart"}},
           ConfigCase{"KeyTwice",
                      "log: {level: info, level: debug}\n",
                      {"{}/dfld.yaml:8", "level", "line 8"}},
           ConfigCase{"BrokenYaml",
                      "log: {level: info\n",
                      {"{}/dfld.yaml:", "end of map", "YAML"}}),
    NameOf<ConfigCase>);

TEST_F(BadInput, ACheckSaysTheSameAsAStart) {
  ExpectComplaint(RunDfld(GoodSettings() + GoodData() + "log: {level: loud}\n",
                          {"--check"}),
                  kConfig,
                  {"{}/dfld.yaml:8: log.level", "found \"loud\"",
                   "debug, info, warning or error"},
                  "dfld");
}

TEST_F(BadInput, ConfigurationThatIsNotThereIsNamed) {
  ExpectComplaint(
      RunProgram("dfld", {"--config", folder_.File("absent.yaml")}), kConfig,
      {"{}/absent.yaml", "No such file", "a path to what is there"}, "dfld");
}

TEST_F(BadInput, PartBeyondTheNumberOfPartsIsRefused) {
  ExpectComplaint(
      RunDfld(GoodSettings() + "data: {format: csv, train: {paths: [x.csv]},\n"
                               "       partition: {kind: iid, count: 4,\n"
                               "                   index: 4}}\n"),
      kConfig,
      {"{}/dfld.yaml:9: data.partition.index", "found 4",
       "0 to 3 (data.partition.count is 4"},
      "dfld");
}

TEST_F(BadInput, NoTrainingDataIsRefused) {
  ExpectComplaint(RunDfld(GoodSettings()), kConfig,
                  {"data.train.paths", "found []", "the files to train on"},
                  "dfld");
}

TEST_F(BadInput, PlainTextOnTheNetworkMustBeAskedFor) {
  const std::string settings = absl::StrReplaceAll(
      GoodSettings() + GoodData(), {{"security: insecure\n", "\n"}});
  ExpectComplaint(RunDfld(settings), kConfig,
                  {"ca.pem: there is no such file", "dflctl cert init",
                   "set security: insecure"},
                  "dfld");
}

// ------------------------------------------------------------------- plan ----

// A plan that a node "a" with the data above takes.
constexpr char kGoodPlan[] =
    "members: [a, b, c]\n"
    "model: {kind: logistic, classes: 3}\n"
    "algorithm: {name: pame, knobs: {nu: 0.5, p: 0.1}}\n"
    "topology: {kind: complete}\n"
    "batch_size: 8\n";

struct PlanCase {
  std::string name;
  std::string good;     // this of the good plan
  std::string bad;      // becomes this
  Complaint complaint;  // "{plan}" stands for the file
};
void PrintTo(const PlanCase& c, std::ostream* out) { *out << c.name; }

class BadPlan : public BadInput, public testing::WithParamInterface<PlanCase> {
 protected:
  std::string WriteThePlan() {
    const std::string path = folder_.File("plan.yaml");
    const std::string plan =
        absl::StrReplaceAll(kGoodPlan, {{GetParam().good, GetParam().bad}});
    EXPECT_NE(plan, kGoodPlan);
    WriteFile(path, plan);
    return path;
  }
};

TEST_P(BadPlan, IsRefusedByDflctlWithoutADaemon) {
  const std::string plan = WriteThePlan();
  ExpectComplaint(RunProgram("dflctl", {"plan", "validate", plan}), kFailed,
                  GetParam().complaint, "dflctl");
  // A program reads the same from JSON, which is then all of stdout.
  const Outcome json =
      RunProgram("dflctl", {"plan", "validate", plan, "-o", "json"});
  EXPECT_EQ(json.exit_code, kFailed);
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed.at("valid"), false);
  EXPECT_THAT(parsed.at("errors").dump(), HasSubstr(plan));
}

TEST_P(BadPlan, IsRefusedByDfldAsItsFirstPlan) {
  const std::string plan = WriteThePlan();
  const Outcome outcome =
      RunDfld(GoodSettings() + GoodData(), {"--run.plan", plan});
  ExpectComplaint(outcome, kConfig, GetParam().complaint, "dfld");
  EXPECT_THAT(outcome.err, HasSubstr("run.plan: "));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadPlan,
    Values(
        PlanCase{"UnknownKey",
                 "batch_size: 8",
                 "batchsize: 8",
                 {"{}/plan.yaml:5: batchsize", "unknown key",
                  "did you mean batch_size?"}},
        PlanCase{"UnknownAlgorithm",
                 "name: pame",
                 "name: pamee",
                 {"{}/plan.yaml:3: algorithm.name", "\"pamee\"", "nids, pame"}},
        PlanCase{"UnknownKnob",
                 "nu: 0.5",
                 "nuu: 0.5",
                 {"{}/plan.yaml:3: algorithm.knobs.nuu", "unknown key",
                  "did you mean nu?"}},
        PlanCase{"KnobOutOfRange",
                 "nu: 0.5",
                 "nu: 1.5",
                 {"{}/plan.yaml:3: algorithm.knobs.nu", "1.5", "(0, 1]"}},
        PlanCase{"WordForANumber",
                 "batch_size: 8",
                 "batch_size: lots",
                 {"{}/plan.yaml:5: batch_size", "\"lots\"", "an integer"}},
        PlanCase{"UnknownTopology",
                 "kind: complete",
                 "kind: hypercube",
                 {"{}/plan.yaml:4: topology.kind", "\"hypercube\"", "ring"}},
        PlanCase{"EdgeToAStranger",
                 "kind: complete",
                 "kind: explicit, edges: [[a, b], [b, d]]",
                 {"{}/plan.yaml:4: topology.edges", "\"d\"", "a, b, c"}},
        PlanCase{"NothingSent",
                 "batch_size: 8",
                 "codec: {rate: 0}",
                 {"{}/plan.yaml:5: codec.rate", "0 is not allowed", "(0, 1]"}},
        PlanCase{"MemberTwice",
                 "[a, b, c]",
                 "[a, b, b]",
                 {"{}/plan.yaml:1: members[2]", "\"b\" a second time",
                  "each name once"}},
        PlanCase{"OneClass",
                 "classes: 3",
                 "classes: 1",
                 {"{}/plan.yaml:2: model.classes", "1 is not allowed",
                  "integer >= 2"}},
        PlanCase{"BrokenYaml",
                 "{kind: complete}",
                 "{kind: complete",
                 {"{}/plan.yaml:", "end of map", "YAML"}}),
    NameOf<PlanCase>);

TEST_F(BadInput, PlanWithoutThisNodeIsRefused) {
  WriteFile(folder_.File("plan.yaml"),
            absl::StrReplaceAll(kGoodPlan, {{"[a, b, c]", "[b, c]"}}));
  ExpectComplaint(RunDfld(GoodSettings() + GoodData(),
                          {"--run.plan", folder_.File("plan.yaml")}),
                  kConfig, {"run.plan", "\"a\" is no member", "b, c"}, "dfld");
}

TEST_F(BadInput, PlanThatIsNotThereIsNamed) {
  ExpectComplaint(
      RunDfld(GoodSettings() + GoodData(),
              {"--run.plan", folder_.File("absent.yaml")}),
      kConfig,
      {"run.plan: {}/absent.yaml", "No such file", "a path to what is there"},
      "dfld");
}

// ------------------------------------------------------------- data files ----

std::string Gzipped(const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.File("x.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return ReadFile(path);
}

std::string BigEndian(uint32_t value) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) {
    bytes[3 - i] = static_cast<char>((value >> (8 * i)) & 0xff);
  }
  return bytes;
}

// `count` images of 2 x 2, none of whose bytes compress well.
std::string IdxImages(uint32_t count, uint32_t magic = 0x803) {
  std::string bytes =
      BigEndian(magic) + BigEndian(count) + BigEndian(2) + BigEndian(2);
  uint32_t state = 1;
  for (uint32_t i = 0; i < 4 * count; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

std::string IdxLabels(const std::vector<int>& labels) {
  std::string bytes = BigEndian(0x801) + BigEndian(labels.size());
  for (const int label : labels) bytes += static_cast<char>(label);
  return bytes;
}

std::string FirstHalf(const std::string& bytes) {
  return bytes.substr(0, bytes.size() / 2);
}

TEST_F(BadInput, DataThatMayNotBeReadIsNamed) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  if (RunCommand(AsNobody({Program("dfld"), "--help"})).exit_code != 0) {
    GTEST_SKIP() << "needs root and a build that others may read";
  }
  WriteFile(folder_.File("dfld.yaml"), GoodSettings() + GoodData());
  std::filesystem::permissions(folder_.File("train.csv"),
                               std::filesystem::perms(0600));
  ExpectComplaint(
      RunCommand(
          AsNobody({Program("dfld"), "--config", folder_.File("dfld.yaml")}),
          {{"OPENBLAS_NUM_THREADS", "1"}}, absl::Seconds(30)),
      kConfig,
      {"{}/train.csv", "Permission denied",
       "the daemon's user needs read permission"},
      "dfld");
}

constexpr char kIdx[] =
    "format: idx, classes: 3, train: {paths: [\"{}/images\", \"{}/labels\"]}";
constexpr char kCsv[] =
    "format: csv, header: no, label_column: -1, classes: 3, "
    "train: {paths: [\"{}/rows.csv\"]}";
constexpr char kLibsvm[] =
    "format: libsvm, classes: 3, train: {paths: [\"{}/rows.txt\"]}";

struct DataCase {
  std::string name;
  std::map<std::string, std::string> files;
  std::string data;  // the section, in braces
  Complaint complaint;
};
void PrintTo(const DataCase& c, std::ostream* out) { *out << c.name; }

class BadData : public BadInput,
                public testing::WithParamInterface<DataCase> {};

TEST_P(BadData, IsRefusedWithFileAndPosition) {
  const DataCase& c = GetParam();
  for (const auto& [name, content] : c.files) {
    WriteFile(folder_.File(name), content);
  }
  const Outcome outcome = RunDfld(
      GoodSettings() + InFolder(absl::StrCat("data: {", c.data, "}\n")));
  ExpectComplaint(outcome, kConfig, c.complaint, "dfld");
  EXPECT_THAT(outcome.err, HasSubstr("data."));
  // Before a port or the state folder is touched.
  EXPECT_EQ(ReadFile(folder_.File("state/lock")), "");
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadData,
    Values(DataCase{"IdxCutInTheGzip",
                    {{"images", FirstHalf(Gzipped(IdxImages(200)))},
                     {"labels", Gzipped(IdxLabels(std::vector<int>(200, 1)))}},
                    kIdx,
                    {"data.train.paths: {}/images: byte",
                     "ends before its last block", "a complete file"}},
           DataCase{"IdxCutInTheValues",
                    {{"images", FirstHalf(IdxImages(200))},
                     {"labels", IdxLabels(std::vector<int>(200, 1))}},
                    kIdx,
                    {"data.train.paths: {}/images: byte 16",
                     "should be 800 values", "a header that fits"}},
           DataCase{"IdxWrongMagic",
                    {{"images", IdxImages(3, 0x0d03)},
                     {"labels", IdxLabels({0, 1, 2})}},
                    kIdx,
                    {"{}/images: byte 0", "0x00000d03", "0x00000803"}},
           DataCase{
               "IdxPathsSwapped",
               {{"labels", IdxImages(3)}, {"images", IdxLabels({0, 1, 2})}},
               kIdx,
               {"{}/labels: byte 0", "are the two paths swapped?",
                "0x00000801"}},
           DataCase{
               "IdxMoreLabelsThanClasses",
               {{"images", IdxImages(4)}, {"labels", IdxLabels({0, 1, 2, 7})}},
               kIdx,
               {"{}/labels: byte 11 (row 3)", "label '7'", "0 to 2"}},
           DataCase{"IdxFewerLabelsThanImages",
                    {{"images", IdxImages(3)}, {"labels", IdxLabels({0, 1})}},
                    kIdx,
                    {"{}/labels", "2 labels", "3, the number of images"}},
           DataCase{"CsvNotANumber",
                    {{"rows.csv", "1,2,0\n1,nan,1\n"}},
                    kCsv,
                    {"{}/rows.csv: line 2, column 2", "'nan' is missing",
                     "data.missing"}},
           DataCase{
               "CsvMissingColumn",
               {{"rows.csv", "1,2,0\n1,2,1\n1,2\n"}},
               kCsv,
               {"{}/rows.csv: line 3", "2 fields", "3, as in the first line"}},
           DataCase{"CsvLabelOutOfRange",
                    {{"rows.csv", "1,2,0\n1,2,1\n1,2,2\n1,2,3\n"}},
                    kCsv,
                    {"{}/rows.csv: line 4, column 3", "label '3'", "0 to 2"}},
           DataCase{"CsvWithoutRows",
                    {{"rows.csv", ""}},
                    kCsv,
                    {"{}/rows.csv: line 1", "no rows", "at least one"}},
           DataCase{"CsvFewerRowsThanSet",
                    {{"rows.csv", "1,2,0\n1,2,1\n"}},
                    "format: csv, header: no, label_column: -1, classes: 3, "
                    "train: {paths: [\"{}/rows.csv\"], rows: 3}",
                    {"{}/rows.csv", "2 rows", "rows = 3"}},
           DataCase{"LibsvmIndicesOutOfOrder",
                    {{"rows.txt", "0 1:1 2:1\n1 2:1 1:1\n"}},
                    kLibsvm,
                    {"{}/rows.txt: line 2, column 7", "index 1",
                     "increasing within a row"}},
           DataCase{"FileThatIsNotThere",
                    {},
                    kCsv,
                    {"data.train.paths: {}/rows.csv", "No such file",
                     "check the path in the data settings"}}),
    NameOf<DataCase>);

// ------------------------------------------------------------ model files ----

class BadModel : public BadInput {
 protected:
  // The complaint of a daemon whose first plan names this TorchScript file.
  void ExpectPlanComplaint(const Complaint& complaint) {
    WriteFile(folder_.File("plan.yaml"),
              absl::StrReplaceAll(kGoodPlan,
                                  {{"{kind: logistic, classes: 3}",
                                    InFolder("{kind: torchscript, classes: 3, "
                                             "path: \"{}/net.pt\"}")}}));
    ExpectComplaint(RunDfld(GoodSettings() + GoodData(),
                            {"--run.plan", folder_.File("plan.yaml")}),
                    kConfig, complaint, "dfld");
  }

  void MakeNet(int features, int classes) {
    const Outcome made =
        RunCommand({Program("make_torchscript"), folder_.File("net.pt"),
                    absl::StrCat(features), absl::StrCat(classes)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
};

TEST_F(BadModel, TorchScriptThatIsNotThereIsNamed) {
  ExpectPlanComplaint(
      {"run.plan: {}/net.pt", "No such file", "a TorchScript file"});
}

TEST_F(BadModel, TorchScriptFolderIsRefused) {
  const Outcome made = RunCommand({"mkdir", folder_.File("net.pt")});
  ASSERT_EQ(made.exit_code, 0);
  ExpectPlanComplaint({"run.plan: {}/net.pt", "not a regular file",
                       "allowed: a TorchScript file"});
}

TEST_F(BadModel, TorchScriptCutShortIsRefused) {
  MakeNet(4, 3);
  const std::string whole = ReadFile(folder_.File("net.pt"));
  ASSERT_GT(whole.size(), 100);
  WriteFile(folder_.File("net.pt"), FirstHalf(whole));
  ExpectPlanComplaint({"{}/net.pt", "not a usable TorchScript file",
                       "allowed: a whole file written by torch.jit.save"});
}

TEST_F(BadModel, FileOfAnotherKindIsRefused) {
  WriteFile(folder_.File("net.pt"), "weights: 1, 2, 3\n");
  ExpectPlanComplaint({"{}/net.pt", "not a usable TorchScript file",
                       "allowed: a whole file written by torch.jit.save"});
}

TEST_F(BadModel, TorchScriptWithAnotherOutputIsRefused) {
  MakeNet(4, 5);
  ExpectPlanComplaint({"{}/net.pt", ", 5]", ", 3]"});
}

TEST_F(BadModel, TorchScriptForOtherRowsIsRefused) {
  MakeNet(7, 3);
  ExpectPlanComplaint({"{}/net.pt: in evaluation mode with 1 row",
                       "LibTorch failed", "[rows, 4]"});
}

// A safetensors file with tensors of float32 zeros, except where told.
struct FakeTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";
  float value = 0;
};

std::string Safetensors(const std::vector<FakeTensor>& tensors) {
  nlohmann::ordered_json header;
  std::string data;
  for (const FakeTensor& tensor : tensors) {
    int64_t size = 1;
    for (const int64_t extent : tensor.shape) size *= extent;
    const size_t begin = data.size();
    for (int64_t i = 0; i < size; ++i) {
      data.append(reinterpret_cast<const char*>(&tensor.value), 4);
    }
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string length(8, '\0');
  const uint64_t size = text.size();
  std::memcpy(length.data(), &size, 8);
  return length + text + data;
}

struct ImportCase {
  std::string name;
  std::string content;
  std::string found;
  std::string allowed;
};

// One daemon for all of them: a refused file must leave it as it was.
TEST_F(BadModel, SafetensorsThatDoNotFitAreRefusedAndChangeNothing) {
  WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
  DaemonProcess::Options options;
  options.name = "a";
  options.folder = folder_.path();
  options.train_csv = folder_.File("train.csv");
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  const auto dflctl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--target", daemon.target()});
    return RunProgram("dflctl", arguments);
  };
  // Before there is a plan there is no model.
  WriteFile(folder_.File("in"), Safetensors({{"weight", {3, 4}}}));
  ExpectComplaint(
      dflctl({"model", "import", folder_.File("in")}), kFailed,
      {daemon.target(), "there is no run plan yet", "dflctl plan apply"},
      "dflctl");

  ASSERT_TRUE(daemon.client()
                  .ApplyPlan({"members: [a]\nmodel: {kind: mlp, classes: 3, "
                              "hidden: [5]}\nalgorithm: {name: local}\n"
                              "stop: {steps: 3}\n",
                              std::nullopt, false})
                  .ok());
  ASSERT_TRUE(daemon.client().Train(client::TrainAction::kStart).ok());
  ASSERT_TRUE(daemon.StatusBecomes(
      absl::Seconds(20), [](const client::NodeStatus& status) {
        return status.phase == client::Phase::kFinished;
      }));
  const std::string before = folder_.File("before");
  ASSERT_EQ(dflctl({"model", "export", before}).exit_code, 0);
  const std::string good = ReadFile(before);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, good.data(), 8);
  const auto header = nlohmann::json::parse(good.substr(8, header_bytes));
  std::vector<FakeTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    tensors.push_back({name, entry.at("shape").get<std::vector<int64_t>>()});
  }
  ASSERT_EQ(tensors.size(), 4) << header;
  const std::string first = tensors[0].name;

  std::vector<ImportCase> cases;
  cases.push_back({"cut", good.substr(0, good.size() - 4),
                   "the file ends after", "bytes of values"});
  cases.push_back({"text", std::string(good.size(), 'x'), "header", "allowed"});
  const auto with = [&](const std::string& name, auto change,
                        const std::string& found, const std::string& allowed) {
    std::vector<FakeTensor> changed = tensors;
    change(changed[0]);
    cases.push_back({name, Safetensors(changed), found, allowed});
  };
  with(
      "shape", [](FakeTensor& t) { t.shape.push_back(1); }, "shape [",
      "the model's is [");
  with(
      "dtype", [](FakeTensor& t) { t.dtype = "I32"; }, "\"I32\"",
      "allowed: F32, and F16, BF16, F64");
  with(
      "name", [](FakeTensor& t) { t.name += "s"; },
      absl::StrCat("tensors are missing: \"", first, "\""),
      absl::StrCat("did you mean \"", first, "s\" by \"", first, "\"?"));
  with(
      "nan", [](FakeTensor& t) { t.value = std::nanf(""); },
      "value 0 is not finite", first);
  for (const ImportCase& c : cases) {
    SCOPED_TRACE(c.name);
    WriteFile(folder_.File("in"), c.content);
    ExpectComplaint(dflctl({"model", "import", folder_.File("in")}), kFailed,
                    {daemon.target(), c.found, c.allowed}, "dflctl");
  }
  ExpectComplaint(dflctl({"model", "import", folder_.File("absent")}), kFailed,
                  {"{}/absent", "No such file", "{}/absent"}, "dflctl");

  const std::string after = folder_.File("after");
  ASSERT_EQ(dflctl({"model", "export", after}).exit_code, 0);
  EXPECT_EQ(ReadFile(after), good);
  EXPECT_EQ(daemon.Stop()->code, 0);
}

// ----------------------------------------------------------- command line ----

struct LineCase {
  std::string name;
  std::string program;
  std::vector<std::string> arguments;
  Complaint complaint;
};
void PrintTo(const LineCase& c, std::ostream* out) { *out << c.name; }

class BadCommandLine : public BadInput,
                       public testing::WithParamInterface<LineCase> {};

TEST_P(BadCommandLine, IsAMistakeOfUsage) {
  const LineCase& c = GetParam();
  ExpectComplaint(RunProgram(c.program, c.arguments), kUsage, c.complaint,
                  c.program);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadCommandLine,
    Values(LineCase{"DaemonUnknownFlag",
                    "dfld",
                    {"--confg", "x.yaml"},
                    {"flag --confg", "unknown", "did you mean --config?"}},
           LineCase{"DaemonMissingValue",
                    "dfld",
                    {"--log.level"},
                    {"flag --log.level", "its value is missing",
                     "debug, info, warning or error"}},
           LineCase{"DaemonWordThatIsNoFlag",
                    "dfld",
                    {"start"},
                    {"argument \"start\"", "not a flag", "--KEY=VALUE"}},
           LineCase{"DaemonValueForASwitch",
                    "dfld",
                    {"--check=yes"},
                    {"flag --check", "found \"yes\"", "takes no value"}},
           LineCase{"DaemonEmptyPath",
                    "dfld",
                    {"--ready-file="},
                    {"flag --ready-file", "found \"\"", "a path"}},
           LineCase{"UnknownCommand",
                    "dflctl",
                    {"statsu"},
                    {"dflctl: unknown command", "\"statsu\"",
                     "did you mean \"status\"?"}},
           LineCase{"UnknownCommandOfANoun",
                    "dflctl",
                    {"train", "begin"},
                    {"dflctl train --help", "\"begin\"",
                     "start, pause, resume, stop"}},
           LineCase{"CommandMissing",
                    "dflctl",
                    {"plan"},
                    {"dflctl plan --help", "a command is missing",
                     "validate, show, apply"}},
           LineCase{
               "UnknownFlag",
               "dflctl",
               {"status", "--tagret", "unix:/x"},
               {"unknown flag", "\"--tagret\"", "did you mean \"--target\"?"}},
           LineCase{"MissingValue",
                    "dflctl",
                    {"status", "--target"},
                    {"--target", "required", "dflctl status --help"}},
           LineCase{"MissingFile",
                    "dflctl",
                    {"plan", "validate"},
                    {"FILE", "required", "dflctl plan validate --help"}},
           LineCase{"UnknownOutput",
                    "dflctl",
                    {"status", "-o", "xml"},
                    {"--output", "\"xml\"", "table, wide, json, jsonl, yaml"}},
           LineCase{"TimeoutThatIsNone",
                    "dflctl",
                    {"status", "--timeout", "soon"},
                    {"--timeout", "\"soon\"", "500ms, 10s, 2m"}},
           LineCase{"IntervalOutOfRange",
                    "dflctl",
                    {"watch", "--interval", "1ms"},
                    {"--interval", "\"1ms\"", "100ms to 1h"}},
           LineCase{"TargetWithoutAPort",
                    "dflctl",
                    {"status", "--target", "box-2"},
                    {"target", "\"box-2\"", "unix:/path/of/control.sock"}}),
    NameOf<LineCase>);

// A setting that a flag gives a wrong value is a mistake of configuration.
TEST_F(BadInput, FlagWithAValueOutOfRangeIsNamed) {
  ExpectComplaint(
      RunDfld(GoodSettings() + GoodData(), {"--compute.threads=4096"}), kConfig,
      {"flag --compute.threads", "found \"4096\"", "from 0 to 1024"}, "dfld");
}

// It is well-formed, but not to be had.
TEST_F(BadInput, DeviceThatIsNotThereIsNamed) {
  ExpectComplaint(
      RunDfld(GoodSettings() + GoodData(), {"--compute.device=cuda:4000"}),
      kConfig, {"compute.device", "\"cuda:4000\"", "allowed: cpu"}, "dfld");
}

TEST_F(BadInput, KnobsOnTheCommandLineAreChecked) {
  WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
  DaemonProcess::Options options;
  options.name = "a";
  options.folder = folder_.path();
  options.train_csv = folder_.File("train.csv");
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  const auto dflctl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--target", daemon.target()});
    return RunProgram("dflctl", arguments);
  };
  // Without a plan there is nothing to set.
  ExpectComplaint(dflctl({"participation", "set", "nu=1"}), kFailed,
                  {"plan", "no plan yet", "dflctl plan apply FILE"}, "dflctl");
  ASSERT_TRUE(daemon.client().ApplyPlan({kGoodPlan, std::nullopt, false}).ok());

  struct SetCase {
    std::vector<std::string> arguments;
    int exit_code;
    Complaint complaint;
  };
  const std::vector<SetCase> cases = {
      {{"participation", "set", "nu=1.5"}, kUsage, {"nu", "1.5", "(0, 1]"}},
      {{"participation", "set", "nu=half"}, kUsage, {"nu", "half", "(0, 1]"}},
      {{"participation", "set", "nuu=1"},
       kUsage,
       {"knob", "\"nuu\"", "did you mean \"nu\"?"}},
      {{"participation", "set", "nu"},
       kUsage,
       {"\"nu\"", "no KNOB=VALUE", "nu=0.5"}},
      {{"participation", "set", "kappa=5"},
       kUsage,
       {"kappa", "no knob of participation", "dflctl period set kappa="}},
      {{"participation", "set", "nu=1", "--node", "z"},
       kUsage,
       {"--node", "\"z\"", "a, b, c"}},
      {{"algorithm", "set", "pamee"},
       kUsage,
       {"algorithm", "\"pamee\"", "did you mean \"pame\"?"}},
      {{"topology", "set", "rings"},
       kUsage,
       {"topology.kind", "\"rings\"", "did you mean \"ring\"?"}},
      {{"set", "topology.knid=ring"},
       kUsage,
       {"topology.knid", "unknown key", "did you mean kind?"}},
      {{"get", "topology.knid"},
       kUsage,
       {"topology", "\"knid\"", "did you mean \"kind\"?"}},
      {{"peer", "add", "box-2"}, kFailed, {"peer", "box-2", "host:port"}},
      {{"peer", "remove", "box-2:7600"},
       kFailed,
       {"peer", "box-2:7600", "there are none"}},
  };
  for (const SetCase& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.arguments[0], " ", c.arguments[1]));
    ExpectComplaint(dflctl(c.arguments), c.exit_code, c.complaint, "dflctl");
  }
  EXPECT_EQ(daemon.client().Plan()->version, 1);
}

// ------------------------------------------------------------ environment ----

struct VariableCase {
  std::string name;
  std::string variable;
  std::string value;
  std::string found;
  std::string allowed;
};
void PrintTo(const VariableCase& c, std::ostream* out) { *out << c.name; }

class BadEnvironment : public BadInput,
                       public testing::WithParamInterface<VariableCase> {};

TEST_P(BadEnvironment, IsRefusedByTheDaemon) {
  const VariableCase& c = GetParam();
  ExpectComplaint(
      RunDfld(GoodSettings() + GoodData(), {}, {{c.variable, c.value}}),
      kConfig, {absl::StrCat("environment ", c.variable), c.found, c.allowed},
      "dfld");
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadEnvironment,
    Values(VariableCase{"UnknownVariable", "DFLD_COMPUTE_THREDS", "1",
                        "no setting has this variable",
                        "did you mean DFLD_COMPUTE_THREADS?"},
           VariableCase{"WordForANumber", "DFLD_COMPUTE_THREADS", "two",
                        "found \"two\"", "an integer from 0 to 1024"},
           VariableCase{"NoneOfTheChoices", "DFLD_SECURITY", "off",
                        "found \"off\"", "tls or insecure"},
           VariableCase{"ListWithABadElement", "DFLD_PEERS",
                        "127.0.0.1:7600,[::1", "[::1", "host:port"},
           VariableCase{"RelativeSocket", "DFLD_CONTROL_SOCKET", "a.sock",
                        "found \"a.sock\"", "an absolute path"},
           VariableCase{"NameThatIsNone", "DFLD_NAME", "no spaces",
                        "found \"no spaces\"", "1 to 63 letters"},
           VariableCase{"SwitchNeitherOnNorOff", "DFLD_RUN_AUTOSTART",
                        "perhaps", "found \"perhaps\"", "on or off"}),
    NameOf<VariableCase>);

TEST_F(BadInput, ConfigurationFileNamedByAVariableIsLookedFor) {
  ExpectComplaint(
      RunProgram("dfld", {}, {{"DFLD_CONFIG", folder_.File("absent.yaml")}}),
      kConfig, {"{}/absent.yaml", "No such file", "a path to what is there"},
      "dfld");
}

TEST_F(BadInput, TargetInTheEnvironmentIsChecked) {
  ExpectComplaint(RunProgram("dflctl", {"status"}, {{"DFLCTL_TARGET", "box"}}),
                  kUsage, {"DFLCTL_TARGET", "\"box\"", "host:port"}, "dflctl");
  ExpectComplaint(
      RunProgram("dflctl", {"status"},
                 {{"DFLCTL_TARGET",
                   absl::StrCat("unix:", folder_.File("nobody.sock"))}}),
      kUnreachable,
      {"{}/nobody.sock", "there is no such socket", "is dfld running"},
      "dflctl");
}

// Kubernetes sets such variables beside a Service called dfld: no mistake.
TEST_F(BadInput, VariablesOfAKubernetesServiceAreNoMistake) {
  const Outcome checked = RunDfld(
      GoodSettings() + GoodData(), {"--check"},
      {{"DFLD_SERVICE_HOST", "10.0.0.1"}, {"DFLD_PORT_7600_TCP", "tcp://x"}});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.err, "");
}

}  // namespace
}  // namespace dfl::testing_support
