// What makes two models the same.
#include "daemon/learner/archive_hash.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/unit/learner/script_files.h"

namespace dfl::learner {
namespace {

using ::testing::HasSubstr;

class ModelHashes : public ScriptFiles {
 protected:
  struct Values {
    double constant = 0.25;
    double start = 0.5;
    double frozen = 1;
    int64_t count = 7;
    const char* operation = "torch.relu";
    bool training = true;
  };

  static torch::jit::Module Net(const Values& values) {
    torch::jit::Module net = ScriptPart("Net", values.training);
    AddParameter(net, "w",
                 torch::full({5, 3}, values.start).set_requires_grad(true));
    AddParameter(net, "frozen", torch::full({3}, values.frozen));
    net.register_buffer("count", torch::full({}, values.count, at::kLong));
    net.define(absl::StrCat("def forward(self, x):\n    y = ", values.operation,
                            "(torch.matmul(x, self.w))\n",
                            "    return y * self.frozen + ", values.constant,
                            "\n"));
    return net;
  }

  std::string HashOf(const Values& values, const std::string& name) const {
    return Hash(Save(Net(values), name));
  }
  static std::string Hash(const std::string& path) {
    const auto hash = HashArchive(path);
    EXPECT_TRUE(hash.ok()) << hash.status();
    return hash.ok() ? *hash : path;
  }

  // The records of `path` in another archive, as another version of LibTorch
  // writes them.
  std::string Rewritten(const std::string& path) const {
    caffe2::serialize::PyTorchStreamReader reader(path);
    std::vector<std::string> records = reader.getAllRecords();
    std::reverse(records.begin(), records.end());
    caffe2::serialize::PyTorchStreamWriter writer(Path("rewritten.pt"));
    for (const std::string& record : records) {
      if (record == "version" || record == "byteorder" ||
          absl::StartsWith(record, ".data") ||
          absl::EndsWith(record, ".debug_pkl")) {
        continue;
      }
      const auto [bytes, size] = reader.getRecord(record);
      writer.writeRecord(record, bytes.get(), size,
                         !absl::StartsWith(record, "code"));
    }
    const std::string text = "little";
    writer.writeRecord("byteorder", text.data(), text.size());
    writer.writeRecord(".data/serialization_id", "12345", 5);
    writer.writeRecord("extra/note.txt", "mine", 4);
    writer.setMinVersion(9);
    writer.writeEndOfFile();
    return Path("rewritten.pt");
  }
};

TEST_F(ModelHashes, AreOfWhatTheArchiveHoldsNotOfTheFile) {
  const std::string a = Save(Net({}), "a.pt");
  const std::string hash = Hash(a);
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(HashOf({}, "another_name.pt"), hash);
  EXPECT_EQ(Hash(Rewritten(a)), hash);
  const torch::jit::Module again = torch::jit::load(a);
  torch::jit::ExtraFilesMap extra = {{"note", "of the one who saved it"}};
  again.save(Path("extra.pt"), extra);
  EXPECT_EQ(Hash(Path("extra.pt")), hash);
}

TEST_F(ModelHashes, TellEveryChangeOfTheModel) {
  const std::string hash = HashOf({}, "a.pt");
  const std::function<void(Values&)> changes[] = {
      [](Values& v) { v.constant = 0.5; },
      [](Values& v) { v.start = 0.25; },
      [](Values& v) { v.frozen = 2; },
      [](Values& v) { v.count = 8; },
      [](Values& v) { v.operation = "torch.sigmoid"; },
      [](Values& v) { v.training = false; },
  };
  for (const auto& change : changes) {
    Values values;
    change(values);
    EXPECT_NE(HashOf(values, "b.pt"), hash);
  }
}

TEST_F(ModelHashes, RefuseWhatIsNoArchive) {
  EXPECT_EQ(HashArchive(Path("none.pt")).status().code(),
            absl::StatusCode::kNotFound);
  std::ofstream(Path("text.pt")) << "weights: none\n";
  const absl::Status status = HashArchive(Path("text.pt")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("torch.jit.save"));
}

}  // namespace
}  // namespace dfl::learner
