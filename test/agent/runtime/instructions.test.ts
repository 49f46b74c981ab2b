/** System prompt and instructions of a thread over its turns. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import {
  createBuiltinTools,
  MemoryStore,
  openStore,
  type RuntimeOptions,
  textReader,
} from '../../../src/agent/index.ts';
import { Config } from '../../../src/config/index.ts';
import { answers, call, say, service, talk } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

function place(t: Test, files: Readonly<Record<string, string>>) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const write = (path: string, text: string) => {
    mkdirSync(join(workspacePath, path, '..'), { recursive: true });
    writeFileSync(join(workspacePath, path), text);
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  const tools = createBuiltinTools({
    tools: v.parse(Config, {}).Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home,
  });
  const options: Partial<RuntimeOptions> = {
    workspacePath,
    tools: () => tools,
    surroundings: { home, read: textReader({ blockedPaths: [], home }), commands: () => 'Commands run.' },
  };
  return { write, home, options };
}

const read = (path: string) => call(`c-${path}`, 'ReadFile', { path });

t.test(
  'the prompt of a thread stays the same to the byte, also when AGENTS.md changes and after a restart',
  async (t) => {
    const { write, home, options } = place(t, { 'AGENTS.md': 'Use tabs.' });
    const first = answers([say('one')], [say('two')]);
    let store = openStore(join(home, 'state'));
    const before = service(first, { ...options, store: store.threads });
    const { thread } = before.runtime.threads.start({});
    await talk(before.runtime, thread.id, 'x');
    write('AGENTS.md', 'Use spaces.');
    await talk(before.runtime, thread.id, 'y');
    await before.runtime.close();
    store.close();

    store = openStore(join(home, 'state'));
    t.teardown(() => store.close());
    const second = answers([say('three')], [say('four')]);
    const after = service(second, { ...options, store: store.threads });
    await talk(after.runtime, thread.id, 'z');
    const prompts = [...first.requests, ...second.requests].map(({ messages }) => messages[0]);
    t.match(prompts[0], { role: 'system', text: /<instructions path="AGENTS.md">\nUse tabs\./ });
    t.same(prompts, [prompts[0], prompts[0], prompts[0]]);

    await talk(after.runtime, after.runtime.threads.start({}).thread.id, 'a new thread');
    t.match(second.requests.at(-1)?.messages[0], { text: /Use spaces\./ });
  },
);

t.test(
  'nested instructions come with the first result of their directory, outermost first, once a thread',
  async (t) => {
    const { options } = place(t, {
      'a/AGENTS.md': 'outer',
      'a/b/AGENTS.md': 'inner',
      'a/b/one.txt': '1',
      'a/b/two.txt': '2',
      'a/three.txt': '3',
    });
    const provider = answers(
      [read('a/b/one.txt'), read('a/b/two.txt')],
      [read('a/three.txt')],
      [say('done')],
      [read('a/b/one.txt')],
      [say('done')],
    );
    const { runtime } = service(provider, options);
    const { thread } = runtime.threads.start({});
    await talk(runtime, thread.id, 'x');
    const { turn } = await talk(runtime, thread.id, 'again');
    const whole = JSON.stringify(provider.requests.at(-1)?.messages);
    t.equal(whole.split('<instructions path=').length - 1, 2);
    t.ok(whole.indexOf('outer') < whole.indexOf('inner'));
    t.match(
      turn.items.find(({ type }) => type === 'toolResult'),
      { text: '1' },
      'the second turn shows none again',
    );
  },
);

t.test('a directory where a file is written, searched or used by a command gives its instructions', async (t) => {
  const { options } = place(t, { 'w/AGENTS.md': 'of w', 'g/AGENTS.md': 'of g', 'e/AGENTS.md': 'of e' });
  const provider = answers(
    [call('1', 'WriteFile', { path: 'w/new.txt', content: '' }), call('2', 'GrepFiles', { path: 'g', pattern: 'x' })],
    [call('3', 'Exec', { command: 'true', workingDir: 'e' })],
    [say('done')],
  );
  const { runtime } = service(provider, options);
  const { turn } = await talk(
    runtime,
    runtime.threads.start({ config: { approvalPolicy: 'autoApprove' } }).thread.id,
    'x',
  );
  const texts = turn.items.flatMap((item) => (item.type === 'toolResult' ? item.text : []));
  t.match(texts, [/of w/, /of g/, /of e/]);
});

t.test('a read-only thread gets no instructions from files of the workspace', async (t) => {
  const { options } = place(t, { 'AGENTS.md': 'Approve.', 'a/AGENTS.md': 'Approve.', 'a/x.txt': 'x' });
  const provider = answers([read('a/x.txt')], [say('done')]);
  const { runtime } = service(provider, options);
  await talk(runtime, runtime.threads.start({ config: { readOnly: true } }).thread.id, 'x');
  t.notMatch(JSON.stringify(provider.requests), /Approve/);
});

t.test('a sub-agent gets the instructions of the user and of the root', async (t) => {
  const { options } = place(t, { 'AGENTS.md': 'Use tabs.' });
  const provider = answers([call('1', 'SpawnSubagent', { task: 'look' })], [say('seen')], [say('done')]);
  const { runtime } = service(provider, { ...options, store: new MemoryStore() });
  await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(provider.requests[1]?.messages[0], { text: /Use tabs\./ });
});
