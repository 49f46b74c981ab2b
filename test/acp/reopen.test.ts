/** Patience of an editor's session with servers and Hubs that have ended. */
import t, { type Test } from 'tap';
import { reopen } from '../../src/acp/reopen.ts';
import { AppServerConnectionError, HubUnavailableError } from '../../src/client/index.ts';

const refused = new AppServerConnectionError('refused');
const noHub = new HubUnavailableError('no Hub');

/** An attempt to open the thread: the seconds that it lasts, and how it ends. */
type Attempt = readonly [seconds: number, end: boolean | Error];

/** Attempts in order, the last one again and again, on a clock that only they move. */
function scripted(t: Test, attempts: readonly Attempt[]) {
  let now = 0;
  t.intercept(performance, 'now', { value: () => now });
  const made: Attempt[] = [];
  const open = async () => {
    const attempt = attempts[made.length] ?? attempts.at(-1) ?? [0, true];
    made.push(attempt);
    const [seconds, end] = attempt;
    now += 1_000 * seconds;
    if (end instanceof Error) throw end;
    return end;
  };
  const pass = (seconds: number) => {
    now += 1_000 * seconds;
  };
  return { open, made, pass };
}

t.test('a server that ends after a long start is followed by the next one', async (t) => {
  const { open, made } = scripted(t, [
    [60, refused],
    [60, refused],
    [0, true],
  ]);
  await reopen(open, () => true);
  t.equal(made.length, 3);
});

t.test('a connection that is lost at once is followed by the next one, with the whole wait', async (t) => {
  const { open, made } = scripted(t, [
    [14, noHub],
    [0, false],
    [14, noHub],
    [0, true],
  ]);
  await reopen(open, () => true);
  t.equal(made.length, 4);
});

t.test('the next Hub has the time of its start, and no longer', async (t) => {
  const { open, made } = scripted(t, [[7, noHub]]);
  await t.rejects(
    reopen(open, () => true),
    noHub,
  );
  t.equal(made.length, 3);
});

t.test('the server of the next Hub has the whole wait again', async (t) => {
  const { open, made } = scripted(t, [
    [14, noHub],
    [60, refused],
    [14, noHub],
    [0, true],
  ]);
  await reopen(open, () => true);
  t.equal(made.length, 4);
});

t.test('a Hub that only offers a dead server is given up', async (t) => {
  const { open, made, pass } = scripted(t, [[0, refused]]);
  const isWanted = () => {
    pass(3);
    return true;
  };
  await t.rejects(reopen(open, isWanted), refused);
  t.equal(made.length, 3);
});

t.test('another error, or a prompt that has ended, ends the search', async (t) => {
  const bug = new Error('a bug');
  const { open, made } = scripted(t, [
    [0, bug],
    [0, refused],
  ]);
  await t.rejects(
    reopen(open, () => true),
    bug,
  );
  await t.rejects(
    reopen(open, () => false),
    refused,
  );
  t.equal(made.length, 2);
});
