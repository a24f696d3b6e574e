#include "daemon/core/rounds/prox.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"

namespace dfl::core {
namespace {

double Soft(double v, double c) {
  return std::copysign(std::max(std::fabs(v) - c, 0.0), v);
}

}  // namespace

absl::Status CheckProx(const Prox& prox, double alpha) {
  if (prox.h == Regulariser::kMcp && !(alpha < prox.theta)) {
    return absl::InvalidArgumentError(
        absl::StrCat("theta: ", prox.theta, " is not above the step ", alpha,
                     ", so prox mcp has no unique value; raise theta or lower "
                     "the step"));
  }
  if (prox.h == Regulariser::kScad && !(alpha < prox.a - 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a: ", prox.a, " is not above 1 + the step ", alpha,
                     ", so prox scad has no unique value; raise a or lower "
                     "the step"));
  }
  return absl::OkStatus();
}

double ProximalPoint(const Prox& prox, double alpha, double v) {
  const double size = std::fabs(v);
  const double lambda = prox.lambda;
  switch (prox.h) {
    case Regulariser::kNone:
      return v;
    case Regulariser::kL1:
      return Soft(v, alpha * lambda);
    case Regulariser::kMcp:
      if (size > prox.theta * lambda) return v;
      return Soft(v, alpha * lambda) / (1 - alpha / prox.theta);
    case Regulariser::kScad:
      if (size > prox.a * lambda) return v;
      if (size <= (1 + alpha) * lambda) return Soft(v, alpha * lambda);
      return ((prox.a - 1) * v - std::copysign(prox.a * lambda * alpha, v)) /
             (prox.a - 1 - alpha);
  }
  return v;
}

void ApplyProx(const Prox& prox, double alpha, absl::Span<float> x) {
  if (prox.h == Regulariser::kNone) return;
  DFL_CHECK(CheckProx(prox, alpha).ok());
  for (float& value : x) {
    value = static_cast<float>(ProximalPoint(prox, alpha, value));
  }
}

double PenaltyOf(const Prox& prox, double z) {
  const double size = std::fabs(z);
  const double lambda = prox.lambda;
  switch (prox.h) {
    case Regulariser::kNone:
      return 0;
    case Regulariser::kL1:
      return lambda * size;
    case Regulariser::kMcp:
      if (size > prox.theta * lambda) return prox.theta * lambda * lambda / 2;
      return lambda * size - z * z / (2 * prox.theta);
    case Regulariser::kScad:
      if (size <= lambda) return lambda * size;
      if (size > prox.a * lambda) return lambda * lambda * (prox.a + 1) / 2;
      return (2 * prox.a * lambda * size - z * z - lambda * lambda) /
             (2 * (prox.a - 1));
  }
  return 0;
}

double Penalty(const Prox& prox, absl::Span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += PenaltyOf(prox, value);
  return sum;
}

double Sparsity(absl::Span<const float> x) {
  return static_cast<double>(std::count(x.begin(), x.end(), 0.0F)) /
         static_cast<double>(x.size());
}

std::vector<KnobSpec> ProxKnobs() {
  KnobSpec prox;
  prox.name = "prox";
  prox.type = KnobType::kText;
  prox.default_value = std::string("none");
  prox.choices = {"none", "l1", "mcp", "scad"};
  prox.help =
      "The regulariser h added to the loss; it makes models sparse. mcp and "
      "scad leave large values alone.";
  KnobSpec lambda;
  lambda.name = "lambda";
  lambda.default_value = 1e-4;
  lambda.min = 0;
  lambda.help = "Weight of h, used with prox l1, mcp and scad.";
  const KnobSpec theta = PositiveKnob(
      "theta", 4.0,
      "prox mcp: values beyond theta lambda are left alone; must be above the "
      "step.");
  KnobSpec a;
  a.name = "a";
  a.default_value = 3.7;
  a.min = 2;
  a.min_open = true;
  a.help =
      "prox scad: values beyond a lambda are left alone; must be above 1 + "
      "the step.";
  return {prox, lambda, theta, a};
}

Prox ProxOf(const Knobs& knobs) {
  Prox prox;
  const std::string& name = knobs.Text("prox");
  if (name == "l1") prox.h = Regulariser::kL1;
  if (name == "mcp") prox.h = Regulariser::kMcp;
  if (name == "scad") prox.h = Regulariser::kScad;
  prox.lambda = knobs.Number("lambda");
  prox.theta = knobs.Number("theta");
  prox.a = knobs.Number("a");
  return prox;
}

}  // namespace dfl::core
