/** kill -9 of an agent server in the middle of a turn that writes files, and in the middle of an undo: the files of the user stay. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { lastActivity } from '../../src/checkpoints/activity.ts';
import { Client, eventually, type Message, makeWorkspace, serving, spawnServer, stateOf, words } from './harness.ts';

const free = { approvalPolicy: 'autoApprove' };

/** A workspace whose server is killed and started again. */
async function workspace(t: Test) {
  const { path, home } = makeWorkspace(t, { Turns: { Resume: 'never' } });
  let server = spawnServer(t, { path, home });
  const connect = async () => Client.ready(t, (await serving(server, path)).endpoints.appServerWebSocket);
  let client = await connect();
  return {
    at: (name: string) => join(path, name),
    /** Time of the server's last sign of life in a turn. */
    lastNoteAt(): number {
      const stores = join(stateOf(path), 'checkpoints');
      const [note] = readdirSync(stores, { recursive: true, encoding: 'utf8' }).filter((name) =>
        /activity$/.test(name),
      );
      return (note !== undefined && lastActivity(join(stores, note, '..'))?.at) || 0;
    },
    write: (name: string, text: string) => writeFileSync(join(path, name), text),
    read: (name: string) => readFileSync(join(path, name), 'utf8'),
    call: (method: string, params: unknown): Promise<Message> => client.call(method, params),
    ask: (method: string, params: unknown): Promise<Message> => client.ask(method, params),
    /** Runs a turn to a moment. @returns id of its thread */
    async turnUntil(prompt: string, isThere: (message: Message) => boolean): Promise<string> {
      const { thread } = await client.call('thread/start', { config: free });
      await client.call('thread/subscribe', { threadId: thread.id });
      await client.call('turn/start', { threadId: thread.id, input: words(prompt) });
      await client.until((message) => isThere(message) && message.params.threadId === thread.id, prompt);
      return thread.id;
    },
    async kill(): Promise<void> {
      server.child.kill('SIGKILL');
      await Promise.all([server.ended, client.closed]);
    },
    async restart(): Promise<void> {
      server = spawnServer(t, { path, home });
      client = await connect();
    },
  };
}

const isEnd = ({ method }: Message) => method === 'turn/completed';
const hasRun = (output: RegExp) => (message: Message) =>
  message.method === 'item/commandExecution/outputDelta' && output.test(message.params.delta);
const rollback = (threadId: string, force = false) => ({ threadId, numTurns: 1, restoreFiles: true, force });

const count = 1_500;
const numbers = Array.from({ length: count }, (_, number) => number);

