// Arbitrary bytes as canonical bytes: no options, or those that the bytes begin with.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "solvers/model/canonical.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

std::string Beginning(const KeyOptions& options) {
  CanonicalWriter out;
  out.String("STWG");
  out.Integer(kEncodingVersion);
  out.String(options.tenant);
  out.Integer(static_cast<int64_t>(options.objective));
  out.String(options.solver);
  out.Integer(options.slots);
  return out.bytes();
}

void Check(const std::string& bytes) {
  const std::optional<KeyOptions> options = OptionsIn(bytes);
  if (!options) return;
  testing::Require(bytes.rfind(Beginning(*options), 0) == 0, "options have one encoding");
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  stowage::Check(bytes);
  stowage::Check(stowage::Beginning({}).substr(0, 20) + bytes);
  return 0;
}
