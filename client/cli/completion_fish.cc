#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/completion_tables.h"

namespace stowage {
namespace {

using Kind = FlagValues::Kind;

// Tells whether the words before the cursor that are no flags are exactly these, or begin with them.
constexpr char kFishHead[] =
    R"fish(# Completes `stowage` in fish: keep it as ~/.config/fish/completions/stowage.fish.
function __stowage_words
    set -l words
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and break
        set -a words $word
    end
    echo (string join ' ' $words)
end
function __stowage_at
    test (__stowage_words) = "$argv[1]"
end
function __stowage_in
    string match -q -- "$argv[1] *" (__stowage_words)" "
end
complete -c stowage -f
)fish";

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string NextLines(const CompletedPlace& place) {
  std::string lines;
  for (const CompletedWord& word : place.next) {
    absl::StrAppend(&lines, "complete -c stowage -n ",
                    FishQuoted(absl::StrCat("__stowage_at \"", place.words, "\"")), " -a ",
                    word.word, " -d ", FishQuoted(word.summary), "\n");
  }
  return lines;
}

std::string Values(const FlagValues& values) {
  switch (values.kind) {
    case Kind::kNothing:
      return "";
    case Kind::kAny:
      return " -x";
    case Kind::kFile:
      return " -r -F";
    case Kind::kWord:
      return absl::StrCat(" -x -a ", FishQuoted(absl::StrJoin(values.words, " ")));
  }
  return "";
}

std::string FlagLine(const CompletedFlag& flag, const FlagValues& values,
                     const std::vector<std::string>& at) {
  if (at.empty()) return "";
  return absl::StrCat("complete -c stowage -n ", FishQuoted(absl::StrJoin(at, "; or ")), " -l ",
                      flag.name, Values(values), " -d ", FishQuoted(flag.help), "\n");
}

// A flag is said once, with all the places that have it, and once more for each where it takes words of
// its own.
std::string FlagLines(const CompletedFlag& flag, const std::vector<CompletedPlace>& places) {
  std::vector<std::string> at;
  std::string own_lines;
  for (const CompletedPlace& place : places) {
    if (std::find(place.flags.begin(), place.flags.end(), flag.name) == place.flags.end()) continue;
    const std::string here = absl::StrCat("__stowage_in \"", place.words, "\"");
    const auto own = std::find_if(place.words_of.begin(), place.words_of.end(),
                                  [&](const FlagWords& words) { return words.flag == flag.name; });
    if (own == place.words_of.end()) {
      at.push_back(here);
    } else {
      own_lines += FlagLine(flag, {Kind::kWord, own->words}, {here});
    }
  }
  return FlagLine(flag, flag.values, at) + own_lines;
}

}  // namespace

std::string FishCompletion(const CompletionTables& tables) {
  std::string script = kFishHead;
  for (const CompletedPlace& place : tables.places) script += NextLines(place);
  for (const CompletedFlag& flag : tables.flags) script += FlagLines(flag, tables.places);
  return script;
}

}  // namespace stowage
