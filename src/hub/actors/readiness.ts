import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import type { OfWorkspace, Ownership, Readiness } from '../../../machines/index.ts';
import { ensureStateDirectory } from '../../config/index.ts';
import { type AppServerLock, defaults, serviceNames } from '../../protocol/index.ts';
import { monotonicMs, probeLock, readAppServer, type WorkspaceFiles, workspaceFiles } from '../../supervise/index.ts';
import { boundLock } from '../container.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { introduce } from '../probe.ts';

const { readinessPollMs, readinessPollMaxMs, probeTimeoutMs } = defaults.supervise;

/** The address that our own start of the workspace has published, once it has. */
function publishedBy(facts: WorkspaceFacts, files: WorkspaceFiles): AppServerLock | null {
  const read = readAppServer(files);
  if (read.kind !== 'ok' || read.value.incarnation !== facts.marker) return null;
  const { container } = facts.stored.server ?? {};
  return container ? boundLock(container, read.value) : read.value;
}

/**
 * Takes over the addresses that the agent server has published: it replaces a port that another program had taken.
 *
 * @returns the services that listen on another port than planned
 */
function recordEndpoints(facts: WorkspaceFacts, lock: AppServerLock): Readiness['ports'] {
  const moved: { service: string; port: number }[] = [];
  for (const service of serviceNames) {
    const planned = facts.services[service];
    const url = lock.endpoints[service];
    if (!planned || planned.state === 'disabled') continue;
    if (!url) {
      const reason = 'This agent server does not provide the service.';
      facts.services[service] = { state: 'unavailable', url: null, reason };
      delete facts.endpoints[service];
      continue;
    }
    if (url !== facts.endpoints[service]) moved.push({ service, port: Number(new URL(url).port) });
    facts.services[service] = { state: 'running', url, reason: lock.serviceNotes?.[service] ?? null };
    facts.endpoints[service] = url;
  }
  return moved;
}

/** Tries once: published under our mark, answers `initialize`, and holds the workspace's OS lock. */
async function attempt(
  hub: HubServices,
  facts: WorkspaceFacts,
  ownership: Ownership,
  signal: AbortSignal,
): Promise<Readiness | null> {
  const files = workspaceFiles(hub.home, facts.stored.canonicalWorkspacePath);
  const lock = ownership === 'managed' ? publishedBy(facts, files) : null;
  const url = lock?.endpoints.appServerWebSocket ?? facts.endpoints['appServerWebSocket'];
  if (!url || (ownership === 'managed' && !lock)) return null;
  // The server listens: while the Hub listens there too, the introduction could reach the Hub itself.
  if (lock) await facts.sleepingPorts?.passOn(lock.endpoints);
  const { version } = await introduce(url, 'oratorio-hub', probeTimeoutMs, signal);
  if (probeLock(files.mutexPath) !== 'held') return null;
  if (lock?.report) facts.stored.report = lock.report;
  const ports = lock ? recordEndpoints(facts, lock) : [];
  return { serverVersion: version, at: monotonicMs(), ports };
}

/** File in which an agent server publishes its address. Where the system watches nothing, its changes are found by polling. */
class ServerFileWatch {
  #watcher: FSWatcher | undefined;
  #changed = Promise.withResolvers<void>();

  constructor(home: string, workspacePath: string) {
    try {
      ensureStateDirectory(home, workspacePath);
      const path = workspaceFiles(home, workspacePath).serverPath;
      this.#watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
        if (name === basename(path)) this.#changed.resolve();
      }).on('error', () => this.close());
    } catch {
      // The agent server reports a directory that cannot be used; no watch may be left.
    }
  }

  /** Resolves after the next change, or a change since the last call; after `pauseMs` at the latest. Rejects when `signal` aborts. */
  async changed(pauseMs: number, signal: AbortSignal): Promise<void> {
    const pause = new AbortController();
    const ending = AbortSignal.any([signal, pause.signal]);
    await Promise.race([this.#changed.promise, sleep(pauseMs, undefined, { signal: ending })]).finally(() =>
      pause.abort(),
    );
    this.#changed = Promise.withResolvers();
  }

  close(): void {
    this.#watcher?.close();
  }
}

/** The `readiness` actor: tries until the server is ready or it is stopped; the deadline is the machine's. */
export function readiness(hub: HubServices, factsOf: FactsOf) {
  return fromPromise<Readiness, OfWorkspace & { readonly ownership: Ownership }>(async ({ input, signal }) => {
    const facts = factsOf(input.workspacePath);
    const published = new ServerFileWatch(hub.home, facts.stored.canonicalWorkspacePath);
    try {
      for (let pause: number = readinessPollMs; ; pause = Math.min(pause * 1.05, readinessPollMaxMs)) {
        signal.throwIfAborted();
        // Until the server is ready every attempt fails; the machine's deadline ends a start that takes too long.
        const ready = await attempt(hub, facts, input.ownership, signal).catch(() => null);
        if (ready) return ready;
        await published.changed(pause, signal);
      }
    } finally {
      published.close();
    }
  });
}
