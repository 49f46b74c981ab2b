import t from 'tap';
import { setup } from 'xstate';
import { graphOf, matrixOf } from '../../src/inspect/index.ts';

const machine = setup({ guards: { isFirst: () => true, isSecond: () => true } }).createMachine({
  initial: 'off',
  on: { RESET: { target: '.off' }, COUNT: { actions: () => {} } },
  states: {
    off: { on: { PRESS: { target: 'on' } } },
    on: {
      initial: 'dim',
      on: { PRESS: { target: 'off' } },
      after: { 1000: { target: 'broken' } },
      states: {
        dim: { on: { PRESS: { guard: 'isFirst', target: 'bright' }, COUNT: { target: 'bright' } } },
        bright: {
          on: {
            PRESS: [
              { guard: 'isFirst', target: 'dim' },
              { guard: 'isSecond', target: 'dim' },
            ],
          },
        },
      },
    },
    broken: { type: 'final' },
  },
});

t.test('the matrix has a row per leaf and a column per event, in the order of the definition', async (t) => {
  t.equal(
    matrixOf(graphOf('lamp', machine)),
    [
      '              A  B  C    D',
      '1  off        1  =  2',
      '2  on.dim     1  3  3/1  4',
      '3  on.bright  1  =  2/1  4',
      '4  broken',
      '',
      'A RESET   B COUNT   C PRESS   D after',
      '',
    ].join('\n'),
  );
});
