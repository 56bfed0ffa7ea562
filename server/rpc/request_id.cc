#include "server/rpc/request_id.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kMaxLength = 64;

bool IsWellFormed(const grpc::string_ref& id) {
  return id.size() >= 1 && id.size() <= kMaxLength && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

RequestId::RequestId(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto found = metadata.find(kRequestIdHeader);
  if (found != metadata.end() && IsWellFormed(found->second)) {
    callers_.assign(found->second.data(), found->second.size());
    return;
  }
  thread_local std::mt19937_64 random{std::random_device()()};
  drawn_ = random();
}

std::string RequestId::text() const {
  return is_callers() ? callers_ : absl::StrCat(absl::Hex(drawn_, absl::kZeroPad16));
}

}  // namespace stowage
