import { join } from 'node:path';
import { type ActorRefFrom, createActor, fromPromise } from 'xstate';
import { hubMachine } from '../../machines/index.ts';
import { projections } from '../inspect/index.ts';
import { engineSocket } from '../places/index.ts';
import { defaults, HubLock, type HubStatus } from '../protocol/index.ts';
import { damagedRecords, ensurePrivateDirectory, lockHolder, readJson, removeStaleTemps } from '../supervise/index.ts';
import { startHubTelemetry } from '../telemetry/index.ts';
import { watchAddress } from './actors/watch-address.ts';
import { claimHome } from './claim.ts';
import {
  addressOf,
  type ClaimedHub,
  closeHub,
  createClaimedHub,
  type HubOptions,
  hostsOf,
  ownedFiles,
} from './claimed-hub.ts';
import { createInspection } from './inspection.ts';
import { supervisionPolicyOf } from './policy.ts';
import { restoreKnown, resumeWorkspaces } from './recovery.ts';
import { openServer } from './server.ts';

/** Outcome of a run of the Hub. */
export type HubOutcome =
  | { readonly kind: 'stopped'; readonly problem: string | null }
  /** Another Hub serves this home: its address when published, its process id when known. */
  | { readonly kind: 'yielded'; readonly to: HubLock | null; readonly pid: number | null }
  | { readonly kind: 'failed'; readonly error: string };

export interface Hub {
  /** Resolves when it serves, or has ended before it could. */
  readonly serving: Promise<{ readonly apiBaseUrl: string } | HubOutcome>;
  /** Resolves when it has ended and nothing of it is left. */
  readonly outcome: Promise<HubOutcome>;
  shutdown(mode: 'stop' | 'detach'): void;
}

/** Headless: a desktop client owns tray and notification UI (specification §2.3). */
const capabilities = {
  appServerManagement: true,
  portManagement: true,
  events: true,
  notifications: true,
  tray: false,
};

/**
 * Runs a Hub in this process until it is shut down. The `hub` machine decides the order of the steps; this function
 * provides its actors. Never throws: the outcome reports a failure.
 */
export function startHub(options: HubOptions): Hub {
  const { home, logger, policy = {} } = options;
  const statePath = join(home, 'hub');
  const inspection = createInspection(logger);
  const telemetry = startHubTelemetry({ settings: options.config.Telemetry, projections, logger });
  let claimedHub: ClaimedHub | null = null;

  function claimed(): ClaimedHub {
    if (!claimedHub) throw new Error('the Hub has not claimed its home');
    return claimedHub;
  }

  const machine = hubMachine.provide({
    actors: {
      boot: fromPromise(async () => {
        ensurePrivateDirectory(home);
        ensurePrivateDirectory(statePath);
      }),
      claim: fromPromise(async () => {
        const lock = claimHome(join(statePath, 'hub.mutex'));
        if (lock === 'held') return { won: false };
        for (const directory of [home, statePath]) removeStaleTemps(directory);
        claimedHub = createClaimedHub(lock, options, { inspection, telemetry });
        return { won: true };
      }),
      listen: fromPromise(async () => {
        const hub = claimed();
        await listen(hub, options, {
          status: () => statusOf(hub, options),
          isStopping: () => ['draining', 'closing', 'stopped'].includes(String(actor.getSnapshot().value)),
          shutdown,
        });
        return { apiBaseUrl: hub.apiBaseUrl };
      }),
      recover: fromPromise(async ({ signal }) => {
        const { recoveries, services } = claimed();
        return { adopted: await resumeWorkspaces(recoveries, services, signal) };
      }),
      watchAddress: watchAddress(
        () => {
          const { address } = claimed();
          if (!address) throw new Error('the Hub has no address yet');
          return address;
        },
        () => ownedFiles(claimed()),
        logger,
      ),
      drain: fromPromise<void, { mode: 'stop' | 'detach' }>(async ({ input }) => {
        if (input.mode === 'stop') await claimed().registry.stopAll();
      }),
      close: fromPromise(async () => closeHub(claimed())),
    },
  });

  const actor: ActorRefFrom<typeof hubMachine> = createActor(machine, {
    id: 'hub',
    input: {
      drainDeadlineMs: defaults.supervise.drainDeadlineMs + supervisionPolicyOf(options.config, policy).handOverMs,
    },
  });
  actor.on('hub.started', ({ apiBaseUrl }) => {
    claimed().events.publish('hub.started', null, { apiBaseUrl, pid: process.pid });
    logger.info('the Hub is serving', { apiBaseUrl, library: claimed().server?.library });
  });
  actor.on('hub.displaced', () =>
    logger.error('another Hub has taken over this home; this Hub ends and leaves its agent servers running', { home }),
  );
  actor.on('hub.stopping', () => claimed().events.publish('hub.stopping', null, { pid: process.pid }));

  function shutdown(mode: 'stop' | 'detach'): void {
    actor.send({ type: 'SHUTDOWN', mode });
  }

  const { serving, outcome } = follow(actor, () => whoServes(statePath));
  inspection.observeHub(actor);
  telemetry.observe(actor, 'hub');
  actor.start();
  return { serving, outcome, shutdown };
}

