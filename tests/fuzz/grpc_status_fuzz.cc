// An arbitrary status of gRPC, as a server may send: read without harm, and what is read is sent
// again as the same code, message, reason and delay, within what gRPC allows. The first byte is the
// code, the second the length of the message; the details follow it.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/codec/grpc_status.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

// gRPC's limit for all trailers. Messages travel percent-encoded, details in base64.
constexpr size_t kMaxTrailers = 8192;

size_t TrailersOf(const grpc::Status& status) {
  return 3 * status.error_message().size() + (status.error_details().size() + 2) / 3 * 4;
}

void Check(const grpc::Status& sent) {
  const absl::Status read = FromGrpcStatus(sent);
  Require(read.ok() == sent.ok(), "an error stays an error");
  if (read.ok()) return;
  Require(static_cast<int>(read.raw_code()) == static_cast<int>(sent.error_code()),
          "the code stays", read.ToString());
  const auto delay = GetRetryDelay(read);
  Require(!delay || (delay->count() >= 0 && *delay < std::chrono::hours(25)), "a delay is sensible",
          read.ToString());

  const grpc::Status written = ToGrpcStatus(read);
  Require(TrailersOf(written) < kMaxTrailers, "it fits the trailers", read.ToString());
  const absl::Status again = FromGrpcStatus(written);
  Require(again.raw_code() == read.raw_code(), "the code stays once more", read.ToString());
  Require(ToGrpcStatus(again).error_message() == written.error_message(), "the message stays",
          read.ToString());
  Require(
      ToGrpcStatus(again).error_message().size() >= std::min<size_t>(1024, read.message().size()),
      "a message is cut only where it is long", read.ToString());
  Require(GetRetryDelay(again) == delay, "the delay stays", read.ToString());
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto* const text = reinterpret_cast<const char*>(data);
  const size_t words = std::min<size_t>(data[1], size - 2);
  stowage::Check(grpc::Status(static_cast<grpc::StatusCode>(data[0] % 17),
                              std::string(text + 2, words),
                              std::string(text + 2 + words, size - 2 - words)));
  return 0;
}
