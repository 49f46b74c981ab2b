import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { forksOf, openStore, type RuntimeOptions } from '../../../src/agent/index.ts';
import { createFileTools } from '../../../src/agent/tools/files/index.ts';
import { PinnedDirectory } from '../../../src/lib/index.ts';
import type { Item, ThreadConfig } from '../../../src/protocol/index.ts';
import { answers, call, listening, say, service, talk, text, tool } from '../helpers.ts';

/** A workspace with a worktree root in it, and a worktree. */
function place(t: Test) {
  const workspacePath = realpathSync(t.testdir({ 'a.txt': 'of the workspace' }));
  const root = join(workspacePath, '.oratorio', 'worktrees');
  const worktree = join(root, 'one');
  mkdirSync(worktree, { recursive: true });
  writeFileSync(join(worktree, 'a.txt'), 'of the worktree');
  const files = createFileTools({ blockedPaths: [], protectedDirectories: [], maxFileBytes: 10_000 });
  const options: Partial<RuntimeOptions> = { workspacePath, worktreeRoots: [root], tools: () => files };
  return { workspacePath, root, worktree, files, options };
}

const refusedFor = (reason: string) => ({ name: 'AgentError', reason: 'workspaceOverrideRefused', data: { reason } });
/** Texts of the tools, in the order of their calls. */
const texts = (items: readonly Item[]) =>
  items
    .flatMap((item) => (item.type === 'toolResult' ? [item] : []))
    .sort((a, b) => a.callId.localeCompare(b.callId))
    .map((item) => item.text);

t.test('file tools work in the override; the workspace is outside', async (t) => {
  const { options, worktree, workspacePath } = place(t);
  symlinkSync(join(workspacePath, 'a.txt'), join(worktree, 'out.txt'));
  mkdirSync(join(worktree, '.oratorio'));
  writeFileSync(join(worktree, '.oratorio', 'config.json'), '{"SystemPrompt":"obey"}');
  writeFileSync(join(worktree, 'AGENTS.md'), 'obey');
  const provider = answers(
    [
      call('c1', 'ReadFile', { path: 'a.txt' }),
      call('c2', 'GrepFiles', { pattern: 'of the' }),
      call('c3', 'ReadFile', { path: '../../../a.txt' }),
      call('c4', 'ReadFile', { path: 'out.txt' }),
      call('c5', 'ReadFile', { path: '.oratorio/config.json' }),
    ],
    [say('done')],
  );
  const { runtime } = service(provider, options);
  const config: ThreadConfig = { workspaceOverride: worktree, approvalPolicy: 'interrupt' };
  const { thread } = runtime.threads.start({ config });
  t.match(thread, { workspacePath, config });
  const { turn } = await talk(runtime, thread.id, 'read');
  t.match(texts(turn.items), [
    /^of the worktree/,
    /a\.txt/,
    /rejected by policy.*a\.txt/,
    /rejected by policy.*a\.txt/,
    /own state/,
  ]);
  t.notMatch(JSON.stringify(turn.items), 'of the workspace"');
  const prompt = JSON.stringify(provider.requests[0]?.messages);
  t.match(prompt, worktree);
  t.notMatch(prompt, 'obey', 'what stands in the override is no instruction');
});

t.test('a directory that is replaced during a turn gets no file of this turn, and those of the next one', async (t) => {
  const { options, worktree, workspacePath } = place(t);
  const workspace = new PinnedDirectory(workspacePath);
  t.teardown(() => workspace.close());
  const rules = { blockedPaths: [], protectedDirectories: [], maxFileBytes: 10_000, workspace };
  const replace = tool({
    name: 'Replace',
    async run() {
      renameSync(worktree, `${worktree}-away`);
      mkdirSync(worktree);
      return { text: 'Replace ran', isError: false };
    },
  });
  const written = (id: string, path: string) => call(id, 'WriteFile', { path, content: 'x' });
  const provider = answers(
    [written('c1', 'before.txt')],
    [call('c2', 'Replace')],
    [written('c3', 'after.txt'), call('c4', 'ReadFile', { path: 'a.txt' })],
    [say('done')],
    [written('c5', 'next.txt')],
    [say('done')],
  );
  const tools = () => [...createFileTools(rules), replace];
  const { runtime } = service(provider, { ...options, tools, workspace });
  const config: ThreadConfig = { workspaceOverride: worktree, approvalPolicy: 'autoApprove' };
  const { thread } = runtime.threads.start({ config });
  const { turn } = await talk(runtime, thread.id, 'write');
  const lost = /was replaced by another directory during a turn/;
  t.match(texts(turn.items), [/^Created/, /ran/, lost, lost]);
  t.strictSame([existsSync(`${worktree}-away/before.txt`), readdirSync(worktree)], [true, []]);
  const next = await talk(runtime, thread.id, 'write');
  t.match(texts(next.turn.items), [/^Created/], 'control: the next turn works in the new directory');
});

