/** kill -9 while a hook runs: the next agent server runs the hook again, and its call not. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Client, eventually, type Message, makeWorkspace, serving, spawnServer, words } from './harness.ts';

/** A hook that counts itself, and hangs in the first server. */
const counted = (name: string) => `printf x >> ${name}; [ -e gate ] || sleep 600; echo "words of the hook"`;
const contentOf = (path: string, name: string): string =>
  existsSync(join(path, name)) ? readFileSync(join(path, name), 'utf8') : '';

/** Kills the server when the condition holds, and reads the turn as the next server has ended it. */
async function killed(
  t: Test,
  hooks: Readonly<Record<string, string>>,
  prompt: string,
  isThere: (path: string) => boolean,
) {
  const settings = Object.entries(hooks).map(([event, command]) => [event, [{ Command: command }]]);
  const { path, home } = makeWorkspace(t, { Hooks: Object.fromEntries(settings) });
  const first = spawnServer(t, { path, home });
  const client = await Client.ready(t, (await serving(first, path)).endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', { config: { approvalPolicy: 'autoApprove' } });
  await client.call('turn/start', { threadId: thread.id, input: words(prompt) });
  await eventually(() => isThere(path) || undefined, 'the moment has come');
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, client.closed]);
  writeFileSync(join(path, 'gate'), '');
  const second = spawnServer(t, { path, home });
  const next = await Client.ready(t, (await serving(second, path)).endpoints.appServerWebSocket);
  const turn = await eventually(async () => {
    const read = await next.call('thread/read', { threadId: thread.id, includeTurns: true });
    return (read.thread.turns as Message[]).find(({ completedAt }) => completedAt !== undefined);
  }, 'the turn has ended');
  t.match(turn, { status: 'completed', resumes: 1 });
  return { path, turn };
}

t.test(
  'a PostToolUse hook killed in its run runs again, and the written file is not written again',
  { timeout: 240_000 },
  async (t) => {
    const hook = `${counted('hooked')} >&2; exit 2`;
    const { path, turn } = await killed(
      t,
      { PostToolUse: hook },
      'write "one" to a.txt',
      (path) => contentOf(path, 'hooked') === 'x',
    );
    t.equal(contentOf(path, 'hooked'), 'xx');
    t.equal(contentOf(path, 'a.txt').match(/one/g)?.length, 1);
    const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
    t.match(results.at(-1), { outcome: 'completed', text: /^Done before .*words of the hook/s });
  },
);

t.test(
  'a PostToolUse hook killed during its run runs again with the result; its command does not',
  { timeout: 240_000 },
  async (t) => {
    const { path, turn } = await killed(
      t,
      { PostToolUse: `cat >> responses; ${counted('hooked')} >&2; exit 2` },
      'run: echo once >> effects; echo output; exit 3',
      (path) => contentOf(path, 'hooked') === 'x',
    );
    t.equal(contentOf(path, 'hooked'), 'xx');
    t.equal(contentOf(path, 'effects'), 'once\n');
    const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
    t.match(results.at(-1), { outcome: 'failed', text: /output.*words of the hook/s });
    const exits = [...contentOf(path, 'responses').matchAll(/"exit_code":(\d+)/g)].map(([, code]) => code);
    t.same(exits, ['3', '3'], 'both runs get the same result');
  },
);

t.test(
  'a UserPromptSubmit hook whose output is stored does not run again after a kill during the request',
  { timeout: 240_000 },
  async (t) => {
    const { path, turn } = await killed(
      t,
      // The end of the turn waits in the first server.
      { UserPromptSubmit: 'printf x >> asked; echo "words of the hook"', TurnEnd: counted('ended') },
      'say hello',
      (path) => contentOf(path, 'ended') === 'x',
    );
    t.equal(contentOf(path, 'asked'), 'x');
    const notices = turn.items.filter(({ kind, text }: Message) => kind === 'hookContext' && /words of/.test(text));
    t.equal(notices.length, 1);
  },
);
