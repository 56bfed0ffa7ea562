// Runs a fuzz target without a fuzzer: on the files given, or on inputs drawn from a seed. It keeps
// the targets compiling and catches what is easy to hit; the search itself is tests/fuzz/run.
//
// usage: TARGET FILE...            replays files (a crash that the fuzzer saved, say)
//        TARGET --inputs=N         draws N inputs
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void Replay(const std::vector<uint8_t>& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

bool ReplayFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    return false;
  }
  Replay(std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {}));
  return true;
}

void DrawInputs(int count) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < count; ++i) {
    std::vector<uint8_t> input(rng() % 200);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(rng());
    Replay(input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr char kInputs[] = "--inputs=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kInputs, sizeof kInputs - 1) == 0) {
      DrawInputs(std::atoi(argv[i] + sizeof kInputs - 1));
    } else if (!ReplayFile(argv[i])) {
      return 1;
    }
  }
  return 0;
}
