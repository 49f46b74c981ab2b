/** Hooks in turns: their output reaches the model, and a blocked call does not run. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { Hooks, type ModelProvider, type RuntimeOptions, userCommands } from '../../../src/agent/index.ts';
import { HookSettings } from '../../../src/config/hook-settings.ts';
import type { Turn } from '../../../src/protocol/index.ts';
import { until } from '../../supervise/helpers.ts';
import { answers, call, listening, neverEnds, say, service, talk, text, tool } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

type Commands = Partial<Record<keyof HookSettings, readonly string[]>>;

/** Threads with hooks whose input is collected in the file `seen`, one moment in a line. */
function stage(t: Test, provider: ModelProvider, commands: Commands, options: Partial<RuntimeOptions> = {}) {
  const workspacePath = temporaryWorkspace(t);
  const seen = join(workspacePath, 'seen');
  const entries = Object.entries(commands).map(([event, all]) => [
    event,
    all.map((command) => ({ Command: `head -n 1 >> ${seen}; ${command}`, TimeoutMs: 600_000 })),
  ]);
  const settings = v.parse(HookSettings, Object.fromEntries(entries));
  const hooks = new Hooks(
    settings,
    userCommands({ environment: process.env, passEnvironment: [], secrets: [] }),
    '/nowhere',
  );
  const { runtime, bugs } = service(provider, { workspacePath, hooks, ...options });
  const moments = (): Record<string, unknown>[] =>
    existsSync(seen)
      ? readFileSync(seen, 'utf8')
          .trim()
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      : [];
  return { workspacePath, runtime, bugs, moments };
}

const noticesIn = ({ items }: Turn) =>
  items.flatMap((item) => (item.type === 'systemNotice' ? [[item.kind, item.text]] : []));

t.test('a hook at the start of a conversation runs once, and its output is in every request', async (t) => {
  const provider = answers([say('ok')]);
  const { runtime, moments, workspacePath } = stage(t, provider, { SessionStart: ['echo The build is red.'] });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'one');
  await talk(runtime, thread.id, 'two');
  const [first, second] = provider.requests.map(({ messages }) => messages[0]);
  t.match(first, { text: /From the hooks of the user, at the start:\nThe build is red\./ });
  t.same(first, second);
  t.same(moments(), [
    {
      hook_event_name: 'SessionStart',
      ...{ session_id: thread.id, turn_id: 'turn_001', cwd: workspacePath, workspace_path: workspacePath },
    },
  ]);
});

t.test('the output of a prompt hook follows the prompt, also in later turns', async (t) => {
  const provider = answers([say('ok')]);
  const { runtime, moments } = stage(t, provider, { UserPromptSubmit: ['echo Ticket 7 is closed.'] });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'look at ticket 7');
  t.same(noticesIn(turn), [['hookContext', 'Ticket 7 is closed.']]);
  t.match(moments(), [{ prompt: 'look at ticket 7' }]);
  await talk(runtime, thread.id, 'again');
  const [one, two] = provider.requests.map(({ messages }) => messages.slice(1));
  const said = { role: 'user', content: [{ type: 'text', text: '<hook>\nTicket 7 is closed.\n</hook>' }] };
  t.match(one, [{ content: [{ text: 'look at ticket 7' }] }, said]);
  t.match(two, [{}, said, { role: 'assistant', text: 'ok' }, { content: [{ text: 'again' }] }, said]);
});

t.test('a blocked prompt fails the turn without a request, and the model never reads it', async (t) => {
  const provider = answers([say('ok')]);
  const { runtime } = stage(t, provider, {
    UserPromptSubmit: ['grep -q secret seen || exit 0; rm seen; echo no >&2; exit 2'],
  });
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'the secret');
  t.match(turn, { status: 'failed', error: { code: 'promptBlocked', message: 'A hook blocked the prompt: no' } });
  t.same(noticesIn(turn), [['promptBlocked', 'A hook blocked the prompt: no']]);
  t.equal(provider.requests.length, 0);
  await talk(runtime, thread.id, 'hello');
  t.notMatch(JSON.stringify(provider.requests[0]?.messages), 'secret');
  t.match(JSON.stringify(provider.requests[0]?.messages), 'hello');
});

t.test('a blocked steering prompt is left out, and the turn continues', async (t) => {
  const provider = answers([call('1', 'look')], [say('ok')]);
  const { runtime } = stage(
    t,
    provider,
    { UserPromptSubmit: ['tail -n 1 seen | grep -q secret || exit 0; echo no >&2; exit 2'] },
    { tools: () => [tool({ name: 'look' })] },
  );
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  runtime.turns.steer(thread.id, turn.id, { input: text('the secret') });
  begin();
  const end = await ear.until('turn/completed');
  t.same(noticesIn(end.params.turn), [['promptBlocked', 'A hook blocked the prompt: no']]);
  t.notMatch(JSON.stringify(provider.requests.map(({ messages }) => messages)), 'the secret');
});

