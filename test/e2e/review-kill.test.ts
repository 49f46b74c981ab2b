/**
 * Backends and agent servers are killed (-9) while reviews are in every state that a review can be in. Whatever was under way
 * goes on, nobody is reviewed twice, and each pull request has exactly one published review in the end.
 *
 * `ORATORIO_KILL_ROUNDS=10` makes it as many rounds as the goal asks for; two are enough for every day.
 */
import t, { type Test } from 'tap';
import type { ReviewRun, ReviewRunState } from '../../src/protocol/index.ts';
import { killIfThere } from '../hub/harness.ts';
import { startPostgres } from '../review/postgres.ts';
import { agentServersUnder } from './harness.ts';
import { type Scene, type SceneOptions, startScene } from './review-harness/index.ts';
import { faults, lineOf, onMain } from './review-harness/shop.ts';

const rounds = Number(process.env['ORATORIO_KILL_ROUNDS'] ?? 2);
t.setTimeout(rounds * 600_000);

const bot = 'oratorio-test[bot]';
const ends: readonly ReviewRunState[] = ['done', 'failed', 'cancelled', 'superseded'];
const content = `const one = 1;\n${faults.half.lines}\n`;
const pathOf = (number: number) => `src/half${number}.ts`;

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
      // Long enough to be caught in.
      RetryBackoffSeconds: 8,
      MaxRunAttempts: 5,
    },
  },
};

type Victim = 'backend' | 'agent server';

/** A pull request that has been brought into a state; `letGo` ends what keeps it there. */
interface Caught {
  readonly number: number;
  readonly state: ReviewRunState;
  readonly letGo: () => void;
}

/** What happens to a scene in one crash, in order. */
class Crash {
  readonly scene: Scene;
  readonly caught: Caught[] = [];
  readonly #first: number;

  constructor(scene: Scene, first: number) {
    this.scene = scene;
    this.#first = first;
  }

  #next(): number {
    return this.#first + this.caught.length;
  }

  async #open(number: number): Promise<void> {
    await this.scene.openPull(number, { [pathOf(number)]: content });
  }

  #keep(number: number, state: ReviewRunState, letGo: () => void = () => undefined): Caught {
    const caught = { number, state, letGo };
    this.caught.push(caught);
    return caught;
  }

  /** In this state by the backend's own word. */
  #isIn(number: number, state: ReviewRunState): Promise<ReviewRun> {
    const { until, api } = this.scene;
    return until(`${number} is ${state}`, async () => {
      const run = (await api.runs()).find((each) => each.number === number);
      if (run && ends.includes(run.state)) throw new Error(`${number} was ${run.state} before it was ${state}`);
      return run?.state === state && run;
    });
  }

  /** @param round - of the model: 0 has seen nothing, 2 has handed in */
  async reviewing(round = 0): Promise<Caught> {
    const number = this.#next();
    const held = this.scene.reviewer.hold((turn) => turn.number === number && turn.round === round);
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'reviewing');
    return this.#keep(number, 'reviewing', held.release);
  }

  async publishing(when: 'before' | 'after'): Promise<void> {
    const number = this.#next();
    const path = `/repos/acme/shop/pulls/${number}/reviews`;
    const held = this.scene.forge.faults.hold((method, asked) => method === 'POST' && asked === path, when);
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'publishing');
    this.#keep(number, 'publishing', held.release);
  }

  async backingOff(): Promise<void> {
    const number = this.#next();
    this.scene.reviewer.refuseOnce((turn) => turn.number === number);
    await this.#open(number);
    await this.#isIn(number, 'backingOff');
    this.#keep(number, 'backingOff');
  }

  async preparing(): Promise<void> {
    const number = this.#next();
    const held = this.scene.forge.faults.hold((_, path) => path.includes('.git/'));
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'preparing');
    this.#keep(number, 'preparing', held.release);
  }

  async queued(): Promise<void> {
    const number = this.#next();
    await this.#open(number);
    await this.#isIn(number, 'queued');
    this.#keep(number, 'queued');
  }

  /** The agent server stands still, so that it takes its time over the end of its turn. */
  async cancelling(): Promise<Caught> {
    const caught = await this.reviewing();
    const { api } = this.scene;
    const run = await this.#isIn(caught.number, 'reviewing');
    for (const { pid } of agentServersUnder(this.scene.place.root)) process.kill(pid, 'SIGSTOP');
    await api.post(`/runs/${run.runId}/cancel`);
    await this.#isIn(caught.number, 'cancelling');
    this.caught.splice(this.caught.indexOf(caught), 1);
    return this.#keep(caught.number, 'cancelling', caught.letGo);
  }

  /** Resolves in the moment in which a run of this pull request is told to be in the state. */
  told(number: number, state: ReviewRunState): Promise<void> {
    const { events, api } = this.scene;
    return new Promise((resolve, reject) => {
      api.pull(number).then((found) => {
        const [run] = found?.runs ?? [];
        const look = () => {
          const isTold = events.events.some(
            ({ kind, data }) => kind === 'run.changed' && data['runId'] === run?.runId && data['state'] === state,
          );
          if (!isTold) return;
          leave();
          resolve();
        };
        const leave = events.on(look);
        look();
      }, reject);
    });
  }

  async kill(victim: Victim): Promise<void> {
    const { backends, place } = this.scene;
    const servers = agentServersUnder(place.root).map(({ pid }) => pid);
    if (victim === 'agent server') for (const pid of servers) killIfThere(pid);
    else await backends[0]?.end('SIGKILL');
    for (const { letGo } of this.caught) letGo();
    if (victim === 'agent server') return;
    for (const pid of servers) process.kill(pid, 'SIGCONT');
    await backends[0]?.start();
  }
}

