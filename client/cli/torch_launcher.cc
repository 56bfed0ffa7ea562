// stowage-torch: opens the part of the command that is linked with LibTorch, so that a LibTorch which is missing, or
// of another version, is an error in one line and not the loader's.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr int kExitUsage = 2;  // exit_code.h, which brings libraries along

// What the loader says of a library that it cannot open, or of a symbol that this one has not.
int CannotLoad(const char* command, const char* why) {
  std::fprintf(stderr,
               "stowage %s: LibTorch cannot be loaded: %s (install the LibTorch that Stowage was "
               "built with, libtorch-dev on Debian, or "
               "build Stowage with yours: -DCMAKE_PREFIX_PATH)\n",
               command, why);
  return kExitUsage;
}

std::string ModulePath() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  return std::string(self, length > 0 ? static_cast<size_t>(length) : 0) + ".so";
}

}  // namespace

int main(int argc, char** argv) {
  const char* const command = argc > 1 ? argv[1] : "";
  void* const module = dlopen(ModulePath().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) return CannotLoad(command, dlerror());
  using Main = int (*)(int, char**);
  const auto run = reinterpret_cast<Main>(dlsym(module, "StowageTorchMain"));
  if (run == nullptr) return CannotLoad(command, dlerror());
  return run(argc, argv);
}
