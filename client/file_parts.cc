#include "client/file_parts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl {
namespace client {
namespace {

namespace pb = dfl::control::v1;

constexpr int64_t kPartBytes = int64_t{1} << 20;

}  // namespace

TransferEnd::~TransferEnd() {
  pb::EndTransferRequest request;
  request.set_token(token_);
  pb::EndTransferResponse response;
  // Best effort: the daemon forgets it by itself in a minute.
  calls_.Once(&Stub::EndTransfer, request, response).IgnoreError();
}

absl::Status ReadFile(Calls& calls, const std::string& token,
                      int64_t total_bytes, const WritePart& write) {
  for (int64_t offset = 0; offset < total_bytes;) {
    pb::ReadExportRequest request;
    request.set_token(token);
    request.set_offset(offset);
    request.set_max_bytes(kPartBytes);
    pb::ReadExportResponse part;
    absl::Status status = calls.Repeat(&Stub::ReadExport, request, part);
    if (!status.ok()) return status;
    const int64_t size = static_cast<int64_t>(part.data().size());
    if (size == 0 || size > total_bytes - offset) {
      return absl::DataLossError(absl::StrCat(
          calls.target(), ": the export gave ", size, " bytes at offset ",
          offset, " of ", total_bytes, "; try again"));
    }
    status = write(part.data(), total_bytes);
    if (!status.ok()) return status;
    offset += size;
  }
  return absl::OkStatus();
}

absl::Status WriteFile(Calls& calls, const std::string& token,
                       int64_t total_bytes, const ReadPart& read) {
  for (int64_t offset = 0; offset < total_bytes;) {
    absl::StatusOr<std::string> data =
        read(offset, std::min(kPartBytes, total_bytes - offset));
    if (!data.ok()) return data.status();
    if (data->empty()) {
      return absl::DataLossError(
          absl::StrCat("the file ends at ", offset, " of ", total_bytes,
                       " bytes; it was changed meanwhile, try again"));
    }
    pb::WriteImportRequest request;
    request.set_token(token);
    request.set_offset(offset);
    request.set_data(*std::move(data));
    pb::WriteImportResponse part;
    // The part that came last may come again.
    const absl::Status status = calls.Repeat(&Stub::WriteImport, request, part);
    if (!status.ok()) return status;
    offset = part.received_bytes();
  }
  return absl::OkStatus();
}

}  // namespace client
}  // namespace dfl
