/** Sub-agents that write in git worktrees of their own, and the results of their changes. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createBuiltinTools, Library, worktreesOf } from '../../../src/agent/index.ts';
import { Config } from '../../../src/config/schema.ts';
import { answers, call, say, scripted, service, settings, talk } from '../helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

const middle = Array.from({ length: 8 }, (_, line) => `line ${line}\n`).join('');
const text = `one\ntwo\n${middle}three\n`;

function stage(t: Test, provider: Parameters<typeof service>[0], { isTrusted = true, isRepository = true } = {}) {
  const workspacePath = temporaryWorkspace(t);
  const home = temporaryWorkspace(t);
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
      cwd: workspacePath,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  writeFileSync(join(workspacePath, 'a.txt'), text);
  mkdirSync(join(workspacePath, '.oratorio'));
  writeFileSync(join(workspacePath, '.oratorio', '.gitignore'), '*\n');
  if (isRepository) {
    git('init', '-q');
    git('add', '-A');
    git('commit', '-q', '-m', 'first');
  }
  writeFileSync(join(workspacePath, 'untracked.txt'), 'not committed\n');
  const environment = { ...process.env, HOME: home };
  const tools = createBuiltinTools({
    tools: v.parse(Config, { Tools: { Shell: { Sandbox: 'off' } } }).Tools,
    ...{ blockedPaths: [], home, environment, passEnvironment: [], secrets: [] },
  });
  const { runtime, bugs } = service(provider, {
    ...{ workspacePath, library: new Library(home), tools: () => tools },
    ...(isTrusted && { openWorktree: worktreesOf({ environment, passEnvironment: [], secrets: [] }) }),
    settings: { ...settings, approvalPolicy: 'autoApprove', subAgent: { ...settings.subAgent, maxConcurrency: 2 } },
  });
  const worktrees = join(workspacePath, '.oratorio', 'worktrees');
  return {
    ...{ runtime, bugs, workspacePath, home, git },
    content: (path: string) => readFileSync(join(workspacePath, path), 'utf8'),
    left: () => (existsSync(worktrees) ? readdirSync(worktrees).map((name) => join(worktrees, name)) : []),
  };
}

const spawn = (id: string, more: object = {}) =>
  call(id, 'SpawnSubagent', { task: `Do ${id}.`, worktree: true, ...more });
const edit = (oldText: string, newText: string) =>
  call(`edit ${oldText}`, 'EditFile', { path: 'a.txt', oldText, newText });
const results = (turn: { readonly items: readonly { readonly type: string }[] }) =>
  turn.items.filter(({ type }) => type === 'toolResult') as unknown as readonly { readonly text: string }[];

/** Two sub-agents at the same time: each edits a line, and ends when both have done so. */
function two(edits: Readonly<Record<string, ReturnType<typeof call>>>) {
  let edited = 0;
  const { promise: both, resolve } = Promise.withResolvers<void>();
  return scripted(async function* ({ messages }) {
    const [task] = messages.flatMap((message) => (message.role === 'user' ? JSON.stringify(message.content) : []));
    const isFresh = messages.at(-1)?.role === 'user';
    const id = Object.keys(edits).find((each) => task?.includes(`Do ${each}.`));
    if (id === undefined) {
      if (isFresh) for (const each of Object.keys(edits)) yield spawn(each);
      else yield say('Done.');
      return;
    }
    const own = edits[id];
    if (isFresh && own) yield own;
    else {
      edited += 1;
      if (edited === 2) resolve();
      await both;
      yield say(`${id} is done.`);
    }
  });
}

t.test('changes of two sub-agents in worktrees are put together in the workspace', async (t) => {
  const { runtime, bugs, content, left, git } = stage(t, two({ A: edit('one', 'ONE'), B: edit('three', 'THREE') }));
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'Do both.');
  t.same(
    results(turn)
      .map((result) => result.text)
      .toSorted(),
    ['A', 'B'].map((id) => `${id} is done.\n\nIt worked in a worktree; its changes are in the workspace now: a.txt.`),
  );
  t.equal(content('a.txt'), `ONE\ntwo\n${middle}THREE\n`);
  t.same(left(), []);
  t.equal(git('worktree', 'list').trim().split('\n').length, 1);
  t.match(git('status', '--porcelain'), /^ M a\.txt\n\?\? untracked\.txt\n$/, 'index and branch are as they were');
  t.equal(git('log', '--oneline').trim().split('\n').length, 1);
  t.same(bugs, []);
});

