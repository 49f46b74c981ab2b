#!/bin/sh
# Installs Oratorio for the user who runs this script. Needs no root and no Node.
#
#   sh install.sh [--from ADDRESS]   installs the release at ADDRESS: https, or a directory with SHA256SUMS and the tarballs
#   sh install.sh --uninstall        removes the program; settings and conversations stay
#
# Everything is in functions, so that half of a download does nothing.
set -eu

released=https://github.com/oratorio-dev/oratorio/releases/latest/download

say() { printf '%s\n' "$1"; }

fail() {
  printf '✖ %s\n' "$1" >&2
  [ -z "${2-}" ] || printf '  %s\n' "$2" >&2
  exit 1
}

# Sets: base, bin, data.
find_places() {
  case ${HOME-} in /*) ;; *) fail 'HOME is not an absolute path.' 'Set HOME, then run this again.' ;; esac
  data=${XDG_DATA_HOME:-$HOME/.local/share}
  case $data in /*) ;; *) data=$HOME/.local/share ;; esac
  base=$data/oratorio
  bin=${XDG_BIN_HOME:-$HOME/.local/bin}
  case $bin in /*) ;; *) bin=$HOME/.local/bin ;; esac
}

# Sets: platform.
find_platform() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail 'Oratorio does not run directly on Windows.' 'Install WSL2 with "wsl --install", then run this script in its Linux shell.' ;;
    *) fail "Oratorio has no tarball for $(uname -s)." 'Use npm or a container: docs/install.md' ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "Oratorio has no tarball for $(uname -m) processors." 'Use npm or a container: docs/install.md' ;;
  esac
  # A shell that runs under Rosetta sees an Intel processor.
  if [ "$os-$arch" = darwin-x64 ] && [ "$(sysctl -in sysctl.proc_translated 2>/dev/null)" = 1 ]; then arch=arm64; fi
  if [ "$os" = linux ] && ldd --version 2>&1 | grep -qi musl; then
    fail 'This Linux uses musl; the Node of Oratorio needs glibc 2.28.' 'Use the container image: docs/images.md'
  fi
  platform=$os-$arch
}

# Makes `from` absolute, without a trailing slash.
check_address() {
  from=${from%/}
  case $from in
    https://*) command -v curl >/dev/null 2>&1 || fail 'curl is not installed.' 'Install it, or download the release and name its directory: --from DIR' ;;
    file:///*) from=${from#file://} ;;
    *://*) fail "The address $from is not https." 'Name an https address or a directory: --from ADDRESS' ;;
  esac
  case $from in
    https://*) ;;
    *) from=$(CDPATH='' cd -- "$from" 2>/dev/null && pwd) || fail 'The directory of --from does not exist.' 'Name the directory of a release: --from DIR' ;;
  esac
}

# fetch NAME FILE BYTES
fetch() {
  case $from in
    https://*)
      curl --proto '=https' --proto-redir '=https' --tlsv1.2 -fsSL --retry 2 --max-filesize "$3" -o "$2" "$from/$1" ||
        fail "$from/$1 could not be downloaded." 'Nothing was changed.'
      ;;
    *) cp "$from/$1" "$2" || fail "$from/$1 cannot be read." 'Nothing was changed.' ;;
  esac
}

sum_of() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# Sets: version, archive, sum.
choose() {
  suffix=-$platform.tar.gz
  lines=$(awk -v suffix="$suffix" 'NF == 2 && $1 ~ /^[0-9a-f]+$/ && length($1) == 64 &&
    $2 ~ /^oratorio-[0-9][0-9A-Za-z.+-]*$/ && substr($2, length($2) - length(suffix) + 1) == suffix' "$work/SHA256SUMS")
  [ -n "$lines" ] || fail "The release at $from has no tarball for $platform." 'Nothing was changed.'
  case $lines in *'
'*) fail "SHA256SUMS at $from names several tarballs for $platform." 'Nothing was changed.' ;; esac
  sum=${lines%% *}
  archive=${lines##* }
  version=${archive#oratorio-}
  version=${version%"$suffix"}
}

# make_dir DIR: remembers the directories that this script makes, for its --uninstall.
make_dir() {
  [ ! -d "$1" ] || return 0
  make_dir "$(dirname "$1")"
  if ! mkdir "$1" 2>/dev/null; then
    # Another installation may have created it.
    [ -d "$1" ] || fail "$1 could not be created." 'Check its permissions.'
    return 0
  fi
  made="$1
$made"
}

# point LINK TARGET: one rename, so that the link leads to the old or to the new target at every moment.
point() {
  # shellcheck disable=SC2016 # a program of Node
  "$program/node/bin/node" -e 'const fs = require("node:fs"); const [, link, target] = process.argv;
    const next = `${link}.${process.pid}`; fs.symlinkSync(target, next); fs.renameSync(next, link);' "$1" "$2"
}

# place DIR TARGET: one rename. `mv` would move it into a directory that another installation has just made.
place() {
  # shellcheck disable=SC2016 # a program of Node
  "$1/node/bin/node" -e 'const [, from, to] = process.argv; require("node:fs").renameSync(from, to);' "$1" "$2" 2>/dev/null ||
    has_sum "$2" || fail "$2 could not be created." 'Run this again.'
}

# Whether a directory is the whole version that was chosen.
has_sum() { [ "$(cat "$1/.digest" 2>/dev/null)" = "$sum" ]; }

# Whether a path is a link that leads into our directory.
is_ours() { [ -L "$1" ] && case $(readlink "$1") in "$base"/*) true ;; *) false ;; esac; }

# Links and their targets below `current`, one pair per line.
links() {
  say "$bin/oratorio bin/oratorio"
  say "$data/bash-completion/completions/oratorio share/bash-completion/completions/oratorio"
  say "$data/zsh/site-functions/_oratorio share/zsh/site-functions/_oratorio"
  say "$data/fish/vendor_completions.d/oratorio.fish share/fish/vendor_completions.d/oratorio.fish"
  say "$data/man/man1/oratorio.1 share/man/man1/oratorio.1"
}

# Removes the work directory and, after a failure, the directories that this script made.
clean() {
  [ -z "${work-}" ] || rm -rf "$work"
  [ -z "${complete-}" ] || return 0
  printf '%s' "${made-}" | while read -r directory; do rmdir "$directory" 2>/dev/null || true; done
}

install_release() {
  find_platform
  check_address
  if [ -e "$bin/oratorio" ] || [ -L "$bin/oratorio" ]; then
    is_ours "$bin/oratorio" || fail "$bin/oratorio was not installed by this script." 'Move it away, then run this again.'
  fi
  made=
  make_dir "$base/versions"
  # A process of another machine or container that shares this home may have the same id.
  work=$(mktemp -d "$base/versions/.new-XXXXXX") || fail "$base/versions cannot be written." 'Check its permissions.'
  fetch SHA256SUMS "$work/SHA256SUMS" 1000000
  choose
  program=$base/versions/$version
  # Another build of the same version gets another directory: programs may run from the first.
  if [ -d "$program" ] && ! has_sum "$program"; then program=$program+$(printf %.8s "$sum"); fi
  if [ -d "$program" ] && ! has_sum "$program"; then program=$program.$$; fi
  if [ -d "$program" ]; then
    say "Oratorio $version is already in $program"
  else
    unpack
    say "Installed Oratorio $version in $program"
  fi
  point "$base/current" "versions/${program##*/}"
  links | while read -r line; do
    link=${line%" "*}
    target=$base/current/${line##*" "}
    if is_ours "$link" || { [ ! -e "$link" ] && [ ! -L "$link" ]; }; then
      make_dir "$(dirname "$link")"
      [ "$(readlink "$link" 2>/dev/null)" = "$target" ] || point "$link" "$target"
      printf %s "$made" >"$work/made"
    fi
  done
  [ ! -f "$work/made" ] || made=$(cat "$work/made")
  # The newest first: an inner directory is removed before the one around it.
  [ -z "$made" ] || { printf '%s\n' "$made"; cat "$base/made" 2>/dev/null || true; } >"$work/all"
  [ ! -f "$work/all" ] || mv "$work/all" "$base/made"
  printf '%s\n' "$from" >"$work/source"
  mv "$work/source" "$base/source"
  complete=yes
  report
}

