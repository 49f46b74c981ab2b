/** The bootstrap of specification §4.2 rule 3. Node only: it reads files and starts a process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type HubLock } from '../protocol/index.ts';
import type { StatusAnswer } from './answers.ts';
import { type Discovery, discoverHub, proveHub } from './discover.ts';
import { HubUnavailableError } from './errors.ts';
import { HubClient } from './hub-client.ts';
import { type Command, hubLogFile, type StartedHub, startHub } from './start-hub.ts';

/** Progress of the search for a Hub. */
export type ConnectProgress =
  | { readonly kind: 'found'; readonly apiBaseUrl: string; readonly pid: number; readonly started: boolean }
  | { readonly kind: 'starting'; readonly why: string };

export interface ConnectOptions {
  /** User home, absolute. */
  readonly home: string;
  /** Start a Hub when none is running; default true. */
  readonly autoStart?: boolean;
  /** Command that runs a Hub in the foreground; default: this package's own. */
  readonly command?: Command;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (progress: ConnectProgress) => void;
  readonly startTimeoutMs?: number;
  /** Time-out of each status request to a found Hub. */
  readonly statusTimeoutMs?: number | undefined;
}

export interface Connection {
  readonly hub: HubClient;
  readonly lock: HubLock;
  readonly status: StatusAnswer;
  /** Whether this call started a Hub; a Hub of another client may have won the race to serve. */
  readonly started: boolean;
}

type FoundHub = Extract<Discovery, { kind: 'found' }>;

/**
 * Finds the verified Hub of `home`, or starts one and waits until it is verified. Each of many concurrent clients may start a
 * Hub; one wins the OS lock of the home and serves them all, the others exit.
 *
 * @throws HubUnavailableError with the end of `hub.log` when a Hub that was started here does not come up
 * @example const { hub } = await connectHub({ home: join(homedir(), '.oratorio') });
 */
export async function connectHub(options: ConnectOptions): Promise<Connection> {
  const { home, autoStart = true, statusTimeoutMs, signal, onProgress } = options;
  const first = await discoverHub({ home, statusTimeoutMs, signal });
  if (first.kind === 'none' && !autoStart) throw new HubUnavailableError(first.message);
  if (first.kind === 'none') onProgress?.({ kind: 'starting', why: first.message });
  const { lock, status } = first.kind === 'found' ? first : await startAndVerify(options);
  const started = first.kind === 'none';
  onProgress?.({ kind: 'found', apiBaseUrl: lock.apiBaseUrl, pid: lock.pid, started });
  return { hub: clientFor(options, lock), lock, status, started };
}

/** A client that finds its Hub again after a restart, with the new address and token. */
function clientFor({ home, statusTimeoutMs }: ConnectOptions, lock: HubLock): HubClient {
  return new HubClient(lock, {
    isProven: true,
    // An address that `relocate` found is a whole lock: its pid takes the place of the first one.
    prove: (address, signal) =>
      proveHub(home, { token: '', pid: lock.pid, ...address }, { signal, timeoutMs: statusTimeoutMs }),
    async relocate(signal) {
      const found = await discoverHub({ home, statusTimeoutMs, signal });
      return found.kind === 'found' ? found.lock : null;
    },
  });
}

async function startAndVerify({
  home,
  command,
  signal,
  startTimeoutMs,
  statusTimeoutMs,
}: ConnectOptions): Promise<FoundHub> {
  const timeoutMs = startTimeoutMs ?? defaults.client.hubStartMs;
  const child = await startHub(home, command);
  try {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const found = await discoverHub({ home, statusTimeoutMs, signal });
      if (found.kind === 'found') return found;
      const ended = child.ended();
      // 0: it has yielded to another Hub, which will publish its address in a moment.
      if (ended !== null && ended !== 0) throw failure(home, child, `ended with ${ended}`);
      if (performance.now() > deadline)
        throw failure(home, child, `is not ready after ${timeoutMs} ms. ${found.message}`);
      await sleep(defaults.client.hubPollMs, undefined, signal ? { signal } : {});
    }
  } finally {
    child.release();
  }
}

function exitCodeOf(child: StartedHub): number | null {
  const ended = child.ended();
  return typeof ended === 'number' ? ended : null;
}

function failure(home: string, child: StartedHub, what: string): HubUnavailableError {
  return new HubUnavailableError(`The Hub that was started ${what.replace(/\.$/, '')}. Its log: ${hubLogFile(home)}`, {
    logTail: child.logTail(),
    exitCode: exitCodeOf(child),
  });
}
