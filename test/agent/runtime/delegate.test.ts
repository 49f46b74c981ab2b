/** Turns that an agent of another maker does. */
import t from 'tap';
import { type Delegate, noOffers } from '../../../src/agent/index.ts';
import { scripted, service, talk } from '../helpers.ts';

t.test('the agent starts while the files of the workspace are saved, and works when they are', async (t) => {
  const seen: string[] = [];
  const prepared = Promise.withResolvers<void>();
  const delegate: Delegate = {
    name: 'another',
    prepare(threadId) {
      seen.push(`start for ${threadId}`);
      prepared.resolve();
    },
    async run({ threadId }) {
      seen.push(`run ${threadId}`);
      return { isCancelled: false, finish: 'stop' };
    },
    offers: () => noOffers,
    forget() {},
    endThread() {},
  };
  const unused = () => t.fail('is not called') as never;
  const { threads, bugs } = service(scripted(unused), {
    delegate,
    checkpoints: {
      recovered: () => undefined,
      begin: (_place, changes) => seen.push(`begin: a change is ${changes}`),
      async secure() {
        await prepared.promise;
        seen.push('saved');
      },
      settle: () => undefined,
      working: () => () => {},
      ...{ restore: unused, list: unused, turnsFrom: unused, diff: unused, merge: unused, forget: unused },
      ...{ announceCopy: unused, keepCopy: unused, removeCopy: unused, copyTo: unused },
    },
  });
  const { thread } = threads.start({});
  const { turn } = await talk(threads, thread.id, 'hello');
  t.equal(turn.status, 'completed');
  t.same(seen, ['begin: a change is certain', `start for ${thread.id}`, 'saved', `run ${thread.id}`]);
  t.same(bugs, []);
});
