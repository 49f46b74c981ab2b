import t from 'tap';
import { RepeatGuard } from '../../../src/agent/runtime/turn/repeat-guard.ts';

const look = { callId: 'c', name: 'Look', arguments: '{"at":"x"}' };

/** Notes one call as often as said. */
function repeat(guard: RepeatGuard, times: number, call = look, result: string | undefined = 'nothing'): void {
  for (let index = 0; index < times; index += 1) guard.note(call, result);
}

t.test('the thirteenth call with the same result is refused, not the twelfth', async (t) => {
  const guard = new RepeatGuard();
  repeat(guard, 11);
  t.equal(guard.refusalOf(look), undefined);
  repeat(guard, 1);
  t.match(guard.refusalOf(look), /^Error: Look was called with the same arguments 12 times in a row/);
});

t.test('refusals count as repetitions, so that a model that ignores them is stuck after sixteen', async (t) => {
  const guard = new RepeatGuard();
  repeat(guard, 12);
  repeat(guard, 3, look, undefined);
  t.equal(guard.stuckTool, null);
  repeat(guard, 1, look, undefined);
  t.equal(guard.stuckTool, 'Look');
});

t.test('a new result, another call or other arguments start afresh', async (t) => {
  for (const [call, result] of [
    [look, 'something'],
    [{ ...look, name: 'See' }, 'nothing'],
    [{ ...look, arguments: '{"at":"y"}' }, 'nothing'],
  ] as const) {
    const guard = new RepeatGuard();
    repeat(guard, 15);
    guard.note(call, result);
    t.same([guard.stuckTool, guard.refusalOf(look)], [null, undefined]);
  }
});

t.test('waiting for a background process is never a repetition', async (t) => {
  const guard = new RepeatGuard();
  const wait = { ...look, name: 'ExecOutput' };
  repeat(guard, 30, wait);
  t.same([guard.refusalOf(wait), guard.stuckTool], [undefined, null]);
});
