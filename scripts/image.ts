/**
 * `npm run image -- build [--base IMAGE] [--tag NAME] [--engine PROGRAM] [--fresh]`: the image of backend and agent server.
 * With `--base`, a local Debian image that has git, tini and ca-certificates, nothing comes from the network.
 * `npm run image -- app --out DIR --epoch SECONDS` writes its `/app`. `npm run image -- --sbom` lists its components.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import packageJson from '../package.json' with { type: 'json' };
import {
  buildImageArguments,
  imageOrigin,
  isOurNode,
  nodeVersionArguments,
  prepareContext,
} from '../src/deploy/engine/build-image.ts';
import { writeApp } from '../src/deploy/engine/image-app.ts';
import { softwareBill } from '../src/deploy/engine/image-sbom.ts';
import { isBuilt } from './stamp.mjs';
import { root, run } from './toolchain.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    base: { type: 'string' },
    tag: { type: 'string', default: 'oratorio:dev' },
    engine: { type: 'string', default: 'docker' },
    fresh: { type: 'boolean', default: false },
    out: { type: 'string' },
    epoch: { type: 'string' },
    sbom: { type: 'boolean', default: false },
  },
});

function fail(message: string): never {
  console.error(`✖ ${message}`);
  process.exit(2);
}

async function build(): Promise<void> {
  const origin = await imageOrigin(root, packageJson.version);
  const base = values.base ?? null;
  const common = { image: values.tag, base, origin, isFresh: values.fresh };
  if (base === null) return engine(buildImageArguments({ ...common, context: root }));
  if (!isBuilt()) run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
  const context = mkdtempSync(join(tmpdir(), 'oratorio-image-'));
  try {
    await prepareContext({ root, directory: context, epoch: origin.epoch, hasNode: hasOurNode(base) });
    engine(buildImageArguments({ ...common, context }));
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

/** Whether a local image has the Node of the product. */
function hasOurNode(image: string): boolean {
  const { status, stdout } = spawnSync(values.engine, nodeVersionArguments(image), { encoding: 'utf8' });
  return status === 0 && isOurNode(stdout);
}

function engine(args: readonly string[]): void {
  const result = spawnSync(values.engine, args, { stdio: 'inherit' });
  if (result.error) fail(`${values.engine} cannot be run: ${result.error.message}`);
  process.exitCode = result.status ?? 1;
}

async function epochOfApp(): Promise<number> {
  if (values.epoch === undefined) return (await imageOrigin(root, packageJson.version)).epoch;
  if (!/^\d{1,11}$/.test(values.epoch)) fail('--epoch is a number of seconds since 1970');
  return Number(values.epoch);
}

const [command] = positionals;
if (values.sbom) process.stdout.write(await softwareBill({ root, epoch: await epochOfApp() }));
else if (command === 'build') await build();
else if (command === 'app') {
  if (values.out === undefined) fail('app: --out DIR is missing');
  await writeApp({ root, directory: values.out, epoch: await epochOfApp() });
} else fail('Name a command: build [--base IMAGE] [--tag NAME] | app --out DIR | --sbom');
