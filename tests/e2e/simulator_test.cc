// dflsim as a user has it: the program itself, its folder, its exit codes.
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kScenario[] =
    "seed: 5\n"
    "batch_size: 10\n"
    "algorithm: {name: pame, knobs: {nu: 0.5, p: 0.2, kappa: [5, 10], "
    "sigma0: 10}}\n"
    "topology: {kind: erdos-renyi, edge_probability: 0.4}\n"
    "codec: {coordinates: random, values: fp16}\n"
    "stop: {steps: 200}\n"
    "network:\n"
    "  nodes: 20\n"
    "  problem: {kind: linear, n: 100, rows: 50}\n"
    "  links: {delay: 2ms, jitter: 1ms, loss: 0.002}\n"
    "  compute: {time: 10ms, extra: 5ms}\n"
    "  events:\n"
    "    - {at: 500ms, crash: n05, for: 500ms}\n"
    "    - {at: 800ms, partition: [[n00, n01, n02]], for: 1s}\n";

class Simulator : public testing::Test {
 protected:
  Simulator() { WriteFile(file_, kScenario); }

  Outcome Run(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> command = {Program("dflsim")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunCommand(command, environment, absl::Seconds(60));
  }
  Json Summary(const std::string& run) const {
    return Json::parse(ReadFile(folder_.File(run + "/summary.json")));
  }
  bool Exists(const std::string& name) const {
    return !ReadFile(folder_.File(name)).empty();
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_.File("scenario.yaml");
};

TEST_F(Simulator, OneSeedIsOneRunInEveryProcess) {
  for (const char* run : {"a", "b"}) {
    const Outcome outcome = Run({"run", file_, "--out", folder_.File(run)});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("digest"));
  }
  EXPECT_EQ(Summary("a"), Summary("b"));
  EXPECT_EQ(ReadFile(folder_.File("a/metrics.csv")),
            ReadFile(folder_.File("b/metrics.csv")));
  EXPECT_EQ(Summary("a").at("crashes"), 1);
  ASSERT_EQ(
      Run({"run", file_, "--seed", "6", "--out", folder_.File("c")}).exit_code,
      0);
  EXPECT_NE(Summary("a").at("digest"), Summary("c").at("digest"));

  const Outcome compared = Run({"compare", folder_.File("a"), folder_.File("c"),
                                "--out", folder_.File("both"), "-o", "json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_EQ(Json::parse(compared.out).at("runs").size(), 2);
  EXPECT_TRUE(Exists("both/plot.gp"));
  if (compared.err.find("not installed") == std::string::npos) {
    EXPECT_THAT(ReadFile(folder_.File("a/loss.png")), HasSubstr("PNG"));
    EXPECT_THAT(ReadFile(folder_.File("a/consensus.svg")), HasSubstr("<svg"));
    EXPECT_TRUE(Exists("both/loss.svg"));
    EXPECT_TRUE(Exists("both/consensus.png"));
  }
}

TEST_F(Simulator, GoesOnWithoutGnuplot) {
  const Outcome outcome = Run({"run", file_, "--out", folder_.File("a")},
                              {{"PATH", folder_.path()}});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("gnuplot is not installed"));
  EXPECT_TRUE(Exists("a/metrics.csv"));
  EXPECT_FALSE(Exists("a/loss.png"));
}

TEST_F(Simulator, EndsCleanlyOnCtrlC) {
  WriteFile(file_,
            absl::StrReplaceAll(kScenario, {{"steps: 200", "steps: 100000000"},
                                            {"links:",
                                             "metrics_every: 10\n  limit: "
                                             "100000h\n  links:"}}));
  Process::Options options;
  options.command = {Program("dflsim"), "run", file_, "--out",
                     folder_.File("a")};
  options.stdout_file = folder_.File("out");
  options.stderr_file = folder_.File("err");
  Process process(options);
  ASSERT_TRUE(Eventually(absl::Seconds(20), [&] {
    return ReadFile(options.stderr_file).find("% ") != std::string::npos;
  })) << ReadFile(options.stderr_file);
  process.Signal(SIGINT);
  const std::optional<Exit> exit = process.Wait(absl::Seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130);
  EXPECT_EQ(Summary("a").at("end"), "interrupted");
  EXPECT_THAT(ReadFile(folder_.File("a/metrics.csv")), HasSubstr("\n10,"));
}

TEST_F(Simulator, AWrongScenarioEndsWithTwo) {
  WriteFile(file_, absl::StrReplaceAll(kScenario, {{"delay:", "dealy:"}}));
  const Outcome outcome = Run({"run", file_, "--out", folder_.File("a")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              HasSubstr(absl::StrCat(file_,
                                     ":10: network.links.dealy: unknown "
                                     "key; did you mean delay?")));
}

void AppendBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

// `count` images of 8 x 8 in the IDX format: of class c the c-th quarter is
// bright, the rest dim noise.
void WriteImages(const std::string& images, const std::string& labels,
                 uint32_t count, uint32_t seed) {
  std::string pixels;
  std::string classes;
  for (const uint32_t number : {0x803U, count, 8U, 8U}) {
    AppendBigEndian(number, &pixels);
  }
  for (const uint32_t number : {0x801U, count}) {
    AppendBigEndian(number, &classes);
  }
  uint32_t state = seed;
  for (uint32_t image = 0; image < count; ++image) {
    const uint32_t label = image % 4;
    classes.push_back(static_cast<char>(label));
    for (uint32_t pixel = 0; pixel < 64; ++pixel) {
      state = state * 1664525U + 1013904223U;
      const uint32_t noise = (state >> 24) % 100;
      pixels.push_back(
          static_cast<char>(noise + (pixel / 16 == label ? 120 : 0)));
    }
  }
  WriteFile(images, pixels);
  WriteFile(labels, classes);
}

class DataSimulator : public Simulator {
 protected:
  // A scenario of `problem`'s keys on four nodes.
  void WriteScenario(const std::string& model, const std::string& problem) {
    WriteFile(file_,
              absl::StrCat("seed: 5\nbatch_size: 16\nmodel: ", model,
                           "\nalgorithm: {name: pame, knobs: {p: 0.2, kappa: "
                           "[2, 4], sigma0: 10}}\nstop: {steps: 150}\n"
                           "network:\n  nodes: 4\n  metrics_every: 50\n"
                           "  problem:\n    kind: data\n",
                           problem));
  }
};

TEST_F(DataSimulator, LearnsImagesWithANetwork) {
  WriteImages(folder_.File("train-x"), folder_.File("train-y"), 400, 1);
  WriteImages(folder_.File("test-x"), folder_.File("test-y"), 80, 2);
  WriteScenario(
      "{kind: mlp, hidden: [16], classes: 4}",
      absl::StrCat("    train: {paths: [", folder_.File("train-x"), ", ",
                   folder_.File("train-y"), "]}\n    test: {paths: [",
                   folder_.File("test-x"), ", ", folder_.File("test-y"),
                   "]}\n    partition: {kind: dirichlet, theta: "
                   "0.5}\n"));
  for (const char* run : {"a", "b"}) {
    const Outcome outcome =
        Run({"run", file_, "--no-plots", "--out", folder_.File(run)});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("accuracy"));
  }
  EXPECT_EQ(Summary("a"), Summary("b"));
  EXPECT_EQ(Summary("a").at("parameters"), 64 * 16 + 16 + 16 * 4 + 4);
  EXPECT_GT(Summary("a").at("last").at("accuracy"), 0.9);
  EXPECT_GT(Summary("a").at("last").at("accuracy_mean_model"), 0.9);
  const Outcome compared =
      Run({"compare", folder_.File("a"), "--out", folder_.File("both")});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("ACCURACY"));
  EXPECT_THAT(ReadFile(folder_.File("both/plot.gp")),
              HasSubstr("set output 'accuracy.png'"));
}

TEST_F(DataSimulator, LearnsARegressionFromLibsvmFiles) {
  std::string text;
  for (int row = 0; row < 200; ++row) {
    const double a = row % 7 / 7.0;
    const double b = row % 11 / 11.0;
    absl::StrAppend(&text, 3 * a - 2 * b + 1, " 1:", a, " 3:", b, "\n");
  }
  WriteFile(folder_.File("rows"), text);
  WriteScenario(
      "{kind: linear, classes: 0}",
      absl::StrCat("    format: libsvm\n    task: regression\n"
                   "    train: {paths: [",
                   folder_.File("rows"), "]}\n    partition: {kind: iid}\n"));
  const Outcome outcome =
      Run({"run", file_, "--no-plots", "--out", folder_.File("a")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json last = Summary("a").at("last");
  EXPECT_EQ(last.count("accuracy"), 0U);
  // About 2 at parameters near 0.
  EXPECT_LT(last.at("loss_mean_model"), 0.3);
  EXPECT_THAT(ReadFile(folder_.File("a/metrics.csv")), HasSubstr(",,,\n"));
}

TEST_F(DataSimulator, WhatIsWrongIsSaidAsInADaemon) {
  WriteScenario("{kind: mlp, classes: 4}",
                "    train: {paths: [/nowhere/x, /nowhere/y]}\n");
  Outcome outcome = Run({"run", file_, "--out", folder_.File("a")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("network.problem.train.paths: /nowhere/"));
  WriteImages(folder_.File("x"), folder_.File("y"), 40, 1);
  WriteScenario("{kind: mlp, classes: 2}",
                absl::StrCat("    train: {paths: [", folder_.File("x"), ", ",
                             folder_.File("y"), "]}\n"));
  outcome = Run({"run", file_, "--out", folder_.File("a")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("model.classes: "));
}

}  // namespace
}  // namespace dfl::testing_support
