#include "daemon/config/plan_table.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/config/plan_lists.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/contract/shape.h"
#include "daemon/core/vector/aggregation.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::config {
namespace {

using core::RunPlan;

// Where a value of type T stands in a plan.
template <typename T>
using Place = T& (*)(RunPlan&);

template <typename T>
const T& Look(Place<T> place, const RunPlan& plan) {
  return place(const_cast<RunPlan&>(plan));
}

enum class Written { kAlways, kUnlessDefault };

// A key with one value. `read` is a method of YamlReader, or is called like
// one; `text` is the value as the document has it.
template <typename T, typename Read, typename Text>
PlanKey Value(std::string key, Place<T> place, Written written, Read read,
              Text text) {
  PlanKey made;
  made.key = key;
  made.read = [=](const YamlNode& section, const std::string& path,
                  PlanReading& in) {
    std::invoke(read, in.yaml, section, path, key, place(in.plan));
  };
  made.write = [=](const RunPlan& plan, int depth, PlanWriter& out) {
    static const RunPlan& defaults = *new RunPlan();
    const T& value = Look(place, plan);
    if (written == Written::kUnlessDefault && value == Look(place, defaults)) {
      return;
    }
    out.Line(depth, key, text(value));
  };
  return made;
}

PlanKey Text(std::string key, Place<std::string> place, Written written) {
  return Value(std::move(key), place, written, &YamlReader::Text, WriteText);
}

PlanKey Integer(std::string key, Place<int64_t> place, Written written) {
  return Value(std::move(key), place, written, &YamlReader::Integer,
               [](int64_t value) { return absl::StrCat(value); });
}

PlanKey Unsigned(std::string key, Place<uint64_t> place, Written written) {
  return Value(std::move(key), place, written, &YamlReader::Unsigned,
               [](uint64_t value) { return absl::StrCat(value); });
}

PlanKey Number(std::string key, Place<double> place, Written written) {
  return Value(std::move(key), place, written, &YamlReader::Number,
               [](double value) { return WriteNumber(value); });
}

PlanKey Duration(std::string key, Place<absl::Duration> place,
                 Written written) {
  return Value(std::move(key), place, written, &YamlReader::Duration,
               WriteDuration);
}

PlanKey Integers(std::string key, Place<std::vector<int64_t>> place,
                 std::string allowed) {
  return Value(
      std::move(key), place, Written::kUnlessDefault,
      [allowed = std::move(allowed)](
          YamlReader& yaml, const YamlNode& section, const std::string& path,
          const std::string& own, std::vector<int64_t>& out) {
        yaml.Integers(section, path, own, allowed, out);
      },
      [](const std::vector<int64_t>& values) {
        return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
      });
}

PlanKey Numbers(std::string key, Place<std::vector<double>> place,
                std::string allowed) {
  return Value(
      std::move(key), place, Written::kUnlessDefault,
      [allowed = std::move(allowed)](
          YamlReader& yaml, const YamlNode& section, const std::string& path,
          const std::string& own, std::vector<double>& out) {
        yaml.Numbers(section, path, own, allowed, out);
      },
      [](const std::vector<double>& values) {
        return absl::StrCat("[",
                            absl::StrJoin(values, ", ",
                                          [](std::string* text, double value) {
                                            text->append(WriteNumber(value));
                                          }),
                            "]");
      });
}

// A key that may be left open. `read` is as that of Value.
template <typename T, typename Read, typename Text>
PlanKey Maybe(std::string key, Place<std::optional<T>> place, Read read,
              Text text) {
  return Value(
      std::move(key), place, Written::kUnlessDefault,
      [read](YamlReader& yaml, const YamlNode& section, const std::string& path,
             const std::string& own, std::optional<T>& out) {
        if (section.Find(own) == nullptr) return;
        T value{};
        std::invoke(read, yaml, section, path, own, value);
        out = std::move(value);
      },
      [text](const std::optional<T>& value) { return text(*value); });
}

// The same of a few words, each with its name.
template <typename T>
PlanKey MaybeWord(std::string key, Place<std::optional<T>> place,
                  std::vector<T> values, absl::string_view (*name)(T)) {
  std::vector<std::string> names;
  for (const T value : values) names.emplace_back(name(value));
  return Maybe<T>(
      std::move(key), place,
      [values = std::move(values), name, allowed = Either(names)](
          YamlReader& yaml, const YamlNode& section, const std::string& path,
          const std::string& own, T& out) {
        yaml.Scalar(
            section, path, own,
            [&](absl::string_view text) -> std::optional<T> {
              for (const T value : values) {
                if (text == name(value)) return value;
              }
              return std::nullopt;
            },
            allowed, out);
      },
      [name](T value) { return std::string(name(value)); });
}

PlanKey MaybeTexts(std::string key,
                   Place<std::optional<std::vector<std::string>>> place) {
  return Maybe<std::vector<std::string>>(
      std::move(key), place, &YamlReader::Texts,
      [](const std::vector<std::string>& texts) { return WriteList(texts); });
}

PlanKey Floats(std::string key, Place<std::vector<float>> place) {
  return Value(std::move(key), place, Written::kUnlessDefault,
               &YamlReader::Floats, [](const std::vector<float>& values) {
                 return absl::StrCat(
                     "[",
                     absl::StrJoin(values, ", ",
                                   [](std::string* out, float value) {
                                     out->append(WriteNumber(value));
                                   }),
                     "]");
               });
}

// One of a few words. `read` returns nullopt, or an error, for any other text.
template <typename T, typename Read, typename Text>
PlanKey Word(std::string key, Place<T> place, Written written, Read read,
             std::string allowed, Text text) {
  return Value(
      std::move(key), place, written,
      [read, allowed = std::move(allowed)](
          YamlReader& yaml, const YamlNode& section, const std::string& path,
          const std::string& own,
          T& out) { yaml.Scalar(section, path, own, read, allowed, out); },
      text);
}

std::optional<core::Coordinates> ReadCoordinates(absl::string_view text) {
  const absl::StatusOr<core::Coordinates> value = core::ParseCoordinates(text);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

std::optional<core::ValueType> ReadValueType(absl::string_view text) {
  const absl::StatusOr<core::ValueType> value = core::ParseValueType(text);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

std::string CoordinatesText(core::Coordinates value) {
  return core::ToString(value);
}
std::string ValueTypeText(core::ValueType value) {
  return core::ToString(value);
}

// A key whose value plan_lists.h reads and writes.
using ReadOwn = void (*)(const YamlNode&, const std::string&, absl::string_view,
                         PlanReading&);
using WriteOwn = void (*)(const RunPlan&, int, absl::string_view, PlanWriter&);
PlanKey Own(std::string key, ReadOwn read, WriteOwn write) {
  PlanKey made;
  made.key = key;
  made.read = [=](const YamlNode& section, const std::string& path,
                  PlanReading& in) { read(section, path, key, in); };
  made.write = [=](const RunPlan& plan, int depth, PlanWriter& out) {
    write(plan, depth, key, out);
  };
  return made;
}

PlanKey Section(std::string key, std::vector<PlanKey> keys) {
  PlanKey section;
  section.key = std::move(key);
  section.keys = std::move(keys);
  return section;
}

// `key`, and `before` that its value is read.
PlanKey Before(PlanKey key, std::function<void(PlanReading&)> before) {
  key.read = [before = std::move(before), read = std::move(key.read)](
                 const YamlNode& section, const std::string& path,
                 PlanReading& in) {
    before(in);
    read(section, path, in);
  };
  return key;
}

// Keys that only some kinds of model look at are written where they differ from
// their defaults.
PlanKey Model() {
  return Section(
      "model",
      {Text(
           "kind", [](RunPlan& p) -> auto& { return p.model.kind; },
           Written::kAlways),
       Integer(
           "classes", [](RunPlan& p) -> auto& { return p.model.classes; },
           Written::kUnlessDefault),
       Integers(
           "input", [](RunPlan& p) -> auto& { return p.model.input; },
           "a list of integers such as [1, 28, 28]"),
       Integers(
           "hidden", [](RunPlan& p) -> auto& { return p.model.hidden; },
           "a list of integers such as [256, 128]"),
       Number(
           "dropout", [](RunPlan& p) -> auto& { return p.model.dropout; },
           Written::kUnlessDefault),
       Text(
           "path", [](RunPlan& p) -> auto& { return p.model.path; },
           Written::kUnlessDefault),
       Text(
           "loss", [](RunPlan& p) -> auto& { return p.model.loss; },
           Written::kUnlessDefault),
       Number(
           "huber_delta",
           [](RunPlan& p) -> auto& { return p.model.huber_delta; },
           Written::kUnlessDefault),
       Numbers(
           "class_weights",
           [](RunPlan& p) -> auto& { return p.model.class_weights; },
           "a list of numbers such as [1, 2.5], one for each class"),
       Number(
           "l2", [](RunPlan& p) -> auto& { return p.model.l2; },
           Written::kUnlessDefault)});
}

// What is open is not written, and a section without keys neither.
PlanKey Data() {
  using core::InputScaling;
  using Per = InputScaling::Per;
  using Over = InputScaling::Over;
  return Section(
      "data",
      {MaybeWord<core::Task>(
           "task", [](RunPlan& p) -> auto& { return p.data.task; },
           {core::Task::kClassification, core::Task::kRegression},
           core::TaskName),
       MaybeTexts("classes",
                  [](RunPlan& p) -> auto& { return p.data.classes; }),
       MaybeTexts("features",
                  [](RunPlan& p) -> auto& { return p.data.features; }),
       Maybe<std::vector<int64_t>>(
           "shape", [](RunPlan& p) -> auto& { return p.data.shape; },
           [](YamlReader& yaml, const YamlNode& section,
              const std::string& path, const std::string& key,
              std::vector<int64_t>& out) {
             yaml.Integers(section, path, key,
                           "a list of integers such as [1, 28, 28]", out);
           },
           core::ShapeText),
       Maybe<double>(
           "divide", [](RunPlan& p) -> auto& { return p.data.divide; },
           &YamlReader::Number,
           [](double value) { return WriteNumber(value); }),
       Section(
           "standardise",
           {MaybeWord<Per>(
                "per", [](RunPlan& p) -> auto& { return p.data.per; },
                {Per::kNone, Per::kAll, Per::kChannel, Per::kFeature},
                core::PerName),
            MaybeWord<Over>(
                "over", [](RunPlan& p) -> auto& { return p.data.over; },
                {Over::kNode, Over::kNetwork, Over::kGiven}, core::OverName),
            Floats("mean", [](RunPlan& p) -> auto& { return p.data.mean; }),
            Floats("std", [](RunPlan& p) -> auto& { return p.data.std; })}),
       Text(
           "model", [](RunPlan& p) -> auto& { return p.data.model; },
           Written::kUnlessDefault)});
}

PlanKey Algorithm() {
  PlanKey name = Text(
      "name", [](RunPlan& p) -> auto& { return p.algorithm.name; },
      Written::kAlways);
  name.read = [read = std::move(name.read), key = name.key](
                  const YamlNode& section, const std::string& path,
                  PlanReading& in) {
    read(section, path, in);
    const absl::StatusOr<const core::AlgorithmInfo*> info =
        in.catalogue.Find(in.plan.algorithm.name);
    if (info.ok()) {
      in.algorithm = *info;
      return;
    }
    const YamlNode* node = section.Find(key);
    in.yaml.Add(node == nullptr ? 1 : node->line, YamlReader::Join(path, key),
                info.status().message());
  };
  return Section(
      "algorithm",
      {name, Own(
                 "knobs",
                 [](const YamlNode& section, const std::string& path,
                    absl::string_view key, PlanReading& in) {
                   ReadKnobs(section, path, key, in.plan.algorithm.knobs, in);
                 },
                 [](const RunPlan& plan, int depth, absl::string_view key,
                    PlanWriter& out) {
                   WriteKnobs(plan.algorithm.knobs, depth, key, out);
                 })});
}

PlanKey Schedule() {
  return Section(
      "schedule",
      {Text(
           "kind",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.kind; },
           Written::kUnlessDefault),
       Integer(
           "warmup",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.warmup; },
           Written::kUnlessDefault),
       Integer(
           "length",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.length; },
           Written::kUnlessDefault),
       Number(
           "floor",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.floor; },
           Written::kUnlessDefault),
       Integer(
           "every",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.every; },
           Written::kUnlessDefault),
       Number(
           "factor",
           [](RunPlan& p) -> auto& { return p.optimizer.schedule.factor; },
           Written::kUnlessDefault)});
}

