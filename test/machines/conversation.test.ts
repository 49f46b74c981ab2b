import fc from 'fast-check';
import t from 'tap';
import { type ActorRefFrom, createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type ConversationCommand,
  type ConversationEvent,
  type ConversationLinkEvent,
  type ConversationLinkInput,
  type ConversationPolicy,
  conversationMachine,
} from '../../machines/index.ts';
import { nodeId } from '../../src/inspect/names.ts';
import { flush, transitionLog, type Walk, walkEvery } from './harness.ts';

const policy: ConversationPolicy = {
  openDeadlineMs: 15_000,
  silenceMs: 60_000,
  probeDeadlineMs: 10_000,
  interruptDeadlineMs: 5_000,
  approvalGuardMs: 500,
  backoffBaseMs: 300,
  backoffCapMs: 5_000,
  pageTurns: 50,
};

interface FakeLink {
  readonly input: ConversationLinkInput;
  readonly commands: ConversationCommand[];
  isReleased: boolean;
  send(event: ConversationLinkEvent): void;
}

/** The machine over links that the test controls. */
class World {
  readonly clock = new SimulatedClock();
  readonly taken: string[] = [];
  readonly errors: unknown[] = [];
  readonly links: FakeLink[] = [];
  readonly actor: ActorRefFrom<typeof conversationMachine>;

