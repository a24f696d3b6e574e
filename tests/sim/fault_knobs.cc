#include "tests/sim/fault_knobs.h"

#include "absl/time/time.h"

namespace dfl::sim {
namespace {

std::string LocalForm(KnobDraw& draw) {
  return absl::StrCat(draw.Step("eta", 0.3, 0.6), ", ", draw.Count("E", 1, 2));
}

const char* const kCompressors[] = {"topk", "mask", "sign"};

const Drawing kDrawings[] = {
    {"pame",
     [](KnobDraw& draw) {
       const int64_t kappa = draw.From(1, 3);
       return absl::StrFormat(
           "nu: %.2f, p: %.2f, kappa: [%d, %d], sigma0: %.4g, gamma: %.4f, "
           "lookahead: %d",
           draw.Between(0.5, 1), draw.Between(0.5, 0.9), kappa,
           kappa + draw.From(0, 2), 1 / draw.step, draw.Between(1.002, 1.005),
           draw.From(0, 1));
     }},
    {"d-psgd", [](KnobDraw& draw) { return draw.Step("eta", 0.3, 0.8); }},
    {"decefl",
     [](KnobDraw& draw) {
       return draw.rng.Bernoulli(0.5)
                  ? absl::StrCat("form: local, ", LocalForm(draw))
                  : draw.Step("eta", 0.3, 0.8);
     }},
    {"dfedavgm",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta", 0.15, 0.3), ", theta: 0.5, ",
                           draw.Count("K", 1, 4));
     }},
    {"dfedsam",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta", 0.15, 0.3), ", rho: 0.01, ",
                           draw.Count("K", 1, 3));
     }},
    {"epidemic",
     [](KnobDraw& draw) {
       return absl::StrCat(
           draw.Step("eta", 0.3, 0.7), ", s: ", draw.From(1, 3),
           ", step_first: ", draw.rng.Bernoulli(0.5) ? "on" : "off");
     }},
    {"fedavg", LocalForm},
    {"fedavg+",
     [](KnobDraw& draw) {
       return absl::StrCat(LocalForm(draw),
                           ", fine_tune_from: ", draw.network.steps * 4 / 5);
     }},
    {"swarm", LocalForm},
    {"async-dsgd",
     [](KnobDraw& draw) {
       return absl::StrFormat(
           "%s, gamma_max: %.3f", draw.Step("eta", 0.5, 0.9),
           draw.Between(1.1, 2) * absl::ToDoubleSeconds(draw.network.gradient));
     }},
    {"barrier-dsgd",
     [](KnobDraw& draw) {
       return absl::StrFormat(
           "%s, gamma_max: %.3f", draw.Step("eta", 0.5, 0.9),
           draw.Between(1.5, 2) * absl::ToDoubleSeconds(draw.network.gradient));
     }},
    {"sync-dsgd", [](KnobDraw& draw) { return draw.Step("eta", 0.3, 0.8); }},
    {"fedmid",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta_c", 0.2, 0.4), ", ",
                           draw.Count("K", 1, 3));
     }},
    {"draco",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta", 0.05, 0.15), ", ",
                           draw.Count("B", 1, 3),
                           absl::StrFormat(", P: %.1f", draw.Between(5, 20)));
     }},
    {"kd-pdfl",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta", 0.3, 0.6),
                           ", T_ex: ", draw.From(3, 8),
                           ", subset: ", draw.From(1, 4));
     }},
    {"nids", [](KnobDraw& draw) { return draw.Step("alpha", 0.5, 1); }},
    {"anq-nids",
     [](KnobDraw& draw) {
       if (draw.rng.Bernoulli(0.5)) {
         return absl::StrCat(draw.Step("alpha", 0.5, 1), ", R0: 8");
       }
       return absl::StrFormat("%s, range: largest, bits: %d, K: %d, c_D: %.2f",
                              draw.Step("alpha", 0.3, 0.6), draw.From(2, 5),
                              draw.From(1, 3), draw.Between(0.25, 0.5));
     }},
    {"gossip-nids",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, %s, M: %d, c: %.2f, c0: %.2f",
                              draw.Step("alpha", 0.3, 0.6),
                              draw.Count("K", 1, 4), 2 * draw.From(3, 8),
                              draw.Between(0, 0.25), draw.Between(0.1, 0.7));
     }},
    {"choco-sgd",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, gamma: 0.2, rate: %.2f, compressor: %s",
                              draw.Step("eta", 0.1, 0.25),
                              draw.Between(0.2, 0.5),
                              kCompressors[draw.From(0, 2)]);
     }},
    {"beer",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, gamma: 0.2, rate: %.2f, compressor: %s",
                              draw.Step("eta", 0.06, 0.1),
                              draw.Between(0.2, 0.5),
                              kCompressors[draw.From(0, 2)]);
     }},
    {"depositum",
     [](KnobDraw& draw) {
       return absl::StrFormat(
           "%s, gamma: %.2f, option: %s, T0: %d",
           draw.Step("alpha", 0.08, 0.15), draw.Between(0, 0.5),
           draw.rng.Bernoulli(0.5) ? "polyak" : "nesterov", draw.From(1, 4));
     }},
    {"spod-gt",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, p: %.2f, p_hat: %.2f",
                              draw.Step("eta", 0.06, 0.1), draw.Between(0.5, 1),
                              draw.Between(0.5, 1));
     }},
    {"push-pull", [](KnobDraw& draw) { return draw.Step("eta", 0.06, 0.1); }},
    {"g-push-pull",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, p_hat: %.2f", draw.Step("eta", 0.06, 0.1),
                              draw.Between(0.5, 1));
     }},
    {"sporadic-k-gt",
     [](KnobDraw& draw) {
       return absl::StrFormat("%s, p: %.2f", draw.Step("eta", 0.06, 0.1),
                              draw.Between(0.5, 1));
     }},
    {"k-gt",
     [](KnobDraw& draw) {
       return absl::StrCat(draw.Step("eta_c", 0.06, 0.1), ", ",
                           draw.Count("K", 1, 4));
     }},
    {"sgp", [](KnobDraw& draw) { return draw.Step("eta", 0.1, 0.25); }},
    {"local", [](KnobDraw& draw) { return draw.Step("eta", 0.3, 0.8); }},
};

}  // namespace

const Drawing* FindDrawing(const std::string& algorithm) {
  for (const Drawing& drawing : kDrawings) {
    if (algorithm == drawing.algorithm) return &drawing;
  }
  return nullptr;
}

}  // namespace dfl::sim
