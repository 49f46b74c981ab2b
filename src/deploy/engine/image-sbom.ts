import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DeployError } from '../errors.ts';

const run = promisify(execFile);

/** The parts of CycloneDX 1.5 that are changed here. */
interface Bill {
  serialNumber: string;
  dependencies?: { readonly ref: string; readonly dependsOn?: readonly string[] }[];
  metadata: { timestamp: string; component: { name: string; type: string } };
  components: { 'bom-ref': string; type: string; name: string; version: string; purl: string }[];
}

interface Lock {
  readonly packages: Readonly<
    Record<string, { name?: string; version: string; dev?: boolean; devOptional?: boolean; optional?: boolean }>
  >;
}

/** Besides the dependencies: development dependencies whose code is in the bundle of the page, and ripgrep for this platform. */
const packagesBesides = [
  '@preact/signals',
  '@preact/signals-core',
  '@tanstack/virtual-core',
  `@vscode/ripgrep-linux-${process.arch}`,
  'preact',
];

/** From the lock alone, so that it says the same on every machine. Optional are the binaries of all other platforms. */
const npmWords = ['sbom', '--package-lock-only', '--omit=dev', '--omit=optional', '--sbom-format=cyclonedx'];

/**
 * Lists the components of the product as CycloneDX JSON: the output of `npm sbom`, with Node and the bundles for the browser. The
 * same input gives the same text: its time is `epoch` (seconds since 1970), its serial number comes from its content.
 * @throws DeployError `imageFailed`
 */
export async function softwareBill(options: {
  readonly root: string;
  readonly epoch: number;
  readonly signal?: AbortSignal;
}): Promise<string> {
  const { root, epoch, signal } = options;
  const bill = await askNpm(root, signal);
  const manifest = readJson<{ name: string }>(join(root, 'package.json'));
  bill.metadata.component.name = manifest.name;
  bill.metadata.component.type = 'application';
  bill.components = [...componentsOf(bill, readJson<Lock>(join(root, 'package-lock.json'))), node];
  // npm does not know the dependencies of the packages that it left out.
  delete bill.dependencies;
  bill.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  bill.metadata.timestamp = new Date(epoch * 1_000).toISOString();
  bill.serialNumber = '';
  bill.serialNumber = `urn:uuid:${uuidOf(JSON.stringify(bill))}`;
  return `${JSON.stringify(bill, null, 2)}\n`;
}

async function askNpm(root: string, signal: AbortSignal | undefined): Promise<Bill> {
  try {
    const { stdout } = await run('npm', [...npmWords, '--loglevel=error'], {
      cwd: root,
      maxBuffer: 64 * 1_024 * 1_024,
      ...(signal && { signal }),
    });
    return JSON.parse(stdout) as Bill;
  } catch (cause) {
    const { stderr = '', message } = cause as { stderr?: string; message: string };
    const [reason = ''] = stderr.trim().split('\n').slice(-1);
    throw new DeployError('imageFailed', `npm sbom failed: ${reason || message}`, 'Run: npm install', { cause });
  }
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;

const node: Bill['components'][number] = {
  'bom-ref': `node@${process.versions.node}`,
  type: 'platform',
  name: 'node',
  version: process.versions.node,
  purl: `pkg:generic/node@${process.versions.node}`,
};

/** Components of the lock with npm's descriptions. npm omits packages that are also a peer of a development dependency. */
function componentsOf(bill: Bill, { packages }: Lock): Bill['components'] {
  const described = new Map(bill.components.map((component) => [component['bom-ref'], component]));
  const found = new Map<string, Bill['components'][number]>();
  for (const [path, { name: alias, version, ...flags }] of Object.entries(packages)) {
    const name = alias ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const isShipped = !(flags.dev || flags.devOptional || flags.optional) || packagesBesides.includes(name);
    if (path === '' || !isShipped) continue;
    const ref = `${name}@${version}`;
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    found.set(ref, described.get(ref) ?? { 'bom-ref': ref, type: 'library', name, version, purl });
  }
  return [...found.values()];
}

/** Version 8 of RFC 9562: of our own making, here from a hash. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
