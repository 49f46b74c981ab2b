import fc from 'fast-check';
import t from 'tap';
import { type ActorRefFrom, createActor } from 'xstate';
import { type InboxReason, type InboxRequestEvent, inboxReasons, inboxRequestMachine } from '../../machines/index.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';

class World {
  readonly taken: string[] = [];
  readonly actor: ActorRefFrom<typeof inboxRequestMachine>;

  constructor() {
    this.actor = createActor(inboxRequestMachine, {
      input: { requestId: 'approval_1' },
      inspect: transitionLog(this.taken, (actor) => actor === this.actor),
    });
    this.actor.start();
  }

  send(...types: Exclude<InboxRequestEvent['type'], 'DECISION.REPORTED'>[]): void {
    for (const type of types) this.actor.send({ type });
  }

  decide(reason: InboxReason, decision = 'accept', decidedBy = 'page'): void {
    this.actor.send({ type: 'DECISION.REPORTED', decision, decidedBy, reason });
  }

  get state() {
    return this.actor.getSnapshot().value;
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const to = {
  open: async () => {},
  deciding: async (world: World) => world.send('ANSWER.SENT'),
  two: async (world: World) => world.send('ANSWER.SENT', 'ANSWER.SENT'),
  unconfirmed: async (world: World) => world.send('ANSWER.SENT', 'ANSWER.LOST'),
  suspended: async (world: World) => world.send('SERVER.EXITED'),
  suspendedWhileDeciding: async (world: World) => world.send('ANSWER.SENT', 'SERVER.EXITED'),
};

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) DECISION.REPORTED [isExpiry] → expired',
    proves: 'a request without an answer ends by itself',
    given: to.open,
    when: (world) => world.decide('expired', 'decline', 'timeout'),
    shows: (t, world) => {
      t.equal(world.state, 'expired');
      t.match(world.context, { decision: 'decline', decidedBy: 'timeout', reason: 'expired' });
    },
  },
  {
    takes: '(any) DECISION.REPORTED [isWithdrawal] → withdrawn',
    proves: 'a request ends with its turn',
    given: to.unconfirmed,
    when: (world) => world.decide('turnEnded', 'cancel', 'agent'),
    shows: (t, world) => {
      t.equal(world.state, 'withdrawn');
      t.match(world.context, { decision: 'cancel', decidedBy: 'agent', reason: 'turnEnded' });
    },
  },
  {
    takes: '(any) DECISION.REPORTED → decided',
    proves: 'the decision of the agent server ends the request, whoever carried it',
    given: to.deciding,
    when: (world) => world.decide('answered', 'decline', 'terminal'),
    shows: (t, world) => {
      t.equal(world.state, 'decided');
      t.match(world.context, { decision: 'decline', decidedBy: 'terminal', reason: 'answered' });
    },
  },
  {
    takes: 'open ANSWER.SENT → deciding',
    proves: 'an answer is on its way, and decides nothing by itself',
    given: to.open,
    when: (world) => world.send('ANSWER.SENT'),
    shows: (t, world) => t.same([world.state, world.context.carried, world.context.decision], ['deciding', 1, null]),
  },
  {
    takes: 'deciding ANSWER.SENT → ∅',
    proves: 'a second answer may be on its way',
    given: to.deciding,
    when: (world) => world.send('ANSWER.SENT'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 2]),
  },
  {
    takes: 'deciding ANSWER.LOST [othersAreCarried] → ∅',
    proves: 'a lost answer leaves the other one on its way',
    given: to.two,
    when: (world) => world.send('ANSWER.LOST'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 1]),
  },
  {
    takes: 'deciding ANSWER.LOST → unconfirmed',
    proves: 'a lost answer may have been taken',
    given: to.deciding,
    when: (world) => world.send('ANSWER.LOST'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['unconfirmed', 0]),
  },
  {
    takes: 'deciding ANSWER.REPLIED [othersAreCarried] → ∅',
    proves: 'one reply of two leaves the other one on its way',
    given: to.two,
    when: (world) => world.send('ANSWER.REPLIED'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 1]),
  },
  {
    takes: 'deciding ANSWER.REPLIED → open',
    proves: 'a reply without a decision leaves the request as it was',
    given: to.deciding,
    when: (world) => world.send('ANSWER.REPLIED'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['open', 0]),
  },
  {
    takes: 'unconfirmed ANSWER.SENT → deciding',
    proves: 'a lost answer can be given again',
    given: to.unconfirmed,
    when: (world) => world.send('ANSWER.SENT'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 1]),
  },
  {
    takes: 'unconfirmed REQUEST.LISTED → open',
    proves: 'a request that the agent server still names was not decided',
    given: to.unconfirmed,
    when: (world) => world.send('REQUEST.LISTED'),
    shows: (t, world) => t.equal(world.state, 'open'),
  },
  {
    takes: '(any) SERVER.EXITED → suspended',
    proves: 'the end of the agent server decides nothing',
    given: to.deciding,
    when: (world) => world.send('SERVER.EXITED'),
    shows: (t, world) => t.same([world.state, world.context.carried, world.context.decision], ['suspended', 1, null]),
  },
  {
    takes: 'suspended ANSWER.SENT → deciding',
    proves: 'the next agent server takes an answer before its state was read',
    given: to.suspended,
    when: (world) => world.send('ANSWER.SENT'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 1]),
  },
  {
    takes: 'suspended ANSWER.LOST → ∅',
    proves: 'an answer to the ended agent server is lost, and the request stays suspended',
    given: to.suspendedWhileDeciding,
    when: (world) => world.send('ANSWER.LOST'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['suspended', 0]),
  },
  {
    takes: 'suspended ANSWER.REPLIED → ∅',
    proves: 'a late reply of the ended agent server leaves the request suspended',
    given: to.suspendedWhileDeciding,
    when: (world) => world.send('ANSWER.REPLIED'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['suspended', 0]),
  },
  {
    takes: 'suspended REQUEST.LISTED → open',
    proves: 'a request that the next agent server names waits again',
    given: to.suspended,
    when: (world) => world.send('REQUEST.LISTED'),
    shows: (t, world) => t.equal(world.state, 'open'),
  },
  {
    takes: 'suspended REQUEST.LISTED [isCarried] → deciding',
    proves: 'an answer that is still on its way stays counted',
    given: to.suspendedWhileDeciding,
    when: (world) => world.send('REQUEST.LISTED'),
    shows: (t, world) => t.same([world.state, world.context.carried], ['deciding', 1]),
  },
];

walkEvery(t, inboxRequestMachine, () => new World(), walks);

t.test('no history of events decides a request before a decision is reported', async (t) => {
  const words = fc.constantFrom<InboxRequestEvent['type'][]>(
    'ANSWER.SENT',
    'ANSWER.LOST',
    'ANSWER.REPLIED',
    'REQUEST.LISTED',
    'SERVER.EXITED',
    'DECISION.REPORTED',
  );
  fc.assert(
    fc.property(fc.array(fc.record({ word: words, reason: fc.constantFrom(...inboxReasons) })), (history) => {
      const world = new World();
      for (const { word, reason } of history) {
        if (word === 'DECISION.REPORTED') world.decide(reason);
        else world.send(word);
        const { status } = world.actor.getSnapshot();
        const isDecided = word === 'DECISION.REPORTED';
        if ((status === 'done') !== isDecided) throw new Error(`${word} led to ${world.state}`);
        if (world.context.reason !== (isDecided ? reason : null)) throw new Error(`${world.context.reason}`);
        if (world.context.carried < 0) throw new Error('fewer than no answers');
        if (isDecided) return;
      }
    }),
  );
  t.pass();
});