# Downloads, verifies, unpacks and starts the program before anything points to it.
unpack() {
  say "Fetching $archive"
  fetch "$archive" "$work/archive" 100000000
  [ "$(sum_of "$work/archive")" = "$sum" ] ||
    fail "$archive does not match its checksum in SHA256SUMS." 'Nothing was changed. Download it again.'
  mkdir "$work/tree"
  tar -x -z -o -f "$work/archive" -C "$work/tree" || fail "$archive could not be unpacked." 'Nothing was changed.'
  unpacked=$work/tree/oratorio-$version-$platform
  found=$("$unpacked/bin/oratorio" version 2>&1) || found="no version: $found"
  [ "$found" = "$version" ] || fail "The program of $archive does not start here: $found" 'Nothing was changed.'
  printf '%s\n' "$sum" >"$unpacked/.digest"
  place "$unpacked" "$program"
}

report() {
  say "Command: $bin/oratorio"
  case ":$PATH:" in
    *":$bin:"*)
      [ "$(command -v oratorio)" = "$bin/oratorio" ] || say "Note: another oratorio comes first on PATH: $(command -v oratorio)"
      ;;
    *) say "Add it to PATH in the startup file of your shell: export PATH=\"$bin:\$PATH\"" ;;
  esac
  say 'Begin with: oratorio up --init'
  say "To uninstall: sh $base/current/install.sh --uninstall"
  if [ -n "$("$bin/oratorio" hub status --json 2>/dev/null | sed -n 's/.*"pid".*/yes/p')" ]; then
    say 'A Hub is running. If it has an earlier version, replace it: oratorio hub stop --detach, then oratorio list'
  fi
}

