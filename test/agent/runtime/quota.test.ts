/** Waits for a quota: each form of a refusal in each situation, on a simulated clock. */
import t, { type Test } from 'tap';
import type { AnyActorRef } from 'xstate';
import { type Delegate, ModelError, noOffers, openStore } from '../../../src/agent/index.ts';
import type { Turn } from '../../../src/protocol/index.ts';
import { say, scripted, service, settings, text } from '../helpers.ts';
import { temporaryDirectory } from '../store/helpers.ts';
import { HandWaitClock } from './hand-wait-clock.ts';
import { day, type Form, forms, hour, minute, refusalOf } from './quota-forms.ts';

/** An hour before midnight in California, where the quota days of Google begin. */
const base = Date.UTC(2026, 10, 30, 7);

interface SceneOptions {
  /** Times until the reset, one for each refused request. */
  readonly resets?: readonly number[];
  /** Clock of this machine before that of the provider, in milliseconds. */
  readonly ahead?: number;
  /** Time of the provider at the start. */
  readonly start?: number;
}

/** A turn that is refused, and the processes that work on it. */
class Scene {
  readonly clock: HandWaitClock;
  /** Requests to the provider, or prompts of the agent. */
  asked = 0;
  readonly #t: Test;
  readonly #form: Form;
  readonly #resets: readonly number[];
  readonly #ahead: number;
  readonly #directory: string;
  readonly #bugs: unknown[] = [];
  #kill = () => {};
  threadId = '';
  #ended: Promise<Turn> | undefined;
  runtime: ReturnType<typeof service>['runtime'] | undefined;

