// What fixtures of training are parametrised over: a network or graph by its name, and the device.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_NETWORK_CASE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_NETWORK_CASE_H_

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace stowage {

using NetworkCase = std::tuple<std::string, std::string>;

// On the CPU that of the network alone.
inline std::string NameOfNetworkCase(const testing::TestParamInfo<NetworkCase>& test) {
  const auto& [network, device] = test.param;
  return network + (device == "cpu" ? "" : "_" + device);
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_NETWORK_CASE_H_
