/**
 * The place of a workspace's sidecar: which request is in force, which was ready last, which waits for a restart. A child of the
 * agent-server machine, and the parent of the sidecar's own machine.
 *
 * Detailed operation
 * 1. The agent server passes on the sidecar of each request. The request in force is the one that its next start uses.
 * 2. `SLOT.CLEAR` ends a sidecar that is not the one in force; `SLOT.CLEARED` answers when none is left in the way.
 * 3. `SLOT.START` starts the sidecar in force. `SLOT.READY` answers when it is ready, at once without one and beside a server that
 *    is adopted; `SLOT.FAILED` answers when it gave up.
 * 4. `SLOT.CHANGED` reports each change, with the event to emit, before any answer.
 * 5. A stopped sidecar is released when its process group is empty, which `SLOT.EMPTIED` reports.
 */
import { assertEvent, assign, enqueueActions, sendParent, sendTo, setup, stopChild } from 'xstate';
import { type ApiProxyEventToParent, type ApiProxyPolicy, apiProxyMachine } from './api-proxy.ts';

/** Starter of the process: this Hub (`managed`), an earlier Hub of the same user (`adopted`), another program (`external`). */
export type Ownership = 'managed' | 'adopted' | 'external';

/** Number of a sidecar request, which the Hub holds because it contains a key; `none`: without a sidecar. */
export type SidecarReference = number | 'none';

/** Public state of the slot. Sidecars are named by the number of their request, which the Hub holds because it contains a key. */
export interface SidecarSlot {
  readonly state: 'none' | 'starting' | 'running' | 'unhealthy' | 'exited';
  /** Request of the present run, and of the next one unless another request changes it; null: no sidecar. */
  readonly inForce: number | null;
  /** Request that was ready last: a start that requests none returns to it after a failed replacement. */
  readonly proven: number | null;
  /** Another request made while a run was under way. Shown, and never applied automatically. */
  readonly pending: SidecarReference | null;
  /** Request of the sidecar that is there; null without one. */
  readonly held: number | null;
  readonly pid: number | null;
  readonly error: string | null;
}

export const emptySlot: SidecarSlot = {
  ...{ state: 'none', inForce: null, proven: null, pending: null },
  ...{ held: null, pid: null, error: null },
};

const slotFields = Object.keys(emptySlot) as (keyof SidecarSlot)[];

export const isSameSlot = (a: SidecarSlot, b: SidecarSlot): boolean =>
  slotFields.every((field) => a[field] === b[field]);

export interface SidecarSlotInput {
  readonly workspacePath: string;
  /** Seed of the jitter. */
  readonly seed: number;
}

export interface SidecarSlotContext extends SidecarSlotInput {
  readonly slot: SidecarSlot;
}

export type SidecarSlotEvent =
  /** Applies the sidecar of a request; one without a choice keeps the request in force and drops the pending one. */
  | {
      readonly type: 'SLOT.SELECT';
      readonly sidecar?: SidecarReference;
      /** An adopted server uses its sidecar already. */
      readonly isProven: boolean;
      /** The last start failed: without a choice, the proven request is in force again. */
      readonly afterFailure: boolean;
    }
  /** Remembers the sidecar of a request during a run. */
  | { readonly type: 'SLOT.REQUEST'; readonly sidecar: SidecarReference }
  | { readonly type: 'SLOT.CLEAR' }
  | { readonly type: 'SLOT.START'; readonly ownership: Ownership; readonly policy: ApiProxyPolicy }
  /** Starts a sidecar again that has ended or does not answer. */
  | { readonly type: 'SLOT.RESTART' }
  /** The server is ready with the request in force. */
  | { readonly type: 'SLOT.PROVE' }
  | { readonly type: 'SLOT.STOP' }
  /** No request is in force any more. */
  | { readonly type: 'SLOT.RESET' }
  | ApiProxyEventToParent;

/** Domain event of a sidecar. */
export type SidecarEmitted =
  | { readonly type: 'apiProxy.running'; readonly sidecar: number; readonly pid: number }
  | {
      readonly type: 'apiProxy.unhealthy';
      readonly sidecar: number;
      readonly pid: number | null;
      readonly error: string;
      readonly consecutiveFailures: number;
    }
  | {
      readonly type: 'apiProxy.exited';
      readonly sidecar: number;
      readonly pid: number | null;
      readonly exitCode: number | null;
      readonly signal: string | null;
      readonly error: string | null;
      readonly stopped: boolean;
    };

export type SidecarSlotEventToParent =
  | { readonly type: 'SLOT.CHANGED'; readonly slot: SidecarSlot; readonly emitted: SidecarEmitted | null }
  | { readonly type: 'SLOT.REPLACING' }
  | { readonly type: 'SLOT.CLEARED' }
  | { readonly type: 'SLOT.READY' }
  | { readonly type: 'SLOT.FAILED'; readonly error: string | null }
  | { readonly type: 'SLOT.EMPTIED' };