t.test('a blocked call is refused with the reason, without a question', async (t) => {
  const provider = answers([call('1', 'danger', { path: 'x' })], [say('ok')]);
  let runs = 0;
  const danger = tool({
    name: 'danger',
    needsApproval: true,
    run: () => {
      runs += 1;
      return { text: 'ran', isError: false };
    },
  });
  const { runtime, moments } = stage(
    t,
    provider,
    { PreToolUse: ['echo not on fridays >&2; exit 2'] },
    { tools: () => [danger] },
  );
  const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.equal(runs, 0);
  t.notOk(ear.methods().includes('item/approval/request'));
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { outcome: 'failed', text: 'Error: refused by a hook of the user: not on fridays' },
  );
  t.match(moments(), [{ hook_event_name: 'PreToolUse', tool_name: 'danger', tool_input: { path: 'x' } }]);
});

t.test('the model reads the objection of a hook after the result of the call', async (t) => {
  const provider = answers([call('1', 'edit')], [say('ok')]);
  const edit = tool({ name: 'edit', run: () => ({ text: 'done', isError: false }) });
  const { runtime, moments } = stage(
    t,
    provider,
    { PostToolUse: ['echo a.ts: error >&2; exit 2'] },
    { tools: () => [edit] },
  );
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { outcome: 'completed', text: 'done\n\n[hook of the user] a.ts: error' },
  );
  t.match(provider.requests[1]?.messages.at(-1), { role: 'tool', content: [{ text: /a\.ts: error/ }] });
  t.match(moments(), [{ tool_name: 'edit', tool_response: { text: 'done', is_error: false } }]);
});

t.test('a hook that blocks the end has the turn continue, three times at most', async (t) => {
  const provider = answers([say('I am done.')]);
  const { runtime, moments } = stage(t, provider, { TurnEnd: ['echo Tests fail. >&2; exit 2'] });
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.equal(turn.status, 'completed');
  t.equal(provider.requests.length, 4);
  t.match(moments(), new Array(3).fill({ hook_event_name: 'TurnEnd', last_message: 'I am done.' }));
  t.match(provider.requests[1]?.messages.at(-1), { role: 'user', content: [{ text: '<hook>\nTests fail.\n</hook>' }] });
  t.equal(noticesIn(turn).length, 3);
});

t.test('a hook that fails is reported, and the turn continues', async (t) => {
  const provider = answers([call('1', 'look')], [say('ok')]);
  const fails = 'echo broken >&2; exit 1';
  const { runtime } = stage(
    t,
    provider,
    { SessionStart: [fails], UserPromptSubmit: [fails], PreToolUse: [fails], PostToolUse: [fails], TurnEnd: [fails] },
    { tools: () => [tool({ name: 'look' })] },
  );
  const { thread } = runtime.threads.start({});
  const { turn, ear } = await talk(runtime, thread.id, 'x');
  t.equal(turn.status, 'completed');
  const kinds = ear.events.flatMap(({ method, params }) =>
    method === 'system/event' ? [[params.kind, params.message]] : [],
  );
  t.same(
    kinds.map(([kind = '', message = '']) => [kind, message.split(':')[0]]),
    ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'TurnEnd'].map((event) => ['hookFailed', event]),
  );
  t.match(kinds[0]?.[1], /ended with exit code 1, which does not block: broken\.$/);
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: 'look ran' },
  );
});

t.test('input that arrives during the hooks at the end of a turn is sent in another request', async (t) => {
  const provider = answers([say('one')], [say('two')]);
  const { runtime, workspacePath } = stage(t, provider, {
    TurnEnd: ['touch waiting; until [ -e go ]; do sleep 0.02; done'],
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await until('the hook waits', () => existsSync(join(workspacePath, 'waiting')));
  runtime.turns.steer(thread.id, turn.id, { input: text('and this') });
  writeFileSync(join(workspacePath, 'go'), '');
  await ear.until('turn/completed');
  t.match(provider.requests[1]?.messages.at(-1), { content: [{ text: 'and this' }] });
});

t.test('hooks run for read-only conversations and for sub-agents, with the id of the sub-agent', async (t) => {
  const spawn = tool({
    name: 'SpawnSubagent',
    isReadOnly: true,
    run: (_, { spawnSubagent }) => spawnSubagent({ task: 'work', label: undefined, type: undefined }),
  });
  const provider = answers([call('1', 'SpawnSubagent')], [say('child')], [say('parent')]);
  const { runtime, moments } = stage(t, provider, { UserPromptSubmit: [':'] }, { tools: () => [spawn] });
  const { thread } = runtime.threads.start({ config: { readOnly: true } });
  await talk(runtime, thread.id, 'x');
  const [parent, child] = moments();
  t.match(parent, { session_id: thread.id, prompt: 'x' });
  t.match(child, { prompt: 'work' });
  t.not(child?.['session_id'], thread.id);
});

t.test('an interrupt ends a turn whose hook hangs', async (t) => {
  const { runtime, moments } = stage(t, neverEnds(), { UserPromptSubmit: ['sleep 3020'] });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('x'), ear.listener);
  begin();
  await until('the hook runs', () => moments().length > 0);
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
});
