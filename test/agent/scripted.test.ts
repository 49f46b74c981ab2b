import t from 'tap';
import type { ModelEvent } from '../../src/agent/model.ts';
import { answerOf, collect, hi, rejection } from './providers/helpers.ts';
import { always, callTool, crash, fail, finish, gate, say, script, think, usage } from './scripted-provider.ts';

t.test('answers follow in order, and requests are recorded', async (t) => {
  const provider = script(
    [think('hm'), callTool('ReadFile', { path: 'a' }), callTool('Exec', 'no json', 'mine')],
    say('done'),
  );
  const first = await collect(provider);
  t.same(answerOf(first), {
    thinking: 'hm',
    text: '',
    calls: [
      { callId: 'call_1_1', name: 'ReadFile', arguments: '{"path":"a"}' },
      { callId: 'mine', name: 'Exec', arguments: 'no json' },
    ],
    usage: { type: 'usage', inputTokens: 1, outputTokens: 1 },
    finish: 'toolCalls',
  });
  t.ok(first.filter(({ type }) => type === 'toolCallDelta').length > 2);
  t.match(answerOf(await collect(provider)), { text: 'done', finish: 'stop' });
  t.strictSame(provider.requests, [hi, hi]);
  await t.rejects(collect(provider), { message: /no answer number 3/ });
});

t.test('an answer can depend on the request, repeat, and set its finish reason', async (t) => {
  const provider = always(({ messages }) => [say(`${messages.length}`), usage(7, 8), finish('length')]);
  for (const _ of [1, 2]) {
    t.match(answerOf(await collect(provider)), {
      text: '1',
      usage: { inputTokens: 7, outputTokens: 8 },
      finish: 'length',
    });
  }
});

t.test('a scripted failure or crash rejects the request', async (t) => {
  const bug = new Error('bug');
  const provider = script([say('half'), fail('upstreamRateLimited', 'slow', 5)], crash(bug));
  const heard: ModelEvent[] = [];
  const signal = new AbortController().signal;
  t.match(await rejection(provider.stream(hi, (event) => heard.push(event), signal)), {
    name: 'ModelError',
    code: 'upstreamRateLimited',
    message: 'slow',
    retryAfterMs: 5,
  });
  t.same(heard, [{ type: 'text', text: 'half' }]);
  t.equal(await rejection(collect(provider)), bug);
});

t.test('a gate blocks the answer until it is opened or the request is aborted', async (t) => {
  const held = gate();
  const provider = script([say('a'), held, say('b')], gate());
  const asked = collect(provider);
  await held.reached;
  held.open();
  t.equal(answerOf(await asked).text, 'ab');
  const abort = new AbortController();
  const waiting = rejection(collect(provider, hi, abort.signal));
  await provider.untilAsked(2);
  abort.abort(new Error('over'));
  t.match(await waiting, { message: 'over' });
});

t.test('the scripted provider lists a model and can be closed', async (t) => {
  const provider = script();
  t.same(await provider.listModels(), [{ id: 'scripted', ownedBy: 'test' }]);
  provider.close();
  t.equal(provider.isClosed, true);
});
