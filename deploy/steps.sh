# For scripts that take minutes: step NAME says what begins, how long it has been, and how much processor time went into it.
step() {
  local stat
  read -ra stat <"/proc/$$/stat"
  printf '\n== %s (%ds, %ds of CPU)\n' "$1" "$SECONDS" "$(((stat[15] + stat[16]) / $(getconf CLK_TCK)))"
}