  constructor() {
    const link = fromCallback<ConversationCommand, ConversationLinkInput>(({ input, receive, sendBack }) => {
      const fake: FakeLink = { input, commands: [], isReleased: false, send: (event) => sendBack(event) };
      this.links.push(fake);
      receive((command) => {
        fake.commands.push(command);
      });
      return () => {
        fake.isReleased = true;
      };
    });
    this.actor = createActor(conversationMachine.provide({ actors: { link } }), {
      clock: this.clock,
      input: { threadId: 'thread_1', policy, seed: 1, outbox: [] },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.subscribe({ error: (error) => this.errors.push(error) });
    this.actor.start();
  }

  get context() {
    return this.actor.getSnapshot().context;
  }

  /** Ids of the states at the ends, in the order of the document. */
  get state(): string {
    const nodes = this.actor.getSnapshot()._nodes.filter((node) => node.type === 'atomic');
    return nodes.map(nodeId).join(', ');
  }

  is(ending: string): boolean {
    return this.state.split(', ').some((id) => id.endsWith(ending));
  }

  get link(): FakeLink {
    const last = this.links.at(-1);
    if (!last) throw new Error('nothing was opened');
    return last;
  }

  get commands(): readonly string[] {
    return this.link.commands.map(({ type }) => type);
  }

  async send(event: ConversationEvent): Promise<void> {
    this.actor.send(event);
    await flush();
  }

  async hear(event: ConversationLinkEvent): Promise<void> {
    this.link.send(event);
    await flush();
  }

  async pass(ms: number): Promise<void> {
    this.clock.increment(ms);
    await flush();
  }
}

const ready = (changes: Partial<Extract<ConversationLinkEvent, { type: 'LINK.READY' }>> = {}) =>
  ({ type: 'LINK.READY', turnId: null, approvals: [], accepted: [], ...changes }) as const;
const lost = { type: 'LINK.LOST', error: 'It broke off.', isTooMuch: false } as const;
const started = { type: 'TURN.STARTED', turnId: 'turn_1' } as const;
const ended = (end: 'completed' | 'cancelled') => ({ type: 'TURN.ENDED', turnId: 'turn_1', end }) as const;
const requested = (requestId = 'r1') => ({ type: 'APPROVAL.REQUESTED', requestId }) as const;
const resolved = (requestId = 'r1') => ({ type: 'APPROVAL.RESOLVED', requestId }) as const;
const decide = { type: 'DECIDE', requestId: 'r1', decision: 'accept' } as const;
const message = (messageId = 'm1') => ({ type: 'SEND', messageId }) as const;

const to = {
  opening: flush,
  live: (world: World) => world.hear(ready()),
  async probing(world: World) {
    await to.live(world);
    await world.pass(policy.silenceMs);
  },
  async running(world: World) {
    await to.live(world);
    await world.hear(started);
  },
  async interrupting(world: World) {
    await to.running(world);
    await world.send({ type: 'INTERRUPT' });
  },
  async interrupted(world: World) {
    await to.interrupting(world);
    await world.hear(ended('cancelled'));
  },
  async fresh(world: World) {
    await to.running(world);
    await world.hear(requested());
  },
  async twoFresh(world: World) {
    await to.fresh(world);
    await world.hear(requested('r2'));
  },
  async answerable(world: World) {
    await to.fresh(world);
    await world.pass(policy.approvalGuardMs);
  },
  async twoAnswerable(world: World) {
    await to.twoFresh(world);
    await world.pass(policy.approvalGuardMs);
  },
  async deciding(world: World) {
    await to.answerable(world);
    await world.send(decide);
  },
  async decidingOfTwo(world: World) {
    await to.twoAnswerable(world);
    await world.send(decide);
  },
  async sending(world: World) {
    await to.live(world);
    await world.send(message());
  },
  async sendingTwo(world: World) {
    await to.sending(world);
    await world.send(message('m2'));
  },
  async reconnecting(world: World) {
    await to.running(world);
    await world.hear(lost);
  },
  refused: (world: World) => world.hear({ type: 'LINK.REFUSED', error: 'The token is wrong.' }),
};

const live = 'linked.live';
const walks: readonly Walk<World>[] = [
  {
    takes: '(any) SEND → ∅',
    proves: 'a message that is written without a connection waits',
    given: to.reconnecting,
    when: (world) => world.send(message()),
    shows: (t, world) => t.same(world.context.outbox, ['m1']),
  },
  {
    takes: '(any) WITHDRAW → ∅',
    proves: 'a message that was not sent can be taken back',
    given: async (world) => {
      await to.reconnecting(world);
      await world.send(message());
    },
    when: (world) => world.send({ type: 'WITHDRAW', messageId: 'm1' }),
    shows: (t, world) => t.same(world.context.outbox, []),
  },
  {
    takes: 'linked LINK.LOST → reconnecting',
    proves: 'a lost connection drops what was known of the turn, and pauses',
    given: to.answerable,
    when: (world) => world.hear(lost),
    shows: (t, world) => {
      t.ok(world.link.isReleased);
      t.match(world.context, { turnId: null, approvals: [], attempt: 1, lastError: 'It broke off.', pageTurns: 50 });
      t.ok(world.context.delayMs >= 150 && world.context.delayMs <= 300);
    },
  },
  {
    takes: 'linked LINK.REFUSED → refused',
    proves: 'a refused token ends the tries',
    given: to.opening,
    when: to.refused,
    shows: (t, world) => t.equal(world.context.lastError, 'The token is wrong.'),
  },
  {
    takes: 'linked LINK.GONE → gone',
    proves: 'a deleted conversation is not opened again',
    given: to.running,
    when: (world) => world.hear({ type: 'LINK.GONE' }),
    shows: (t, world) => t.match(world.context, { turnId: null, approvals: [] }),
  },
  {
    takes: 'linked.opening LINK.READY → linked.live',
    proves: 'the reading says which turn runs and what waits for a decision',
    given: to.opening,
    when: (world) => world.hear(ready({ turnId: 'turn_7', approvals: ['r7'] })),
    shows: (t, world) => {
      t.ok(world.is('turn.running') && world.is('approval.fresh') && world.is('hearing.listening'));
      t.match(world.context, { turnId: 'turn_7', approvals: ['r7'], attempt: 0 });
    },
  },
  {
    takes: 'linked.opening after(openDeadline) → reconnecting',
    proves: 'a connection that does not become ready is given up',
    given: to.opening,
    when: (world) => world.pass(policy.openDeadlineMs),
    shows: (t, world) => t.equal(world.context.lastError, 'The server does not answer.'),
  },
  {
    takes: `${live}.hearing.listening LINK.HEARD → ${live}.hearing.listening`,
    proves: 'a server that is heard is not asked',
    given: async (world) => {
      await to.live(world);
      await world.pass(policy.silenceMs - 1);
    },
    when: (world) => world.hear({ type: 'LINK.HEARD' }),
    shows: (t, world) => {
      world.clock.increment(policy.silenceMs - 1);
      t.same(world.commands, []);
    },
  },
  {
    takes: `${live}.hearing.listening WAKE → ${live}.hearing.probing`,
    proves: 'a tab that comes back asks at once',
    given: to.live,
    when: (world) => world.send({ type: 'WAKE' }),
    shows: (t, world) => t.same(world.commands, ['PROBE']),
  },
  {
    takes: `${live}.hearing.listening after(silence) → ${live}.hearing.probing`,
    proves: 'silence is followed by a question',
    given: to.live,
    when: (world) => world.pass(policy.silenceMs),
    shows: (t, world) => t.same(world.commands, ['PROBE']),
  },
  {
    takes: `${live}.hearing.probing LINK.HEARD → ${live}.hearing.listening`,
    proves: 'an answer ends the doubt',
    given: to.probing,
    when: (world) => world.hear({ type: 'LINK.HEARD' }),
    shows: (t, world) => t.ok(world.is('turn.idle')),
  },
  {
    takes: `${live}.hearing.probing after(probeDeadline) → reconnecting`,
    proves: 'a server that does not answer is left',
    given: to.probing,
    when: (world) => world.pass(policy.probeDeadlineMs),
    shows: (t, world) => {
      t.ok(world.link.isReleased);
      t.equal(world.context.lastError, 'The server does not answer.');
    },
  },
  {
    takes: `${live}.turn.idle always [hasTurn] → ${live}.turn.running`,
    proves: 'a turn that runs already is seen',
    given: to.opening,
    when: (world) => world.hear(ready({ turnId: 'turn_7' })),
    shows: (t, world) => t.ok(world.is('turn.running')),
  },
  {
    takes: `${live}.turn.idle TURN.STARTED → ${live}.turn.running`,
    proves: 'a turn begins, whoever began it',
    given: to.live,
    when: (world) => world.hear(started),
    shows: (t, world) => t.equal(world.context.turnId, 'turn_1'),
  },
  {
    takes: `${live}.turn.running TURN.STARTED → ∅`,
    proves: 'the next turn of the queue takes the place of the one before',
    given: to.running,
    when: (world) => world.hear({ type: 'TURN.STARTED', turnId: 'turn_2' }),
    shows: (t, world) => t.equal(world.context.turnId, 'turn_2'),
  },
  {
    takes: `${live}.turn.running TURN.ENDED [isThisTurnCancelled] → ${live}.turn.interrupted`,
    proves: 'a turn that another client cancelled is shown as interrupted',
    given: to.running,
    when: (world) => world.hear(ended('cancelled')),
    shows: (t, world) => t.equal(world.context.turnId, null),
  },
  {
    takes: `${live}.turn.running TURN.ENDED [isThisTurn] → ${live}.turn.idle`,
    proves: 'a completed turn leaves nothing running',
    given: to.running,
    when: (world) => world.hear(ended('completed')),
    shows: (t, world) => t.equal(world.context.turnId, null),
  },
  {
    takes: `${live}.turn.running INTERRUPT → ${live}.turn.interrupting`,
    proves: 'an interrupt is sent for the turn that runs',
    given: to.running,
    when: (world) => world.send({ type: 'INTERRUPT' }),
    shows: (t, world) => t.same(world.link.commands, [{ type: 'INTERRUPT', turnId: 'turn_1' }]),
  },
  {
    takes: `${live}.turn.interrupting TURN.ENDED [isThisTurnCancelled] → ${live}.turn.interrupted`,
    proves: 'the interrupted turn has ended',
    given: to.interrupting,
    when: (world) => world.hear(ended('cancelled')),
    shows: (t, world) => t.equal(world.context.turnId, null),
  },
  {
    takes: `${live}.turn.interrupting TURN.ENDED [isThisTurn] → ${live}.turn.idle`,
    proves: 'a turn that completed before the interrupt arrived is no interrupted one',
    given: to.interrupting,
    when: (world) => world.hear(ended('completed')),
    shows: (t, world) => t.equal(world.context.turnId, null),
  },
  {
    takes: `${live}.turn.interrupting INTERRUPT.FAILED → ${live}.turn.running`,
    proves: 'a refused interrupt can be tried again',
    given: to.interrupting,
    when: (world) => world.hear({ type: 'INTERRUPT.FAILED' }),
    shows: (t, world) => t.equal(world.context.turnId, 'turn_1'),
  },
  {
    takes: `${live}.turn.interrupting after(interruptDeadline) → ${live}.turn.running`,
    proves: 'an interrupt without an effect can be tried again',
    given: to.interrupting,
    when: (world) => world.pass(policy.interruptDeadlineMs),
    shows: (t, world) => t.equal(world.context.turnId, 'turn_1'),
  },
  {
    takes: `${live}.turn.interrupted TURN.STARTED → ${live}.turn.running`,
    proves: 'the conversation continues after an interrupt',
    given: to.interrupted,
    when: (world) => world.hear({ type: 'TURN.STARTED', turnId: 'turn_2' }),
    shows: (t, world) => t.equal(world.context.turnId, 'turn_2'),
  },
  {
    takes: `${live}.approval.none always [hasApprovals] → ${live}.approval.fresh`,
    proves: 'a question that waited during the loss appears anew',
    given: to.opening,
    when: (world) => world.hear(ready({ turnId: 'turn_1', approvals: ['r1'] })),
    shows: (t, world) => t.same(world.context.approvals, ['r1']),
  },
  {
    takes: `${live}.approval.none APPROVAL.REQUESTED → ${live}.approval.fresh`,
    proves: 'a question appears, and an answer in the same moment does not count',
    given: to.running,
    when: (world) => world.hear(requested()),
    shows: (t, world) => {
      world.actor.send(decide);
      t.same(world.commands, []);
    },
  },
  {
    takes: `${live}.approval.fresh APPROVAL.REQUESTED → ${live}.approval.fresh`,
    proves: 'another question begins the pause anew, and the same one does not count twice',
    given: async (world) => {
      await to.twoFresh(world);
      await world.pass(policy.approvalGuardMs - 1);
    },
    when: (world) => world.hear(requested('r2')),
    shows: (t, world) => {
      t.same(world.context.approvals, ['r1', 'r2']);
      world.clock.increment(policy.approvalGuardMs - 1);
      t.ok(world.is('approval.fresh'));
    },
  },
  {
    takes: `${live}.approval.fresh APPROVAL.RESOLVED [isLastApproval] → ${live}.approval.none`,
    proves: 'a question that was answered elsewhere goes',
    given: to.fresh,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, []),
  },
  {
    takes: `${live}.approval.fresh APPROVAL.RESOLVED → ∅`,
    proves: 'the other question stays',
    given: to.twoFresh,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, ['r2']),
  },
  {
    takes: `${live}.approval.fresh after(approvalGuard) → ${live}.approval.answerable`,
    proves: 'after a moment the question takes an answer',
    given: to.fresh,
    when: (world) => world.pass(policy.approvalGuardMs),
    shows: (t, world) => t.same(world.context.approvals, ['r1']),
  },
  {
    takes: `${live}.approval.answerable APPROVAL.REQUESTED → ${live}.approval.fresh`,
    proves: 'a second question moves the buttons, so it begins the pause anew',
    given: to.answerable,
    when: (world) => world.hear(requested('r2')),
    shows: (t, world) => t.same(world.context.approvals, ['r1', 'r2']),
  },
  {
    takes: `${live}.approval.answerable APPROVAL.RESOLVED [isLastApproval] → ${live}.approval.none`,
    proves: 'a question that was answered elsewhere goes',
    given: to.answerable,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, []),
  },
  {
    takes: `${live}.approval.answerable APPROVAL.RESOLVED → ∅`,
    proves: 'the other question can still be answered',
    given: to.twoAnswerable,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, ['r2']),
  },
  {
    takes: `${live}.approval.answerable DECIDE [isWaiting] → ${live}.approval.deciding`,
    proves: 'the decision is sent once',
    given: to.answerable,
    when: (world) => world.send(decide),
    shows: (t, world) => {
      world.actor.send(decide);
      t.same(world.link.commands, [decide]);
    },
  },
  {
    takes: `${live}.approval.deciding APPROVAL.REQUESTED → ${live}.approval.fresh`,
    proves: 'a question that comes meanwhile takes no answer yet',
    given: to.deciding,
    when: (world) => world.hear(requested('r2')),
    shows: (t, world) => t.same(world.context.approvals, ['r1', 'r2']),
  },
  {
    takes: `${live}.approval.deciding APPROVAL.RESOLVED [isLastApproval] → ${live}.approval.none`,
    proves: 'the decision has arrived',
    given: to.deciding,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, []),
  },
  {
    takes: `${live}.approval.deciding APPROVAL.RESOLVED → ${live}.approval.answerable`,
    proves: 'the next question is answered after it',
    given: to.decidingOfTwo,
    when: (world) => world.hear(resolved()),
    shows: (t, world) => t.same(world.context.approvals, ['r2']),
  },
  {
    takes: `${live}.approval.deciding APPROVAL.FAILED → ${live}.approval.answerable`,
    proves: 'a decision that did not arrive can be made again',
    given: to.deciding,
    when: (world) => world.hear({ type: 'APPROVAL.FAILED', requestId: 'r1' }),
    shows: (t, world) => t.same(world.context.approvals, ['r1']),
  },
  {
    takes: `${live}.outbox.empty always [hasMessages] → ${live}.outbox.sending`,
    proves: 'what was written without a connection is sent with the next one, unless the thread has it',
    given: async (world) => {
      await to.sendingTwo(world);
      await world.hear(lost);
      await world.send({ type: 'WAKE' });
    },
    when: (world) => world.hear(ready({ accepted: ['m1'] })),
    shows: (t, world) => {
      t.same(world.link.input.outbox, ['m1', 'm2']);
      t.same(world.link.commands, [{ type: 'SEND', messageId: 'm2' }]);
    },
  },
  {
    takes: `${live}.outbox.sending MESSAGE.ACCEPTED [isBeingSent] → ${live}.outbox.empty`,
    proves: 'the next message leaves when the one before has been accepted',
    given: to.sendingTwo,
    when: (world) => world.hear({ type: 'MESSAGE.ACCEPTED', messageId: 'm1' }),
    shows: (t, world) => {
      t.same(world.context.outbox, ['m2']);
      t.same(world.commands, ['SEND', 'SEND']);
    },
  },
  {
    takes: `${live}.outbox.sending MESSAGE.REFUSED [isBeingSent] → ${live}.outbox.empty`,
    proves: 'a refused message does not hold up the others',
    given: to.sending,
    when: (world) => world.hear({ type: 'MESSAGE.REFUSED', messageId: 'm1' }),
    shows: (t, world) => t.same(world.context.outbox, []),
  },
  {
    takes: `${live}.outbox.sending WITHDRAW [isBeingSent] → ∅`,
    proves: 'a message that is under way cannot be called back',
    given: to.sending,
    when: (world) => world.send({ type: 'WITHDRAW', messageId: 'm1' }),
    shows: (t, world) => t.same(world.context.outbox, ['m1']),
  },
  {
    takes: `${live}.outbox.sending WITHDRAW → ∅`,
    proves: 'a message behind it can',
    given: to.sendingTwo,
    when: (world) => world.send({ type: 'WITHDRAW', messageId: 'm2' }),
    shows: (t, world) => t.same(world.context.outbox, ['m1']),
  },
  {
    takes: 'reconnecting WAKE → linked',
    proves: 'a tab that comes back does not wait',
    given: to.reconnecting,
    when: (world) => world.send({ type: 'WAKE' }),
    shows: (t, world) => t.equal(world.links.length, 2),
  },
  {
    takes: 'reconnecting RETRY → linked',
    proves: 'the person need not wait',
    given: to.reconnecting,
    when: (world) => world.send({ type: 'RETRY' }),
    shows: (t, world) => t.equal(world.links.length, 2),
  },
  {
    takes: 'reconnecting after(reconnectPause) → linked',
    proves: 'it connects again by itself, and reads less after a thread that was too large',
    given: async (world) => {
      await to.live(world);
      await world.hear({ ...lost, isTooMuch: true });
    },
    when: (world) => world.pass(policy.backoffCapMs),
    shows: (t, world) => t.match(world.link.input, { threadId: 'thread_1', pageTurns: 12 }),
  },
  {
    takes: 'refused RETRY → linked',
    proves: 'another token is tried',
    given: to.refused,
    when: (world) => world.send({ type: 'RETRY' }),
    shows: (t, world) => t.equal(world.links.length, 2),
  },
];