  constructor(t: Test, form: Form, { resets = [hour], ahead = 0, start = base }: SceneOptions = {}) {
    this.#t = t;
    this.#form = form;
    this.#resets = resets;
    this.#ahead = ahead;
    this.clock = new HandWaitClock(start + ahead);
    this.#directory = temporaryDirectory(t);
    t.teardown(() => this.#kill());
  }

  /** Starts a process, which begins the turn or continues it. */
  start(): void {
    const store = openStore(this.#directory);
    const actors: AnyActorRef[] = [];
    const answer = () => {
      const ms = this.#resets[this.asked];
      this.asked += 1;
      const now = this.clock.now();
      if (ms !== undefined) throw refusalOf(this.#form, { now, theirs: now - this.#ahead, ms });
    };
    const delegate: Delegate = {
      ...{ name: 'another', prepare() {}, offers: () => noOffers, forget() {}, endThread() {} },
      async run() {
        answer();
        return { isCancelled: false, finish: 'stop' };
      },
    };
    const provider = scripted(async function* () {
      answer();
      yield say('whole');
    });
    const { runtime } = service(provider, {
      ...{ store: store.threads, waitClock: this.clock },
      ...(this.#form.agent && { delegate }),
      settings: {
        ...settings,
        quota: { wait: 'auto', maxWaitMs: 48 * hour },
        turns: { ...settings.turns, resumeAgents: true },
      },
      observe: (actor) => actors.push(actor),
      onBug: (error) => String(this.#bugs.push(error)),
    });
    this.runtime = runtime;
    this.#kill = () => {
      for (const actor of actors) actor.stop();
      store.close();
      this.#kill = () => {};
    };
    if (this.threadId === '') {
      this.threadId = runtime.threads.start({}).thread.id;
      const { begin, ended } = runtime.turns.start(this.threadId, text('x'), undefined);
      begin();
      this.#ended = ended;
    } else {
      this.#ended = runtime.turns.running(this.threadId)?.ended;
      runtime.resume();
    }
  }

  /** Starts the turn, and resolves when it waits and the wait is stored. */
  async waiting(): Promise<void> {
    this.start();
    await this.clock.armed();
    await new Promise(setImmediate);
  }

  /** Ends the process without any work at its end, like kill -9. */
  kill(): void {
    this.#kill();
  }

  /** Length of the last saved step. */
  get storedBytes(): number {
    const { threads, close } = openStore(this.#directory);
    const [turn] = threads.unfinishedTurns();
    const facts = threads.turnActors.get(this.threadId, turn?.id ?? '') ?? '';
    close();
    return Buffer.byteLength(facts);
  }

  /** Moves the last saved step of the dead process back. */
  age(hours: number): void {
    const { threads, close } = openStore(this.#directory);
    const [turn] = threads.unfinishedTurns();
    const facts = JSON.parse(threads.turnActors.get(this.threadId, turn?.id ?? '') ?? '{}');
    const savedAt = new Date(Date.now() - hours * hour).toISOString();
    threads.turnActors.put(this.threadId, turn?.id ?? '', JSON.stringify({ ...facts, savedAt }));
    close();
  }

  get request() {
    const [request] = this.runtime?.turns.approvals(this.threadId) ?? [];
    if (!request) throw new Error('no request is pending');
    return request;
  }

  get turn(): Turn | undefined {
    return this.runtime?.threads.read(this.threadId, { includeTurns: true }).turns?.[0];
  }

  /** Time of the wait that is shown to users, from now. */
  get restMs(): number {
    return Date.parse(this.request.until ?? '') - this.clock.now();
  }

  decide(decision: 'now' | 'cancel'): void {
    this.runtime?.turns.respond(this.request.requestId, decision);
  }

  /** The turn after its end: it was asked for the given number of times, and its wait has left nothing. */
  async ends(status: Turn['status'], asked: number): Promise<Turn> {
    const turn = await this.#ended;
    if (!turn) throw new Error('no turn was started');
    this.#t.match(turn, { status });
    this.#t.equal(this.asked, asked, 'requests');
    this.#t.equal(this.clock.timers, 0, 'timers');
    this.#t.same(this.runtime?.turns.approvals(), [], 'requests of users');
    this.#t.same(this.#bugs, []);
    return turn;
  }

  /** Kinds of the notices about the wait. */
  static noticesOf(turn: Turn): string[] {
    return turn.items.flatMap((item) =>
      item.type === 'systemNotice' && item.kind.startsWith('quota') ? [item.kind] : [],
    );
  }
}

const once = ['quotaWaiting', 'quotaResumed'];

/** Situations of a wait, and the checks of each form in it. */
const situations = {
  async 'right time'(t: Test, form: Form) {
    const { retryAfterMs } = refusalOf(form, { now: base, theirs: base, ms: hour }) as ModelError;
    if (form.response)
      t.equal(retryAfterMs, form.isRate ? undefined : hour, 'no repetition of the request before the wait');
    const scene = new Scene(t, form);
    await scene.waiting();
    t.equal(scene.restMs, hour);
    t.ok(scene.storedBytes <= 2_048, `${scene.storedBytes} bytes are stored`);
    await scene.clock.run(hour - 1);
    t.same([scene.asked, scene.clock.timers], [1, 1], 'no request before the reset, and one timer');
    await scene.clock.run(1);
    const turn = await scene.ends('completed', 2);
    t.ok(scene.clock.shortest >= minute, 'no timer is shorter than a minute');
    t.same(Scene.noticesOf(turn), once);
  },
  async hurried(t: Test, form: Form) {
    const scene = new Scene(t, form);
    await scene.waiting();
    scene.decide('now');
    t.same(Scene.noticesOf(await scene.ends('completed', 2)), once);
    await scene.clock.run(2 * hour);
    t.equal(scene.asked, 2, 'the reset causes no further request');
  },
  async ended(t: Test, form: Form) {
    const scene = new Scene(t, form);
    await scene.waiting();
    scene.decide('cancel');
    const turn = await scene.ends('failed', 1);
    t.match(turn.error, { code: /^upstream(RateLimited|QuotaExceeded)$/, retryAfterMs: hour });
    await scene.clock.run(2 * hour);
    t.equal(scene.asked, 1);
  },
  async asleep(t: Test, form: Form) {
    const scene = new Scene(t, form);
    await scene.waiting();
    await scene.clock.run(10 * minute);
    scene.clock.set(9 * hour);
    await scene.clock.run(minute);
    const turn = await scene.ends('completed', 2);
    t.same(Scene.noticesOf(turn), once, 'within a minute after the machine woke');
  },
  async restarted(t: Test, form: Form) {
    const scene = new Scene(t, form);
    await scene.waiting();
    const { requestId, until } = scene.request;
    for (let kills = 1; kills <= 5; kills += 1) {
      scene.kill();
      scene.clock.set(10 * minute);
      await scene.waiting();
      t.match(scene.request, { requestId, until }, 'the same request');
      t.equal(scene.restMs, hour - kills * 10 * minute);
    }
    await scene.clock.run(10 * minute - 1);
    t.equal(scene.asked, 1);
    await scene.clock.run(1);
    const turn = await scene.ends('completed', 2);
    t.same([Scene.noticesOf(turn), turn.resumes], [once, 5]);
  },
  async 'restarted after the reset'(t: Test, form: Form) {
    const scene = new Scene(t, form);
    await scene.waiting();
    scene.kill();
    scene.clock.set(5 * hour);
    scene.start();
    t.same(Scene.noticesOf(await scene.ends('completed', 2)), once);
  },
  async 'reset in the past'(t: Test, form: Form) {
    const refused = refusalOf(form, { now: base, theirs: base, ms: -minute }) as ModelError;
    // Only this header asks for a retry at once.
    if (!form.response?.(base, -minute)[0]['retry-after']) t.equal(refused.retryAfterMs, undefined);
    const scene = new Scene(t, form, { resets: [-minute, -minute] });
    await scene.waiting();
    t.equal(scene.restMs, minute, 'a pause of a minute');
    await scene.clock.run(minute);
    await scene.clock.armed();
    t.equal(scene.restMs, 2 * minute, 'then of two');
    await scene.clock.run(2 * minute);
    await scene.ends('completed', 3);
  },
  async 'reset in a year'(t: Test, form: Form) {
    const scene = new Scene(t, form, { resets: [365 * day] });
    scene.start();
    t.same(Scene.noticesOf(await scene.ends('failed', 1)), []);
  },
  async 'refuses again'(t: Test, form: Form) {
    const { nextMs = hour } = form;
    const scene = new Scene(t, form, { resets: [hour, nextMs] });
    await scene.waiting();
    await scene.clock.run(hour);
    await scene.clock.armed();
    t.equal(scene.restMs, nextMs);
    await scene.clock.run(nextMs - 1);
    t.equal(scene.asked, 2);
    await scene.clock.run(1);
    t.same(Scene.noticesOf(await scene.ends('completed', 3)), [...once, ...once]);
  },
  async 'wrong clock'(t: Test, form: Form) {
    for (const ahead of [-3 * hour, 30 * day]) {
      const refused = refusalOf(form, { now: base + ahead, theirs: base, ms: hour }) as ModelError;
      t.equal(refused.retryAfterMs ?? hour, hour, 'no retry before the reset');
      const scene = new Scene(t, form, { ahead });
      await scene.waiting();
      t.equal(scene.restMs, hour, `${ahead} ms ahead`);
      scene.kill();
      // Corrected before the next process: the wait is not longer than it was.
      scene.clock.set(-ahead);
      scene.start();
      if (ahead > 0) {
        await scene.clock.armed();
        await scene.clock.run(hour);
      }
      await scene.ends('completed', 2);
    }
  },
} as const satisfies Readonly<Record<string, (t: Test, form: Form) => Promise<void>>>;

for (const [name, form] of Object.entries(forms)) {
  for (const [situation, check] of Object.entries(situations)) {
    if (form.without?.some((each) => each === situation)) continue;
    t.test(`${name}: ${situation}`, (t) => check(t, form));
  }
}

t.test(
  'a limit without any time is retried with growing pauses, and its item says that the time is unknown',
  async (t) => {
    const scene = new Scene(t, { response: () => [{}, { message: 'Slow down.' }] }, { resets: [0, 0] });
    await scene.waiting();
    t.match(scene.request, { until: null, target: /its reset is unknown/ });
    await scene.clock.run(minute);
    await scene.clock.armed();
    await scene.clock.run(2 * minute);
    await scene.ends('completed', 3);
  },
);

t.test('a clock that is set forward asks early, and a clock that is set back does not lengthen the wait', async (t) => {
  const [, form = {}] = Object.entries(forms)[0] ?? [];
  const early = new Scene(t, form, { resets: [hour, 59 * minute] });
  await early.waiting();
  early.clock.set(2 * hour);
  await early.clock.run(minute);
  await early.clock.armed();
  t.equal(early.restMs, 59 * minute, 'the provider states its reset again');
  await early.clock.run(59 * minute);
  await early.ends('completed', 3);
  const late = new Scene(t, form);
  await late.waiting();
  late.clock.set(-30 * day);
  await late.clock.run(hour);
  await late.ends('completed', 2);
});

t.test(
  'regression: a wait of days continues after a restart, although its turn has saved nothing for so long',
  async (t) => {
    const [, form = {}] = Object.entries(forms)[0] ?? [];
    const now = Date.now();
    const scene = new Scene(t, form, { resets: [40 * hour], start: now - 35 * hour });
    await scene.waiting();
    scene.kill();
    scene.age(35);
    scene.clock.set(35 * hour);
    await scene.waiting();
    t.equal(scene.restMs, 5 * hour);
    await scene.clock.run(5 * hour);
    await scene.ends('completed', 2);
    const old = new Scene(t, form, { resets: [hour], start: now - 35 * hour });
    await old.waiting();
    old.kill();
    old.age(35);
    old.start();
    t.match(old.turn, { status: 'cancelled', interruptedBy: 'shutdown' }, 'the wait ended more than a day ago');
  },
);

t.test('a used-up balance without a reset ends the turn at once', async (t) => {
  const error = new ModelError('upstreamQuotaExceeded', 'Insufficient credits.');
  const provider = scripted(async function* () {
    yield* [];
    throw error;
  });
  const quota = { wait: 'auto' as const, maxWaitMs: hour };
  const { runtime } = service(provider, { settings: { ...settings, quota } });
  const { begin, ended } = runtime.turns.start(runtime.threads.start({}).thread.id, text('x'), undefined);
  begin();
  t.match(await ended, { status: 'failed', error: { code: 'upstreamQuotaExceeded' } });
});