PlanKey Optimizer() {
  return Section(
      "optimizer",
      {Text(
           "name", [](RunPlan& p) -> auto& { return p.optimizer.name; },
           Written::kUnlessDefault),
       Number(
           "momentum", [](RunPlan& p) -> auto& { return p.optimizer.momentum; },
           Written::kUnlessDefault),
       Number(
           "beta1", [](RunPlan& p) -> auto& { return p.optimizer.beta1; },
           Written::kUnlessDefault),
       Number(
           "beta2", [](RunPlan& p) -> auto& { return p.optimizer.beta2; },
           Written::kUnlessDefault),
       Number(
           "epsilon", [](RunPlan& p) -> auto& { return p.optimizer.epsilon; },
           Written::kUnlessDefault),
       Number(
           "weight_decay",
           [](RunPlan& p) -> auto& { return p.optimizer.weight_decay; },
           Written::kUnlessDefault),
       Number(
           "clip_norm",
           [](RunPlan& p) -> auto& { return p.optimizer.clip_norm; },
           Written::kUnlessDefault),
       Word<bool>(
           "fresh_each_round",
           [](RunPlan& p) -> auto& { return p.optimizer.fresh_each_round; },
           Written::kUnlessDefault, ReadFlag, "on or off",
           [](bool on) { return on ? "on" : "off"; }),
       Schedule()});
}

