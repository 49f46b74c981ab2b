/** Long outputs of commands: kept whole in files that the file tools may read. */
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, OutputFiles } from '../../../src/agent/tools/index.ts';
import { maxOutputFileBytes } from '../../../src/agent/tools/output-files.ts';
import { Config } from '../../../src/config/index.ts';
import { call, contextOf, temporaryWorkspace } from './run-tool.ts';

const secret = 'sk-0123456789abcdef';

/** Tools of a workspace whose commands keep their outputs in `<home>/outputs`. */
function place(t: Test) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const outputs = new OutputFiles(join(home, 'outputs'));
  const tools = createBuiltinTools({
    tools: v.parse(Config, { Tools: { Shell: { MaxOutputChars: 1_000, Sandbox: 'off' } } }).Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [secret],
    environment: process.env,
    home,
    outputs,
  });
  const toolOf = (name: string) => {
    const tool = tools.find((each) => each.name === name);
    if (!tool) throw new Error(`no ${name}`);
    return tool;
  };
  const run = (name: string, args: object) => call(toolOf(name), args, { workspacePath });
  const asksFor = (name: string, args: object) => {
    const parsed = toolOf(name).parse(args);
    if (!parsed.ok) throw new Error(parsed.error);
    return toolOf(name).approvalFor(parsed.args, contextOf({ workspacePath }));
  };
  return { home, workspacePath, outputs, run, asksFor };
}

const pathIn = (text: string): string => / in (\/\S+exec-[0-9a-f]{8}\.txt): read it/.exec(text)?.[1] ?? '';

t.test(
  'the whole of a long output is in a file of this user, without secrets, which ReadFile and GrepFiles read unasked',
  async (t) => {
    const { run, asksFor } = place(t);
    const { text } = await run('Exec', { command: `seq 1 5000; echo ${secret}; echo last` });
    const path = pathIn(text);
    t.match(text, /characters are left out here\. The whole output is in /);
    const whole = readFileSync(path, 'utf8');
    t.equal(whole, `${Array.from({ length: 5_000 }, (_, at) => `${at + 1}\n`).join('')}[redacted]\nlast\n`);
    t.equal(statSync(path).mode & 0o777, 0o600);
    t.equal(await asksFor('ReadFile', { path }), undefined);
    t.match((await run('ReadFile', { path, offset: 2_500, limit: 2 })).text, /^2500\n2501\n/);
    t.equal(await asksFor('GrepFiles', { path, pattern: '^4321$' }), undefined);
    t.match((await run('GrepFiles', { path, pattern: '^4321$' })).text, /4321: 4321/);
  },
);

t.test('a short output has no file', async (t) => {
  const { run, home } = place(t);
  t.equal((await run('Exec', { command: 'seq 1 200' })).text.split('\n').length, 200);
  t.notOk(existsSync(join(home, 'outputs')));
});

t.test('the file is neither written nor edited by tools, and nothing else of the home is read', async (t) => {
  const { run, home } = place(t);
  const path = pathIn((await run('Exec', { command: 'seq 1 5000' })).text);
  writeFileSync(join(home, 'config.json'), '{}');
  symlinkSync(join(home, 'config.json'), join(home, 'outputs', 'thread', 'link.txt'));
  for (const [name, args] of [
    ['WriteFile', { path, content: 'x' }],
    ['EditFile', { path, oldText: '1', newText: '2' }],
    ['ReadFile', { path: join(home, 'config.json') }],
    ['ReadFile', { path: join(home, 'outputs', 'thread', 'link.txt') }],
    ['ReadFile', { path: join(home, 'outputs') }],
    ['GrepFiles', { path: home, pattern: '.' }],
  ] as const) {
    t.match(await run(name, args), { isError: true, text: /belongs to Oratorio's own state/ }, `${name} ${args.path}`);
  }
});

t.test(
  'of a longer output the first 32 MiB are saved, and can be read although files may not be so long',
  async (t) => {
    const { run } = place(t);
    const { text } = await run('Exec', { command: 'yes 0123456789abcde | head -c 34000000; echo the end' });
    t.match(text, /The first 32 MiB of the output are in /);
    t.match(text, /the end/);
    const path = pathIn(text);
    t.equal(statSync(path).size, maxOutputFileBytes);
    t.match((await run('ReadFile', { path, offset: 2_000_000, limit: 1 })).text, /^0123456789abcde\n/);
  },
);

t.test('a disk that takes no more leaves both ends of the output, and no file', async (t) => {
  const { run, home } = place(t);
  // A file in the place of the directory: nothing can be made there, not even by root.
  writeFileSync(join(home, 'outputs'), '');
  const { text } = await run('Exec', { command: 'seq 1 5000' });
  t.match(text, /^1\n2\n[\s\S]*characters are left out here\. Run it again with less output[\s\S]*5000$/);
});

t.test('a thread keeps 256 MiB: the oldest outputs make room', async (t) => {
  const { run, home } = place(t);
  const directory = join(home, 'outputs', 'thread');
  await run('Exec', { command: 'seq 1 5000' });
  for (let at = 0; at < 8; at += 1) {
    const path = join(directory, `old-${at}`);
    writeFileSync(path, '');
    truncateSync(path, maxOutputFileBytes);
    utimesSync(path, 1_000 + at, 1_000 + at);
  }
  await run('Exec', { command: 'seq 1 5000' });
  const left = readdirSync(directory);
  t.same(
    left.filter((name) => name.startsWith('old')).toSorted(),
    [2, 3, 4, 5, 6, 7].map((at) => `old-${at}`),
  );
  t.equal(left.filter((name) => name.startsWith('exec')).length, 2);
});

t.test('outputs go with their thread; those of unknown threads go at the start', async (t) => {
  const { run, outputs, home } = place(t);
  await run('Exec', { command: 'seq 1 5000' });
  outputs.sweep((threadId) => threadId === 'thread');
  t.same(readdirSync(join(home, 'outputs')), ['thread']);
  outputs.forget('../outputs');
  outputs.sweep(() => false);
  t.same(readdirSync(join(home, 'outputs')), []);
  await run('Exec', { command: 'seq 1 5000' });
  outputs.forget('thread');
  t.same(readdirSync(join(home, 'outputs')), []);
});
