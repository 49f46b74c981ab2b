/**
 * Backends and agent servers are killed (-9) while reviews are in every state that a review can be in. Whatever was under way
 * goes on, nobody is reviewed twice, and each pull request has exactly one published review in the end.
 *
 * `ORATORIO_KILL_ROUNDS=10 npm test -- test/e2e/review-kill.test.ts` makes it as many rounds as you like; one is enough for
 * every day.
 */
import t, { type Test } from 'tap';
import { startPostgres } from '../review/postgres.ts';
import {
  Crash,
  changeSetting,
  commentsOf,
  ends,
  reviewsOf,
  type Scene,
  type SceneOptions,
  sayingsOf,
  startScene,
  type Victim,
} from './review-harness/index.ts';
import { faults, lineOf, onMain } from './review-harness/shop.ts';

const everyDay = 1;
const rounds = Number(process.env['ORATORIO_KILL_ROUNDS'] ?? everyDay);
t.setTimeout(rounds * 600_000);
// Most of the time is spent waiting: GitHub wants a second between two writes.
t.jobs = 3;

const content = `const one = 1;\n${faults.half.lines}\n`;
const pathOf = (number: number) => `src/half${number}.ts`;
const filesOf = (number: number) => ({ [pathOf(number)]: content });

/** Reviews that may be at work at once: as many as one crash needs, and one more has to wait. */
const atOnce = 4;

const options: SceneOptions = {
  files: onMain,
  faults: [faults.half],
  settings: {
    AgentServer: {
      GlobalMaxActiveRuns: atOnce,
      MaxActiveRunsPerRepository: atOnce,
      MaxActiveRunsPerSource: atOnce,
      // Long enough to be caught in, and for all that comes before the kill.
      RetryBackoffSeconds: 20,
      MaxRunAttempts: 5,
    },
    // Two writes more for each review.
    Review: { CheckRun: rounds > everyDay },
  },
};

/** Everything that can be under way at once; the last one is killed in the moment in which it writes its draft down. */
async function crashAtWork(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first, filesOf);
  await crash.reviewing();
  const drafting = await crash.reviewing(2);
  await crash.publishing('before');
  await crash.backingOff();
  await crash.preparing();
  // On a busy machine the one that publishes has made room by now: the next one has to wait all the same.
  await changeSetting(scene, 'AgentServer', 'GlobalMaxActiveRuns', atOnce - 1);
  await crash.queued();
  const told = crash.told(drafting.number, 'drafting');
  drafting.letGo();
  await told;
  await crash.kill(victim);
  await changeSetting(scene, 'AgentServer', 'GlobalMaxActiveRuns', atOnce);
  return crash;
}

/** One that somebody ends, and one of which the forge has the review and nobody knows. */
async function crashAtEnd(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first, filesOf);
  await crash.publishing('after');
  await crash.cancelling();
  await crash.kill(victim);
  return crash;
}

async function reviewedOnce(t: Test, scene: Scene, number: number, what: string): Promise<void> {
  const { api, repo, until } = scene;
  const run = await until(`${what}: ${number} is reviewed`, async () => {
    const found = await api.pull(number);
    const [last] = found?.runs ?? [];
    return last && ends.includes(last.state) && last;
  });
  t.match(run, { state: 'done' }, `${what}: it was reviewed`);
  await until(`${what}: everything of ${number} is written`, async () => {
    const writes = await api.writes(run.runId);
    return writes.every(({ status }) => status !== 'pending');
  });
  t.equal(reviewsOf(scene, number).length, 1, `${what}: one published review`);
  const comments = commentsOf(scene, number);
  t.match(comments, [{ path: pathOf(number), line: lineOf(content, faults.half), body: faults.half.title }]);
  t.equal(comments.length, 1, `${what}: one comment`);
  t.equal(sayingsOf(scene, number).length, 1, `${what}: one summary`);
  const checks = repo.checkRuns.filter(({ headSha }) => headSha === run.headSha);
  t.equal(new Set(checks.map(({ externalId }) => externalId)).size, checks.length, `${what}: one check per run`);
  await until(`${what}: the checks of ${number} are done`, () => checks.every(({ status }) => status === 'completed'));
}

/** What was ended stays ended; a new wish is followed. */
async function endedOnce(t: Test, scene: Scene, number: number): Promise<void> {
  const { api, forge, repo, until } = scene;
  await until(`${number} is cancelled`, async () => {
    const found = await api.pull(number);
    return found?.runs[0]?.state === 'cancelled';
  });
  t.equal(reviewsOf(scene, number).length, 0, 'a review that was ended says nothing');
  forge.comment(repo, number, 'ada', '@oratorio review');
  await until(`${number} is reviewed again`, async () => (await api.pull(number))?.runs[0]?.trigger === 'mention');
  await reviewedOnce(t, scene, number, 'after it was ended');
}

async function check(t: Test, { scene, caught }: Crash, victim: Victim): Promise<void> {
  for (const { number, state } of caught) {
    if (state === 'cancelling') await endedOnce(t, scene, number);
    else await reviewedOnce(t, scene, number, `the ${victim} was killed while it was ${state}`);
  }
}

for (const victim of ['backend', 'agent server'] as const) {
  t.test(`the ${victim} is killed in every state of a review, on SQLite`, { buffered: true }, async (t) => {
    const scene = await startScene(t, options);
    for (let round = 1; round <= rounds; round += 1) {
      await check(t, await crashAtWork(scene, 100 * round, victim), victim);
      await check(t, await crashAtEnd(scene, 100 * round + 50, victim), victim);
    }
    t.match(await scene.api.call('GET', '/status'), { body: { deadJobs: 0 } });
  });
}

t.test('of two backends on PostgreSQL one is killed, and the other goes on', { buffered: true }, async (t) => {
  const postgres = await startPostgres();
  t.teardown(() => postgres.stop());
  const connectionString = await postgres.database();
  const scene = await startScene(t, { ...options, connectionString, replicas: 2 });
  for (let round = 1; round <= rounds / everyDay; round += 1) {
    await check(t, await crashAtWork(scene, 100 * round, 'backend'), 'backend');
  }
  t.match(await scene.api.call('GET', '/status'), { body: { deadJobs: 0 } });
});
