import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { DeployError } from '../errors.ts';

/** Packages that `dist/` loads at run time (`neverBundled` of the build). All others are in its bundles. */
export const runtimePackages = ['@btc-vision/uwebsockets.js', '@vscode/ripgrep', 'uWebSockets.js', 'ws'] as const;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Wanted {
  readonly name: string;
  /** Directory of the package that asks for it. */
  readonly from: string;
  readonly isOptional: boolean;
}

/**
 * Directories of the packages that the bundles need, and of their dependencies, relative to `root` and in order. Packages that npm
 * left out because they are for another platform are left out here, too.
 * @throws DeployError `imageFailed` when one is not installed
 */
export function runtimePackageDirectories(root: string): string[] {
  const found = new Set<string>();
  const waiting: Wanted[] = runtimePackages.map((name) => ({ name, from: root, isOptional: false }));
  for (const { name, from, isOptional } of waiting) {
    const directory = resolvePackage(root, name, from);
    if (directory === undefined) {
      if (isOptional) continue;
      throw new DeployError('imageFailed', `${name} is not installed in ${root}`, 'Run: npm install');
    }
    if (found.has(directory)) continue;
    found.add(directory);
    const { dependencies = {}, optionalDependencies = {} } = manifestOf(directory);
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies }))
      waiting.push({ name: each, from: directory, isOptional: each in optionalDependencies });
  }
  return [...found].map((directory) => relative(root, directory)).sort();
}

/** Finds a package in the way of Node: in each `node_modules` upwards. Not by `require.resolve`, which `exports` may forbid. */
function resolvePackage(root: string, name: string, from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const candidate = join(directory, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (directory === root || dirname(directory) === directory) return undefined;
  }
}

const manifestOf = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;
