#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/completion_tables.h"

namespace stowage {
namespace {

using Kind = FlagValues::Kind;

// What the words before the cursor lead to, and the word that is being written.
constexpr char kBashHead[] = R"(# Completes `stowage` in bash: source it, or keep it as
# /usr/share/bash-completion/completions/stowage.
_stowage() {
  local line="${COMP_LINE:0:COMP_POINT}" words=() words_before="" next="" flags="" word
  local current="${line##*[[:space:]]}"
  read -ra words <<< "${line%"$current"}"
  for word in "${words[@]:1}"; do
    [[ $word == -* ]] && break
    words_before+="${words_before:+ }$word"
  done
  COMPREPLY=()
  local flag="" value="" last="${words[*]: -1}"
  if [[ $current == --*=* ]]; then
    flag="${current%%=*}" value="${current#*=}"
  elif [[ $last == --* && $last != *=* ]] && ! _stowage_is_switch "$last"; then
    flag="$last" value="$current"
  fi
  if [[ -n $flag ]]; then
    _stowage_values "$flag" "$value"
    return
  fi
  case "$words_before" in
)";

constexpr char kAfterPlaces[] = R"(  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2> /dev/null
  else
    mapfile -t COMPREPLY < <(compgen -W "$next" -- "$current")
  fi
  return 0
}

# The values of flag $1, behind the words of a command, that begin with $2; of a list, its last element.
_stowage_values() {
  local before="" value="$2" words=""
  case "$words_before $1" in
)";

constexpr char kBashTail[] = R"(    *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$value")
}

_stowage_files() {
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -P "$1" -f -- "$2")
}

complete -F _stowage stowage
)";

// Splits a list at its last comma.
constexpr char kLastElement[] =
    R"([[ $value == *,* ]] && before="${value%,*}," value="${value##*,}"; )";

std::string BashCase(const CompletedPlace& place) {
  std::vector<std::string> next, flags;
  for (const CompletedWord& word : place.next) next.push_back(word.word);
  for (const std::string& flag : place.flags) {
    flags.push_back(absl::StrCat("--", flag, ValuesOf(flag).kind == Kind::kNothing ? "" : "="));
  }
  if (!flags.empty()) flags.emplace_back("--help");
  // What follows a command that has no actions are its operands.
  const std::string pattern = place.words.empty() ? "\"\""
                              : place.next.empty()
                                  ? absl::StrCat("\"", place.words, "\"|\"", place.words, " \"*")
                                  : absl::StrCat("\"", place.words, "\"");
  return absl::StrCat("    ", pattern, ") next=\"", absl::StrJoin(next, " "), "\" flags=\"",
                      absl::StrJoin(flags, " "), "\" ;;\n");
}

// Of flags that take words of their own at the place: before those of everywhere.
std::string OwnValuesCases(const CompletedPlace& place) {
  std::string cases;
  for (const FlagWords& own : place.words_of) {
    absl::StrAppend(&cases, "    \"", place.words, " --", own.flag, "\") words=\"",
                    absl::StrJoin(own.words, " "), "\" ;;\n");
  }
  return cases;
}

std::string ValuesCase(const CompletedFlag& flag) {
  if (flag.values.kind == Kind::kAny || flag.values.kind == Kind::kNothing) return "";
  const std::string what =
      flag.values.kind == Kind::kFile
          ? "_stowage_files \"$before\" \"$value\"; return"
          : absl::StrCat("words=\"", absl::StrJoin(flag.values.words, " "), "\"");
  return absl::StrCat("    *\\ --", flag.name, ") ", flag.values.list ? kLastElement : "", what,
                      " ;;\n");
}

}  // namespace

std::string BashCompletion(const CompletionTables& tables) {
  std::string script = kBashHead;
  for (const CompletedPlace& place : tables.places) script += BashCase(place);
  script += kAfterPlaces;
  for (const CompletedPlace& place : tables.places) script += OwnValuesCases(place);
  std::vector<std::string> switches;
  for (const CompletedFlag& flag : tables.flags) {
    script += ValuesCase(flag);
    if (flag.values.kind == Kind::kNothing) switches.push_back(absl::StrCat("--", flag.name));
  }
  switches.emplace_back("--help");
  return absl::StrCat(script, kBashTail, "\n_stowage_is_switch() { [[ \" ",
                      absl::StrJoin(switches, " "), " \" == *\" $1 \"* ]]; }\n");
}

}  // namespace stowage