/** Everything that can be under way at once; the last one is killed in the moment in which it writes its draft down. */
async function crashAtWork(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first);
  await crash.reviewing();
  const drafting = await crash.reviewing(2);
  await crash.publishing('before');
  await crash.backingOff();
  await crash.preparing();
  await crash.queued();
  const told = crash.told(drafting.number, 'drafting');
  drafting.letGo();
  await told;
  await crash.kill(victim);
  return crash;
}

/** One that somebody ends, and one of which the forge has the review and nobody knows. */
async function crashAtEnd(scene: Scene, first: number, victim: Victim): Promise<Crash> {
  const crash = new Crash(scene, first);
  await crash.publishing('after');
  await crash.cancelling();
  await crash.kill(victim);
  return crash;
}

const reviewsOf = ({ repo }: Scene, number: number) =>
  repo.reviews.filter((each) => each.number === number && each.author === bot && each.body !== '');

async function reviewedOnce(t: Test, scene: Scene, number: number, what: string): Promise<void> {
  const { api, repo, until } = scene;
  const run = await until(`${what}: ${number} is reviewed`, async () => {
    const found = await api.pull(number);
    const [last] = found?.runs ?? [];
    return last && ends.includes(last.state) && last;
  });
  t.match(run, { state: 'done' }, `${what}: it was reviewed`);
  await until(`${what}: everything of ${number} is written`, async () => {
    const writes = (await api.writes()).filter((write) => write.runId === run.runId);
    return writes.every(({ status }) => status !== 'pending');
  });
  t.equal(reviewsOf(scene, number).length, 1, `${what}: one published review`);
  const comments = repo.reviewComments.filter((each) => each.number === number);
  t.match(comments, [{ path: pathOf(number), line: lineOf(content, faults.half), body: faults.half.title }]);
  t.equal(comments.length, 1, `${what}: one comment`);
  const own = repo.comments.filter((each) => each.number === number && each.author === bot);
  t.equal(own.length, 1, `${what}: one summary`);
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
  t.test(`the ${victim} is killed in every state of a review, on SQLite`, async (t) => {
    const scene = await startScene(t, options);
    for (let round = 0; round < rounds; round += 1) {
      const first = 100 * (round + 1);
      await check(t, await crashAtWork(scene, first, victim), victim);
      await check(t, await crashAtEnd(scene, first + 50, victim), victim);
    }
    t.match(await scene.api.call('GET', '/status'), { body: { deadJobs: 0 } });
  });
}

t.test('of two backends on PostgreSQL one is killed, and the other goes on', async (t) => {
  const postgres = await startPostgres();
  t.teardown(() => postgres.stop());
  const connectionString = await postgres.database();
  const scene = await startScene(t, { ...options, connectionString, replicas: 2 });
  await check(t, await crashAtWork(scene, 100, 'backend'), 'backend');
});
