/** Turns that only plan: their permitted calls, their end, and that the next turn may change things again. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, placeRules, RuleBook } from '../../../src/agent/index.ts';
import { Config } from '../../../src/config/schema.ts';
import type { Turn, TurnMode } from '../../../src/protocol/index.ts';
import { answers, call, listening, say, service, settings, text } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

const plan = (id: string) => call(id, 'UpdatePlan', { plan: [{ step: 'Write it', status: 'pending' }] });

/** Threads with the built-in tools, in which everything is approved and an allow rule holds for all commands. */
function stage(t: Test, ...rounds: Parameters<typeof answers>) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  writeFileSync(join(workspacePath, 'a.txt'), 'hello\n');
  const places = { blockedPaths: [], home, environment: process.env };
  const tools = createBuiltinTools({
    tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
    ...places,
    passEnvironment: [],
    secrets: [],
  });
  const configured = [{ Tool: 'Exec', Pattern: '*', Decision: 'allow' as const }];
  const rules = new RuleBook({ configured, stateDirectory: home, places: placeRules(places) });
  const provider = answers(...rounds);
  const { runtime, bugs } = service(provider, {
    ...{ workspacePath, tools: () => tools, rules },
    settings: { ...settings, approvalPolicy: 'autoApprove' },
  });
  return { runtime, bugs, provider, workspacePath };
}

async function talk(
  { runtime }: ReturnType<typeof stage>,
  threadId: string,
  words: string,
  mode?: TurnMode,
): Promise<Turn> {
  const ear = listening();
  runtime.turns.start(threadId, text(words), ear.listener, { mode }).begin();
  return (await ear.until('turn/completed')).params.turn;
}

const resultsIn = ({ items }: Turn): Record<string, string> =>
  Object.fromEntries(items.flatMap((item) => (item.type === 'toolResult' ? [[item.callId, item.text]] : [])));

t.test('a turn that plans reads, and every call that may change something is refused', async (t) => {
  const scene = stage(
    t,
    [
      call('read', 'ReadFile', { path: 'a.txt' }),
      call('cat', 'Exec', { command: 'cat a.txt | wc -l' }),
      call('write', 'WriteFile', { path: 'b.txt', content: 'x' }),
      call('edit', 'EditFile', { path: 'a.txt', oldText: 'hello', newText: 'bye' }),
      call('touch', 'Exec', { command: 'touch c.txt' }),
      call('hidden', 'Exec', { command: 'cat a.txt > d.txt' }),
      call('behind', 'Exec', { command: 'cat a.txt', background: true }),
      call('outside', 'Exec', { command: 'cat a.txt', outside: true, reason: 'to see it' }),
    ],
    [plan('plan'), say('So I would do it.')],
    [say('That is the plan.')],
  );
  const { thread } = scene.runtime.threads.start({ config: { mode: 'plan' } });
  const turn = await talk(scene, thread.id, 'Write b.txt.');
  const results = resultsIn(turn);
  t.match(results, { read: 'hello', cat: /1/ });
  for (const id of ['write', 'edit', 'touch', 'hidden', 'behind', 'outside'])
    t.match(results[id], /^Error: not run, because this turn only plans/, id);
  for (const name of ['b.txt', 'c.txt', 'd.txt']) t.notOk(existsSync(join(scene.workspacePath, name)), name);
  t.match(
    turn.items.find(({ type }) => type === 'plan'),
    { steps: [{ step: 'Write it' }] },
  );
  t.strictSame(scene.bugs, []);
});

t.test('the note about the mode stands behind the prompt, and the system prompt stays the same', async (t) => {
  const scene = stage(
    t,
    [plan('1')],
    [say('planned')],
    [call('2', 'WriteFile', { path: 'b.txt', content: 'x' })],
    [say('done')],
  );
  const { thread } = scene.runtime.threads.start({});
  const planned = await talk(scene, thread.id, 'Write b.txt.', 'plan');
  t.match(planned.items.map(({ type }) => type).slice(0, 2), ['userMessage', 'systemNotice']);
  const done = await talk(scene, thread.id, 'Carry it out.');
  t.ok(existsSync(join(scene.workspacePath, 'b.txt')), 'the next turn changes things');
  t.notMatch(done.items, [{}, { type: 'systemNotice' }]);
  const [first, , third] = scene.provider.requests;
  t.match(first?.messages.at(-1), { role: 'user', content: [{ text: /In this turn you only plan/ }] });
  t.same(third?.messages.slice(0, first?.messages.length), first?.messages, 'the prefix of later requests is the same');
  t.same(third?.tools, first?.tools);
});

t.test('a turn that plans and ends without a plan is reminded once, and ends then', async (t) => {
  const scene = stage(t, [say('I would write it.')], [plan('1')], [say('There it is.')]);
  const { thread } = scene.runtime.threads.start({ config: { mode: 'plan' } });
  const turn = await talk(scene, thread.id, 'Write b.txt.');
  t.match(
    turn.items.filter(({ type }) => type === 'plan'),
    [{ steps: [{}] }],
  );
  t.match(scene.provider.requests[1]?.messages.at(-1), { content: [{ text: /no plan yet/ }] });

  const stubborn = stage(t, [say('I would write it.')], [say('As I said.')]);
  const other = stubborn.runtime.threads.start({ config: { mode: 'plan' } });
  t.match(await talk(stubborn, other.thread.id, 'Write b.txt.'), { status: 'completed' });
  t.equal(stubborn.provider.requests.length, 2);
});

t.test('a sub-agent of a turn that plans only plans, too', async (t) => {
  const scene = stage(
    t,
    [call('1', 'SpawnSubagent', { task: 'Write c.txt.' })],
    [call('2', 'WriteFile', { path: 'c.txt', content: 'x' })],
    [plan('3')],
    [say('I may not.')],
    [plan('4')],
    [say('Planned.')],
  );
  const { thread } = scene.runtime.threads.start({});
  await talk(scene, thread.id, 'Have c.txt written.', 'plan');
  t.notOk(existsSync(join(scene.workspacePath, 'c.txt')));
});

t.test('the mode of a turn wins over that of its thread', async (t) => {
  const scene = stage(t, [call('1', 'WriteFile', { path: 'b.txt', content: 'x' })], [say('done')]);
  const { thread } = scene.runtime.threads.start({ config: { mode: 'plan' } });
  await talk(scene, thread.id, 'Write b.txt.', 'default');
  t.ok(existsSync(join(scene.workspacePath, 'b.txt')));
});