t.test('kill -9 in a turn and in its undo', async (all) => {
  const place = await workspace(all);
  await all.test(
    'the undo of a turn whose server was killed keeps files that the user wrote after the kill',
    async (t) => {
      place.write('notes.txt', 'base\n');
      place.write('edited.txt', 'base\n');
      const isAnswer = ({ method }: Message) => method === 'item/agentMessage/delta';
      const prompt = 'write made.txt: a\nappend to edited.txt: turn\ncount to 1000';
      const threadId = await place.turnUntil(prompt, isAnswer);
      await place.kill();
      t.equal(existsSync(place.at('made.txt')), true, 'control: the turn wrote a file');
      place.write('mine.txt', 'mine\n');
      place.write('notes.txt', 'base\nmine\n');
      await place.restart();
      const { thread } = await place.call('thread/read', { threadId, includeTurns: true });
      t.match(thread.turns, [{ status: 'cancelled', interruptedBy: 'crash' }], 'control: the turn did not end before');
      const undone = await place.call('thread/rollback', rollback(threadId));
      t.match(undone, { kept: ['mine.txt', 'notes.txt'], conflicts: [] });
      t.same([...undone.restored].sort(), ['edited.txt', 'made.txt']);
      t.same([existsSync(place.at('made.txt')), place.read('edited.txt')], [false, 'base\n']);
      t.same([place.read('mine.txt'), place.read('notes.txt')], ['mine\n', 'base\nmine\n']);
    },
  );

  await all.test(
    'the undo of a turn whose command ran at the kill asks before it takes later files back',
    async (t) => {
      const threadId = await place.turnUntil('run: echo a > made.txt; echo started; sleep 3021', hasRun(/started/));
      // Later changes than the last note of the server count as possible work of the command.
      const madeAt = statSync(place.at('made.txt')).ctimeMs;
      await eventually(
        () => (place.lastNoteAt() > madeAt ? true : undefined),
        'the server notes that the command runs',
      );
      await place.kill();
      place.write('later.txt', 'mine\n');
      await place.restart();
      const conflicts = [{ path: 'later.txt', change: 'created', by: 'user' }];
      const refused = await place.ask('thread/rollback', rollback(threadId));
      t.match(refused.error, { data: { conflicts, conflictsTotal: 1 } });
      t.same([place.read('later.txt'), place.read('made.txt')], ['mine\n', 'a\n'], 'nothing was restored');
      const forced = await place.call('thread/rollback', rollback(threadId, true));
      t.same([existsSync(place.at('later.txt')), existsSync(place.at('made.txt'))], [false, false]);
      await place.call('checkpoint/restore', { threadId, turnId: forced.restoreId });
      t.same([place.read('later.txt'), place.read('made.txt')], ['mine\n', 'a\n'], 'the undo can be taken back');
    },
  );

  await all.test(
    'an undo whose server is killed in the middle is completed by the next start, and loses nothing',
    async (t) => {
      mkdirSync(place.at('many'));
      for (const number of numbers) place.write(`many/${number}`, 'base\n');
      const restored = () => numbers.filter((number) => place.read(`many/${number}`) === 'base\n').length;
      // The kill may come too late on a machine under load.
      const tries = 5;
      for (let number = 1; number <= tries; number += 1) {
        const command = 'cd many; for each in *; do echo turn > $each; done; echo new > ../new.txt';
        const threadId = await place.turnUntil(`run: ${command}`, isEnd);
        t.equal(restored(), 0, 'control: the turn changed all files');
        const mine = `mine ${number}\n`;
        place.write('mine.txt', mine);
        place.write('many/mine.txt', mine);
        let isAnswered = false;
        const answer = place.ask('thread/rollback', rollback(threadId)).then(
          () => {
            isAnswered = true;
          },
          () => {},
        );
        const first = place.at('many/0');
        while (!isAnswered && readFileSync(first, 'utf8') !== 'base\n') await setImmediate();
        await place.kill();
        await answer;
        const [done, isMade] = [restored(), existsSync(place.at('new.txt'))];
        await place.restart();
        const { data } = await place.call('checkpoint/list', { threadId });
        t.equal(restored(), count, 'all files are as before the turn');
        t.notOk(existsSync(place.at('new.txt')));
        t.same([place.read('mine.txt'), place.read('many/mine.txt')], [mine, mine], 'files of the user stay');
        const left = existsSync(place.at('.oratorio')) ? readdirSync(place.at('.oratorio')) : [];
        t.notOk(left.includes('restore'), 'nothing that was staged is left');
        t.same((await place.call('thread/read', { threadId, includeTurns: true })).thread.turns, [], 'nor the turn');
        const undo = data.find(({ kind }: Message) => kind === 'restore');
        await place.call('checkpoint/restore', { threadId, turnId: undo.turnId });
        t.equal(restored(), 0, 'the undo can be taken back');
        t.same([place.read('new.txt'), place.read('mine.txt')], ['new\n', mine]);
        if (done < count || isMade) {
          t.match(undo, { recovered: true });
          t.comment(`killed after ${done} of ${count} files, try ${number}`);
          return;
        }
        for (const each of numbers) place.write(`many/${each}`, 'base\n');
      }
      t.fail(`no kill of ${tries} came in the middle`);
    },
  );
});
