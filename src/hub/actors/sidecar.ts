import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EventObject, fromCallback, fromPromise } from 'xstate';
import { apiProxyMachine, type SidecarActorInput } from '../../../machines/index.ts';
import { type ListenAddress, makeDirectory, probeHttp } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import {
  adoptManaged,
  childEnvironment,
  isAlive,
  ListenerCheck,
  logFiles,
  monotonicMs,
  occupantOf,
  outsideEnvironment,
  spawnManaged,
} from '../../supervise/index.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { StartError } from '../failure.ts';
import { reportUnverified } from '../leftovers.ts';
import type { Sidecar } from '../sidecar-request.ts';
import { sizeOf } from '../workspace-files.ts';
import { probeRegularly } from './liveness.ts';
import { type ProcessSource, processActor } from './process-actor.ts';

const { readyPollMs, requestTimeoutMs } = defaults.apiProxy;

function requested(facts: WorkspaceFacts, number: number | undefined): Sidecar {
  const sidecar = facts.sidecars.get(number);
  if (!sidecar) throw new StartError('apiProxy', 'No sidecar was requested.', false);
  return sidecar;
}

const addressOf = ({ endpoint }: Sidecar): ListenAddress => {
  const { hostname, port } = new URL(endpoint);
  return { host: hostname, port: Number(port || 80) };
};

/** Makes the check before each use of the key that the sidecar itself listens at its address. Other programs can answer with a model list, too. */
function listenerCheck(facts: WorkspaceFacts, sidecar: Sidecar): ListenerCheck {
  const { identity = null, marker = '' } = facts.stored.proxy ?? {};
  if (!identity) throw new StartError('apiProxy', 'The sidecar has no process.', false);
  return new ListenerCheck(addressOf(sidecar), { identity, marker });
}

const otherListener = (otherProgram: string, { endpoint }: Sidecar): string =>
  `${otherProgram} listens at ${endpoint}, and is not the sidecar. End it, or choose another apiProxy.endpoint.`;

/** Asks for the model list with the key; some proxies serve it under /v1 only. Null: answered; else the failure. */
async function problemOf(
  { endpoint, apiKey }: Sidecar,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<string | null> {
  const headers = { authorization: `Bearer ${apiKey}` };
  let problem: string | null = null;
  for (const path of ['/models', '/v1/models']) {
    const probe = await probeHttp(`${endpoint}${path}`, { ...options, headers });
    if (probe.ok) return null;
    problem ??= probe.error ?? 'no answer';
    // Only an answer can differ by path.
    if (probe.status === undefined) return problem;
  }
  return problem;
}

/** Spawns or adopts the sidecar of one workspace. */
function sidecarSource(hub: HubServices, facts: WorkspaceFacts, number: number | undefined): ProcessSource {
  const { stored } = facts;
  const logDirectory = join(facts.logDirectory, 'sidecar');
  const reportSaveProblem = (error: unknown) => hub.logger.error('the state file could not be written', { error });

  return {
    async spawn() {
      const sidecar = requested(facts, number);
      const occupant = occupantOf(addressOf(sidecar));
      if (occupant !== null) throw new StartError('apiProxy', otherListener(occupant, sidecar), false);
      const marker = randomUUID();
      makeDirectory(logDirectory, 0o700);
      facts.sidecarStderrFrom = sizeOf(logFiles(logDirectory).stderr);
      stored.proxy = { marker, identity: null, request: { enabled: true, ...sidecar } };
      await hub.save();
      const child = await spawnManaged({
        command: sidecar.binaryPath,
        args: ['--config', sidecar.configPath],
        cwd: stored.canonicalWorkspacePath,
        env: childEnvironment(outsideEnvironment(undefined, hub.environment)),
        logDirectory,
        marker,
        logBytes: defaults.supervise.logBytes,
        secrets: [sidecar.apiKey],
      });
      stored.proxy = { ...stored.proxy, identity: child.identity };
      hub.save().catch(reportSaveProblem);
      return child;
    },
    adopt() {
      if (!stored.proxy?.identity || isAlive(stored.proxy.identity) === 'gone') return null;
      makeDirectory(logDirectory, 0o700);
      facts.sidecarStderrFrom = 0;
      const { identity, marker } = stored.proxy;
      return adoptManaged(identity, { logDirectory, marker, logBytes: defaults.supervise.logBytes });
    },
    onUnverified: (pid) => reportUnverified(hub.logger, pid),
    onGone() {
      if (stored.proxy) stored.proxy = { ...stored.proxy, identity: null };
      hub.save().catch(reportSaveProblem);
    },
  };
}

/** The sidecar's machine with its real process and probes. */
export function sidecarMachine(hub: HubServices, factsOf: FactsOf) {
  const process = processActor(({ workspacePath, sidecar }) => sidecarSource(hub, factsOf(workspacePath), sidecar));
  const readiness = fromPromise<{ readonly at: number }, SidecarActorInput>(async ({ input, signal }) => {
    const facts = factsOf(input.workspacePath);
    const sidecar = requested(facts, input.sidecar);
    const check = listenerCheck(facts, sidecar);
    for (;;) {
      const found = check.poll();
      if (typeof found === 'object')
        throw new StartError('apiProxy', otherListener(found.otherProgram, sidecar), false);
      if (found === 'own' && (await problemOf(sidecar, { timeoutMs: requestTimeoutMs, signal })) === null)
        return { at: monotonicMs() };
      await sleep(readyPollMs, undefined, { signal });
    }
  });
  const liveness = fromCallback<EventObject, SidecarActorInput>(({ input, sendBack }) => {
    const facts = factsOf(input.workspacePath);
    const sidecar = requested(facts, input.sidecar);
    const check = listenerCheck(facts, sidecar);
    const ask = async (_: unknown, signal: AbortSignal) => {
      const found = check.poll();
      if (typeof found === 'object') return { error: `${found.otherProgram} listens at its address` };
      const error = await problemOf(sidecar, { timeoutMs: facts.probe.timeoutMs, signal });
      return error === null ? { idleMs: 0 } : { error };
    };
    return probeRegularly({ facts, incarnation: input.incarnation, ask, report: sendBack });
  });
  return apiProxyMachine.provide({ actors: { process, readiness, liveness } });
}
