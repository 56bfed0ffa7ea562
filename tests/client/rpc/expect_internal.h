// Answers that break the contract, one way after the other.
#ifndef STOWAGE_TESTS_CLIENT_RPC_EXPECT_INTERNAL_H_
#define STOWAGE_TESTS_CLIENT_RPC_EXPECT_INTERNAL_H_

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

// Whether an answer that `spoil` has changed is INTERNAL; `call` makes the call.
template <class Response>
void ExpectInternal(const std::function<absl::Status()>& call,
                    std::function<void(Response*)>* spoil,
                    const std::vector<std::function<void(Response*)>>& ways) {
  ASSERT_TRUE(call().ok()) << call();
  for (size_t i = 0; i < ways.size(); ++i) {
    *spoil = ways[i];
    EXPECT_TRUE(absl::IsInternal(call())) << "way " << i << ": " << call();
  }
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_EXPECT_INTERNAL_H_
