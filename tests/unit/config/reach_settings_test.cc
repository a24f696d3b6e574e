// Settings of who finds this node and whom it finds: discovery, labels,
// participation, and what it says of itself.
#include <map>
#include <string>
#include <utility>

#include "daemon/config/node_settings.h"
#include "daemon/config/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::StatusOr<LoadedSettings> Load(std::string text) {
  SettingsSources sources;
  sources.files.push_back({"dfld.yaml", std::move(text)});
  sources.host_name = "host-1";
  return LoadNodeSettings(sources);
}

NodeSettings Settings(std::string text) {
  const auto loaded = Load(std::move(text));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? loaded->settings : NodeSettings();
}

std::string ErrorOf(std::string text) {
  const auto loaded = Load(std::move(text));
  return loaded.ok() ? "OK" : std::string(loaded.status().message());
}

std::string ValueOf(const LoadedSettings& loaded, const std::string& key) {
  for (const EffectiveSetting& entry : loaded.effective) {
    if (entry.key == key) return entry.value;
  }
  return "(unknown)";
}

TEST(ReachSettings, AreTakenFromTheFile) {
  const NodeSettings settings = Settings(
      "cluster: plant-4\nsecurity: insecure\nlabels: {site: north, rack: 7}\n"
      "participation: mix\nmembership: {pace: wan}\n"
      "discovery:\n  dns: [dfld.svc:7600]\n  srv: [_dfl._tcp.example.org]\n"
      "  file: /etc/dfld/boxes\n  mdns: off\npeer: {dialable: no}\n");
  EXPECT_THAT(settings.labels,
              ElementsAre(Pair("rack", "7"), Pair("site", "north")));
  EXPECT_EQ(settings.participation, core::Participation::kMix);
  EXPECT_EQ(settings.membership.pace, ports::Pace::kWan);
  EXPECT_THAT(settings.discovery.dns, ElementsAre("dfld.svc:7600"));
  EXPECT_THAT(settings.discovery.srv, ElementsAre("_dfl._tcp.example.org"));
  EXPECT_EQ(settings.discovery.file, "/etc/dfld/boxes");
  EXPECT_EQ(settings.discovery.mdns, false);
  EXPECT_EQ(settings.peer.dialable, false);
  EXPECT_FALSE(settings.UsesMdns());
}

TEST(ReachSettings, LabelsAreAListElsewhere) {
  SettingsSources sources;
  sources.host_name = "host-1";
  sources.environment = {{"DFLD_LABELS", "site=north,rack=7"}};
  auto loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->settings.labels,
              ElementsAre(Pair("rack", "7"), Pair("site", "north")));
  EXPECT_EQ(ValueOf(*loaded, "labels"), "{rack: 7, site: north}");
  EXPECT_EQ(Settings("labels: " + ValueOf(*loaded, "labels")).labels,
            loaded->settings.labels);
  sources.flags = {{"labels", "a=1"}, {"labels", "b=2"}};
  loaded = LoadNodeSettings(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->settings.labels,
              ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_THAT(Settings("labels: [site=north]").labels,
              ElementsAre(Pair("site", "north")));
  EXPECT_THAT(Settings("labels: []").labels, IsEmpty());
}

TEST(ReachSettings, RefusesWhatMeansNothing) {
  EXPECT_THAT(ErrorOf("labels: [north]"),
              AllOf(HasSubstr("dfld.yaml:1: labels: found [north]"),
                    HasSubstr("has no '='"), HasSubstr("{site: north}")));
  EXPECT_THAT(ErrorOf("labels: {\"a b\": c}"), HasSubstr("\"a b\""));
  EXPECT_THAT(ErrorOf("labels: [a=1, a=2]"), HasSubstr("is there twice"));
  std::string many = "labels: [l0=x";
  for (size_t i = 1; i <= ports::kMaxLabels; ++i) {
    many += ", l" + std::to_string(i) + "=x";
  }
  EXPECT_THAT(ErrorOf(many + "]"), HasSubstr("these are 17"));
  EXPECT_THAT(ErrorOf("participation: mixing"),
              HasSubstr("allowed: train, mix or observe"));
  EXPECT_THAT(ErrorOf("discovery: {srv: [example.org]}"),
              HasSubstr("written _NAME._tcp.DOMAIN"));
  EXPECT_THAT(ErrorOf("discovery: {dns: [\"0.0.0.0:7600\"]}"),
              HasSubstr("no address to reach"));
  EXPECT_THAT(ErrorOf("discovery: {mdns: maybe}"),
              HasSubstr("allowed: on, off or auto"));
  EXPECT_THAT(ErrorOf("discovery: {mdns: on}"),
              HasSubstr("dfld.yaml:1: discovery.mdns: found on; allowed: "
                        "beside cluster"));
  EXPECT_THAT(ErrorOf("peer: {listen: [], dialable: on}"),
              HasSubstr("dfld.yaml:1: peer.dialable: found on; allowed: beside "
                        "peer.listen"));
  EXPECT_THAT(ErrorOf("peer: {advertise: \"box:1\", dialable: off}"),
              HasSubstr("peer.advertise: found \"box:1\"; allowed: \"\""));
}

TEST(ReachSettings, MdnsIsOnWhereAClusterListensOnANetwork) {
  EXPECT_TRUE(Settings("cluster: plant-4").UsesMdns());
  EXPECT_FALSE(Settings("").UsesMdns());
  EXPECT_FALSE(Settings("cluster: plant-4\npeer: {listen: [\"127.0.0.1:0\"]}")
                   .UsesMdns());
  EXPECT_FALSE(Settings("cluster: plant-4\npeer: {listen: []}").UsesMdns());
  EXPECT_TRUE(Settings("cluster: plant-4\npeer: {listen: []}\n"
                       "discovery: {mdns: on}")
                  .UsesMdns());
}

TEST(ReachSettings, WhoDoesNotTrainStartsWithoutData) {
  const auto trains = Load("participation: train");
  ASSERT_TRUE(trains.ok());
  EXPECT_THAT(std::string(CheckStartable(*trains).message()),
              AllOf(HasSubstr("data.train.paths: found []"),
                    HasSubstr("participation: mix or observe")));
  for (const char* other : {"mix", "observe"}) {
    const auto loaded = Load(std::string("participation: ") + other);
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(CheckStartable(*loaded).ok()) << other;
  }
}

TEST(ReachSettings, WhoLooksForOthersIsOnTheNetwork) {
  EXPECT_FALSE(Settings("peer: {listen: []}").OnNetwork());
  EXPECT_TRUE(
      Settings("peer: {listen: []}\ndiscovery: {dns: [a:1]}").OnNetwork());
}

}  // namespace
}  // namespace dfl::config
