import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { openStore, type Store } from '../../../src/agent/store/index.ts';
import { program } from '../../programs.ts';
import { opened, pieces, type Refused, type Said, temporaryDirectory, turnId } from './helpers.ts';

const writer = program('test/agent/store/writer.ts');
const node = [process.execPath, '--disable-warning=ExperimentalWarning', writer];

function start(t: Test, command: readonly string[]): ChildProcess {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

/** Everything that the child says until it is gone; it is killed after `lines` of them. */
async function heard(child: ChildProcess, lines = Number.POSITIVE_INFINITY): Promise<string[]> {
  const all: string[] = [];
  if (!child.stdout) return all;
  const closed = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (line) => {
    all.push(line);
    if (all.length === lines) child.kill('SIGKILL');
  });
  await closed;
  return all;
}

/** Checks that everything announced by the killed process is there, and beyond that at most the next commit. */
function check(t: Test, { threads, traces }: Store, threadId: string, last: Said): void {
  t.ok(threads.turnCount(threadId) - last.turn <= 1);
  const turns = threads.turns(threadId, { limit: 100_000 });
  t.strictSame(
    turns.slice(0, last.turn).map(({ id }) => id),
    Array.from({ length: last.turn }, (_, index) => turnId(index + 1)),
  );
  const announced = turns[last.turn - 1];
  const answer = announced?.items[1];
  const text = answer?.type === 'agentMessage' ? answer.text : '';
  t.ok(text === pieces(last.pieces) || (!last.isEnded && text === pieces(last.pieces + 1)), `of turn ${last.turn}`);
  if (last.isEnded) t.equal(announced?.status, 'completed');
  const open = threads.unfinishedTurns().filter((turn) => turn.threadId === threadId);
  t.strictSame(
    open.map(({ id }) => id),
    turns.filter(({ status }) => status === 'running').map(({ id }) => id),
  );
  if (!last.isEnded && announced?.status === 'running') t.match(open, [{ id: announced.id, items: announced.items }]);
  t.equal(threads.nextTurnNumber(threadId), turns.length + 1);
  t.ok((traces.session(threadId)?.eventCount ?? 0) >= last.traces);
}

t.test('kill -9 at any moment loses nothing that was reported', { timeout: 250_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  for (let round = 1; round <= 10; round += 1) {
    const threadId = `round ${round}`;
    const child = start(t, [...node, directory, threadId]);
    const lines = await heard(child, 1 + Math.floor(Math.random() * 400));
    t.equal(child.signalCode, 'SIGKILL', 'it did not end by itself');
    const last = JSON.parse(lines.at(-1) ?? '{}') as Said;
    t.comment(`round ${round}: killed after ${lines.length} commits, in turn ${last.turn}`);
    const store = openStore(directory);
    check(t, store, threadId, last);
    store.close();
  }
  t.strictSame(
    opened(t, directory)
      .threads.threads()
      .map(({ id }) => id)
      .toReversed(),
    Array.from({ length: 10 }, (_, index) => `round ${index + 1}`),
  );
});

t.test('a full disk is a typed error, and everything reported stays readable', { timeout: 100_000 }, async (t) => {
  const directory = temporaryDirectory(t);
  // Blocks of 512 bytes (POSIX), or of 1024: half a megabyte or one.
  const lines = await heard(start(t, ['sh', '-c', 'ulimit -f 1024; exec "$@"', 'sh', ...node, directory, 'a']));
  const refused = JSON.parse(lines.pop() ?? '{}') as Refused;
  const last = JSON.parse(lines.at(-1) ?? '{}') as Said;
  t.match(refused, { code: 'diskFull', again: 'diskFull' });
  t.ok(refused.turns >= last.turn, 'by the process that was refused');
  const store = opened(t, directory);
  check(t, store, 'a', last);
  store.threads.deleteThread('a');
  t.strictSame(store.threads.threads(), [], 'and the next process can write');
});
