import t from 'tap';
import { World } from '../runs/world.ts';

t.test(
  'a draft whose publishing broke off before its writes were kept is published when somebody asks again',
  async (t) => {
    const world = await World.create(t);
    world.runs.start();
    const runId = await world.dispatch('manual');
    await world.ended(runId);
    const { draftId = '' } = (await world.store.draftOfRun(runId)) ?? {};
    await world.subject.sql(`UPDATE "drafts" SET "status" = 'publishing'`);
    await world.runs.publish(draftId, { override: false });
    await world.runs.publish(draftId, { override: false });
    await world.send();
    t.match(await world.store.draft(draftId), { status: 'published' });
    t.equal(world.forge.of('review').length, 1);
  },
);
