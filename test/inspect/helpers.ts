import { assign, fromPromise, sendTo, setup } from 'xstate';

/** A small machine with one of everything: parallel, nested, final and history states, guards, delays, an invoked machine. */
const lamp = setup({ types: { events: {} as { type: 'BLINK' } } }).createMachine({
  id: 'lamp',
  description: 'Blinks.',
  initial: 'dark',
  states: {
    dark: { description: 'Off.', on: { BLINK: 'lit' } },
    lit: { description: 'On.', on: { BLINK: 'dark' } },
  },
});

export type DoorEvent =
  | { readonly type: 'OPEN'; readonly secret?: string }
  | { readonly type: 'CLOSE' }
  | { readonly type: 'KNOCK'; readonly secret?: string }
  | { readonly type: 'BLINK' }
  | { readonly type: 'BREAK' };

export const lampMachine = lamp;

export const doorMachine = setup({
  types: {
    input: {} as { readonly secret?: string },
    context: {} as { readonly knocks: number; readonly secret: string; readonly nested: { readonly key: string } },
    events: {} as DoorEvent,
  },
  actors: { lamp, check: fromPromise(() => new Promise<void>(() => {})) },
  actions: {
    count: assign({ knocks: ({ context }) => context.knocks + 1 }),
    keepSecret: assign(({ event }) => ('secret' in event && event.secret ? { secret: event.secret } : {})),
    squeak: () => {},
    sigh: () => {},
    blink: sendTo('lamp', { type: 'BLINK' }),
  },
  guards: { isPatient: ({ context }) => context.knocks < 1_000_000 },
  delays: { patience: 60_000 },
}).createMachine({
  id: 'door',
  description: 'A door with a lamp.',
  context: ({ input }) => ({ knocks: 0, secret: input.secret ?? '', nested: { key: input.secret ?? '' } }),
  initial: 'shut',
  invoke: { id: 'lamp', src: 'lamp' },
  on: { BLINK: { actions: 'blink' }, BREAK: '.broken' },
  states: {
    shut: {
      description: 'Nobody passes.',
      exit: 'sigh',
      on: {
        OPEN: { guard: 'isPatient', target: 'ajar', actions: ['keepSecret', 'squeak'] },
        KNOCK: { actions: ['count', 'keepSecret'] },
      },
    },
    ajar: {
      description: 'Decides by itself.',
      always: { target: 'open', actions: 'squeak' },
    },
    open: {
      description: 'Everybody passes.',
      type: 'parallel',
      entry: 'squeak',
      exit: 'sigh',
      after: { patience: 'shut' },
      on: { CLOSE: 'shut', OPEN: { target: 'open', reenter: true } },
      states: {
        hinge: {
          description: 'Left.',
          initial: 'dry',
          states: {
            dry: { description: 'Squeaks.', on: { KNOCK: 'oiled' } },
            oiled: { description: 'Silent.' },
            last: { type: 'history', description: 'As before.' },
          },
        },
        bolt: {
          description: 'Right.',
          initial: 'out',
          states: {
            out: {
              description: 'Out.',
              invoke: { id: 'check', src: 'check', onDone: 'in', onError: 'in' },
              on: { KNOCK: 'in' },
            },
            in: { description: 'In.' },
          },
        },
      },
    },
    broken: { description: 'For good.', type: 'final' },
  },
});
