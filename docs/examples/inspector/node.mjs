// Run it with `node node.mjs`, then open the printed address. Ctrl-C ends it.
import { createInspector } from '@oratorio/inspector';
import { assign, createActor, fromCallback, fromPromise, setup } from 'xstate';

const order = setup({
  actors: {
    pay: fromPromise(async ({ input }) => ({ receipt: `for ${input.amount}` })),
    clock: fromCallback(({ sendBack }) => {
      const timer = setInterval(() => sendBack({ type: 'TICK' }), 1_000);
      return () => clearInterval(timer);
    }),
  },
  guards: { hasItems: ({ context }) => context.items.length > 0 },
}).createMachine({
  id: 'order',
  context: { items: [], cardToken: 'tok_1234', receipt: null, seconds: 0 },
  initial: 'open',
  invoke: { id: 'clock', src: 'clock' },
  on: { TICK: { actions: assign({ seconds: ({ context }) => context.seconds + 1 }) } },
  states: {
    open: {
      on: {
        ADD: { actions: assign({ items: ({ context, event }) => [...context.items, event.item] }) },
        PAY: { guard: 'hasItems', target: 'paying' },
      },
    },
    paying: {
      invoke: {
        id: 'pay',
        src: 'pay',
        input: ({ context }) => ({ amount: context.items.length }),
        onDone: { target: 'paid', actions: assign({ receipt: ({ event }) => event.output.receipt }) },
        onError: 'open',
      },
    },
    paid: { on: { SHIP: 'shipped' } },
    shipped: {},
  },
});

const inspector = createInspector();
const actor = createActor(order, { id: 'my order', inspect: inspector.inspect }).start();
actor.send({ type: 'ADD', item: { name: 'score', price: 12 } });
actor.send({ type: 'PAY' });
console.log(await inspector.url);
