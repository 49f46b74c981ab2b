import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { apiProxyMachine, type OfWorkspace } from '../../../machines/index.ts';
import { defaults } from '../../protocol/index.ts';
import {
  adoptManaged,
  childEnvironment,
  isAlive,
  logFiles,
  monotonicMs,
  probeHttp,
  spawnManaged,
} from '../../supervise/index.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { StartError } from '../failure.ts';
import type { Sidecar } from '../sidecar-request.ts';
import { type ProcessSource, processActor } from './process-actor.ts';
import { sizeOf } from './server-process.ts';

const { readyPollMs, requestTimeoutMs } = defaults.apiProxy;

function wanted(facts: WorkspaceFacts): Sidecar {
  if (!facts.sidecar) throw new StartError('apiProxy', 'no sidecar was requested', false);
  return facts.sidecar;
}

/** Ready when the model list answers with the key; some proxies serve it under /v1 only. */
async function answers(sidecar: Sidecar, signal: AbortSignal): Promise<boolean> {
  const headers = { authorization: `Bearer ${sidecar.apiKey}` };
  for (const path of ['/models', '/v1/models']) {
    const probe = await probeHttp(`${sidecar.endpoint}${path}`, { timeoutMs: requestTimeoutMs, headers, signal });
    if (probe.ok) return true;
  }
  return false;
}

/** How the sidecar of one workspace is got hold of. */
function sidecarSource(hub: HubServices, facts: WorkspaceFacts): ProcessSource {
  const { stored } = facts;
  const logDirectory = join(facts.logDirectory, 'sidecar');
  const reportSaveProblem = (error: unknown) => hub.logger.error('the state file could not be written', { error });

  return {
    async spawn() {
      const sidecar = wanted(facts);
      const marker = randomUUID();
      mkdirSync(logDirectory, { recursive: true, mode: 0o700 });
      facts.sidecarStderrFrom = sizeOf(logFiles(logDirectory).stderr);
      stored.proxy = { marker, identity: null, request: { enabled: true, ...sidecar } };
      await hub.save();
      const child = await spawnManaged({
        command: sidecar.binaryPath,
        args: ['--config', sidecar.configPath],
        cwd: stored.canonicalWorkspacePath,
        env: childEnvironment(hub.environment),
        logDirectory,
        marker,
        logBytes: defaults.supervise.logBytes,
      });
      stored.proxy = { ...stored.proxy, identity: child.identity };
      hub.save().catch(reportSaveProblem);
      return child;
    },
    adopt() {
      if (!stored.proxy?.identity || isAlive(stored.proxy.identity) === 'gone') return null;
      mkdirSync(logDirectory, { recursive: true, mode: 0o700 });
      const { identity, marker } = stored.proxy;
      return adoptManaged(identity, { logDirectory, marker, logBytes: defaults.supervise.logBytes });
    },
    onGone() {
      stored.proxy = facts.sidecar && stored.proxy ? { ...stored.proxy, identity: null } : null;
      hub.save().catch(reportSaveProblem);
    },
  };
}

/** The sidecar's machine with its real process and probe. */
export function sidecarMachine(hub: HubServices, factsOf: FactsOf) {
  const process = processActor((workspacePath) => sidecarSource(hub, factsOf(workspacePath)));
  const readiness = fromPromise<{ readonly at: number }, OfWorkspace>(async ({ input, signal }) => {
    const sidecar = wanted(factsOf(input.workspacePath));
    while (!(await answers(sidecar, signal))) await sleep(readyPollMs, undefined, { signal });
    return { at: monotonicMs() };
  });
  return apiProxyMachine.provide({ actors: { process, readiness } });
}