t.test('changes that contradict each other are put in once, the others stay in their worktree', async (t) => {
  const { runtime, content, left, git } = stage(t, two({ A: edit('two', 'TWO'), B: edit('two', 'Two') }));
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'Do both.');
  const texts = results(turn).map(({ text }) => text);
  t.equal(texts.filter((text) => text.includes('in the workspace now')).length, 1);
  const [kept = ''] = left();
  t.match(
    texts.find((text) => text.includes('do not fit')),
    new RegExp(`are only in its worktree ${kept}, because`),
  );
  const all = [content('a.txt'), readFileSync(join(kept, 'a.txt'), 'utf8')].toSorted();
  t.same(
    all,
    ['TWO', 'Two'].map((word) => text.replace('two', word)),
  );
  git('worktree', 'remove', '--force', kept);
});

t.test(
  'a worktree has the current files, including uncommitted ones; a worktree without changes is removed',
  async (t) => {
    const provider = answers(
      [spawn('A')],
      [call('1', 'Exec', { command: 'pwd; cat untracked.txt; ls -A' })],
      [say('I have read it.')],
      [say('Done.')],
    );
    const { runtime, left, workspacePath } = stage(t, provider);
    const { thread } = runtime.threads.start({});
    const { turn } = await talk(runtime, thread.id, 'Read.');
    t.match(results(turn), [{ text: 'I have read it.' }]);
    const shown = JSON.stringify(provider.requests[2]?.messages.at(-1));
    t.match(shown, `${workspacePath}/.oratorio/worktrees/agent-`);
    t.match(shown, 'not committed');
    t.same(left(), []);
  },
);

t.test('a sub-agent that fails leaves its changes in the worktree', async (t) => {
  let round = 0;
  const provider = scripted(async function* () {
    round += 1;
    if (round === 1) yield spawn('A');
    else if (round === 2) yield edit('one', 'ONE');
    else if (round === 3) throw new Error('gone');
    else yield say('It failed.');
  });
  const { runtime, left, content } = stage(t, provider);
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'Go.');
  t.match(results(turn), [{ text: /ended early[\s\S]*only in its worktree .*did not end as it should/ }]);
  t.equal(content('a.txt'), text);
  t.equal(readFileSync(join(left()[0] ?? '', 'a.txt'), 'utf8'), text.replace('one', 'ONE'));
});

t.test(
  'outside of a repository, and in a workspace without trust, there is no worktree, and the reason is said',
  async (t) => {
    for (const [over, reason] of [
      [{ isRepository: false }, /there is no worktree: .*not a git repository/],
      [{ isTrusted: false }, /there is no worktree: the user does not trust this workspace/],
    ] as const) {
      const { runtime } = stage(t, answers([spawn('A')], [say('Without.')]), over);
      const { thread } = runtime.threads.start({});
      const { turn } = await talk(runtime, thread.id, 'Go.');
      t.match(results(turn), [{ text: reason }]);
    }
  },
);

t.test('a type of a file has worktrees when it says so; an explorer has none', async (t) => {
  const provider = answers(
    [spawn('A', { type: 'writer', worktree: false })],
    [edit('one', 'ONE')],
    [say('Done.')],
    [spawn('B', { type: 'explore' })],
    [say('Looked.')],
    [say('Both.')],
  );
  const { runtime, home, content } = stage(t, provider);
  mkdirSync(join(home, 'agents'));
  writeFileSync(join(home, 'agents', 'writer.md'), '---\ndescription: Writes.\nworktree: true\n---\nWrite.\n');
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'Go.');
  t.match(results(turn), [{ text: /in the workspace now: a\.txt/ }, { text: 'Looked.' }]);
  t.match(content('a.txt'), 'ONE');
});