/** Number and state after the choice of a request. */
function selected({ inForce, proven }: SidecarSlot, event: Extract<SidecarSlotEvent, { type: 'SLOT.SELECT' }>) {
  const { sidecar, isProven, afterFailure } = event;
  if (sidecar === undefined) return { pending: null, inForce: afterFailure ? proven : inForce };
  const chosen = sidecar === 'none' ? null : sidecar;
  return { pending: null, inForce: chosen, ...(isProven && { proven: chosen }) };
}

/** A server that already runs keeps the sidecar it was started with; another one that was requested becomes pending. */
function ofServer({ inForce, proven }: SidecarSlot, ownership: Ownership): Partial<SidecarSlot> {
  if (ownership === 'managed') return {};
  const kept = ownership === 'adopted' ? proven : null;
  return { inForce: kept, ...(inForce !== kept && { pending: inForce }) };
}

function emittedOf(event: SidecarSlotEvent, { held }: SidecarSlot): SidecarEmitted | null {
  const sidecar = held ?? 0;
  if (event.type === 'PROXY.RUNNING') return { type: 'apiProxy.running', sidecar, pid: event.pid };
  if (event.type === 'PROXY.UNHEALTHY') {
    const { pid, error, consecutiveFailures } = event;
    return { type: 'apiProxy.unhealthy', sidecar, pid, error, consecutiveFailures };
  }
  if (event.type !== 'PROXY.EXITED' && event.type !== 'PROXY.STOPPED') return null;
  const { pid, exitCode, signal } = event;
  const stopped = event.type === 'PROXY.STOPPED';
  // The end of a process is emitted once: a sidecar that had already exited has nothing left to stop.
  if (stopped && pid === null) return null;
  const error = event.type === 'PROXY.EXITED' ? event.error : null;
  return { type: 'apiProxy.exited', sidecar, pid, exitCode, signal, error, stopped };
}

/** Change of the public state by a report of the sidecar. */
function afterReport(slot: SidecarSlot, event: ApiProxyEventToParent): Partial<SidecarSlot> {
  if (event.type === 'PROXY.RUNNING') return { state: 'running', pid: event.pid, error: null, proven: slot.held };
  if (event.type === 'PROXY.UNHEALTHY') return { state: 'unhealthy', error: event.error };
  if (event.type === 'PROXY.EXITED') {
    return { state: event.restarts ? 'starting' : 'exited', pid: null, error: event.error };
  }
  return { state: 'none', held: null, pid: null, error: null };
}

const reports = ['PROXY.RUNNING', 'PROXY.UNHEALTHY', 'PROXY.EXITED', 'PROXY.STOPPED'] as const;