/** Restores the known workspaces, serves the API and publishes its address. */
async function listen(
  hub: ClaimedHub,
  { home, config, version, logger }: HubOptions,
  control: Pick<Parameters<typeof openServer>[0], 'status' | 'isStopping' | 'shutdown'>,
): Promise<void> {
  const { token, credentials, registry, events, fleet, moves, inbox, decisions, push, tokens, inspection, telemetry } =
    hub;
  hub.recoveries = restoreKnown(hub, logger);
  hub.server = await openServer({
    ...{
      home,
      token,
      credentials,
      registry,
      events,
      fleet,
      moves,
      inbox,
      decisions,
      push,
      tokens,
      inspection,
      telemetry,
      logger,
    },
    ...control,
    environment: hub.services.environment,
    host: config.Hub.Host,
    port: config.Hub.Port,
    allowedHosts: config.Hub.AllowedHosts,
    onListening: (apiBaseUrl) => {
      hub.apiBaseUrl = apiBaseUrl;
    },
  });
  hub.address = addressOf(hub, version);
  await hub.address.publish();
  fleet.open(hostsOf(config));
  moves.open();
}

function statusOf(
  { startedAt, apiBaseUrl, services, registry }: ClaimedHub,
  { home, version, config, environment }: HubOptions,
): HubStatus {
  const { statePath } = services;
  const problems = damagedRecords(home);
  const { asleep } = registry;
  const { Container, Pod } = config.Place;
  const hasEngine = engineSocket(Container.Engine, environment) !== undefined;
  const places = [...(hasEngine ? ['container'] : []), ...(Pod.Volumes.length > 0 ? ['pod'] : [])];
  return {
    ...{ hubVersion: version, pid: process.pid, startedAt, statePath, apiBaseUrl },
    capabilities: { ...capabilities, ...(places.length > 0 && { places }) },
    ...(problems.length > 0 && { problems: [...problems] }),
    ...(asleep > 0 && { asleep }),
  };
}

/** The Hub that holds the lock of this home. The kernel knows its process on Linux, also when its lock file is damaged. */
function whoServes(statePath: string): Omit<Extract<HubOutcome, { kind: 'yielded' }>, 'kind'> {
  const read = readJson(join(statePath, 'hub.lock'), HubLock);
  const holder = lockHolder(join(statePath, 'hub.mutex'));
  const to = read.kind === 'ok' && (holder === null || read.value.pid === holder) ? read.value : null;
  return { to, pid: holder ?? to?.pid ?? null };
}

function follow(actor: ActorRefFrom<typeof hubMachine>, winner: () => ReturnType<typeof whoServes>) {
  const outcome = new Promise<HubOutcome>((resolve) => {
    const decide = () => {
      const snapshot = actor.getSnapshot();
      const { lastError } = snapshot.context;
      if (snapshot.matches('yielded')) resolve({ kind: 'yielded', ...winner() });
      else if (snapshot.matches('failed')) resolve({ kind: 'failed', error: lastError ?? 'unknown' });
      else resolve({ kind: 'stopped', problem: lastError });
    };
    actor.subscribe({ complete: decide, error: (error) => resolve({ kind: 'failed', error: String(error) }) });
  });
  const serving = new Promise<{ apiBaseUrl: string } | HubOutcome>((resolve) => {
    actor.on('hub.started', ({ apiBaseUrl }) => resolve({ apiBaseUrl }));
    void outcome.then(resolve);
  });
  return { serving, outcome };
}
