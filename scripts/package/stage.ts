/** Lays the files of the published package into a directory. */
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { minifySync } from 'rolldown/utils';
import { type UwsBuild, uwsBuilds } from '../../src/http/load-uws.ts';
import { asciiCode } from '../ascii-code.ts';
import { root } from '../toolchain.mjs';
import { type Lock, type Manifest, packedManifest, shrinkwrapOf } from './manifest.ts';
import { thirdPartyNotices } from './notices.ts';

const at = (path: string): string => join(root, path);
const readJson = <T>(path: string): T => JSON.parse(readFileSync(at(path), 'utf8')) as T;

/** Platforms for which Node 22 is installed with the package. An old glibc, which needs the second build, is on Linux only. */
const platforms = ['darwin_arm64', 'darwin_x64', 'linux_arm64', 'linux_x64'] as const;
/** Binary interface of Node 22, under which every program of the product runs. */
const nodeAbi = '127';

function filesBelow(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Comments and blanks take a third of the bundles; names stay, for messages and stack traces. */
export function shortened(file: string): string {
  const { code, errors } = minifySync(file, readFileSync(file, 'utf8'), {
    module: !file.endsWith('.cjs'),
    compress: false,
    mangle: false,
    codegen: { removeWhitespace: true, legalComments: 'none' },
  });
  const [error] = errors;
  if (error) throw new Error(`${file}: ${error.message}`);
  return asciiCode(code);
}

function stageBuild(directory: string): void {
  for (const file of filesBelow(at('dist'))) {
    if (/(\.map|\.stamp)$/.test(file) || file.startsWith(at('dist/inspector/'))) continue;
    const target = join(directory, relative(root, file));
    mkdirSync(dirname(target), { recursive: true });
    // The page is minified by its own build.
    if (/\.c?js$/.test(file) && !file.startsWith(at('dist/ui'))) writeFileSync(target, shortened(file));
    else copyFileSync(file, target);
  }
}

/** uWebSockets.js for each platform, compressed: `src/http/packed-uws.ts` unpacks the one that it needs. */
function stageBinaries(directory: string): void {
  for (const [index, build] of uwsBuilds.entries())
    stageBuildOfUws(
      join(directory, 'dist', 'uws', build.version),
      build,
      (platform) => index === 0 || platform.startsWith('linux'),
    );
}

function stageBuildOfUws(target: string, build: UwsBuild, isWanted: (platform: string) => boolean): void {
  mkdirSync(target, { recursive: true });
  for (const platform of platforms.filter(isWanted)) {
    const name = `uws_${platform}_${nodeAbi}.node`;
    const binary = readFileSync(at(`node_modules/${build.directory}/${name}`));
    // Quality 9 takes six times as long for 1 % less.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 };
    writeFileSync(join(target, `${name}.br`), brotliCompressSync(binary, { params }));
    writeFileSync(join(target, `${name}.sha256`), createHash('sha256').update(binary).digest('hex'));
  }
}

const importedPackage = /(?:from|import\() ?'((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[^']*)?'/g;

/** Packages in the bundles of the page, which have no source maps: those that its sources import, and all that these need. */
function packagesOfThePage(): readonly string[] {
  const sources = filesBelow(at('src/ui')).filter((file) => /\.tsx?$/.test(file) && !file.endsWith('vite.config.ts'));
  const imported = sources.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(importedPackage)]);
  const found = new Set(imported.map(([, name = '']) => name).filter((name) => existsSync(at(`node_modules/${name}`))));
  for (const name of found) {
    const { dependencies = {} } = readJson<Partial<Manifest>>(`node_modules/${name}/package.json`);
    for (const needed of Object.keys(dependencies)) found.add(needed);
  }
  return [...found].sort();
}

/** Puts the files of the package into `directory` and replaces its content. Needs a built `dist/`. */
export function stage(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(join(directory, 'bin'), { recursive: true });
  for (const name of ['oratorio.js', 'package.json']) copyFileSync(at(`bin/${name}`), join(directory, 'bin', name));
  for (const name of ['README.md', 'CHANGELOG.md', 'LICENSE']) copyFileSync(at(name), join(directory, name));
  cpSync(at('docs'), join(directory, 'docs'), { recursive: true, filter: (file) => file !== at('docs/images') });
  cpSync(at('deploy'), join(directory, 'deploy'), { recursive: true });
  stageBuild(directory);
  stageBinaries(directory);
  const maps = filesBelow(at('dist')).filter(
    (file) => file.endsWith('.map') && !file.startsWith(at('dist/inspector/')),
  );
  const copied = [
    '@btc-vision/uwebsockets.js',
    'uWebSockets.js',
    'web-tree-sitter',
    'tree-sitter-bash',
    ...packagesOfThePage(),
  ];
  const notices = thirdPartyNotices(
    maps,
    copied.map((name) => at(`node_modules/${name}`)),
  );
  writeFileSync(join(directory, 'THIRD-PARTY-NOTICES.md'), notices);
  const manifest = packedManifest(readJson<Manifest>('package.json'));
  writeJson(join(directory, 'package.json'), manifest);
  writeJson(join(directory, 'npm-shrinkwrap.json'), shrinkwrapOf(manifest, readJson<Lock>('package-lock.json')));
}

const writeJson = (file: string, value: unknown): void => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
