/**
 * Kills (-9) backends and agent servers while reviews are in each of their states. Every interrupted review resumes, and each
 * pull request ends with exactly one published review.
 *
 * `ORATORIO_KILL_ROUNDS=10 npm test -- test/e2e/review-kill.test.ts` runs more rounds; the default is one.
 */
import t, { type Test } from 'tap';
import { startPostgres } from '../review/postgres.ts';
import {
  Crash,
  changeSetting,
  commentsOf,
  conversationOf,
  ends,
  ofWrites,
  reviewsOf,
  type Scene,
  type SceneOptions,
  startScene,
  type Victim,
} from './review-harness/index.ts';
import { faults, lineOf, onMain } from './review-harness/shop.ts';

const defaultRounds = 1;
const rounds = Number(process.env['ORATORIO_KILL_ROUNDS'] ?? defaultRounds);
t.setTimeout(rounds * 900_000);
// Most of the time is spent waiting: writes to GitHub are at least one second apart.
t.jobs = 2;

const content = `const one = 1;\n${faults.half.lines}\n`;
const pathOf = (number: number) => `src/half${number}.ts`;
const filesOf = (number: number) => ({ [pathOf(number)]: content });

/** Limit of active reviews: one crash fills it, so that one more review is queued. */
const atOnce = 4;

const options: SceneOptions = {
  files: onMain,
  faults: [faults.half],
  settings: {
    AgentServer: {
      GlobalMaxActiveRuns: atOnce,
      MaxActiveRunsPerRepository: atOnce,
      MaxActiveRunsPerSource: atOnce,
      // Longer than everything between the failure and the kill.
      RetryBackoffSeconds: 20,
      MaxRunAttempts: 5,
    },
    // A check run adds two writes to each review.
    Review: { CheckRun: rounds > defaultRounds },
  },
};

/** Brings one review into each active state, and kills when one enters `drafting`. */
async function crashAtWork(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first, filesOf);
  await crash.reviewing();
  const drafting = await crash.reviewing(2);
  await crash.publishing('before');
  await crash.backingOff();
  await crash.preparing();
  // The publishing review may have freed its place by now; the lower limit queues the next one all the same.
  await changeSetting(scene, 'AgentServer', 'GlobalMaxActiveRuns', atOnce - 1);
  await crash.queued();
  const entered = crash.entered(drafting.number, 'drafting');
  drafting.release();
  await entered;
  await crash.kill(victim);
  await changeSetting(scene, 'AgentServer', 'GlobalMaxActiveRuns', atOnce);
  return crash;
}

/** One review that is being cancelled, and one whose publication the backend has not recorded yet. */
async function crashAtEnd(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first, filesOf);
  await crash.publishing('after');
  await crash.cancelling();
  await crash.kill(victim);
  return crash;
}

async function reviewedOnce(t: Test, scene: Scene, number: number, what: string): Promise<void> {
  const { api, repo, until } = scene;
  const reviewed = async () => {
    const found = await api.pull(number);
    const [last] = found?.runs ?? [];
    return last && ends.includes(last.state) && last;
  };
  const run = await until(`${what}: ${number} is reviewed`, reviewed, api.newsOf(number));
  t.match(run, { state: 'done' }, `${what}: the review is done`);
  const written = async () => {
    const writes = await api.writes(run.runId);
    return writes.every(({ status }) => status !== 'pending');
  };
  await until(`${what}: everything of ${number} is written`, written, ofWrites);
  t.equal(reviewsOf(scene, number).length, 1, `${what}: one published review`);
  const comments = commentsOf(scene, number);
  t.match(comments, [{ path: pathOf(number), line: lineOf(content, faults.half), body: faults.half.title }]);
  t.equal(comments.length, 1, `${what}: one comment`);
  t.equal(conversationOf(scene, number).length, 1, `${what}: one summary`);
  const checks = repo.checkRuns.filter(({ headSha }) => headSha === run.headSha);
  t.equal(new Set(checks.map(({ externalId }) => externalId)).size, checks.length, `${what}: one check per run`);
  await until(`${what}: the checks of ${number} are done`, () => checks.every(({ status }) => status === 'completed'));
}

/** Checks that a cancelled review publishes nothing, and that a new request is reviewed. */
async function endedOnce(t: Test, scene: Scene, number: number): Promise<void> {
  const { api, forge, repo, until } = scene;
  const cancelled = async () => (await api.pull(number))?.runs[0]?.state === 'cancelled';
  await until(`${number} is cancelled`, cancelled, api.newsOf(number));
  t.equal(reviewsOf(scene, number).length, 0, 'a cancelled review publishes nothing');
  forge.comment(repo, number, 'ada', '@oratorio review');
  const again = async () => (await api.pull(number))?.runs[0]?.trigger === 'mention';
  await until(`${number} is reviewed again`, again, api.newsOf(number));
  await reviewedOnce(t, scene, number, 'after the cancellation');
}

async function check(t: Test, { scene, caught }: Crash, victim: Victim): Promise<void> {
  for (const { number, state } of caught) {
    if (state === 'cancelling') await endedOnce(t, scene, number);
    else await reviewedOnce(t, scene, number, `the ${victim} was killed while it was ${state}`);
  }
}

t.test(
  'kill -9 of the backend or of the agent server in any state publishes each review once, on SQLite',
  { buffered: true },
  async (t) => {
    const scene = await startScene(t, options);
    let first = 100;
    for (let round = 1; round <= rounds; round += 1) {
      for (const victim of ['backend', 'agent server'] as const) {
        await check(t, await crashAtWork(scene, first, victim), victim);
        await check(t, await crashAtEnd(scene, first + 50, victim), victim);
        first += 100;
      }
    }
    t.match(await scene.api.call('GET', '/status'), { body: { deadJobs: 0 } });
  },
);

t.test(
  'after kill -9 of one of two backends on PostgreSQL each review is published once',
  { buffered: true },
  async (t) => {
    const postgres = await startPostgres();
    t.teardown(() => postgres.stop());
    const connectionString = await postgres.database();
    const scene = await startScene(t, { ...options, connectionString, replicas: 2 });
    for (let round = 1; round <= rounds / defaultRounds; round += 1) {
      await check(t, await crashAtWork(scene, 100 * round, 'backend'), 'backend');
    }
    t.match(await scene.api.call('GET', '/status'), { body: { deadJobs: 0 } });
  },
);
