/**
 * `npm run release -- --dry-run | --out DIR [--tag vX.Y.Z] [--platforms NAME,…] [--sign-key FILE] [--engine PROGRAM] [--check]`: writes
 * the files of a release without publishing them: tarballs with their Node and `install.sh`, Debian packages, a Homebrew formula,
 * the npm package, the entry for the registry of agents, the bill of materials, checksums, and NOTES.md from the changelog.
 * `--dry-run` writes to `release/` of the checkout and replaces an earlier release. `--sign-key` names a private Ed25519 key in PEM.
 * `--check` installs and uses each file that this machine can run; with `--engine`, also the image. Without `--tag`, the notes
 * come from the section "Unreleased".
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import packageJson from '../package.json' with { type: 'json' };
import { acpIcon, acpManifest } from './release/acp-manifest.ts';
import { type Artefact, makeArtefacts, sha256Of } from './release/artefacts.ts';
import { checkRelease } from './release/check.ts';
import { formula } from './release/formula.ts';
import { readReleaseKey } from './release/minisign.ts';
import { platformNotes, releaseNotes } from './release/notes.ts';
import { ownPlatform, platforms } from './release/platforms.ts';
import { root } from './toolchain.mjs';

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    tag: { type: 'string' },
    platforms: { type: 'string' },
    'sign-key': { type: 'string' },
    engine: { type: 'string' },
    check: { type: 'boolean', default: false },
  },
});

function fail(message: string): never {
  console.error(`✖ ${message}`);
  process.exit(2);
}

const { version } = packageJson;
const ownOut = join(root, 'release');
if (values.out === undefined && !values['dry-run']) fail('Name a directory with --out DIR, or use --dry-run');
const out = resolve(values.out ?? ownOut);
if (out === ownOut) rmSync(out, { recursive: true, force: true });
if (existsSync(out) && readdirSync(out).length > 0) fail(`${out} is not empty: choose another directory`);
if (values.tag !== undefined && values.tag !== `v${version}`) {
  fail(
    `The tag is ${values.tag}, and package.json has version ${version}: tag v${version}, or change the version first`,
  );
}
const names = values.platforms?.split(',') ?? platforms.map(({ name }) => name);
const unknown = names.find((name) => !platforms.some((platform) => platform.name === name));
if (unknown !== undefined)
  fail(`Unknown platform ${unknown}. Use some of: ${platforms.map(({ name }) => name).join(', ')}`);
const key = values['sign-key'] === undefined ? undefined : readReleaseKey(values['sign-key']);
mkdirSync(out, { recursive: true });

/** Runs a script of this checkout; returns its output. */
const script = (name: string, ...args: string[]): string =>
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', join(root, 'scripts', name), ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

// Leaves the staged package behind, because the tarballs are created from it.
script('package.ts', '--check', '--out', out);
const staged = join(root, 'node_modules', '.cache', 'package');
const artefacts: Artefact[] = [];
for (const platform of platforms.filter(({ name }) => names.includes(name))) {
  const made = await makeArtefacts({ staged, platform, out, version, publicKey: key?.publicKey });
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  console.error(`${made.file}: ${mb(made.packedBytes)}, unpacked ${mb(made.unpackedBytes)}`);
  artefacts.push(made);
}
copyFileSync(join(root, 'scripts/release/install.sh'), join(out, 'install.sh'));
const { description, homepage, license, repository } = packageJson;
const source = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
const address = `${source}/releases/download/v${version}`;
const ofFormula = { version, description, homepage: homepage.replace(/#.*$/, ''), license, address };
const archives = artefacts.map(({ platform: { os, arch }, file }) => {
  return { os, arch, address: `${address}/${file}`, directory: file.replace('.tar.gz', '') };
});
writeFileSync(join(out, 'acp-agent.json'), `${JSON.stringify(acpManifest(packageJson, archives), null, 2)}\n`);
writeFileSync(join(out, 'acp-icon.svg'), acpIcon);
writeFileSync(join(out, 'oratorio.rb'), formula({ ...ofFormula, tarballs: artefacts }));
writeFileSync(join(out, `oratorio-${version}.cdx.json`), script('image.ts', '--sbom'));
if (values.engine !== undefined) {
  const image = `oratorio:${version}`;
  script('image.ts', 'build', '--fresh', '--tag', image, '--engine', values.engine);
  const saved = join(out, `oratorio-${version}-image-${process.arch}.tar`);
  execFileSync(values.engine, ['save', '--output', saved, image], { stdio: 'inherit' });
}

const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
const changes = releaseNotes(changelog, values.tag === undefined ? 'Unreleased' : version);
const isTried = (name: string): boolean => values.check && name === ownPlatform()?.name;
writeFileSync(join(out, 'NOTES.md'), `${changes}\n${platformNotes(artefacts, isTried)}`);

const files = readdirSync(out).filter((file) => file !== 'NOTES.md');
const sums = files.map((file) => `${sha256Of(join(out, file))}  ${file}\n`).join('');
writeFileSync(join(out, 'SHA256SUMS'), sums);
if (key) writeFileSync(join(out, 'SHA256SUMS.minisig'), key.sign(Buffer.from(sums), `oratorio ${version}`));
if (values.check) await checkRelease(out, version);
console.log(out);
