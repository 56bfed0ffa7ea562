#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/completion_tables.h"

namespace stowage {
namespace {

using Kind = FlagValues::Kind;

constexpr char kZshHead[] = R"(#compdef stowage
# Completes `stowage` in zsh: keep it as _stowage in a folder of $fpath.
_stowage() {
  local words_before="" current="${words[CURRENT]}" i
  local -a next flags
  for (( i = 2; i < CURRENT; ++i )); do
    [[ ${words[i]} == -* ]] && break
    words_before+="${words_before:+ }${words[i]}"
  done
  if [[ $current == --*=* ]]; then
    local flag="${current%%=*}"
    compset -P '--*='
    case "$words_before $flag" in
)";

constexpr char kZshAfterFlags[] = R"(    esac
    return
  fi
  case "$words_before" in
)";

constexpr char kZshTail[] = R"(  esac
  if [[ $current == -* ]]; then
    compadd -S '' -- ${(M)flags:#*=}
    compadd -- ${flags:#*=}
  else
    _describe 'command' next
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _stowage "$@"
else
  compdef _stowage stowage
fi
)";

// As an element of an array: word:summary.
std::string ZshQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ZshCase(const CompletedPlace& place) {
  std::vector<std::string> next, flags;
  for (const CompletedWord& word : place.next) {
    next.push_back(ZshQuoted(absl::StrCat(word.word, ":", word.summary)));
  }
  for (const std::string& flag : place.flags) {
    flags.push_back(absl::StrCat("--", flag, ValuesOf(flag).kind == Kind::kNothing ? "" : "="));
  }
  if (!flags.empty()) flags.emplace_back("--help");
  const std::string pattern = place.words.empty() ? "''"
                              : place.next.empty()
                                  ? absl::StrCat("'", place.words, "'|'", place.words, " '*")
                                  : absl::StrCat("'", place.words, "'");
  return absl::StrCat("    ", pattern, ") next=(", absl::StrJoin(next, " "), ") flags=(",
                      absl::StrJoin(flags, " "), ") ;;\n");
}

// Of flags that take words of their own at the place: before those of everywhere.
std::string OwnFlagCases(const CompletedPlace& place) {
  std::string cases;
  for (const FlagWords& own : place.words_of) {
    absl::StrAppend(&cases, "      '", place.words, " --", own.flag, "') compadd -- ",
                    absl::StrJoin(own.words, " "), " ;;\n");
  }
  return cases;
}

std::string FlagCase(const CompletedFlag& flag) {
  if (flag.values.kind == Kind::kAny || flag.values.kind == Kind::kNothing) return "";
  const std::string what = flag.values.kind == Kind::kFile
                               ? "_files"
                               : absl::StrCat("compadd -- ", absl::StrJoin(flag.values.words, " "));
  return absl::StrCat("      *\\ --", flag.name, ") ", flag.values.list ? "compset -P '*,'; " : "",
                      what, " ;;\n");
}

}  // namespace

std::string ZshCompletion(const CompletionTables& tables) {
  std::string script = kZshHead;
  for (const CompletedPlace& place : tables.places) script += OwnFlagCases(place);
  for (const CompletedFlag& flag : tables.flags) script += FlagCase(flag);
  script += kZshAfterFlags;
  for (const CompletedPlace& place : tables.places) script += ZshCase(place);
  return script + kZshTail;
}

}  // namespace stowage
