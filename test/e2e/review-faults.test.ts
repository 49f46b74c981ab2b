/** Reviews under faults: a backend that is down, a forge that refuses, a head that moves, a model that quotes a secret. */
import t from 'tap';
import type { ReviewRun } from '../../src/protocol/index.ts';
import { rateLimits } from '../review/forge/index.ts';
import { commentsOf, ends, type KnownFault, reviewsOf, type Scene, startScene } from './review-harness/index.ts';
import { faults, onMain } from './review-harness/shop.ts';

t.setTimeout(600_000);

const key = `ghp_${'a1B2'.repeat(9)}`;
const secret: KnownFault = {
  lines: `export const key = '${key}';`,
  title: `The key ${key} is in the code`,
  severity: 'critical',
};
const { half, loop } = faults;
const file = (...lines: readonly string[]) => ({ 'src/new.ts': `${lines.join('\n')}\n` });

/** The last run of a pull request, when it has ended and `fits`. */
const ended = (scene: Scene, number: number, fits: (run: ReviewRun) => boolean = () => true) =>
  scene.until(
    `the review of ${number} has ended`,
    async () => {
      const found = await scene.api.pull(number);
      const [run] = found?.runs ?? [];
      return found && run && ends.includes(run.state) && fits(run) && { run, ...found };
    },
    scene.api.newsOf(number),
  );

t.test('each change is reviewed exactly once under faults', async (t) => {
  const scene = await startScene(t, {
    files: onMain,
    faults: [half, loop, secret],
    settings: { AgentServer: { RetryBackoffSeconds: 1, GlobalMaxActiveRuns: 4, MaxActiveRunsPerRepository: 4 } },
  });
  const { api, forge, repo, reviewer, until } = scene;
  const [backend] = scene.backends;
  if (!backend) throw new Error('There is no backend');

  await t.test('a delivery missed while the backend was down is redelivered and handled', async (t) => {
    await backend.end('SIGKILL');
    await scene.openPull(1, file(half.lines));
    const mention = forge.comment(repo, 1, 'ada', '@oratorio review for money');
    await forge.settled();
    t.match(
      forge.deliveries.map(({ event, statusCode }) => [event, statusCode]),
      [
        ['pull_request', 0],
        ['issue_comment', 0],
      ],
    );
    await backend.start();
    await until('the mention has a reaction', () => mention.reactions.length > 0);
    await ended(scene, 1, ({ focus }) => focus === 'money');
    await until('the review is published', () => reviewsOf(scene, 1).length > 0);
    t.equal(reviewsOf(scene, 1).length, 1);
    t.ok(forge.deliveries.some(({ redelivery, event }) => redelivery && event === 'issue_comment'));
  });

  await t.test('a forge that fails, limits requests or hides a success gets the review once', async (t) => {
    const isReview = (method: string, path: string) => method === 'POST' && path.endsWith('/pulls/2/reviews');
    forge.listLagMs = 500;
    forge.faults.add({ kind: 'status', status: 502, matches: isReview });
    forge.faults.add({ ...rateLimits.secondary(1), matches: isReview });
    forge.faults.add({ kind: 'statusAfter', status: 500, matches: isReview });
    await scene.openPull(2, file(half.lines));
    const { run } = await ended(scene, 2);
    t.equal(run.state, 'done');
    await until('the review is published', async () => (await api.draft(run.draftId ?? '')).status === 'published');
    t.equal(reviewsOf(scene, 2).length, 1);
    t.equal(commentsOf(scene, 2).length, 1);
    forge.listLagMs = 0;
  });

  await t.test('a head that moves during its review gets a review of the new commit only', async (t) => {
    const held = reviewer.hold((turn) => turn.number === 3);
    const before = await scene.openPull(3, file(half.lines));
    const old = before.headSha;
    await held.reached;
    await scene.commit('change-3', file(half.lines, loop.lines));
    const { headSha } = await forge.push(repo, 3);
    await until('the new head waits', async () => (await api.pull(3))?.item.headSha === headSha);
    held.release();
    await ended(scene, 3, (run) => run.headSha === headSha);
    await until('the review is published', () => reviewsOf(scene, 3).length > 0);
    t.match(reviewsOf(scene, 3), [{ commitId: headSha }]);
    t.not(headSha, old);
    const bodies = commentsOf(scene, 3).map(({ body }) => body);
    t.equal(bodies.length, 2);
    t.ok(bodies.some((body) => body.includes(half.title)) && bodies.some((body) => body.includes(loop.title)));
  });

  await t.test('a draft with a secret is redacted and cannot be published', async (t) => {
    await scene.openPull(4, file(secret.lines));
    const { run, drafts } = await ended(scene, 4);
    t.equal(run.state, 'done');
    t.match(drafts, [{ status: 'draft', blockedBy: { code: 'draftContainsSecret' } }]);
    t.notMatch(JSON.stringify(drafts[0]?.findings.map(({ title, body }) => title + body)), key);
    const answer = await api.call('POST', `/review-drafts/${drafts[0]?.draftId}/publish`, {});
    t.match(answer, { status: 409, body: { error: { code: 'draftBlocked' } } });
    t.strictSame(reviewsOf(scene, 4), []);
    t.notMatch(JSON.stringify([repo.comments, repo.reviewComments, repo.checkRuns]), key);
  });

  await t.test('SIGTERM of the backend returns an active review to the queue', async (t) => {
    const held = reviewer.hold((turn) => turn.number === 5);
    await scene.openPull(5, file(half.lines));
    await held.reached;
    t.equal(await backend.end('SIGTERM'), 0);
    held.release();
    await backend.start();
    const { run } = await ended(scene, 5);
    t.match(run, { state: 'done' });
    await until('the review is published', () => reviewsOf(scene, 5).length > 0);
    t.equal(reviewsOf(scene, 5).length, 1);
  });

  t.match(await api.call('GET', '/status'), { body: { deadJobs: 0 } });
  t.notMatch(backend.log, key);
});
