#!/bin/sh
# In the stage `system`: adds what a review needs of Debian, takes away what nothing here uses, makes the user.
set -eu
umask 022
wanted='ca-certificates git tini'
has() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q ' installed$'; }

missing=''
for package in $wanted; do has "$package" || missing="$missing $package"; done
if [ -n "$missing" ]; then
  echo "Installing$missing"
  # shellcheck disable=SC2086 # a list of words
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } || {
    echo "The base image lacks$missing, and Debian cannot be reached" >&2
    exit 1
  }
fi

# Git's Perl commands (send-email, svn, add -p of old) are not used. Purged, so that a scanner sees what is really there.
for package in git-man ripgrep perl liberror-perl perl-modules-5.36 libperl5.36; do
  if has "$package"; then
    dpkg --force-depends --force-confmiss --purge "$package" >/dev/null 2>&1
  fi
done
core=/usr/lib/git-core
for program in daemon http-backend http-fetch http-push imap-send sh-i18n--envsubst shell; do rm -f "$core/git-$program"; done
rm -f "$core/scalar" /usr/bin/scalar /usr/bin/git-shell
# Two copies in the package, which were one file there.
ln -sf ../../bin/git "$core/git"

# npm and yarn of a Node image: nothing is installed in here.
rm -rf /usr/local/lib/node_modules /usr/local/include/node /usr/local/share/doc /usr/local/share/man /opt/yarn* \
  /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg \
  /usr/local/bin/docker-entrypoint.sh /usr/local/CHANGELOG.md /usr/local/README.md

rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/* /var/log/* \
  /usr/share/man /usr/share/info /usr/share/locale /usr/share/gitweb /usr/share/bash-completion /usr/share/lintian
find /usr/share/doc -depth ! -name copyright ! -type d -delete
find /usr/share/doc -depth -type d -empty -delete
mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial

# Nobody becomes root in here.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

groupadd --gid 10001 oratorio
useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin oratorio
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/machine-id /var/lib/dbus/machine-id
# Open for all: `user:` may be anybody, and a new volume takes over the mode of the directory it covers.
mkdir -p /data /workspace
chmod 1777 /data /workspace
rm -f /tmp/system.sh
# Nothing is younger than the product: the same packages make the same layer.
find / -xdev -newermt "@$SOURCE_DATE_EPOCH" ! -path /dev ! -path /proc ! -path /sys -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
