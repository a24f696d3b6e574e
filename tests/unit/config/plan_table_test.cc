#include "daemon/config/plan_table.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

// Every key with a value that is not its default. The whole is no valid plan.
constexpr char kEveryKey[] = R"(
version: 7
run: run-1
seed: 9
participants: {fixed: [a, {name: b, rows: 5}]}
model:
  kind: mlp
  classes: 3
  input: [784]
  hidden: [256, 64]
  dropout: 0.25
  path: model.pt
  loss: mse
  huber_delta: 0.375
  class_weights: [1, 2.5, 0.1]
  l2: 0.5
data:
  task: classification
  classes: [cat, "a, b", 3]
  features: [age, bp]
  shape: [2]
  divide: 255
  standardise:
    per: feature
    over: network
    mean: [0.1, 2]
    std: [1, 0.3]
  model: 0123456789abcdef
batch_size: 16
algorithm:
  name: d-psgd
  knobs: {nu: 0.5}
optimizer:
  name: adamw
  momentum: 0.75
  beta1: 0.625
  beta2: 0.5
  epsilon: 0.25
  weight_decay: 0.125
  clip_norm: 2
  fresh_each_round: on
  schedule:
    kind: cosine
    warmup: 11
    length: 12
    floor: 0.5
    every: 13
    factor: 0.25
topology:
  kind: grid
  edge_probability: 0.75
  degree: 9
  radius: 0.125
  edges: [[a, b]]
  edge_sets: [[[a, b]], [[b, a]]]
  directed: on
  every: 5
  weights: laplacian
  matrix: [[1, 0], [0.5, 0.5]]
codec:
  coordinates: topk
  values: fp16
  rate: 0.5
  mass: bf16
evaluation:
  every_steps: 7
  examples: 8
stop:
  steps: 6
  rounds: 4
  epochs: 2.5
  time: 3s
  loss_below: 0.0625
  accuracy_above: 0.875
deadline:
  exchange: 4s
  floor: 1s
  ceiling: 9s
checkpoint:
  interval: 7s
  keep: 5
aggregation:
  rule: centred-clipping
  hostile: 2
  radius: 0.5
nodes:
  a: {knobs: {nu: 0.25}}
)";

// A key that is no section, and where it stands.
struct Leaf {
  std::string path;  // of its section
  const PlanKey* key;
};

void Collect(absl::Span<const PlanKey> keys, const std::string& path,
             std::vector<Leaf>& out) {
  for (const PlanKey& key : keys) {
    if (key.keys.empty()) {
      out.push_back({path, &key});
    } else {
      Collect(key.keys, YamlReader::Join(path, key.key), out);
    }
  }
}

std::vector<Leaf> Leaves() {
  std::vector<Leaf> leaves;
  Collect(PlanTable(), "", leaves);
  return leaves;
}

// null: there is none.
const YamlNode* SectionAt(const YamlNode& document, const std::string& path) {
  const YamlNode* section = &document;
  for (absl::string_view key : absl::StrSplit(path, '.', absl::SkipEmpty())) {
    if (section != nullptr) section = section->Find(std::string(key));
  }
  return section;
}

std::string Written(const Leaf& leaf, const core::RunPlan& plan) {
  PlanWriter out;
  leaf.key->write(plan, 0, out);
  return out.Take();
}

TEST(PlanTable, EachKeyReadsAndWritesOnePlaceOfItsOwn) {
  const absl::StatusOr<YamlNode> document = ParseYaml(kEveryKey, "plan");
  ASSERT_TRUE(document.ok()) << document.status();
  const core::RunPlan defaults;
  const std::vector<Leaf> leaves = Leaves();
  for (const Leaf& leaf : leaves) {
    PlanReading in("plan");
    in.algorithm = *core::BuiltInCatalogue().Find("pame");  // whose knob nu is
    const YamlNode* section = SectionAt(*document, leaf.path);
    ASSERT_NE(section, nullptr) << leaf.path;
    leaf.key->read(*section, leaf.path, in);
    EXPECT_TRUE(in.yaml.status().ok()) << in.yaml.status();
    for (const Leaf& other : leaves) {
      EXPECT_EQ(Written(other, in.plan) != Written(other, defaults),
                other.key == leaf.key)
          << leaf.path << "." << leaf.key->key << " was read, " << other.path
          << "." << other.key->key << " was written";
    }
    EXPECT_THAT(Written(leaf, in.plan),
                testing::StartsWith(leaf.key->key + ":"));
  }
}

TEST(PlanTable, AnAbsentKeyKeepsItsDefault) {
  const core::RunPlan defaults;
  for (const Leaf& leaf : Leaves()) {
    PlanReading in("plan");
    leaf.key->read(YamlNode(), leaf.path, in);
    EXPECT_TRUE(in.yaml.status().ok()) << in.yaml.status();
    EXPECT_EQ(Written(leaf, in.plan), Written(leaf, defaults));
  }
}

}  // namespace
}  // namespace dfl::config