std::optional<core::AggregationRule> ReadRule(absl::string_view text) {
  const absl::StatusOr<core::AggregationRule> value =
      core::ParseAggregationRule(text);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

PlanKey Aggregation() {
  return Section(
      "aggregation",
      {Word<core::AggregationRule>(
           "rule", [](RunPlan& p) -> auto& { return p.aggregation.rule; },
           Written::kUnlessDefault, ReadRule,
           "mean, trimmed-mean, median or centred-clipping",
           [](core::AggregationRule rule) { return core::ToString(rule); }),
       Integer(
           "hostile", [](RunPlan& p) -> auto& { return p.aggregation.hostile; },
           Written::kUnlessDefault),
       Number(
           "radius", [](RunPlan& p) -> auto& { return p.aggregation.radius; },
           Written::kUnlessDefault)});
}

PlanKey Topology() {
  return Section(
      "topology",
      {Text(
           "kind", [](RunPlan& p) -> auto& { return p.topology.kind; },
           Written::kAlways),
       Number(
           "edge_probability",
           [](RunPlan& p) -> auto& { return p.topology.edge_probability; },
           Written::kUnlessDefault),
       Integer(
           "degree", [](RunPlan& p) -> auto& { return p.topology.degree; },
           Written::kUnlessDefault),
       Number(
           "radius", [](RunPlan& p) -> auto& { return p.topology.radius; },
           Written::kUnlessDefault),
       Own("edges", ReadEdges, WriteEdges),
       Own("edge_sets", ReadEdgeSets, WriteEdgeSets),
       Word<bool>(
           "directed", [](RunPlan& p) -> auto& { return p.topology.directed; },
           Written::kUnlessDefault, ReadFlag, "on or off",
           [](bool on) { return on ? "on" : "off"; }),
       Integer(
           "every", [](RunPlan& p) -> auto& { return p.topology.every; },
           Written::kUnlessDefault),
       Text(
           "weights", [](RunPlan& p) -> auto& { return p.topology.weights; },
           Written::kAlways),
       Own("matrix", ReadMatrix, WriteMatrix)});
}

PlanKey Codec() {
  constexpr char kTypes[] = "fp32, fp16, bf16 or int8";
  return Section(
      "codec",
      {Before(
           Word<core::Coordinates>(
               "coordinates",
               [](RunPlan& p) -> auto& { return p.codec.format.coordinates; },
               Written::kAlways, ReadCoordinates, "dense, random or topk",
               CoordinatesText),
           // What nothing is said of is what the algorithm takes.
           [](PlanReading& in) {
             if (in.algorithm != nullptr && in.algorithm->dense_only) {
               in.plan.codec.format.coordinates = core::Coordinates::kDense;
             }
           }),
       Word<core::ValueType>(
           "values", [](RunPlan& p) -> auto& { return p.codec.format.values; },
           Written::kAlways, ReadValueType,
           absl::StrCat(kTypes,
                        "; one sign bit is for differences, never for model "
                        "values: choco-sgd and beer have the knob compressor: "
                        "sign"),
           ValueTypeText),
       Number(
           "rate", [](RunPlan& p) -> auto& { return p.codec.rate; },
           Written::kAlways),
       Word<core::ValueType>(
           "mass", [](RunPlan& p) -> auto& { return p.codec.mass; },
           Written::kUnlessDefault, ReadValueType, kTypes, ValueTypeText)});
}

PlanKey Evaluation() {
  return Section(
      "evaluation",
      {Integer(
           "every_steps",
           [](RunPlan& p) -> auto& { return p.evaluation.every_steps; },
           Written::kAlways),
       Integer(
           "examples",
           [](RunPlan& p) -> auto& { return p.evaluation.examples; },
           Written::kAlways)});
}

PlanKey Stop() {
  return Section(
      "stop",
      {Integer(
           "steps", [](RunPlan& p) -> auto& { return p.stop.steps; },
           Written::kAlways),
       Integer(
           "rounds", [](RunPlan& p) -> auto& { return p.stop.rounds; },
           Written::kUnlessDefault),
       Number(
           "epochs", [](RunPlan& p) -> auto& { return p.stop.epochs; },
           Written::kUnlessDefault),
       Duration(
           "time", [](RunPlan& p) -> auto& { return p.stop.time; },
           Written::kUnlessDefault),
       Number(
           "loss_below", [](RunPlan& p) -> auto& { return p.stop.loss_below; },
           Written::kUnlessDefault),
       Number(
           "accuracy_above",
           [](RunPlan& p) -> auto& { return p.stop.accuracy_above; },
           Written::kUnlessDefault)});
}

PlanKey Deadline() {
  return Section(
      "deadline",
      {Duration(
           "exchange", [](RunPlan& p) -> auto& { return p.deadline.exchange; },
           Written::kAlways),
       Duration(
           "floor", [](RunPlan& p) -> auto& { return p.deadline.floor; },
           Written::kUnlessDefault),
       Duration(
           "ceiling", [](RunPlan& p) -> auto& { return p.deadline.ceiling; },
           Written::kUnlessDefault)});
}

PlanKey Checkpoint() {
  return Section(
      "checkpoint",
      {Duration(
           "interval",
           [](RunPlan& p) -> auto& { return p.checkpoint.interval; },
           Written::kUnlessDefault),
       Integer(
           "keep", [](RunPlan& p) -> auto& { return p.checkpoint.keep; },
           Written::kUnlessDefault)});
}

}  // namespace

absl::Span<const PlanKey> PlanTable() {
  static const std::vector<PlanKey>& table = *new std::vector<PlanKey>{
      Unsigned(
          "version", [](RunPlan& p) -> auto& { return p.version; },
          Written::kUnlessDefault),
      Text(
          "run", [](RunPlan& p) -> auto& { return p.run_id; },
          Written::kUnlessDefault),
      Unsigned(
          "seed", [](RunPlan& p) -> auto& { return p.seed; },
          Written::kUnlessDefault),
      Own("participants", ReadParticipants, WriteParticipants),
      Model(),
      Data(),
      Integer(
          "batch_size", [](RunPlan& p) -> auto& { return p.batch_size; },
          Written::kAlways),
      Algorithm(),
      Optimizer(),
      Aggregation(),
      Topology(),
      Codec(),
      Evaluation(),
      Stop(),
      Deadline(),
      Checkpoint(),
      Own("nodes", ReadNodes, WriteNodes)};
  return table;
}

}  // namespace dfl::config