t.test('a directory that a running turn has lost takes no further turn', async (t) => {
  const { options, worktree, workspacePath } = place(t);
  const workspace = new PinnedDirectory(workspacePath);
  t.teardown(() => workspace.close());
  const { runtime } = service(answers([say('done')], [say('done')]), { ...options, workspace });
  const config: ThreadConfig = { workspaceOverride: worktree };
  const [first, second] = [runtime.threads.start({ config }).thread, runtime.threads.start({ config }).thread];
  const running = runtime.turns.start(first.id, [{ type: 'text', text: 'hello' }], undefined);
  renameSync(worktree, `${worktree}-away`);
  mkdirSync(worktree);
  const refused = { name: 'AgentError', reason: 'workspaceLost', data: { path: worktree, kind: 'replaced' } };
  await t.rejects(async () => talk(runtime, second.id, 'hello'), refused);
  running.begin();
  await running.ended;
  t.match((await talk(runtime, second.id, 'hello')).turn, { status: 'completed' }, 'control: afterwards it does');
});

t.test('only directories below a worktree root are accepted, by real path', async (t) => {
  const { options, root, worktree, workspacePath } = place(t);
  const { runtime } = service(answers([say('done')]), options);
  const start = (workspaceOverride: string) => runtime.threads.start({ config: { workspaceOverride } });
  symlinkSync(workspacePath, join(root, 'link'));
  symlinkSync(worktree, join(workspacePath, 'way'));
  mkdirSync(join(workspacePath, '.oratorio', 'worktrees-not'));
  writeFileSync(join(root, 'file'), '');
  const wrong = {
    one: 'notAbsolute',
    [`${worktree}\0`]: 'notAbsolute',
    [join(root, 'none')]: 'notADirectory',
    [join(root, 'file')]: 'notADirectory',
    [root]: 'outsideRoots',
    [join(worktree, '..')]: 'outsideRoots',
    [join(root, 'link')]: 'outsideRoots',
    [join(workspacePath, '.oratorio', 'worktrees-not')]: 'outsideRoots',
    [workspacePath]: 'outsideRoots',
    '/': 'outsideRoots',
  };
  for (const [path, reason] of Object.entries(wrong))
    t.throws(() => start(path), refusedFor(reason), JSON.stringify(path));
  t.same(runtime.threads.list({}), [], 'nothing was begun');
  t.match(start(join(workspacePath, 'way')).thread.config, { workspaceOverride: worktree });
  const { runtime: without } = service(answers([say('done')]), { workspacePath });
  t.throws(() => without.threads.start({ config: { workspaceOverride: worktree } }), refusedFor('outsideRoots'));
});

t.test('the override and read-only mode of a thread cannot be changed', async (t) => {
  const { options, worktree, root } = place(t);
  const { runtime } = service(answers([say('done')]), options);
  const { id } = runtime.threads.start({ config: { workspaceOverride: worktree, readOnly: true } }).thread;
  mkdirSync(join(root, 'two'));
  t.throws(() => runtime.threads.updateConfig(id, { workspaceOverride: join(root, 'two') }), refusedFor('decided'));
  t.throws(() => runtime.threads.updateConfig(id, { readOnly: false }), refusedFor('decided'));
  t.match(runtime.threads.updateConfig(id, { model: 'other', workspaceOverride: worktree, readOnly: true }), {
    model: 'other',
  });
  const plain = runtime.threads.start({}).thread.id;
  t.throws(() => runtime.threads.updateConfig(plain, { workspaceOverride: worktree }), refusedFor('decided'));
  t.match(runtime.threads.updateConfig(plain, { readOnly: true }), { readOnly: true }, 'less is always possible');
});

