/** Reads a stack with Compose, in one form. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Ran, run } from '../run.ts';
import { composeV2 } from '../tools.ts';

export interface Service {
  readonly [key: string]: unknown;
  readonly environment: Readonly<Record<string, string>>;
  /** `source:target:flags`, the source a path of the stack or a volume, the flags in order. */
  readonly mounts: readonly string[];
  /** `host:published:target`; without a host: on every address. */
  readonly bound: readonly string[];
}

export interface Composition {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, unknown>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** `compose config` of the files in a directory. Nothing of the environment of the tests reaches it. */
export async function composeConfig(
  directory: string,
  files: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const args = [...files.flatMap((file) => ['-f', file]), 'config'];
  return run(await composeV2(), args, {
    cwd: directory,
    timeoutMs: 240_000,
    // Compose ends before its memory has to be collected, which takes a quarter of its processor time.
    env: { PATH: process.env['PATH'] ?? '', HOME: directory, GOGC: 'off', ...env },
  });
}

/** A stack of these files. */
export function writeStack(directory: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
}

/** Parses the output of `config`. Its `$$` is a `$`. */
export function compositionOf(printed: string, directory: string): Composition {
  const document = parse(printed) as Composition;
  const services = Object.entries(document.services).map(([name, service]) => [name, normal(service, directory)]);
  return { ...document, services: Object.fromEntries(services) };
}

function normal(service: Service, directory: string): Service {
  const environment = Object.entries(service.environment ?? {});
  return {
    ...service,
    environment: Object.fromEntries(environment.map(([name, value]) => [name, String(value).replaceAll('$$', '$')])),
    mounts: list(service['volumes'])
      .map((each) => mountOf(each).replace(`${directory}/`, './'))
      .sort(),
    bound: list(service['ports']).map(portOf).sort(),
  };
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

interface LongMount {
  readonly source: string;
  readonly target: string;
  readonly read_only?: boolean;
  readonly bind?: { readonly selinux?: string };
}

function mountOf(mount: unknown): string {
  if (typeof mount === 'string') {
    const [source, target, flags = ''] = mount.split(':');
    return [source, target, ...flags.split(',').filter((flag) => flag !== 'rw' && flag !== '')].join(':');
  }
  const { source, target, read_only: isReadOnly, bind } = mount as LongMount;
  return [source, target, ...(isReadOnly ? ['ro'] : []), ...(bind?.selinux ? [bind.selinux] : [])].join(':');
}

interface LongPort {
  readonly host_ip?: string;
  readonly published: string | number;
  readonly target: number;
}

function portOf(port: unknown): string {
  if (typeof port === 'string') return port.replace(/\/tcp$/, '');
  const { host_ip: host, published, target } = port as LongPort;
  return [...(host === undefined ? [] : [host]), published, target].join(':');
}
