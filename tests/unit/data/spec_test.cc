#include "daemon/data/load.h"
#include "tests/unit/data/test_files.h"

namespace dfl {
namespace data {
namespace {

TEST(DataSpec, NamesOfFormatsAndHeadersGoBothWays) {
  for (const char* name :
       {"idx", "cifar10", "libsvm", "csv", "npz", "npy", "images"}) {
    const auto format = ParseFormat(name);
    ASSERT_TRUE(format.ok()) << format.status();
    EXPECT_EQ(FormatName(*format), name);
  }
  ExpectError(ParseFormat("parquet").status(),
              absl::StatusCode::kInvalidArgument, {"'parquet'", "npz"});
  for (const char* name : {"auto", "yes", "no", "skip"}) {
    EXPECT_TRUE(ParseHeader(name).ok());
  }
  ExpectError(ParseHeader("maybe").status(), absl::StatusCode::kInvalidArgument,
              {"'maybe'", "auto"});
}

TEST(DataSpec, RefusesFieldsThatContradict) {
  DataSpec csv;
  csv.format = Format::kCsv;
  csv.paths = {"f"};
  ASSERT_TRUE(ValidateSpec(csv).ok());
  const auto refused = [](const DataSpec& spec,
                          const std::vector<std::string>& parts) {
    ExpectError(ValidateSpec(spec), absl::StatusCode::kInvalidArgument, parts);
    ExpectError(ValidateSpec(spec), absl::StatusCode::kInvalidArgument,
                {"allowed: "});
  };
  DataSpec spec = csv;
  spec.paths.clear();
  refused(spec, {"csv", "0 paths", "at least 1"});
  spec = csv;
  spec.classes = -1;
  refused(spec, {"classes", "-1"});
  spec.classes = 70000;
  refused(spec, {"classes", "70000", "65536"});
  spec.classes = 2;
  spec.label_values = {"a", "b", "c"};
  refused(spec, {"label_values", "3 values", "classes = 2"});
  spec.classes = 0;
  spec.label_values = {"a", "1", "+1"};
  refused(spec, {"label_values", "'+1'"});
  spec.label_values = {"a", ""};
  refused(spec, {"label_values", "''"});
  spec.label_values = {"a", "b"};
  spec.task = Task::kRegression;
  refused(spec, {"classes", "regression"});
  spec = csv;
  spec.rows = -1;
  refused(spec, {"rows", "-1"});
  spec = csv;
  spec.features = -1;
  refused(spec, {"features", "-1"});
  spec = csv;
  spec.shape = {1, 0};
  refused(spec, {"shape", "(1, 0)"});
  spec = csv;
  spec.format = Format::kCifar10;
  spec.label_values = {"a", "b"};
  refused(spec, {"label_values", "cifar10"});
  spec = csv;
  spec.divide = -1;
  refused(spec, {"divide", "-1"});
  spec.divide = 1e300;
  refused(spec, {"divide", "1e+300", "3.4e38"});
  spec = csv;
  spec.index_base = 2;
  refused(spec, {"index_base", "2", "0 or 1"});
  spec = csv;
  spec.channels = 2;
  refused(spec, {"channels", "2"});
  spec = csv;
  spec.resize = {32};
  refused(spec, {"resize", "[32]", "[height, width]"});
  spec = csv;
  spec.feature_names = {"a", "a"};
  refused(spec, {"feature_names", "'a'"});
  spec = csv;
  spec.format = Format::kCifar10;
  spec.task = Task::kRegression;
  refused(spec, {"task", "cifar10"});
}

}  // namespace
}  // namespace data
}  // namespace dfl
