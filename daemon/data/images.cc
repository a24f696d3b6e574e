// A folder of pictures with a subfolder for each class, whose name is the
// label: "parts/good/1.png", "parts/cracked/7.jpg".
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/data_error.h"
#include "daemon/data/image_file.h"
#include "daemon/data/labels.h"
#include "daemon/data/load.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"

namespace dfl {
namespace data {
namespace {

namespace fs = std::filesystem;

constexpr char kWhole[] = "the folder";

// The names in `folder`, sorted.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!IsClutter(name)) names.push_back(std::move(name));
  }
  if (!error) {
    std::sort(names.begin(), names.end());
    return names;
  }
  const std::string text =
      absl::StrCat(folder, ": cannot list the folder: ", error.message(),
                   "; allowed: a folder of pictures, a subfolder a class");
  if (error == std::errc::permission_denied) {
    return absl::PermissionDeniedError(text);
  }
  if (error == std::errc::no_such_file_or_directory) {
    return absl::NotFoundError(text);
  }
  return absl::InvalidArgumentError(text);
}

class ImagesReader {
 public:
  explicit ImagesReader(const DataSpec& spec) : spec_(spec), labels_(spec) {}

  absl::Status ReadFolder(const std::string& folder) {
    DFL_ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                         NamesIn(folder));
    const int64_t rows_before = rows_;
    for (const std::string& name : classes) {
      const std::string inner = absl::StrCat(folder, "/", name);
      std::error_code error;
      if (!fs::is_directory(inner, error)) {
        return WrongContent(
            folder, kWhole,
            absl::StrCat("a file beside the subfolders, ", Quoted(name)),
            "subfolders alone: one a class, named after it");
      }
      DFL_RETURN_IF_ERROR(ReadClass(inner, name));
    }
    if (rows_ > rows_before) return absl::OkStatus();
    return WrongContent(folder, kWhole, "no pictures",
                        "a subfolder a class, with PNG or JPEG files in it");
  }

  absl::StatusOr<Dataset> Finish() {
    const std::string& last = spec_.paths.back();
    DFL_RETURN_IF_ERROR(CheckRows(spec_, rows_, last, "all folders together"));
    DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                         ResolveShape(spec_, shape_, last, kWhole));
    DFL_ASSIGN_OR_RETURN(Dataset::Answers answers, labels_.Finish());
    return Dataset(std::move(shape), std::move(pixels_), std::move(answers));
  }

 private:
  absl::Status ReadClass(const std::string& folder, const std::string& label) {
    DFL_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
    for (const std::string& name : names) {
      const std::string path = absl::StrCat(folder, "/", name);
      std::error_code error;
      if (fs::is_directory(path, error)) {
        return WrongContent(path, kWhole, "a folder inside a class's folder",
                            "pictures only: FOLDER/CLASS/PICTURE");
      }
      DFL_ASSIGN_OR_RETURN(Image image, ReadImage(path, spec_.max_bytes));
      DFL_RETURN_IF_ERROR(Add(std::move(image), path));
      DFL_RETURN_IF_ERROR(
          labels_.Add(label, path, [] { return std::string("its folder"); }));
      ++rows_;
    }
    return absl::OkStatus();
  }

  absl::Status Add(Image image, const std::string& path) {
    if (spec_.channels != 0) image = WithChannels(image, spec_.channels);
    if (!spec_.resize.empty()) {
      image = Resized(image, spec_.resize[0], spec_.resize[1]);
    }
    const std::vector<int64_t> shape = {image.channels, image.height,
                                        image.width};
    if (shape_.empty()) {
      shape_ = shape;
      first_path_ = path;
    }
    if (shape[0] != shape_[0]) {
      return WrongContent(
          path, kPicture, shape[0] == 1 ? "it is grey" : "it is coloured",
          absl::StrCat(shape[0] == 1 ? "coloured" : "grey", ", as ",
                       first_path_,
                       " is; data.channels: 1 makes all grey, 3 all coloured"));
    }
    if (shape != shape_) {
      return WrongContent(
          path, kPicture, absl::StrCat(shape[2], " x ", shape[1], " pixels"),
          absl::StrCat(shape_[2], " x ", shape_[1], ", as ", first_path_,
                       " has; data.resize: [height, width] makes all alike"));
    }
    const uint64_t bytes = pixels_.size() + image.pixels.size();
    if (bytes > spec_.max_bytes) {
      return WrongContent(
          path, kPicture, "this picture is too much",
          absl::StrCat("at most data.max_bytes = ", spec_.max_bytes));
    }
    // Channels first.
    const auto channels = static_cast<size_t>(image.channels);
    for (size_t c = 0; c < channels; ++c) {
      for (size_t i = c; i < image.pixels.size(); i += channels) {
        pixels_.push_back(image.pixels[i]);
      }
    }
    return absl::OkStatus();
  }

  static constexpr char kPicture[] = "the picture";

  const DataSpec& spec_;
  LabelCollector labels_;
  std::vector<int64_t> shape_;  // of the first picture
  std::string first_path_;
  std::vector<uint8_t> pixels_;
  int64_t rows_ = 0;
};

}  // namespace

bool IsClutter(absl::string_view name) {
  return absl::StartsWith(name, ".") || name == "Thumbs.db" ||
         name == "desktop.ini";
}

absl::StatusOr<Dataset> ReadImages(const DataSpec& spec) {
  ImagesReader reader(spec);
  for (const std::string& path : spec.paths) {
    DFL_RETURN_IF_ERROR(reader.ReadFolder(path));
  }
  return reader.Finish();
}

}  // namespace data
}  // namespace dfl
