/** Turns that an external agent does. */
import t from 'tap';
import { type Delegate, type DelegatedReport, noOffers } from '../../../src/agent/index.ts';
import { defaults } from '../../../src/protocol/index.ts';
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
  const { runtime, bugs } = service(scripted(unused), {
    delegate,
    checkpoints: {
      recovered: () => undefined,
      resume: () => undefined,
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
  const { thread } = runtime.threads.start({});
  const { turn } = await talk(runtime, thread.id, 'hello');
  t.equal(turn.status, 'completed');
  t.same(seen, ['begin: a change is certain', `start for ${thread.id}`, 'saved', `run ${thread.id}`]);
  t.same(bugs, []);
});

/** Messages of one agent, as fast as it can. Each is sent until the agent is asked to stop. */
const floods: Readonly<Record<string, (report: DelegatedReport, index: number) => void>> = {
  'bytes of text': ({ text }) => text('agentMessage', 'x'.repeat(1_000)),
  'bytes of text, in thoughts': ({ text }) => text('reasoningContent', 'x'.repeat(1_000)),
  'bytes of arguments': ({ begin, end }, index) => {
    const callId = `call_${index}`;
    begin({ callId, tool: 'EditFile', arguments: { newText: 'x'.repeat(100_000) } });
    end(callId, { outcome: 'completed', text: '' });
  },
  'calls without an end': ({ begin }, index) => begin({ callId: `call_${index}`, tool: 'Tool', arguments: {} }),
  items: ({ plan }, index) => plan(`plan_${index}`, [{ step: 'go on', status: 'pending' }]),
  bytes: ({ received }) => received(1_000_000),
};

t.test('an agent that sends without an end is asked to stop, and its turn names the limit', async (t) => {
  const { turnTextBytes, turnArgumentBytes, turnItems } = defaults.agent;
  const { turnBytes, openCalls } = defaults.externalAgent;
  const amounts = [turnTextBytes, turnTextBytes, turnArgumentBytes, openCalls, turnItems, turnBytes];
  for (const [index, [limit, send]] of Object.entries(floods).entries()) {
    let sent = 0;
    const delegate: Delegate = {
      name: 'another',
      prepare() {},
      async run({ report }, signal) {
        for (; !signal.aborted && sent < 100_000; sent += 1) send(report, sent);
        signal.throwIfAborted();
        return { isCancelled: false, finish: 'stop' };
      },
      offers: () => noOffers,
      forget() {},
      endThread() {},
    };
    const { runtime, bugs } = service(
      scripted(() => t.fail('is not called') as never),
      { delegate },
    );
    const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'go');
    const message = `The agent another sent more than ${amounts[index]} ${limit.split(',')[0]}, which is the limit of a turn.`;
    t.match(turn, { status: 'failed', error: { code: 'answerTooLong' } }, limit);
    t.ok(turn.error?.message.startsWith(message), message);
    t.ok(turn.items.length <= turnItems + 10, 'no item follows');
    t.same(bugs, []);
  }
});
