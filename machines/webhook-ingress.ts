/**
 * Whether a review stack can be reached from the Internet: a gateway before the backend that lets through one kind of
 * request. Enabling it goes step by step, and a failed change is taken back whole.
 *
 * Detailed operation
 * 1. Nothing is written before host, secret and ports are known to be good.
 * 2. Both configurations are checked before anything is started; the backend is recreated last, to get the secret.
 * 3. Enabling an enabled gateway goes through the same steps and keeps the parts that exist.
 * 4. Disabling stops and removes the gateway first, then its files. Secret, certificates, backend and agent server stay.
 * 5. A failure, or `CANCEL`, undoes the steps and leads back to the first state. Where that fails, the ingress
 *    is `damaged`, and may be enabled or disabled again.
 */
import { assign, fromPromise, setup } from 'xstate';
import { cancelledFailure, type Failure, failureOf } from './failure.ts';
import type { StateMeta } from './meta.ts';

export interface WebhookIngressInput {
  /** The gateway's files exist. */
  readonly isEnabled: boolean;
}

export interface WebhookIngressContext {
  /** Where a failure leads back to. */
  readonly wasEnabled: boolean;
  readonly failure: Failure | null;
}

export type WebhookIngressEvent =
  | { readonly type: 'ENABLE' }
  | { readonly type: 'DISABLE' }
  | { readonly type: 'CANCEL' };

export type WebhookIngressPhase =
  | 'validating'
  | 'secret'
  | 'ports'
  | 'files'
  | 'validate'
  | 'start'
  | 'recreate'
  | 'stopping'
  | 'removing';

const notProvided = () => Promise.reject(new Error('not provided'));
const failureIn = ({ event }: { readonly event: { readonly error: unknown } }) => failureOf(event.error);

/** Carries out one phase, then the next; a failure is undone. */
const phase = <N extends WebhookIngressPhase, T>(name: N, description: string, meta: StateMeta, next: T) =>
  ({
    description,
    meta,
    invoke: {
      id: 'carryOut',
      src: 'carryOut',
      input: { phase: name },
      onDone: next,
      onError: { target: '#webhook-ingress.undoing', actions: { type: 'recordFailure', params: failureIn } },
    },
  }) as const;

const onWish = {
  ENABLE: { target: '#webhook-ingress.enabling', actions: 'clearFailure' },
  DISABLE: { target: '#webhook-ingress.disabling', actions: 'clearFailure' },
} as const;

const onCancel = {
  CANCEL: { target: '#webhook-ingress.undoing', actions: { type: 'recordFailure', params: cancelledFailure } },
} as const;

export const webhookIngressMachine = setup({
  types: {
    input: {} as WebhookIngressInput,
    context: {} as WebhookIngressContext,
    events: {} as WebhookIngressEvent,
    tags: {} as 'atRest',
  },
  actors: {
    /** Carries out the steps of a phase of the plan. */
    carryOut: fromPromise<void, { readonly phase: WebhookIngressPhase }>(notProvided),
    /** Takes back the steps of the change, last first. */
    undo: fromPromise<void, void>(notProvided),
  },
  guards: {
    wasEnabled: ({ context }) => context.wasEnabled,
  },
  actions: {
    recordFailure: assign((_, failure: Failure) => ({ failure })),
    clearFailure: assign({ failure: null }),
    recordEnabled: assign({ wasEnabled: true }),
    recordDisabled: assign({ wasEnabled: false }),
  },
}).createMachine({
  id: 'webhook-ingress',
  description: 'Access of deliveries from the Internet to a review stack.',
  context: ({ input }) => ({ wasEnabled: input.isEnabled, failure: null }),
  initial: 'found',
  states: {
    found: {
      description: 'Chooses the first state from the files of the stack.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      always: [{ guard: 'wasEnabled', target: 'enabled' }, { target: 'disabled' }],
    },
    disabled: {
      tags: 'atRest',
      description: 'No part of the stack is reachable from the Internet.',
      meta: { kind: 'rests', lane: 'detour', order: 0 },
      on: onWish,
    },
    enabling: {
      description: 'The gateway is being set up.',
      initial: 'validating',
      on: onCancel,
      states: {
        validating: phase(
          'validating',
          'Is this a stack, and the host one that the Internet can reach?',
          { kind: 'works', lane: 'spine', order: 1 },
          'secret',
        ),
        secret: phase(
          'secret',
          'The secret of the deliveries: the one there is, one that is given, or a new one.',
          { kind: 'works', lane: 'spine', order: 2 },
          'ports',
        ),
        ports: phase(
          'ports',
          "Are ports 80 and 443 free, or the gateway's already?",
          { kind: 'works', lane: 'spine', order: 3 },
          'files',
        ),
        files: phase(
          'files',
          'Secret, composition and configuration of the gateway are written.',
          { kind: 'works', lane: 'spine', order: 4 },
          'validate',
        ),
        validate: phase(
          'validate',
          "The merged composition and the gateway's configuration are checked.",
          { kind: 'works', lane: 'spine', order: 5 },
          'start',
        ),
        start: phase('start', 'The gateway is started.', { kind: 'works', lane: 'spine', order: 6 }, 'recreate'),
        recreate: phase(
          'recreate',
          'The backend is recreated, so that it gets the secret.',
          { kind: 'works', lane: 'spine', order: 7 },
          {
            target: '#webhook-ingress.enabled',
            actions: 'recordEnabled',
          } as const,
        ),
      },
    },
    enabled: {
      tags: 'atRest',
      description: 'Deliveries reach the backend; the gateway refuses every other request.',
      meta: { kind: 'serves', lane: 'spine', order: 8 },
      on: onWish,
    },
    disabling: {
      description: 'The gateway is being removed.',
      initial: 'stopping',
      on: onCancel,
      states: {
        stopping: phase(
          'stopping',
          'The gateway is stopped and removed.',
          { kind: 'works', lane: 'detour', order: 7 },
          'removing',
        ),
        removing: phase('removing', 'Its files are removed.', { kind: 'works', lane: 'detour', order: 8 }, {
          target: '#webhook-ingress.disabled',
          actions: 'recordDisabled',
        } as const),
      },
    },
    undoing: {
      description: 'Every change is being undone.',
      meta: { kind: 'works', lane: 'exception', order: 7 },
      invoke: {
        id: 'undo',
        src: 'undo',
        onDone: [{ guard: 'wasEnabled', target: 'enabled' }, { target: 'disabled' }],
        onError: 'damaged',
      },
    },
    damaged: {
      tags: 'atRest',
      description: 'Not every change could be undone: enable or disable it again.',
      meta: { kind: 'failed', lane: 'exception', order: 8 },
      on: onWish,
    },
  },
});
