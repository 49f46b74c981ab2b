import { type Dirent, existsSync } from 'node:fs';
import { chmod, copyFile, lutimes, mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { DeployError } from '../errors.ts';
import { runtimePackageDirectories } from './image-packages.ts';
import { softwareBill } from './image-sbom.ts';

export interface AppOptions {
  /** Checkout, or an installed package with `node_modules` below it. */
  readonly root: string;
  /** Must not exist yet. */
  readonly directory: string;
  /** Seconds since 1970: the time of every file. */
  readonly epoch: number;
  /** Like `process.arch`; of the containers. */
  readonly arch?: string;
  readonly signal?: AbortSignal;
}

/** Files and directories of the package. All of `dist` belongs to it: programs load parts of it at first use. */
const parts = ['LICENSE', 'bin', 'dist'];

/** Node's number for native modules, the same for all of Node 22. */
const nodeModuleVersion = 127;

/** For people and compilers. */
const isDead = (path: string): boolean => /\.(map|md|markdown|d\.[cm]?ts|ts|tsbuildinfo)$/i.test(path);
const deadDirectories = new Set([
  'node_modules',
  'test',
  'tests',
  '__tests__',
  'benchmark',
  'benchmarks',
  'docs',
  '.github',
]);

/**
 * Writes `/app` of the image to `directory`: bundles, launcher, the packages that cannot be bundled, their bill of materials
 * as `sbom.cdx.json`. The same input gives the same bytes, modes and times.
 * @throws DeployError `imageFailed`
 */
export async function writeApp({ root, directory, epoch, arch = process.arch, signal }: AppOptions): Promise<void> {
  if (!existsSync(join(root, 'dist/cli/main.cjs')))
    throw new DeployError('imageFailed', `${root} has not been built`, 'Run: npm run build');
  await mkdir(directory, { recursive: true });
  await copyFile(join(root, 'package.json'), join(directory, 'package.json'));
  for (const part of parts) await copyPart(root, directory, part);
  for (const part of runtimePackageDirectories(root)) await copyPackage(root, directory, part, arch);
  await writeFile(join(directory, 'sbom.cdx.json'), await softwareBill({ root, epoch, ...(signal && { signal }) }));
  await settle(directory, epoch);
}

async function copyPart(root: string, directory: string, part: string): Promise<void> {
  const source = join(root, part);
  if (!existsSync(source)) throw new DeployError('imageFailed', `${source} is missing`, 'Run: npm run build');
  await copyFiltered(source, join(directory, part), (path) => !isDead(path));
}

async function copyPackage(root: string, directory: string, part: string, arch: string): Promise<void> {
  const isForUs = (path: string) => {
    const native = /_([a-z0-9]+)_([a-z0-9]+)_(\d+)\.node$/.exec(path);
    return !native || (native[1] === 'linux' && native[2] === arch && native[3] === String(nodeModuleVersion));
  };
  await copyFiltered(join(root, part), join(directory, part), (path) => !isDead(path) && isForUs(path));
}

async function copyFiltered(source: string, target: string, isWanted: (path: string) => boolean): Promise<void> {
  const entries = await entriesOf(source);
  if (entries === undefined) {
    await mkdir(dirname(target), { recursive: true });
    await copyFile(source, target);
    return;
  }
  for (const entry of entries) {
    if (entry.isDirectory() && deadDirectories.has(entry.name)) continue;
    const path = join(source, entry.name);
    if (entry.isDirectory() || (entry.isFile() && isWanted(path)))
      await copyFiltered(path, join(target, entry.name), isWanted);
  }
}

/** @returns undefined when it is a file */
async function entriesOf(path: string): Promise<Dirent[] | undefined> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

const programs = /(^|\/)(bin\/oratorio\.js|bin\/rg)$/;

/** Modes and times do not depend on who made it, and when. Children first: a directory changes with them. */
async function settle(directory: string, epoch: number): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const paths = entries.map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isDirectory: entry.isDirectory(),
  }));
  paths.sort((a, b) => b.path.length - a.path.length);
  for (const { path, isDirectory } of [...paths, { path: directory, isDirectory: true }]) {
    await chmod(path, isDirectory || programs.test(relative(directory, path)) ? 0o755 : 0o644);
    await lutimes(path, epoch, epoch);
  }
}
