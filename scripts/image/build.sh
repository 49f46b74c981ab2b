#!/bin/sh
# In the stage `build`: /product and /node go into the root of the image. Every time is SOURCE_DATE_EPOCH, also of the
# directories above, so that the layer of the product depends on nothing but the product.
set -eu
umask 022
cd /source
mkdir -p /product/usr/local/bin /node/usr/local/bin

# Not `npm ci`: see scripts/toolchain.mjs.
npm install --no-save --no-audit --no-fund --loglevel=error
node scripts/node22.mjs scripts/build.ts
node scripts/node22.mjs scripts/image.ts app --out /product/app --epoch "$SOURCE_DATE_EPOCH"

ln -s /app/bin/oratorio.js /product/usr/local/bin/oratorio
# ripgrep came with the production dependencies: one copy, for the tools and for shells.
cd /product
ln -s "/$(find app/node_modules/@vscode -path '*/bin/rg' -type f | head -n 1)" usr/local/bin/rg
find /product /node -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
