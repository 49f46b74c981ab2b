/**
 * `npm run release -- --out DIR [--tag vX.Y.Z] [--engine PROGRAM]`: writes the files of a release: the installable package, which it
 * has tried, the bill of materials, our entry for the registry of agents, checksums, and NOTES.md from the changelog. With `--engine` the image as well. Publishes nothing.
 * Without `--tag` the notes are those of "Unreleased".
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import packageJson from '../package.json' with { type: 'json' };
import { acpIcon, acpManifest } from './release/acp-manifest.ts';
import { releaseNotes } from './release/notes.ts';
import { root } from './toolchain.mjs';

const { values } = parseArgs({
  options: { out: { type: 'string' }, tag: { type: 'string' }, engine: { type: 'string' } },
});

function fail(message: string): never {
  console.error(`✖ ${message}`);
  process.exit(2);
}

const { version } = packageJson;
if (values.out === undefined) fail('--out DIR is missing');
const out = resolve(values.out);
if (existsSync(out) && readdirSync(out).length > 0) fail(`${out} is not empty: choose another directory`);
if (values.tag !== undefined && values.tag !== `v${version}`) {
  fail(
    `The tag is ${values.tag}, and package.json has version ${version}: tag v${version}, or change the version first`,
  );
}
mkdirSync(out, { recursive: true });

const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
writeFileSync(join(out, 'NOTES.md'), releaseNotes(changelog, values.tag === undefined ? 'Unreleased' : version));

writeFileSync(join(out, 'acp-agent.json'), `${JSON.stringify(acpManifest(packageJson), null, 2)}\n`);
writeFileSync(join(out, 'acp-icon.svg'), acpIcon);

/** Runs a script of this checkout; returns its output. */
const script = (name: string, ...args: string[]): string =>
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', join(root, 'scripts', name), ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

script('package.ts', '--check', '--out', out);
writeFileSync(join(out, `oratorio-${version}.cdx.json`), script('image.ts', '--sbom'));
if (values.engine !== undefined) {
  const image = `oratorio:${version}`;
  script('image.ts', 'build', '--fresh', '--tag', image, '--engine', values.engine);
  const saved = join(out, `oratorio-${version}-image-${process.arch}.tar`);
  execFileSync(values.engine, ['save', '--output', saved, image], { stdio: 'inherit' });
}

const sumOf = (file: string): string =>
  createHash('sha256')
    .update(readFileSync(join(out, file)))
    .digest('hex');
const files = readdirSync(out).filter((file) => file !== 'NOTES.md');
writeFileSync(join(out, 'SHA256SUMS'), files.map((file) => `${sumOf(file)}  ${file}\n`).join(''));
console.log(out);
