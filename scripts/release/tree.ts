/** Lays out the files of a tarball: the staged package, the packages that it loads, its Node, man page and completions. */
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { commands } from '../../src/cli/commands.ts';
import { completionScript } from '../../src/cli/completion.ts';
import { manPage } from '../../src/cli/man.ts';
import { installedBeside } from '../package/size.ts';
import { root } from '../toolchain.mjs';
import { packageDirectory } from './packages.ts';
import type { Platform } from './platforms.ts';
import { withoutSymbols } from './strip-elf.ts';

/** Public key of the releases in an installation, in the format of minisign. */
export const publicKeyFile = 'release.pub';

/** Parts and packages that only programs need that import the npm package. */
const libraryParts = ['types', 'client', 'machines', 'shared'];
const libraryPackages = new Set(['valibot', 'xstate', 'superjson', 'copy-anything', 'is-what', 'eventsource-parser']);

const texts = ['README.md', 'CHANGELOG.md', 'LICENSE', 'THIRD-PARTY-NOTICES.md'];
/** Files that a running program does not need: declarations, source maps and READMEs. */
const isUnneeded = (path: string): boolean => /\.(?:map|d\.[cm]?ts)$|node_modules\/.*\/README\.md$/.test(path);

export interface TreeOptions {
  /** Staged npm package. */
  readonly staged: string;
  readonly platform: Platform;
  readonly directory: string;
  readonly version: string;
  /** Key that verifies later releases; absent for unsigned releases. */
  readonly publicKey?: string | undefined;
}

/** Replaces the content of `directory`. */
export async function writeTree({ staged, platform, directory, version, publicKey }: TreeOptions): Promise<void> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(join(directory, 'bin'), { recursive: true });
  copyProduct(staged, directory, platform);
  for (const name of installedBeside(staged, platform).filter((each) => !libraryPackages.has(each))) {
    const source = await packageDirectory(name);
    if (name === platform.node) copyNode(source, directory);
    else copyLive(source, join(directory, 'node_modules', name));
  }
  copyFileSync(join(root, 'scripts/release/launcher.sh'), join(directory, 'bin/oratorio'));
  copyFileSync(join(root, 'scripts/release/install.sh'), join(directory, 'install.sh'));
  for (const file of ['bin/oratorio', 'bin/oratorio.js', 'install.sh']) chmodSync(join(directory, file), 0o755);
  writeShared(join(directory, 'share'), version);
  if (publicKey !== undefined) writeFileSync(join(directory, publicKeyFile), publicKey);
}

function copyProduct(staged: string, directory: string, { os, arch }: Platform): void {
  const libraries = new Set(libraryParts.map((part) => join(staged, 'dist', part)));
  const isWanted = (path: string): boolean => {
    const [, binary] = /uws_([a-z0-9]+_[a-z0-9]+)_\d+\.node\.[a-z0-9]+$/.exec(path) ?? [];
    return !libraries.has(path) && !isUnneeded(path) && (binary === undefined || binary === `${os}_${arch}`);
  };
  for (const part of ['bin', 'dist', 'deploy']) {
    cpSync(join(staged, part), join(directory, part), { recursive: true, filter: isWanted });
  }
  for (const text of [...texts, 'package.json']) copyFileSync(join(staged, text), join(directory, text));
}

function copyNode(source: string, directory: string): void {
  mkdirSync(join(directory, 'node/bin'), { recursive: true });
  writeFileSync(join(directory, 'node/bin/node'), withoutSymbols(readFileSync(join(source, 'bin/node'))));
  copyFileSync(join(source, 'LICENSE'), join(directory, 'node/LICENSE'));
  chmodSync(join(directory, 'node/bin/node'), 0o755);
}

function copyLive(source: string, target: string): void {
  const nested = 'node_modules';
  const filter = (path: string) => !isUnneeded(path) && !relative(source, path).split('/').includes(nested);
  cpSync(source, target, { recursive: true, filter });
}

/** Man page and completions, at the paths that package managers use. */
function writeShared(share: string, version: string): void {
  const files = new Map([
    ['bash-completion/completions/oratorio', completionScript('bash', commands)],
    ['zsh/site-functions/_oratorio', completionScript('zsh', commands)],
    ['fish/vendor_completions.d/oratorio.fish', completionScript('fish', commands)],
    ['man/man1/oratorio.1', manPage(version)],
  ]);
  for (const [path, text] of files) {
    const file = join(share, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
