/** Background processes in the life of threads. */
import t, { type Test } from 'tap';
import * as v from 'valibot';
import {
  BackgroundProcesses,
  createBuiltinTools,
  type ModelProvider,
  placeRules,
  RuleBook,
} from '../../../src/agent/index.ts';
import type { PermissionRule } from '../../../src/config/index.ts';
import { Config } from '../../../src/config/schema.ts';
import { until } from '../../supervise/helpers.ts';
import { answers, call, say, service, settings, talk } from '../helpers.ts';
import { onBug, temporaryWorkspace } from '../tools/run-tool.ts';

function stage(t: Test, provider: ModelProvider, rules: readonly PermissionRule[] = []) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const processes = new BackgroundProcesses({ secrets: [], outputs: undefined, onBug });
  t.teardown(() => processes.close());
  const places = { blockedPaths: [], home, environment: process.env };
  const tools = createBuiltinTools({
    ...{
      tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
      ...places,
      passEnvironment: [],
      secrets: [],
      processes,
    },
  });
  const book = new RuleBook({ configured: rules, stateDirectory: home, places: placeRules(places) });
  const { runtime } = service(provider, {
    ...{ workspacePath, processes, tools: () => tools, rules: book },
    settings: { ...settings, approvalPolicy: 'autoApprove' },
  });
  return { runtime, processes };
}

const sleeps = call('1', 'Exec', { command: 'sleep 3300', background: true });
const begins = () => answers([sleeps], [say('started')]);

t.test('a process runs beyond its turn, and a later turn reads it', async (t) => {
  const provider = answers([sleeps], [say('started')], [call('2', 'ExecOutput', { id: 'unknown' })], [say('read')]);
  const { runtime, processes } = stage(t, provider);
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'x');
  const [running] = processes.list(thread.id);
  t.match(running, { state: 'running' });
  t.match(runtime.threads.read(thread.id, { includeTurns: false }), { backgroundProcesses: [{ id: running?.id }] });
  const { turn } = await talk(runtime, thread.id, 'y');
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: new RegExp(`It has: ${running?.id}`) },
  );
});

t.test('deleting a conversation ends its processes before it returns', async (t) => {
  const { runtime, processes } = stage(t, begins());
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'x');
  t.equal(processes.list(thread.id).length, 1);
  await runtime.threads.delete(thread.id);
  t.same(processes.list(thread.id), []);
});

t.test('archiving a conversation ends its processes', async (t) => {
  const { runtime, processes } = stage(t, begins());
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'x');
  runtime.threads.archive(thread.id, true);
  await until('its processes end', () => processes.list(thread.id).length === 0);
});

t.test('processes of a sub-agent end with its turn', async (t) => {
  const provider = answers([call('0', 'SpawnSubagent', { task: 'work' })], [sleeps], [say('child')], [say('parent')]);
  const { runtime, processes } = stage(t, provider);
  const { thread } = runtime.threads.start({});
  const { ear } = await talk(runtime, thread.id, 'x');
  const child = ear.events.flatMap(({ method, params }) =>
    method === 'turn/started' && params.threadId !== thread.id ? [params.threadId] : [],
  );
  t.same(
    child.map((id) => processes.list(id)),
    child.map(() => []),
  );
  t.equal(provider.requests.length, 4);
});

t.test('input that a rule forbids as a command is refused, also where everything is approved', async (t) => {
  const input = (text: string) => call('2', 'ExecInput', { id: 'proc_1', text });
  for (const [text, expected] of [
    ['git push\n', /refused by a rule/],
    ['cd x && git push --force\n', /refused by a rule/],
    ['git status\n', /has no background process/],
    ['ls\n', /has no background process/],
  ] as const) {
    const provider = answers([input(text)], [say('ok')]);
    const { runtime } = stage(t, provider, [{ Tool: 'Exec', Prefix: 'git push', Decision: 'deny' }]);
    const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
    t.match(
      turn.items.find(({ type }) => type === 'toolResult'),
      { text: expected },
      text,
    );
  }
});

t.test('input is asked about also when the same text as a command would not be', async (t) => {
  const provider = answers([call('1', 'ExecInput', { id: 'proc_1', text: 'ls' })], [say('ok')]);
  const { runtime } = stage(t, provider);
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'interrupt' } });
  const { turn } = await talk(runtime, thread.id, 'x');
  t.match(
    turn.items.find(({ type }) => type === 'toolResult'),
    { text: /rejected by policy: to input ls/ },
  );
});
