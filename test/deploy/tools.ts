/**
 * Programs that the tests of a stack run, each of a known version: of this machine, or Debian's own packages. These
 * are unpacked into a cache of this user, and nothing is installed.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { writeFileAtomic } from '../../src/lib/index.ts';
import { cachedPackage } from './debian.ts';
import { run } from './run.ts';
import { cacheDirectory } from './tool-cache.ts';

interface Tool {
  /** Usual name, with the required version. */
  readonly title: string;
  /** Names another one. */
  readonly variable: string;
  /** Names on the path, or whole paths. */
  readonly programs: readonly string[];
  readonly versionArgs: readonly string[];
  /** Pattern of the output with its version. */
  readonly version: RegExp;
  /** Gets it when the machine has none: the path of the program. */
  readonly fetch: () => Promise<string>;
  readonly advice: string;
}

const caddyVersion = ['version'];
const composeVersion = ['version', '--short'];
const plugin = 'cli-plugins/docker-compose';

const tools = {
  composeV2: {
    title: 'Docker Compose 2.20 or later',
    variable: 'ORATORIO_TEST_COMPOSE_V2',
    programs: [
      'docker-compose',
      ...['/usr/libexec/docker', '/usr/lib/docker', '/usr/local/lib/docker'].map((directory) =>
        join(directory, plugin),
      ),
    ],
    versionArgs: composeVersion,
    version: /^v?(?:2\.[2-9]\d|[5-9])\./,
    fetch: () => cachedPackage('sid', 'docker-compose', `usr/libexec/docker/${plugin}`),
    advice: 'Install the plugin "docker compose"; Debian sid has it as docker-compose',
  },
  caddy26: {
    title: 'Caddy 2.6',
    variable: 'ORATORIO_TEST_CADDY_26',
    programs: ['caddy'],
    versionArgs: caddyVersion,
    version: /^v?2\.6\./,
    fetch: () => cachedPackage('bookworm', 'caddy', 'usr/bin/caddy'),
    advice: 'On Debian 12: apt-get install caddy',
  },
  caddy211: {
    title: 'Caddy 2.11 or later',
    variable: 'ORATORIO_TEST_CADDY_211',
    programs: ['caddy'],
    versionArgs: caddyVersion,
    version: /^v?2\.(?:1[1-9]|[2-9]\d)\./,
    fetch: () => cachedPackage('sid', 'caddy', 'usr/bin/caddy'),
    advice: 'Debian sid has it as caddy',
  },
} as const satisfies Record<string, Tool>;

/** Each is asked for once in a process. */
const found = new Map<Tool, Promise<string>>();

/** Path of Docker Compose 2 as a program of its own, `docker-compose`. Rejects with an Error that says what to install, as all of these. */
export const composeV2 = (): Promise<string> => find(tools.composeV2);
/** Path of Caddy 2.6, the oldest that serves a DNS host. */
export const caddy26 = (): Promise<string> => find(tools.caddy26);
/** Path of Caddy 2.11, of the series that the gateway's image has. */
export const caddy211 = (): Promise<string> => find(tools.caddy211);

function find(tool: Tool): Promise<string> {
  const path = found.get(tool) ?? locate(tool);
  found.set(tool, path);
  return path;
}

async function locate(tool: Tool): Promise<string> {
  const named = process.env[tool.variable];
  if (named) return demand(tool, named, `${tool.variable} is ${named}, which is something else`);
  for (const path of candidates(tool)) if (await isWanted(tool, path)) return path;
  try {
    const fetched = await tool.fetch();
    return await demand(tool, fetched, `${fetched} is something else`);
  } catch (error) {
    throw missing(tool, error instanceof Error ? error.message : String(error), error);
  }
}

async function demand(tool: Tool, path: string, otherwise: string): Promise<string> {
  if (await isWanted(tool, path)) return path;
  throw missing(tool, otherwise);
}

const missing = (tool: Tool, why: string, cause?: unknown): Error =>
  new Error(`✖ These tests need ${tool.title}: ${why}. ${tool.advice}; or name it in ${tool.variable}.`, { cause });

function candidates({ programs }: Tool): string[] {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== '');
  return programs
    .flatMap((program) => (program.startsWith('/') ? [program] : path.map((directory) => join(directory, program))))
    .filter((candidate) => existsSync(candidate));
}

async function isWanted({ versionArgs, version }: Tool, path: string): Promise<boolean> {
  return version.test(await printedBy(path, versionArgs));
}

/** Versions that programs have printed, by path. */
const printed = new Map<string, Promise<string>>();

/** The version that a program prints; empty when it fails. */
function printedBy(path: string, args: readonly string[]): Promise<string> {
  const program = realpathSync(path, { encoding: 'utf8' });
  const text = printed.get(program) ?? storedOrPrinted(program, args);
  printed.set(program, text);
  return text;
}

/**
 * Stores the version in the cache, for as long as the file of the program is unchanged: some
 * programs take half a second to print it.
 */
async function storedOrPrinted(program: string, args: readonly string[]): Promise<string> {
  const { ino, size, mtimeMs, ctimeMs } = statSync(program);
  const key = createHash('sha256')
    .update(JSON.stringify([program, ino, size, mtimeMs, ctimeMs, args]))
    .digest('hex');
  const file = join(cacheDirectory(), `version-${key.slice(0, 32)}`);
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const { exitCode, stdout } = await run(program, args, { timeoutMs: 60_000 });
  if (exitCode !== 0) return '';
  writeFileAtomic(file, stdout.trim());
  return stdout.trim();
}
