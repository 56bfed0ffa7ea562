// What may stand behind a flag's "=": for completing command lines.
#ifndef STOWAGE_CLIENT_CLI_FLAG_VALUES_H_
#define STOWAGE_CLIENT_CLI_FLAG_VALUES_H_

#include <string>
#include <vector>

namespace stowage {

struct FlagValues {
  enum class Kind { kAny, kNothing, kFile, kWord };

  Kind kind = Kind::kAny;          // kNothing: a switch
  std::vector<std::string> words;  // of kWord: those to offer
  bool list = false;               // several, separated by commas
};

// Of a flag that exists.
FlagValues ValuesOf(const std::string& flag);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_FLAG_VALUES_H_