# Ends a Hub that runs from our directory.
stop_hub() {
  "$1" version >/dev/null 2>&1 || return 0
  for unit in "${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/oratorio-hub.service" "$HOME/Library/LaunchAgents/dev.oratorio.hub.plist"; do
    [ ! -f "$unit" ] || ! grep -q "$base/" "$unit" || "$1" service remove || say 'The login service of the Hub could not be removed.'
  done
  for trial in "$base"/versions/.new-*/trial/home; do
    [ ! -d "$trial" ] || ORATORIO_HOME=$trial "$1" hub stop
  done
  pid=$("$1" hub status --json 2>/dev/null | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
  [ -n "$pid" ] || return 0
  running=$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || ps -ww -o args= -p "$pid")
  case $running in *"$base/"*) "$1" hub stop || fail 'The Hub could not be stopped.' 'Stop it, then run this again: oratorio hub stop' ;; esac
}

uninstall() {
  if [ ! -e "$base/current" ] && [ ! -d "$base/versions" ]; then
    say "Oratorio is not installed in $base: nothing was removed."
    return
  fi
  stop_hub "$base/current/bin/oratorio"
  links | while read -r line; do
    link=${line%" "*}
    ! is_ours "$link" || rm "$link"
  done
  cache=${XDG_CACHE_HOME:-$HOME/.cache}
  case $cache in /*) ;; *) cache=$HOME/.cache ;; esac
  # First, so that no half version counts as a whole one when this is killed.
  rm -f "$base"/versions/*/.digest
  rm -rf "$base/versions" "$cache/oratorio"
  rmdir "$cache" 2>/dev/null || true
  rm -f "$base/current" "$base/source" "$base/update.lock" "$base"/current.* "$base"/.current-*
  if [ -f "$base/made" ]; then
    kept=$(cat "$base/made")
    rm -f "$base/made"
    say "$kept" | while read -r directory; do rmdir "$directory" 2>/dev/null || true; done
  fi
  rmdir "$base" 2>/dev/null || true
  say "Removed Oratorio from $base"
  say "Your settings and conversations stay in ${ORATORIO_HOME:-$HOME/.oratorio}, and in .oratorio of each workspace."
}

main() {
  # Other users never write to the program.
  umask g-w,o-w
  from=$released
  action=install_release
  while [ $# -gt 0 ]; do
    case $1 in
      --from)
        [ -n "${2-}" ] || fail '--from needs an address.' 'Usage: sh install.sh [--from ADDRESS] | --uninstall'
        from=$2
        shift
        ;;
      --uninstall) action=uninstall ;;
      *) fail "Unknown option: $1." 'Usage: sh install.sh [--from ADDRESS] | --uninstall' ;;
    esac
    shift
  done
  find_places
  trap clean EXIT
  trap 'exit 130' INT TERM HUP
  $action
}

main "$@"
