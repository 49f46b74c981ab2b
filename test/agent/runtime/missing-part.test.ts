import t from 'tap';
import { codedFailureOf } from '../../../src/agent/runtime/turn/driver.ts';

t.test('a turn that needs a removed part of the program names the restart that helps', async (t) => {
  const error = await import(String('./chunks/turn-actor-removed.ts')).catch((thrown: unknown) => thrown);
  t.match(codedFailureOf(error), { code: 'programReplaced', message: /^Oratorio was updated: run `oratorio restart`/ });
  t.equal(codedFailureOf(new TypeError('a bug')), undefined);
});
