import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { headerBytes } from './framing.ts';

type Uws = typeof import('uWebSockets.js');

export interface LoadedUws {
  readonly uws: Uws;
  /** With its version: `uWebSockets.js 20.57.0`. */
  readonly library: string;
}

/** A build of uWebSockets.js that npm has. */
export interface UwsBuild {
  readonly version: string;
  /** Directory of its binaries below `node_modules`. */
  readonly directory: string;
}

/**
 * Builds by preference. The first does not load on Linux with a glibc below 2.38. The second answers 505 when a request line arrives in
 * two pieces.
 */
export const uwsBuilds = [
  { version: '20.57.0', directory: '@btc-vision/uwebsockets.js' },
  { version: 'uws-pack 20.0.8', directory: 'uWebSockets.js/dist/bin' },
] as const satisfies readonly UwsBuild[];

/** The parser's own limit of request line and headers. It lies above ours, so that the refusal has our error body. */
const parserBytes = 4 * headerBytes;

/**
 * Loads the first build that this system can load. `UWS_HTTP_MAX_HEADERS_SIZE` is read when a binary loads, so it is set just before, and
 * not left behind for child processes. Rejects with the reason of each build where none loads.
 */
export async function loadUws(builds: readonly UwsBuild[] = uwsBuilds): Promise<LoadedUws> {
  const name = 'UWS_HTTP_MAX_HEADERS_SIZE';
  const before = process.env[name];
  process.env[name] = String(parserBytes);
  const reasons: unknown[] = [];
  try {
    for (const build of builds) {
      try {
        return { uws: await loadBuild(build), library: `uWebSockets.js ${build.version}` };
      } catch (error) {
        reasons.push(error);
      }
    }
    throw new AggregateError(reasons, reasons.map((reason) => (reason as Error).message).join('; '));
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

/** Loads the binary by its path. Importing the package, an ES module, would cost 5 ms of the start of each agent server and Hub. */
async function loadBuild(build: UwsBuild): Promise<Uws> {
  const { platform, arch, versions } = process;
  const file = `uws_${platform}_${arch}_${versions.modules}.node`;
  const installed = installedBinary(join('node_modules', build.directory, file));
  // The published package has the binaries in `dist/` instead.
  const path = installed ?? (await import('./packed-uws.ts')).unpackUws(build.version, file);
  return createRequire(import.meta.url)(path) as Uws;
}

/** Absolute path of a file of an installed package, searched upwards from this file. */
function installedBinary(path: string): string | undefined {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, path))) {
    const above = dirname(directory);
    if (above === directory) return undefined;
    directory = above;
  }
  return join(directory, path);
}
