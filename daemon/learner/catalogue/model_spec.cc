#include "daemon/learner/catalogue/model_spec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/contract/shape.h"

namespace dfl::learner {
namespace {

constexpr int64_t kMaxHiddenLayers = 64;
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxClasses = 65536;
// The residual networks halve the image three times (four with resnet18's
// first stage): below this, batch normalisation would see single values.
constexpr int64_t kMinResnetSide = 16;

struct KindRow {
  const char* name;
  ModelKind kind;
  LossKind loss;  // its default
};
constexpr KindRow kKinds[] = {
    {"linear", ModelKind::kLinear, LossKind::kMse},
    {"logistic", ModelKind::kLogistic, LossKind::kCrossEntropy},
    {"svm", ModelKind::kSvm, LossKind::kHinge},
    {"mlp", ModelKind::kMlp, LossKind::kCrossEntropy},
    {"cnn", ModelKind::kCnn, LossKind::kCrossEntropy},
    {"resnet20", ModelKind::kResnet20, LossKind::kCrossEntropy},
    {"resnet18", ModelKind::kResnet18, LossKind::kCrossEntropy},
    {"torchscript", ModelKind::kTorchScript, LossKind::kCrossEntropy},
};

struct LossRow {
  const char* name;
  LossKind loss;
};
constexpr LossRow kLosses[] = {
    {"cross-entropy", LossKind::kCrossEntropy},
    {"hinge", LossKind::kHinge},
    {"mse", LossKind::kMse},
    {"logistic", LossKind::kLogistic},
    {"huber", LossKind::kHuber},
    {"bce", LossKind::kBce},
};

template <typename Row, size_t kSize>
std::string Names(const Row (&rows)[kSize]) {
  return absl::StrJoin(rows, ", ", [](std::string* out, const Row& row) {
    absl::StrAppend(out, row.name);
  });
}

absl::Status Wrong(absl::string_view key, absl::string_view found,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("model.", key, ": ", found, "; allowed: ", allowed));
}

absl::StatusOr<KindRow> FindKind(const std::string& name) {
  for (const KindRow& row : kKinds) {
    if (name == row.name) return row;
  }
  return Wrong("kind", absl::StrCat("\"", name, "\" is unknown"),
               Names(kKinds));
}

absl::StatusOr<LossKind> FindLoss(const core::ModelSpec& spec,
                                  const KindRow& kind, bool regression) {
  if (spec.loss.empty()) return regression ? LossKind::kMse : kind.loss;
  for (const LossRow& row : kLosses) {
    if (spec.loss == row.name) return row.loss;
  }
  return Wrong("loss", absl::StrCat("\"", spec.loss, "\" is unknown"),
               Names(kLosses));
}

absl::Status CheckWeights(const core::ModelSpec& spec,
                          const ResolvedSpec& resolved) {
  if (spec.class_weights.empty()) return absl::OkStatus();
  if (resolved.loss != LossKind::kCrossEntropy) {
    return Wrong("class_weights",
                 absl::StrCat("given with loss ", LossName(resolved.loss)),
                 "none, or loss cross-entropy");
  }
  const auto count = static_cast<int64_t>(spec.class_weights.size());
  if (count != resolved.classes) {
    return Wrong(
        "class_weights",
        absl::StrCat(count, " numbers for ", resolved.classes, " classes"),
        "one for each class, in the order of the classes");
  }
  for (const double weight : spec.class_weights) {
    if (!(weight > 0 && weight < 1e9)) {
      return Wrong("class_weights", absl::StrCat(weight, " found"),
                   "numbers above 0");
    }
  }
  return absl::OkStatus();
}

// Sets the loss and its own settings; the classes are known.
absl::Status ResolveLoss(const core::ModelSpec& spec, const KindRow& kind,
                         ResolvedSpec* resolved) {
  const bool regression = resolved->classes == 0;
  DFL_ASSIGN_OR_RETURN(resolved->loss, FindLoss(spec, kind, regression));
  const bool fits_regression =
      resolved->loss == LossKind::kMse || resolved->loss == LossKind::kHuber;
  if (regression && !fits_regression) {
    return Wrong("loss",
                 absl::StrCat("\"", spec.loss,
                              "\" needs classes, and this is a regression"),
                 "mse or huber for a regression (model.classes: 0)");
  }
  if (!regression && resolved->loss == LossKind::kHuber) {
    return Wrong("loss", "\"huber\" is for a regression",
                 absl::StrCat("cross-entropy, hinge, mse, logistic or bce for ",
                              resolved->classes, " classes"));
  }
  DFL_RETURN_IF_ERROR(CheckWeights(spec, *resolved));
  resolved->class_weights = spec.class_weights;
  if (!(spec.huber_delta > 0 && spec.huber_delta < 1e30)) {
    return Wrong("huber_delta", absl::StrCat(spec.huber_delta, " found"),
                 "a number above 0");
  }
  if (resolved->loss == LossKind::kHuber) {
    resolved->huber_delta = spec.huber_delta;
  } else if (spec.huber_delta != 1) {
    return Wrong("huber_delta",
                 absl::StrCat("given with loss ", LossName(resolved->loss)),
                 "none, or loss huber");
  }
  return absl::OkStatus();
}

absl::Status CheckRegression(const core::ModelSpec& spec, ModelKind kind,
                             const DataShape& data) {
  if (kind == ModelKind::kLogistic || kind == ModelKind::kSvm) {
    return Wrong("classes",
                 absl::StrCat("0 (regression) with kind ", spec.kind,
                              ", which tells classes apart"),
                 "2 or more; or a regression with kind linear, mlp, cnn, "
                 "resnet20, resnet18 or torchscript");
  }
  if (data.classes != 0) {
    return Wrong("classes",
                 absl::StrCat("0 (regression), but the data has ", data.classes,
                              " classes"),
                 absl::StrCat(data.classes,
                              ", or data with targets (data.task: "
                              "regression)"));
  }
  return absl::OkStatus();
}

// `classes`: of the plan, or of the data where the plan says nothing.
absl::Status CheckClasses(const core::ModelSpec& spec, ModelKind kind,
                          const DataShape& data, int64_t classes) {
  if (classes == 0) return CheckRegression(spec, kind, data);
  if (classes < 2 || classes > kMaxClasses) {
    return Wrong("classes",
                 spec.classes < 0
                     ? absl::StrCat("not given, and the data has ", classes)
                     : absl::StrCat(classes, " found"),
                 absl::StrCat("0 for a regression, or 2 to ", kMaxClasses));
  }
  if (data.classes == 0) {
    return Wrong(
        "classes",
        absl::StrCat(classes, ", but the data has targets and no classes"),
        "0 (regression: every kind but logistic and svm), or data with labels "
        "(data.task: classification)");
  }
  if (data.classes > classes) {
    return Wrong(
        "classes",
        absl::StrCat(classes, ", but the data has ", data.classes, " classes"),
        absl::StrCat("at least ", data.classes));
  }
  return absl::OkStatus();
}

absl::Status CheckInput(ModelKind kind, const std::vector<int64_t>& input) {
  const bool image = input.size() == 3;
  const int64_t height = image ? input[1] : 0;
  const int64_t width = image ? input[2] : 0;
  if (kind == ModelKind::kCnn) {
    const bool fits = image && height % 2 == 0 && width % 2 == 0 &&
                      height <= 32 && width <= 32;
    if (!fits) {
      return Wrong("input",
                   absl::StrCat("cnn cannot take ", core::ShapeText(input)),
                   "[channels, height, width] with height and width even and "
                   "at most 32 (padded to 32x32); resnet18 takes larger ones");
    }
  }
  if (kind == ModelKind::kResnet20 || kind == ModelKind::kResnet18) {
    if (!image || height < kMinResnetSide || width < kMinResnetSide) {
      return Wrong(
          "input",
          absl::StrCat("a resnet cannot take ", core::ShapeText(input)),
          absl::StrCat("[channels, height, width] with height and "
                       "width at least ",
                       kMinResnetSide));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ResolveInput(const core::ModelSpec& spec,
                                                  ModelKind kind,
                                                  const DataShape& data) {
  const std::vector<int64_t>& input =
      spec.input.empty() ? data.row : spec.input;
  const int64_t size = core::Product(input);
  if (size == 0 || size != core::Product(data.row)) {
    return Wrong(
        "input",
        absl::StrCat(core::ShapeText(input), ", but a row of the data is ",
                     core::ShapeText(data.row)),
        "a shape with as many values as a row has, or none to take "
        "the data's");
  }
  DFL_RETURN_IF_ERROR(CheckInput(kind, input));
  return input;
}

absl::Status CheckMlp(const core::ModelSpec& spec) {
  if (static_cast<int64_t>(spec.hidden.size()) > kMaxHiddenLayers) {
    return Wrong("hidden", absl::StrCat(spec.hidden.size(), " layers found"),
                 absl::StrCat("at most ", kMaxHiddenLayers));
  }
  for (const int64_t width : spec.hidden) {
    if (width < 1 || width > kMaxWidth) {
      return Wrong("hidden", absl::StrCat("width ", width, " found"),
                   absl::StrCat("widths from 1 to ", kMaxWidth));
    }
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    return Wrong("dropout", absl::StrCat(spec.dropout, " found"), "[0, 1)");
  }
  return absl::OkStatus();
}

// Whether the plan gives the values of a row another shape. One extent is no
// shape of its own: a LIBSVM file may need fewer features than there are.
bool Reshapes(const core::ModelSpec& spec, const DataShape& data) {
  return spec.input.size() > 1 && spec.input != data.row;
}

// All but classes and input; the classes are known.
absl::Status ResolveModel(const core::ModelSpec& spec, const KindRow& row,
                          ResolvedSpec* resolved) {
  resolved->kind = row.kind;
  DFL_RETURN_IF_ERROR(ResolveLoss(spec, row, resolved));
  if (!(spec.l2 >= 0 && spec.l2 < 1e9)) {
    return Wrong("l2", absl::StrCat(spec.l2, " found"), "0 or more");
  }
  resolved->l2 = spec.l2;
  if (row.kind == ModelKind::kMlp) {
    DFL_RETURN_IF_ERROR(CheckMlp(spec));
    resolved->hidden = spec.hidden;
    resolved->dropout = spec.dropout;
  }
  if (row.kind == ModelKind::kTorchScript) {
    if (spec.path.empty()) {
      return Wrong("path", "none given with kind torchscript",
                   "the path of a .pt file on this node");
    }
    resolved->path = spec.path;
  }
  return absl::OkStatus();
}

// All bits of `value`, so that equal text means equal value.
std::string Bits(double value) {
  uint64_t bits;
  static_assert(sizeof(bits) == sizeof(value), "double has 64 bits");
  std::memcpy(&bits, &value, sizeof(bits));
  return absl::StrCat(absl::Hex(bits, absl::kZeroPad16));
}

}  // namespace

int64_t ResolvedSpec::input_size() const { return core::Product(input); }

int64_t ResolvedSpec::outputs() const {
  if (classes == 0) return 1;
  return classes == 2 && loss == LossKind::kBce ? 1 : classes;
}

absl::string_view LossName(LossKind loss) {
  for (const LossRow& row : kLosses) {
    if (row.loss == loss) return row.name;
  }
  return "unknown";
}

absl::StatusOr<ResolvedSpec> ResolveSpec(const core::ModelSpec& spec,
                                         const DataShape& data) {
  DFL_ASSIGN_OR_RETURN(const KindRow row, FindKind(spec.kind));
  ResolvedSpec resolved;
  resolved.classes = spec.classes < 0 ? data.classes : spec.classes;
  DFL_RETURN_IF_ERROR(CheckClasses(spec, row.kind, data, resolved.classes));
  DFL_RETURN_IF_ERROR(ResolveModel(spec, row, &resolved));
  DFL_ASSIGN_OR_RETURN(resolved.input, ResolveInput(spec, row.kind, data));
  resolved.reshapes = Reshapes(spec, data);
  return resolved;
}

absl::StatusOr<ResolvedSpec> ResolveStructure(const core::ModelSpec& spec,
                                              const DataShape& data) {
  DFL_ASSIGN_OR_RETURN(const KindRow row, FindKind(spec.kind));
  if (spec.classes == 0 && data.classes > 0) {
    return Wrong("classes", "0 (regression), but the data has labels",
                 "the number of classes, nothing (as the data say), or data "
                 "with targets (data.task: regression)");
  }
  ResolvedSpec resolved;
  resolved.classes = data.classes;
  if (data.classes > 0) {
    const auto weights = static_cast<int64_t>(spec.class_weights.size());
    resolved.classes = spec.classes > 0 ? spec.classes
                       : weights > 0    ? weights
                                        : std::max<int64_t>(2, data.classes);
  }
  const DataShape any{data.row, resolved.classes};
  DFL_RETURN_IF_ERROR(CheckClasses(
      spec, row.kind, any, spec.classes < 0 ? resolved.classes : spec.classes));
  DFL_RETURN_IF_ERROR(ResolveModel(spec, row, &resolved));
  resolved.input = spec.input.empty() ? data.row : spec.input;
  resolved.reshapes = Reshapes(spec, data);
  return resolved;
}

std::string LossText(const ResolvedSpec& spec) {
  std::string text(LossName(spec.loss));
  if (spec.loss == LossKind::kHuber) {
    absl::StrAppend(&text, ", huber_delta ", core::ToString(spec.huber_delta));
  }
  if (!spec.class_weights.empty()) {
    absl::StrAppend(&text, ", class_weights [",
                    absl::StrJoin(spec.class_weights, ", ",
                                  [](std::string* out, double weight) {
                                    out->append(core::ToString(weight));
                                  }),
                    "]");
  }
  if (spec.l2 > 0) absl::StrAppend(&text, ", l2 ", core::ToString(spec.l2));
  return text;
}

std::string StructureText(const ResolvedSpec& spec) {
  absl::string_view kind;
  for (const KindRow& row : kKinds) {
    if (row.kind == spec.kind) kind = row.name;
  }
  return absl::StrCat(
      "kind=", kind, "\ninput=",
      spec.reshapes ? absl::StrJoin(spec.input, ",") : "as the rows",
      "\nhidden=", absl::StrJoin(spec.hidden, ","),
      "\ndropout=", Bits(spec.dropout), "\n");
}

}  // namespace dfl::learner
