/** A machine that the inspector's page creates from a chart has the states and transitions of the chart. */
import t from 'tap';
import { createMachine } from 'xstate';
import { chartOf, graphOf } from '../../src/inspect/index.ts';
import { machineOfChart } from '../../src/ui/inspector/machine-copy.ts';
import { advance, begin, choose, eventsOf, send, statesOf } from '../../src/ui/views/actors/simulation/engine.ts';
import { doorMachine } from '../inspect/helpers.ts';

const order = createMachine(
  {
    id: 'order',
    initial: 'open',
    on: { CANCEL: '.cancelled' },
    states: {
      open: { on: { PAY: [{ guard: 'isRich', target: 'paid' }, { target: 'refused' }], NOTE: { actions: 'note' } } },
      refused: { after: { pause: 'open', 5000: 'cancelled' } },
      paid: {
        type: 'parallel',
        states: {
          stock: { initial: 'packed', states: { packed: { on: { SHIP: 'gone' } }, gone: { type: 'final' } } },
          mail: {
            initial: 'none',
            states: { none: { on: { SHIP: 'sent' } }, sent: { type: 'final' }, last: { type: 'history' } },
          },
        },
        onDone: 'done',
        on: { BACK: '.mail.last' },
      },
      done: { type: 'final' },
      cancelled: { type: 'final' },
    },
  },
  { delays: { pause: 1_000 } },
);

t.test('has the edges of the chart, by their ids', async (t) => {
  for (const machine of [order, doorMachine]) {
    const copy = graphOf(machine.id, machineOfChart(await chartOf(machine.id, machine)));
    const shape = ({ edges }: ReturnType<typeof graphOf>) =>
      edges.map(({ id, source, target, event, guard }) => ({ id, source, target, event, guard }));
    const original = graphOf(machine.id, machine);
    const history = new Map(
      original.nodes
        .filter(({ kind }) => kind === 'history')
        .map(({ id }) => [id, id.split('.').slice(0, -1).join('.')]),
    );
    t.strictSame(
      shape(copy),
      shape(original).map((edge) => ({ ...edge, target: history.get(edge.target) ?? edge.target })),
      machine.id,
    );
  }
});

t.test('can be simulated: the user decides guards, and delays of known length elapse', async (t) => {
  const copy = machineOfChart(await chartOf('order', order));
  let present = begin(copy, ['open'], {});
  t.strictSame(eventsOf(copy, present), ['PAY', 'NOTE', 'CANCEL']);
  present = send(copy, present, 'PAY');
  t.match(present.choice?.candidates, [
    { guard: 'isRich', verdict: 'unknown' },
    { guard: null, verdict: 'yes' },
  ]);
  const rich = choose(copy, present, present.choice?.candidates[0]?.id ?? '');
  t.strictSame(rich.leaves, ['paid.stock.packed', 'paid.mail.none']);
  t.strictSame(send(copy, rich, 'SHIP').leaves, ['paid.stock.gone', 'paid.mail.sent']);
  const poor = choose(copy, present, present.choice?.candidates[1]?.id ?? '');
  t.strictSame(statesOf(copy, poor), ['refused']);
  t.strictSame(statesOf(copy, advance(copy, poor, 1_000)), ['open']);
});
