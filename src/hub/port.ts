import { join } from 'node:path';
import * as v from 'valibot';
import type { HttpServer } from '../http/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults } from '../protocol/index.ts';
import { readJson, writeFileAtomic } from '../supervise/index.ts';

const { firstPort, portTries } = defaults.hub;
const highestPort = 65_535;

const Remembered = v.object({
  version: v.literal(1),
  port: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(highestPort)),
});

export interface StablePortOptions {
  readonly host: string;
  /** `Hub.Port`; 0: the port of the last start, or the next free one. */
  readonly port: number;
  /** `<home>/hub`, where `port.json` remembers the port. */
  readonly statePath: string;
  readonly logger: Logger;
}

type Address = NonNullable<HttpServer['bound']>;

/** Ports to try, in order; 0 at the end lets the system choose. */
const candidates = (from: number): readonly number[] => [
  ...Array.from({ length: portTries }, (_, index) => from + index).filter((port) => port <= highestPort),
  0,
];

/**
 * Binds the Hub's listener at the same port as its last start, so that a page that is open reconnects. A port that is taken
 * is left, the next free one takes its place and is remembered, and the reason is logged.
 *
 * @throws Error whose `code` is that of the bind, for a port that the user has set
 */
export async function listenAtStablePort(
  server: Pick<HttpServer, 'listen'>,
  { host, port, statePath, logger }: StablePortOptions,
): Promise<Address> {
  if (port !== 0) return server.listen({ host, port });
  const file = portFile(statePath);
  const read = readJson(file, Remembered);
  const remembered = read.kind === 'ok' ? read.value.port : undefined;
  if (read.kind !== 'ok' && read.kind !== 'missing')
    logger.warn('the remembered port of the Hub cannot be read; taking a free one', { file, problem: read.problem });
  const wanted = remembered ?? firstPort;
  for (const candidate of candidates(wanted)) {
    try {
      const bound = await server.listen({ host, port: candidate });
      if (bound.port !== remembered) rememberPort(file, bound.port, logger);
      return bound;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (candidate === 0 || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw error;
      const report = candidate === remembered ? logger.warn : logger.debug;
      report.call(logger, 'the port of the Hub cannot be had; trying the next one', { host, port: candidate, code });
    }
  }
  throw new Error('the system gives no port');
}

export const portFile = (statePath: string): string => join(statePath, 'port.json');

/** A port that cannot be remembered serves this start. */
export function rememberPort(file: string, port: number, logger: Logger): void {
  try {
    writeFileAtomic(file, `${JSON.stringify({ version: 1, port } satisfies v.InferOutput<typeof Remembered>)}\n`);
  } catch (error) {
    logger.warn('the port of the Hub cannot be remembered', { file, reason: messageOf(error) });
  }
}
