#!/bin/sh
# Runs Oratorio under its own Node, wherever links lead to this file.
self=$0
case $self in */*) ;; *) self=./$self ;; esac
while [ -L "$self" ]; do
  link=$(readlink "$self")
  case $link in /*) self=$link ;; *) self=${self%/*}/$link ;; esac
done
root=$(CDPATH='' cd -- "${self%/*}/.." && pwd -P) || exit 1
exec "$root/node/bin/node" --disable-warning=ExperimentalWarning "$root/dist/cli/main.cjs" "$@"
