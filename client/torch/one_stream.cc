#include "client/torch/one_stream.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace stowage {

absl::Status CheckOneStream(const Schedule& schedule) {
  for (size_t i = 0; i < schedule.size(); ++i) {
    const bool transfers = IsTransfer(schedule[i].op);
    if (!transfers && schedule[i].stream != Stream::kCommunication) continue;
    return absl::UnimplementedError(absl::StrCat(
        "instruction ", i, " (", ToString(schedule[i]), "): ",
        transfers ? "transfers are" : "communication beside compute is", " not carried out here"));
  }
  return absl::OkStatus();
}

}  // namespace stowage
