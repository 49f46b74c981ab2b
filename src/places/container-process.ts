import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { ContainerHandle } from '../protocol/index.ts';
import type { ProcessExit } from '../supervise/index.ts';
import { type ContainerDetails, type EngineApi, EngineRefusal, EngineUnreachableError } from './engine-api.ts';
import { watchReach } from './engine-reach.ts';
import type { PlacedProcess } from './place.ts';
import type { Relay } from './relay.ts';

/** Exit codes above this base stand for signals. */
const signalBase = 128;

/** Signal that an exit code stands for. */
const signalName = (code: number | null): string | null =>
  Object.entries(constants.signals).find(([, each]) => each === (code ?? 0) - signalBase)?.[0] ?? null;

const removedCause = 'ended because its container was removed';
const mebibyte = 1_048_576;

const memoryCause = (bytes = 0): string =>
  `exceeded the memory limit of its container${bytes > 0 ? ` (${Math.round(bytes / mebibyte)} MiB, Place.Container.MemoryMiB)` : ''}`;

const retryMs = 500;

export interface ContainerProcessOptions {
  readonly engine: EngineApi;
  readonly handle: ContainerHandle;
  readonly pid: number;
  readonly relay: Relay;
  /** Proves ownership. A container that fails this check is neither followed nor ended. */
  readonly isOurs: (details: ContainerDetails) => boolean;
  /** Ends the log keeper. */
  readonly forget: () => void;
}

/**
 * Follows a container. Waits for its end with the engine's `wait`, again after the engine was unreachable. Repeats signals until the
 * engine has accepted them. Checks the labels of the container before it sends anything.
 */
export function containerProcess({
  engine,
  handle,
  pid,
  relay,
  forget,
  isOurs,
}: ContainerProcessOptions): PlacedProcess {
  const { id } = handle;
  const following = new AbortController();
  const reach = watchReach(engine);
  let isAsked = false;

  /** Repeats the work until the engine does it. Neither a refusal nor an invalid answer shows the state of the container. */
  async function persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await work();
        reach.report(false);
        return result;
      } catch (error) {
        const isUnreachable = error instanceof EngineUnreachableError;
        if (following.signal.aborted || !(isUnreachable || error instanceof EngineRefusal)) throw error;
        if (isUnreachable) reach.report(true);
        await pause(retryMs, undefined, { signal: following.signal, ref: false });
      }
    }
  }

  /** Container of this start; undefined if it no longer exists or another container has its name. */
  async function inspect(): Promise<ContainerDetails | undefined> {
    const found = await persist(() => engine.inspect(id));
    return found && isOurs(found) ? found : undefined;
  }

  /** Exit code, null for a container that was removed before its exit code was read; and the cause, if it is known. */
  async function end(): Promise<Pick<ProcessExit, 'cause'> & { readonly code: number | null }> {
    for (let waits = 0; ; waits += 1) {
      const found = await inspect();
      if (found === undefined) return { code: null, ...(!isAsked && { cause: removedCause }) };
      if (!found.State.Running && found.State.Status !== 'created') return endOf(found);
      // An engine that answers each wait at once would be asked without end.
      if (waits > 0) await pause(retryMs, undefined, { signal: following.signal, ref: false });
      await engine.ended(id, following.signal).catch((error: unknown) => {
        following.signal.throwIfAborted();
        if (error instanceof EngineUnreachableError) reach.report(true);
      });
    }
  }

  /** End of a container. The exit code is null if the engine stopped it while it shut down: the Hub did not request that exit. */
  async function endOf({ State, HostConfig }: ContainerDetails) {
    const { ExitCode: code, OOMKilled } = State;
    if (signalName(code) === 'SIGKILL' && !isAsked) {
      if (OOMKilled) return { code, cause: memoryCause(HostConfig.Memory) };
      // A removal ends the container first.
      await pause(retryMs, undefined, { signal: following.signal, ref: false });
      return { code, ...((await inspect()) === undefined && { cause: removedCause }) };
    }
    if (isAsked || code !== 0) return { code };
    await pause(retryMs, undefined, { ref: false });
    reach.report(!(await engine.answers()));
    return reach.wasLost ? { code: null, cause: 'ended with the container engine' } : { code };
  }

  const exited = new Promise<ProcessExit>((resolve) => {
    end().then(
      ({ code, cause }) => {
        const signal = signalName(code);
        resolve({ exitCode: signal === null ? code : null, signal, observed: code !== null, cause });
      },
      // Detached: the process continues.
      () => undefined,
    );
  });

  async function remove(): Promise<{ readonly uncertain: boolean }> {
    while ((await inspect()) !== undefined) {
      await persist(() => engine.remove(id));
      await pause(retryMs / 10);
    }
    return { uncertain: false };
  }

  function release(): void {
    reach.end();
    following.abort();
    relay.close();
    forget();
  }

  return {
    handle,
    pid,
    exited,
    terminate() {
      isAsked = true;
      const send = async () => {
        if (!(await inspect())) return;
        await persist(() => engine.signal(id, 'SIGTERM'));
        await persist(() => engine.unpause(id));
      };
      send().catch(() => undefined);
      return 'sent';
    },
    async kill() {
      isAsked = true;
      // A detached container continues to run.
      await inspect()
        .then((found) => found && persist(() => engine.signal(id, 'SIGKILL')))
        .catch(() => undefined);
      return { uncertain: false };
    },
    sweep: remove,
    async gone() {
      await remove();
      release();
    },
    poll() {},
    detach: release,
    onReach: reach.listen,
  };
}