walkEvery(t, conversationMachine, () => new World(), walks);

t.test('the pauses between failed connections grow up to a cap', async (t) => {
  const world = new World();
  const pauses: number[] = [];
  for (let round = 0; round < 8; round += 1) {
    await world.hear(lost);
    pauses.push(world.context.delayMs);
    await world.pass(world.context.delayMs);
  }
  t.ok(pauses.every((pause) => pause <= policy.backoffCapMs));
  t.ok((pauses.at(-1) ?? 0) > (pauses[0] ?? 0));
});

t.test('after an hour without a network the connection comes back, and the written message is sent once', async (t) => {
  const world = new World();
  world.send({ type: 'SEND', messageId: 'm1' });
  let passed = 0;
  for (let tries = 0; passed < 3_600_000; tries += 1) {
    await world.hear(lost);
    passed += world.context.delayMs;
    await world.pass(world.context.delayMs);
    if (tries > 36_000) throw new Error('the pauses are too short');
  }
  t.same(world.commands, [], 'nothing is sent without a connection');
  await world.hear(ready());
  t.same(world.commands, ['SEND']);
  await world.hear(lost);
  await world.pass(policy.backoffCapMs);
  await world.hear(ready({ accepted: ['m1'] }));
  t.same(world.context.outbox, [], 'the thread has it');
  t.same(world.commands, [], 'and it is not sent again');
});

