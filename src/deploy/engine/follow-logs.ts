import { setTimeout as sleep } from 'node:timers/promises';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';
import { readProject } from './compose-project.ts';
import { failureOf } from './operation.ts';
import { containersOf, serviceNames, serviceOf, startedAtOf } from './service-states.ts';
import type { Engine } from './types.ts';

export interface LogOptions {
  /** Continue until `signal` aborts: through restarts, and while the services have no container. */
  readonly follow?: boolean;
  /** Number of existing lines to read, per service. */
  readonly tail?: number;
  /** Lower limit of the time of existing lines: a time (ISO 8601) or an age (`10m`), passed to the engine. */
  readonly since?: string;
  /** Default, also if empty: all services. */
  readonly services?: readonly ServiceName[];
  /** Prefix each line with the engine's timestamp. */
  readonly timestamps?: boolean;
  readonly secrets?: readonly string[];
  /** Pause between two polls for restarted services, in milliseconds. */
  readonly pollMs?: number;
}

/** Time limit of one command of the engine that follows a log. */
const longestMs = 24 * 3_600_000;

/** One start of a service's container. */
interface ContainerStart {
  readonly service: ServiceName;
  /** Id of the container: during recreation Compose changes its name. */
  readonly id: string;
  /** ISO 8601, null: the container has never run. */
  readonly startedAt: string | null;
}

/**
 * Passes the output of a stack's services to `onLine`, line by line as it arrives, without secrets and control characters. Reads
 * from the engine. Resolves at the end of the logs or, when following, when `signal` aborts.
 * @throws DeployError engineFailed, invalidInput (`since`), notAStack
 */
export async function followLogs(
  engine: Engine,
  stack: StackLayout,
  options: LogOptions,
  onLine: (line: string, service: ServiceName) => void,
  signal: AbortSignal,
): Promise<void> {
  const follower = new Follower(engine, stack, options, onLine, signal);
  await (options.follow ? follower.follow() : follower.readExisting());
}

class Follower {
  readonly #engine: Engine;
  readonly #stack: StackLayout;
  readonly #options: LogOptions;
  readonly #onLine: (line: string, service: ServiceName) => void;
  readonly #signal: AbortSignal;
  readonly #secrets: readonly string[];
  /** Arguments that select existing lines. */
  readonly #selection: readonly string[];
  readonly #running = new Map<ServiceName, Promise<void>>();
  /** Keys of the starts whose log was read; none is read twice. */
  readonly #seen = new Set<string>();
  #failure: unknown;

  constructor(
    engine: Engine,
    stack: StackLayout,
    options: LogOptions,
    onLine: (line: string, service: ServiceName) => void,
    signal: AbortSignal,
  ) {
    this.#engine = engine;
    this.#stack = stack;
    this.#options = options;
    this.#onLine = onLine;
    this.#signal = signal;
    this.#secrets = [...(options.secrets ?? []), ...readProject(stack).secrets];
    this.#selection = selectionOf(options);
  }

  /** Reads the existing logs, one service after the other. */
  async readExisting(): Promise<void> {
    for (const start of await this.#starts()) await this.#read(start, this.#selection);
  }

  async follow(): Promise<void> {
    const { pollMs = defaults.timeouts.healthPollMs } = this.#options;
    try {
      let starts = await this.#starts();
      const existing = new Set(starts.map(keyOf));
      for (; !this.#signal.aborted; starts = await this.#starts()) {
        for (const start of starts) this.#begin(start, existing.has(keyOf(start)));
        if (this.#failure !== undefined) throw this.#failure;
        await sleep(pollMs, undefined, { signal: this.#signal });
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    } finally {
      await Promise.all(this.#running.values());
    }
  }

  /** Follows a start, once. `isExisting`: it preceded the command, so only the selected lines of it are read; else all. */
  #begin(start: ContainerStart, isExisting: boolean): void {
    const { service, startedAt } = start;
    const key = keyOf(start);
    if (startedAt === null || this.#running.has(service) || this.#seen.has(key)) return;
    this.#seen.add(key);
    const selection = isExisting ? this.#selection : ['--since', startedAt];
    const reading = this.#read(start, ['--follow', ...selection])
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#running.delete(service));
    this.#running.set(service, reading);
  }

  async #read({ service, id }: ContainerStart, words: readonly string[]): Promise<void> {
    const timestamps = this.#options.timestamps ? ['--timestamps'] : [];
    const result = await this.#engine.run(['logs', ...words, ...timestamps, id], {
      timeoutMs: longestMs,
      secrets: this.#secrets,
      signal: this.#signal,
      onLine: (line) => this.#onLine(line, service),
    });
    // The container was removed after the poll, and its log with it.
    if (result.exitCode === 0 || /no such container/i.test(result.stderr)) return;
    throw failureOf(`Reading the log of ${service}`, result, 'engineFailed');
  }

  /** Polls the latest start of each container, in the order of `serviceNames`. */
  async #starts(): Promise<ContainerStart[]> {
    const containers = await containersOf(this.#engine, this.#stack, { signal: this.#signal, secrets: this.#secrets });
    const { services = [] } = this.#options;
    const wanted = services.length === 0 ? serviceNames : serviceNames.filter((name) => services.includes(name));
    return wanted.flatMap((service) =>
      containers
        .filter((container) => serviceOf(container) === service)
        .map(({ Id: id, State }) => ({ service, id, startedAt: startedAtOf(State) })),
    );
  }
}

const keyOf = ({ id, startedAt }: ContainerStart): string => `${id} ${startedAt}`;

/** @throws DeployError invalidInput */
function selectionOf({ tail = defaults.logLines, since }: LogOptions): readonly string[] {
  if (since !== undefined && !/^[\w.:+-]+$/.test(since)) {
    throw new DeployError(
      'invalidInput',
      `--since ${since} is neither a time nor an age.`,
      'E.g. 10m, 2h, 2026-01-31T12:00:00Z',
    );
  }
  return ['--tail', String(tail), ...(since === undefined ? [] : ['--since', since])];
}
