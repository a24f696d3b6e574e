#include "daemon/learner/model_spec.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"

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

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// 0 where an extent is below 1 or the product passes 2^40.
int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (extent < 1 || extent > (int64_t{1} << 40) / product) return 0;
    product *= extent;
  }
  return product;
}

absl::StatusOr<KindRow> FindKind(const std::string& name) {
  for (const KindRow& row : kKinds) {
    if (name == row.name) return row;
  }
  return Wrong("kind", absl::StrCat("\"", name, "\" is unknown"),
               Names(kKinds));
}

absl::StatusOr<LossKind> ResolveLoss(const core::ModelSpec& spec,
                                     const KindRow& kind) {
  if (spec.loss.empty()) return spec.classes == 0 ? LossKind::kMse : kind.loss;
  for (const LossRow& row : kLosses) {
    if (spec.loss != row.name) continue;
    if (spec.classes == 0 && row.loss != LossKind::kMse) {
      return Wrong("loss",
                   absl::StrCat("\"", spec.loss,
                                "\" needs classes, and model.classes is 0"),
                   "mse for a regression");
    }
    return row.loss;
  }
  return Wrong("loss", absl::StrCat("\"", spec.loss, "\" is unknown"),
               Names(kLosses));
}

absl::Status CheckClasses(const core::ModelSpec& spec, ModelKind kind,
                          const DataShape& data) {
  if (spec.classes == 0) {
    if (kind != ModelKind::kLinear && kind != ModelKind::kTorchScript) {
      return Wrong("classes",
                   absl::StrCat("0 (regression) with kind ", spec.kind),
                   "2 or more; regression with kind linear or torchscript");
    }
    if (data.classes != 0) {
      return Wrong("classes",
                   absl::StrCat("0 (regression), but the data has ",
                                data.classes, " classes"),
                   absl::StrCat(data.classes, ", or data with targets"));
    }
    return absl::OkStatus();
  }
  if (spec.classes < 2 || spec.classes > kMaxClasses) {
    return Wrong("classes", absl::StrCat(spec.classes, " found"),
                 absl::StrCat("0 for a regression, or 2 to ", kMaxClasses));
  }
  if (data.classes == 0) {
    return Wrong(
        "classes",
        absl::StrCat(spec.classes, ", but the data has targets and no classes"),
        "0 (kind linear or torchscript), or data with labels");
  }
  if (data.classes > spec.classes) {
    return Wrong("classes",
                 absl::StrCat(spec.classes, ", but the data has ", data.classes,
                              " classes"),
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
      return Wrong("input", absl::StrCat("cnn cannot take ", ShapeText(input)),
                   "[channels, height, width] with height and width even and "
                   "at most 32 (padded to 32x32); resnet18 takes larger ones");
    }
  }
  if (kind == ModelKind::kResnet20 || kind == ModelKind::kResnet18) {
    if (!image || height < kMinResnetSide || width < kMinResnetSide) {
      return Wrong("input",
                   absl::StrCat("a resnet cannot take ", ShapeText(input)),
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
  const int64_t size = Product(input);
  if (size == 0 || size != Product(data.row)) {
    return Wrong("input",
                 absl::StrCat(ShapeText(input), ", but a row of the data is ",
                              ShapeText(data.row)),
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

// All bits of `value`, so that equal text means equal value.
std::string Bits(double value) {
  uint64_t bits;
  static_assert(sizeof(bits) == sizeof(value), "double has 64 bits");
  std::memcpy(&bits, &value, sizeof(bits));
  return absl::StrCat(absl::Hex(bits, absl::kZeroPad16));
}

}  // namespace

int64_t ResolvedSpec::input_size() const { return Product(input); }

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
  resolved.kind = row.kind;
  resolved.classes = spec.classes;
  DFL_RETURN_IF_ERROR(CheckClasses(spec, row.kind, data));
  DFL_ASSIGN_OR_RETURN(resolved.loss, ResolveLoss(spec, row));
  DFL_ASSIGN_OR_RETURN(resolved.input, ResolveInput(spec, row.kind, data));
  if (!(spec.l2 >= 0 && spec.l2 < 1e9)) {
    return Wrong("l2", absl::StrCat(spec.l2, " found"), "0 or more");
  }
  resolved.l2 = spec.l2;
  if (row.kind == ModelKind::kMlp) {
    DFL_RETURN_IF_ERROR(CheckMlp(spec));
    resolved.hidden = spec.hidden;
    resolved.dropout = spec.dropout;
  }
  if (row.kind == ModelKind::kTorchScript) {
    if (spec.path.empty()) {
      return Wrong("path", "none given with kind torchscript",
                   "the path of a .pt file on this node");
    }
    resolved.path = spec.path;
  }
  return resolved;
}

std::string CanonicalText(const ResolvedSpec& spec) {
  absl::string_view kind;
  for (const KindRow& row : kKinds) {
    if (row.kind == spec.kind) kind = row.name;
  }
  return absl::StrCat("kind=", kind, "\nclasses=", spec.classes,
                      "\ninput=", absl::StrJoin(spec.input, ","),
                      "\nhidden=", absl::StrJoin(spec.hidden, ","),
                      "\ndropout=", Bits(spec.dropout),
                      "\nloss=", LossName(spec.loss), "\nl2=", Bits(spec.l2),
                      "\n");
}

}  // namespace dfl::learner