const anyEvent: fc.Arbitrary<ConversationEvent> = fc.oneof(
  fc.constantFrom<ConversationEvent>(
    lost,
    started,
    ended('completed'),
    ended('cancelled'),
    { type: 'INTERRUPT' },
    { type: 'INTERRUPT.FAILED' },
    { type: 'WAKE' },
    { type: 'RETRY' },
    { type: 'LINK.HEARD' },
    decide,
  ),
  fc.record({
    type: fc.constantFrom('APPROVAL.REQUESTED', 'APPROVAL.RESOLVED', 'APPROVAL.FAILED'),
    requestId: fc.constantFrom('r1', 'r2'),
  }),
  fc.record({
    type: fc.constantFrom('SEND', 'WITHDRAW', 'MESSAGE.ACCEPTED', 'MESSAGE.REFUSED'),
    messageId: fc.constantFrom('m1', 'm2'),
  }),
  fc.subarray(['m1', 'm2']).map((accepted) => ready({ accepted })),
) as fc.Arbitrary<ConversationEvent>;

t.test(
  'in any history one link is open at most, and nothing is sent or decided without one that is ready',
  async (t) => {
    const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_125 };
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(anyEvent, fc.nat(12_000)), { maxLength: 40 }), async (history) => {
        const world = new World();
        for (const step of history) {
          if (typeof step === 'number') world.clock.increment(step);
          else world.actor.send(step);
          const snapshot = world.actor.getSnapshot();
          const isOpen = snapshot.hasTag('connecting') || snapshot.hasTag('live');
          if (world.errors.length > 0) throw world.errors[0];
          if (world.links.filter(({ isReleased }) => !isReleased).length !== (isOpen ? 1 : 0)) return false;
          if (!snapshot.hasTag('live') && snapshot.context.turnId !== null) return false;
          if (!snapshot.hasTag('live') && world.links.length > 0 && !snapshot.hasTag('connecting')) continue;
          if (snapshot.hasTag('connecting') && world.commands.length > 0) return false;
        }
        return true;
      }),
      { ...seed, numRuns: 300 },
    );
    t.pass('every history holds');
  },
);
