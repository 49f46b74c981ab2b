/** Turns and the checkpoints of their files. */
import t from 'tap';
import type { RuntimeOptions } from '../../../src/agent/index.ts';
import { answers, call, say, service, talk, tool } from '../helpers.ts';

/** Checkpoints with a given first save. */
const checkpointsWith = (secure: () => Promise<void>) =>
  ({
    recovered: () => undefined,
    begin: () => undefined,
    secure,
    working: () => () => undefined,
    settle: () => undefined,
  }) as unknown as NonNullable<RuntimeOptions['checkpoints']>;

t.test('a checkpoint that fails is reported once, and the turn goes on', async (t) => {
  for (const failure of ['no space is left', undefined]) {
    const { runtime, bugs } = service(answers([call('c1', 'Write')], [call('c2', 'Write')], [say('done')]), {
      tools: () => [tool({ name: 'Write' })],
      checkpoints: checkpointsWith(async () => {
        if (failure !== undefined) throw new Error(failure);
      }),
    });
    const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
    t.match(turn, { status: 'completed' });
    const events = ear.events.filter(({ method }) => method === 'system/event');
    const message = `The files could not be saved, so this turn cannot be taken back with them: ${failure}.`;
    t.match(events, failure === undefined ? [] : [{ params: { kind: 'checkpointFailed', message } }]);
    t.equal(events.length, failure === undefined ? 0 : 1);
    t.same(bugs, []);
  }
});

t.test('calls that may change files wait until the files are saved, and calls that only read do not', async (t) => {
  const order: string[] = [];
  const saved = Promise.withResolvers<void>();
  const named = (name: string, isReadOnly: boolean) =>
    tool({
      name,
      isReadOnly,
      run: () => {
        order.push(name);
        if (isReadOnly)
          setImmediate(() => {
            order.push('saved');
            saved.resolve();
          });
        return { text: name, isError: false };
      },
    });
  const { runtime } = service(answers([call('c1', 'Look')], [call('c2', 'Write')], [say('done')]), {
    tools: () => [named('Look', true), named('Write', false)],
    checkpoints: checkpointsWith(() => saved.promise),
  });
  t.match(await talk(runtime, runtime.threads.start({}).thread.id, 'x'), { turn: { status: 'completed' } });
  t.same(order, ['Look', 'saved', 'Write']);
});

t.test(
  'changes of an ended turn are read when its sandboxes have ended, those of a running turn at once',
  async (t) => {
    const order: string[] = [];
    const rested = Promise.withResolvers<void>();
    const working = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const run = async () => {
      begun.resolve();
      await working.promise;
      return { text: 'done', isError: false };
    };
    const { runtime } = service(answers([call('c1', 'Write')], [say('done')]), {
      tools: () => [tool({ name: 'Write', run })],
      processes: {
        list: () => [],
        stop: async () => false,
        endThread: async () => {},
        rest: () => rested.promise.then(() => void order.push('rested')),
      },
      checkpoints: {
        ...checkpointsWith(async () => {}),
        diff: async () => {
          order.push('read');
          return { files: [], notCovered: [], notCoveredTotal: 0 };
        },
      } as unknown as NonNullable<RuntimeOptions['checkpoints']>,
    });
    const { id } = runtime.threads.start({}).thread;
    const talking = talk(runtime, id, 'x');
    await begun.promise;
    await runtime.files.diff(id, undefined, 'summary');
    t.same(order, ['read']);
    working.resolve();
    await talking;
    const changes = runtime.files.diff(id, undefined, 'summary');
    rested.resolve();
    await changes;
    t.same(order, ['read', 'rested', 'rested', 'read']);
  },
);
