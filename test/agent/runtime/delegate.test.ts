/** Turns that an external agent does. */
import t, { type Test } from 'tap';
import { type Delegate, type DelegatedReport, noOffers, openStore } from '../../../src/agent/index.ts';
import { defaults } from '../../../src/protocol/index.ts';
import { temporaryDirectory } from '../../hub/harness.ts';
import { scripted, service, settings, talk, text } from '../helpers.ts';

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
      ...{ head: unused, depart: unused, arrive: unused },
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

/** @param saves number of times that work saves the facts of the turn */
type Work = (
  report: DelegatedReport,
  saves: (work: (report: DelegatedReport) => void, report: DelegatedReport) => number,
) => unknown;

/** A turn of an agent that reports as the test says, over several processes. */
async function resumable(t: Test) {
  const directory = temporaryDirectory(t);
  /** Runs a process in which the agent works once, and ends it like a kill. */
  const process = async (work: Work, threadId?: string) => {
    const store = openStore(directory);
    const { turnActors } = store.threads;
    let puts = 0;
    const put = turnActors.put.bind(turnActors);
    turnActors.put = (...args) => {
      puts += 1;
      put(...args);
    };
    const begun = Promise.withResolvers<DelegatedReport>();
    const delegate: Delegate = {
      name: 'another',
      prepare() {},
      async run({ report }) {
        await report.prompting();
        begun.resolve(report);
        return new Promise(() => undefined);
      },
      offers: () => noOffers,
      forget() {},
      endThread() {},
    };
    const { runtime } = service(
      scripted(() => t.fail('is not called') as never),
      { delegate, store: store.threads, settings: { ...settings, turns: { ...settings.turns, resumeAgents: true } } },
    );
    let id = threadId;
    if (id === undefined) {
      const { thread } = runtime.threads.start({});
      id = thread.id;
      runtime.turns.start(id, text('go'), undefined).begin();
    } else runtime.resume();
    const read = () => runtime.threads.read(id, { includeTurns: true }).turns?.[0];
    const end = () => {
      const facts = turnActors.get(id, 'turn_001');
      store.close();
      return { threadId: id, turn, facts: facts === undefined ? undefined : JSON.parse(facts) };
    };
    const turn = read();
    if (turn?.status !== 'running') return end();
    work(await begun.promise, (each, report) => {
      read();
      const before = puts;
      each(report);
      read();
      return puts - before;
    });
    read();
    return end();
  };
  return process;
}

const doesCall = ({ begin, end }: DelegatedReport) => {
  begin({ callId: 'c1', tool: 'Tool', arguments: {} });
  end('c1', { outcome: 'completed', text: '' });
};
const nothing = () => undefined;

t.test('a turn of an agent that finishes calls is resumed more often than Turns.MaxResumes', async (t) => {
  let now = performance.now();
  t.intercept(performance, 'now', { value: () => now });
  const process = await resumable(t);
  const { threadId } = await process(nothing);
  for (const kill of [1, 2, 3, 4, 5]) {
    const { turn, facts } = await process((report) => {
      now += 61_000;
      doesCall(report);
    }, threadId);
    t.match(turn, { status: 'running', resumes: kill });
    t.equal(facts.resumes, 0, 'no kill counts against it');
  }
});

t.test('a turn of an agent that finishes no call, or dies within a minute of it, is given up', async (t) => {
  let now = performance.now();
  t.intercept(performance, 'now', { value: () => now });
  for (const work of [() => (now += 61_000), doesCall]) {
    const process = await resumable(t);
    const { threadId } = await process(nothing);
    for (const _ of [1, 2, 3]) await process(work, threadId);
    const { turn } = await process(work, threadId);
    t.match(turn, { status: 'failed', error: { code: 'resumedTooOften' } });
  }
});

t.test('facts of a turn of an agent are saved with each call, and at most once a minute with its text', async (t) => {
  let now = performance.now();
  t.intercept(performance, 'now', { value: () => now });
  const process = await resumable(t);
  const says = ({ text }: DelegatedReport) => text('agentMessage', 'word');
  await process((report, saves) => {
    t.equal(saves(doesCall, report), 1);
    t.equal(saves(says, report), 0);
    now += 61_000;
    t.equal(saves(says, report), 1);
    t.equal(saves(says, report), 0);
  });
});
