// Models from files that are refused before they train, and what is warned of.
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/learner/script_files.h"

namespace dfl::learner {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Trial : public ScriptFiles {
 protected:
  absl::Status Tried(const std::string& body, int64_t classes = 3,
                     int64_t outputs = 3) const {
    return Learn(LinearPart(5, outputs, body), RandomRows({5}, 40, classes, 4),
                 classes)
        .status();
  }
};

TEST_F(Trial, RefusesWhatWorksInOneModeOrForSomeNumbersOfRowsOnly) {
  struct Case {
    const char* name;
    const char* body;
    std::vector<std::string> texts;
  };
  const Case cases[] = {
      {"squeezed",
       "    return torch.matmul(x, self.w).squeeze()\n",
       {"evaluation mode with 1 row", "gives [3] for 1 rows", "[1, 3]"}},
      {"another output in training",
       R"(
    y = torch.matmul(x, self.w)
    return torch.cat([y, y], 1) if self.training else y
)",
       {"training mode with 2 rows", "gives [2, 6]", "[2, 3]"}},
      {"batches of two only",
       "    return torch.matmul(x.view([2, -1]), self.w)\n",
       {"evaluation mode with 1 row", "any number of rows"}},
      {"batches of 32 only",
       "    return torch.matmul(x.view([32, -1]), self.w)\n",
       {"evaluation mode with 1 row", "any number of rows"}},
      {"small batches only",
       R"(
    assert x.size(0) < 10, "at most 10 rows"
    return torch.matmul(x, self.w)
)",
       {"evaluation mode with 32 rows", "at most 10 rows"}},
      {"fails in training",
       R"(
    assert not self.training, "no training"
    return torch.matmul(x, self.w)
)",
       {"training mode with 2 rows", "no training"}},
      {"nothing to train",
       R"(
    return torch.matmul(x, self.w.detach()) if self.training else torch.matmul(x, self.w)
)",
       {"training mode", "depends on no trained tensor"}},
      {"assigns a trained tensor",
       R"(
    if self.training:
        self.w = self.w * 0.9
    return torch.matmul(x, self.w)
)",
       {"training mode", "trained parameter w"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const absl::Status status = Tried(c.body);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("net.pt"), HasSubstr("allowed: ")));
    for (const std::string& text : c.texts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  }
}

TEST_F(Trial, RefusesATupleInTraining) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.define(R"(
    def forward(self, x: Tensor) -> Union[Tensor, Tuple[Tensor, Tensor]]:
        y = torch.matmul(x, self.w)
        if self.training:
            return (y, y)
        return y
  )");
  EXPECT_THAT(
      std::string(Learn(net, RandomRows({5}, 40, 3, 4)).status().message()),
      AllOf(HasSubstr("training mode"), HasSubstr("gives a Tuple"),
            HasSubstr("one tensor")));
}

TEST_F(Trial, RefusesABufferThatChangesItsShape) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.register_buffer("last", torch::zeros({5}));
  net.define(R"(
    def forward(self, x):
        if self.training:
            self.last = x
        return torch.matmul(x, self.w)
  )");
  EXPECT_THAT(
      std::string(Learn(net, RandomRows({5}, 40, 3, 4)).status().message()),
      AllOf(HasSubstr("buffer last"), HasSubstr("[2, 5]"), HasSubstr("[5]")));
}

TEST_F(Trial, TakesOneOutputSqueezedAsPeopleDo) {
  const absl::Status status =
      Tried("    return torch.matmul(x, self.w).squeeze()\n", /*classes=*/0, 1);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(Trial, LeavesTheModelAsItWas) {
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.register_buffer("calls", torch::zeros({}, at::kLong));
  net.define(R"(
    def forward(self, x):
        self.calls.add_(1)
        return torch.matmul(x, self.w)
  )");
  const auto made = Learn(net, RandomRows({5}, 40, 3, 4));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->learner->model().others.at(0).read(), std::string(8, 0));
}

TEST_F(Trial, TakesRowsThatAreNotFiniteForBadRowsNotForABadModel) {
  std::vector<float> values(30, 1);
  values[0] = values[7] = std::numeric_limits<float>::infinity();
  torch::jit::Module net = ScriptPart("Net");
  AddParameter(net, "w", Spread({5, 3}));
  net.register_module("norm", BatchNormPart(5));
  net.define(R"(
    def forward(self, x):
        return torch.matmul(self.norm.forward(x), self.w)
  )");
  const auto made = Learn(net, Rows(5, values));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->learner->model().min_batch_rows, 2);
  const auto plain = Learn(
      LinearPart(5, 3, "  return torch.matmul(x, self.w)\n"), Rows(5, values));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ((*plain)->learner->model().min_batch_rows, 1);
}

TEST_F(Trial, WarnsOfRandomEvaluationsAndOfSharesAsOutputs) {
  const auto warnings = [&](const std::string& body) {
    const auto made = Learn(LinearPart(5, 3, body), RandomRows({5}, 40, 3, 4));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? (*made)->learner->model().warnings
                     : std::vector<std::string>();
  };
  EXPECT_THAT(
      warnings(
          "    return torch.dropout(torch.matmul(x, self.w), 0.5, True)\n"),
      Contains(AllOf(HasSubstr("net.pt"), HasSubstr("two results"))));
  EXPECT_THAT(
      warnings("    return torch.softmax(torch.matmul(x, self.w), 1)\n"),
      Contains(HasSubstr("takes logits")));
  EXPECT_THAT(warnings("    return torch.matmul(x, self.w)\n"), IsEmpty());
}

}  // namespace
}  // namespace dfl::learner