export const sidecarSlotMachine = setup({
  types: {
    input: {} as SidecarSlotInput,
    context: {} as SidecarSlotContext,
    events: {} as SidecarSlotEvent,
  },
  actors: { apiProxy: apiProxyMachine },
  guards: {
    isInTheWay: ({ context: { slot } }) => slot.held !== slot.inForce,
    gaveUp: ({ event }) => {
      assertEvent(event, 'PROXY.EXITED');
      return event.final;
    },
    hasFailed: ({ context: { slot } }) => slot.state === 'exited' || slot.state === 'unhealthy',
    isRunning: ({ context: { slot } }) => slot.state === 'running',
    needsSidecar: ({ context: { slot }, event }) => {
      assertEvent(event, 'SLOT.START');
      return event.ownership === 'managed' && slot.inForce !== null;
    },
    adoptsSidecar: ({ context: { slot }, event }) => {
      assertEvent(event, 'SLOT.START');
      return event.ownership === 'adopted' && slot.proven !== null;
    },
  },
  actions: {
    select: assign(({ context: { slot }, event }) => {
      assertEvent(event, 'SLOT.SELECT');
      return { slot: { ...slot, ...selected(slot, event) } };
    }),
    recordRequest: assign(({ context: { slot }, event }) => {
      assertEvent(event, 'SLOT.REQUEST');
      return { slot: { ...slot, pending: event.sidecar === (slot.inForce ?? 'none') ? null : event.sidecar } };
    }),
    recordOwnership: assign(({ context: { slot }, event }) => {
      assertEvent(event, 'SLOT.START');
      return { slot: { ...slot, ...ofServer(slot, event.ownership) } };
    }),
    prove: assign(({ context: { slot } }) => ({ slot: { ...slot, proven: slot.inForce } })),
    reset: assign(({ context: { slot } }) => ({ slot: { ...slot, inForce: null, proven: null, pending: null } })),
    startSidecar: enqueueActions(({ enqueue, context: { workspacePath, seed, slot }, event }) => {
      assertEvent(event, 'SLOT.START');
      const sidecar = slot.inForce;
      if (sidecar === null) return;
      const { policy, ownership } = event;
      const input = { workspacePath, policy, seed, adopt: ownership === 'adopted', sidecar };
      enqueue.spawnChild('apiProxy', { id: 'apiProxy', input });
      enqueue.assign({ slot: { ...slot, state: 'starting', held: sidecar } });
    }),
    restartSidecar: enqueueActions(({ enqueue, context: { slot } }) => {
      enqueue.sendTo('apiProxy', { type: 'PROXY.START' });
      enqueue.assign({ slot: { ...slot, state: 'starting' } });
    }),
    stopSidecar: sendTo('apiProxy', { type: 'PROXY.STOP' }),
    releaseSidecar: stopChild('apiProxy'),
    recordReport: assign(({ context: { slot }, event }) => {
      assertEvent(event, [...reports]);
      return { slot: { ...slot, ...afterReport(slot, event) } };
    }),
    notifyChange: sendParent(
      ({ context: { slot } }): SidecarSlotEventToParent => ({ type: 'SLOT.CHANGED', slot, emitted: null }),
    ),
    /** The report of the sidecar, under its number before the change. */
    notifyReport: sendParent(({ context: { slot }, event }): SidecarSlotEventToParent => {
      assertEvent(event, [...reports]);
      const emitted = emittedOf(event, slot);
      return { type: 'SLOT.CHANGED', slot: { ...slot, ...afterReport(slot, event) }, emitted };
    }),
    notifyReplacing: sendParent({ type: 'SLOT.REPLACING' } satisfies SidecarSlotEventToParent),
    notifyCleared: sendParent({ type: 'SLOT.CLEARED' } satisfies SidecarSlotEventToParent),
    notifyReady: sendParent({ type: 'SLOT.READY' } satisfies SidecarSlotEventToParent),
    notifyEmptied: sendParent({ type: 'SLOT.EMPTIED' } satisfies SidecarSlotEventToParent),
    notifyFailed: sendParent(({ event }): SidecarSlotEventToParent => {
      assertEvent(event, 'PROXY.EXITED');
      return { type: 'SLOT.FAILED', error: event.error };
    }),
  },
}).createMachine({
  id: 'sidecar-slot',
  description: "Decides which sidecar a workspace's agent server uses.",
  context: ({ input }) => ({ ...input, slot: emptySlot }),
  initial: 'empty',
  on: {
    'SLOT.SELECT': { actions: ['select', 'notifyChange'] },
    'SLOT.REQUEST': { actions: ['recordRequest', 'notifyChange'] },
    'SLOT.PROVE': { actions: ['prove', 'notifyChange'] },
    'SLOT.RESET': { actions: ['reset', 'notifyChange'] },
  },
  states: {
    empty: {
      description: 'No sidecar is there.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      on: {
        'SLOT.CLEAR': { actions: 'notifyCleared' },
        'SLOT.STOP': { actions: 'notifyEmptied' },
        'SLOT.START': [
          { guard: 'needsSidecar', target: 'held', actions: ['startSidecar', 'notifyChange'] },
          {
            guard: 'adoptsSidecar',
            target: 'held',
            actions: ['recordOwnership', 'startSidecar', 'notifyChange', 'notifyReady'],
          },
          { actions: ['recordOwnership', 'notifyChange', 'notifyReady'] },
        ],
      },
    },
    held: {
      description: 'A sidecar is there.',
      meta: { kind: 'serves', lane: 'spine', order: 1 },
      on: {
        'SLOT.CLEAR': [
          { guard: 'isInTheWay', target: 'emptying', actions: 'notifyReplacing' },
          { actions: 'notifyCleared' },
        ],
        'SLOT.START': [
          { guard: 'isRunning', actions: ['recordOwnership', 'notifyChange', 'notifyReady'] },
          { guard: 'needsSidecar', actions: ['restartSidecar', 'notifyChange'] },
          {
            guard: 'adoptsSidecar',
            actions: ['recordOwnership', 'restartSidecar', 'notifyChange', 'notifyReady'],
          },
          { actions: ['recordOwnership', 'notifyChange', 'notifyReady'] },
        ],
        'SLOT.RESTART': { guard: 'hasFailed', actions: ['restartSidecar', 'notifyChange'] },
        'SLOT.STOP': { target: 'emptying' },
        'PROXY.RUNNING': { actions: ['notifyReport', 'recordReport', 'notifyReady'] },
        'PROXY.UNHEALTHY': { actions: ['notifyReport', 'recordReport'] },
        'PROXY.EXITED': [
          { guard: 'gaveUp', actions: ['notifyReport', 'recordReport', 'notifyFailed'] },
          { actions: ['notifyReport', 'recordReport'] },
        ],
      },
    },
    emptying: {
      description: 'The sidecar was asked to stop.',
      meta: { kind: 'works', lane: 'spine', order: 2 },
      entry: 'stopSidecar',
      on: {
        'SLOT.CLEAR': { actions: 'notifyReplacing' },
        'PROXY.RUNNING': { actions: ['notifyReport', 'recordReport'] },
        'PROXY.UNHEALTHY': { actions: ['notifyReport', 'recordReport'] },
        'PROXY.EXITED': { actions: ['notifyReport', 'recordReport'] },
        'PROXY.STOPPED': {
          target: 'empty',
          actions: ['notifyReport', 'recordReport', 'releaseSidecar', 'notifyCleared', 'notifyEmptied'],
        },
      },
    },
  },
});
