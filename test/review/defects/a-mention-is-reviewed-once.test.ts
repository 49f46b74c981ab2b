import t from 'tap';
import type { ReviewStore } from '../../../src/review/store/index.ts';
import { WebhookIntake } from '../../../src/review/webhook/index.ts';
import { pausesEnd, scene, unreachable } from '../jobs/harness.ts';
import { quiet } from '../store/databases.ts';
import { commentPayload, deliverTo } from '../webhook/harness.ts';

t.test('a mention whose review was begun before that could be written down is not reviewed again', async (t) => {
  const world = await scene(t);
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  const { updateCommand } = world.store;
  let attempts = 0;
  const breaksOffOnce: ReviewStore['updateCommand'] = async (...given) => {
    attempts += 1;
    // Not tried again by itself before the review is over.
    if (attempts === 1) throw unreachable(600_000);
    await updateCommand(...given);
  };
  Object.assign(world.store, { updateCommand: breaksOffOnce });
  await deliverTo(intake, { event: 'issue_comment', body: commentPayload('@oratorio review') });
  while (attempts === 0) await world.idle();
  // The review is over before the command is worked on again.
  const claim = await world.store.claimRun('one', 60_000, { global: 1, perRepository: 1, perSource: 1 });
  if (!claim) throw new Error('there is no run');
  const { runId, createdAt } = claim.run;
  await world.store.updateRun(runId, claim.lease, { state: 'done', finishedAt: createdAt });
  while (attempts < 2) {
    await pausesEnd(world);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await world.idle();
  t.match(await world.store.command(42), { status: 'dispatched', runId });
  t.equal(world.runs.dispatched.length, 1, 'the same review');
});