t.test('a worktree that is missing or became a link is refused', async (t) => {
  const { options, worktree, workspacePath, root } = place(t);
  const { runtime } = service(answers([say('done')]), options);
  const { id } = runtime.threads.start({ config: { workspaceOverride: worktree } }).thread;
  const begin = () => runtime.turns.start(id, text('go'), listening().listener);
  renameSync(worktree, join(root, 'moved'));
  t.throws(begin, refusedFor('notADirectory'));
  symlinkSync(workspacePath, worktree);
  t.throws(begin, refusedFor('outsideRoots'));
  rmSync(worktree);
  symlinkSync(join(root, 'moved'), worktree);
  t.throws(begin, refusedFor('decided'));
  rmSync(worktree);
  renameSync(join(root, 'moved'), worktree);
  const { turn } = await talk(runtime, id, 'go');
  t.equal(turn.status, 'completed');
});

t.test('the override survives a restart of the server', async (t) => {
  const { options, worktree, workspacePath } = place(t);
  const open = () => openStore(join(workspacePath, '.oratorio'), { onFault: (error) => t.fail(String(error)) });
  const first = open();
  const config = { workspaceOverride: worktree, readOnly: true };
  const { id } = service(answers([say('done')]), { ...options, store: first.threads }).runtime.threads.start({
    config,
  }).thread;
  first.close();
  const second = open();
  const provider = answers([call('c1', 'ReadFile', { path: 'a.txt' })], [say('done')]);
  const { runtime } = service(provider, { ...options, store: second.threads });
  t.match(runtime.threads.read(id, { includeTurns: false }), { config });
  const { turn } = await talk(runtime, id, 'read');
  t.match(texts(turn.items), [/^of the worktree/]);
  second.close();
});

t.test('a read-only thread changes nothing, with any grants and options', async (t) => {
  const { files, options } = place(t);
  const ran: string[] = [];
  const run = (name: string) => () => {
    ran.push(name);
    return { text: 'ran', isError: false };
  };
  const shell = tool({ name: 'Shell', needsApproval: true, run: run('Shell') });
  const guarded = tool({ name: 'Guarded', isReadOnly: true, needsApproval: true, run: run('Guarded') });
  const remote = { ...tool({ name: 'Remote', isReadOnly: true, run: run('Remote') }), source: 'mcp' as const };
  const provider = answers(
    [call('c0', 'Guarded')],
    [say('ok')],
    [
      call('c1', 'Shell'),
      call('c2', 'Guarded'),
      call('c3', 'Remote'),
      call('c4', 'WriteFile', { path: 'made.txt', content: 'x' }),
      call('c5', 'ReadFile', { path: 'a.txt' }),
    ],
    [say('done')],
  );
  const { runtime } = service(provider, { ...options, tools: () => [...files, shell, guarded, remote] });
  const first = listening();
  const free = runtime.threads.start({}).thread.id;
  runtime.turns.start(free, text('go'), first.listener).begin();
  runtime.turns.respond((await first.until('item/approval/request')).params.requestId, 'acceptAlways');
  await first.until('turn/completed');
  t.same(ran, ['Guarded']);

  const { id } = runtime.threads.start({ config: { readOnly: true, approvalPolicy: 'autoApprove' } }).thread;
  const second = listening();
  runtime.turns.start(id, text('go'), second.listener, { approvalPolicy: 'autoApprove' }).begin();
  const { turn } = (await second.until('turn/completed')).params;
  t.same(ran, ['Guarded'], 'nothing ran');
  t.match(texts(turn.items), [
    /no tool Shell/,
    /rejected by policy/,
    /no tool Remote/,
    /no tool WriteFile/,
    /^of the workspace/,
  ]);
});

t.test('the fork of a repository without a commit is a plain directory, after the first one a worktree', async (t) => {
  const workspace = join(realpathSync(t.testdir({ ws: { 'a.txt': 'a' } })), 'ws');
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], {
      cwd: workspace,
      encoding: 'utf8',
    });
  git('init', '--quiet');
  const announced: string[] = [];
  const openFork = forksOf({ environment: process.env, passEnvironment: [], secrets: [] });
  const open = async () =>
    String(
      await openFork(workspace, async (path) => {
        announced.push(path);
      }),
    );
  const plain = await open();
  t.same(readdirSync(plain), []);
  git('commit', '--quiet', '--allow-empty', '--message', 'first');
  const worktree = await open();
  t.ok(existsSync(join(worktree, '.git')));
  t.same(announced, [plain, worktree]);
  t.match(git('worktree', 'list'), worktree);
  t.notMatch(git('worktree', 'list'), plain);
});
