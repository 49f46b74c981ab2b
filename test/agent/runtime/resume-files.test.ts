/** A file tool whose process ended: the content of the file decides whether it is done, runs, or has an unknown outcome. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openStore, type Tool } from '../../../src/agent/index.ts';
import { createWriteFile } from '../../../src/agent/tools/files/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { call, say, scripted, service } from '../helpers.ts';
import { settings } from '../tools/file-tools.ts';

const dead = new Promise<never>(() => undefined);

/** A turn whose process ended right before or after its write. @param meanwhile content that another program writes then */
async function resumed(t: Test, isWritten: boolean, meanwhile?: string) {
  const directory = temporaryDirectory(t);
  const workspacePath = join(directory, 'work');
  const file = join(workspacePath, 'a.txt');
  mkdirSync(workspacePath);
  writeFileSync(file, 'before');
  const write = createWriteFile(settings());
  const reached = Promise.withResolvers<void>();
  const killed = Promise.withResolvers<void>();
  const dying: Tool = {
    ...write,
    approvalFor: async () => undefined,
    run: async (args, context) => {
      const onReplace: typeof context.onReplace = async (change) => {
        await context.onReplace?.(change);
        if (isWritten) return;
        reached.resolve();
        await killed.promise;
        throw new Error('the process has ended');
      };
      await write.run(args, { ...context, onReplace }).catch(() => dead);
      reached.resolve();
      return dead;
    },
  };
  const first = openStore(directory);
  const args = { path: 'a.txt', content: 'after' };
  const provider = scripted(async function* (request) {
    yield request.messages.at(-1)?.role === 'tool' ? say('done') : call('c1', 'WriteFile', args);
  });
  const { runtime } = service(provider, { workspacePath, store: first.threads, tools: () => [dying] });
  const { thread } = runtime.threads.start({});
  runtime.turns.start(thread.id, [{ type: 'text', text: 'x' }], undefined).begin();
  await reached.promise;
  first.close();
  killed.resolve();
  if (meanwhile !== undefined) writeFileSync(file, meanwhile);
  const second = openStore(directory);
  t.teardown(() => second.close());
  let runs = 0;
  const counted: Tool = {
    ...write,
    approvalFor: async () => ({ kind: 'file', operation: 'write', target: file, scopeKey: 'x', covers: 'x' }),
    run: (args, context) => {
      runs += 1;
      return write.run(args, context);
    },
  };
  const { runtime: next } = service(provider, { workspacePath, store: second.threads, tools: () => [counted] });
  const run = next.turns.running(thread.id);
  next.resume();
  const turn = await run?.ended;
  const result = turn?.items.find(({ type }) => type === 'toolResult');
  return { turn, result, runs, content: readFileSync(file, 'utf8') };
}

t.test('a file with its new content is done, and is not written again', async (t) => {
  const { turn, result, runs, content } = await resumed(t, true);
  t.equal(turn?.status, 'completed');
  t.match(result, { outcome: 'completed', text: /^Done before the agent server ended/ });
  t.same([runs, content], [0, 'after']);
});

t.test('a file with its old content is written, without a second judgement of the call', async (t) => {
  const { turn, result, runs, content } = await resumed(t, false);
  t.equal(turn?.status, 'completed');
  t.match(result, { outcome: 'completed' });
  t.same([runs, content], [1, 'after']);
  t.notOk(turn?.items.some(({ type }) => type === 'approvalRequest'));
});

t.test('a file with another content is left alone, and its outcome is unknown', async (t) => {
  const { result, runs, content } = await resumed(t, true, 'theirs');
  t.match(result, { outcome: 'unknown', text: /changed by others since/ });
  t.same([runs, content], [0, 'theirs']);
});
