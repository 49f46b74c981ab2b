import t from 'tap';
import { createActor } from 'xstate';
import {
  type EarlierHealth,
  type EndedTurn,
  healthOf,
  type WorkspaceHealthEvent,
  workspaceHealthMachine,
} from '../../machines/workspace-health.ts';
import { transitionLog, type Walk, walkEvery } from './harness.ts';

/** A workspace whose turns and MCP servers are the test's. */
class World {
  readonly taken: string[] = [];
  readonly actor;

  constructor(earlier: EarlierHealth | null = null) {
    this.actor = createActor(workspaceHealthMachine, {
      inspect: transitionLog(this.taken, (actor) => actor.id === 'workspace-health'),
      id: 'workspace-health',
      input: { earlier },
    });
    this.actor.start();
  }

  send(event: WorkspaceHealthEvent): void {
    this.actor.send(event);
  }

  end(status: EndedTurn['status'], code: string | null = null): void {
    const message = code === null ? null : `It is ${code}.`;
    this.send({ type: 'TURN.ENDED', turn: { status, endedAt: '2026-01-01T00:00:00.000Z', code, message } });
  }

  get health() {
    return healthOf(this.actor.getSnapshot());
  }

  get context() {
    return this.actor.getSnapshot().context;
  }
}

const down = { total: 2, down: [{ name: 'docs', error: 'It exited with code 1.' }], toolProblems: [] };

const walks: readonly Walk<World>[] = [
  {
    takes: '(any) TURN.ENDED → judging',
    proves: 'the end of a turn is recorded and judged',
    given: async () => {},
    when: (world) => world.end('completed'),
    shows: (t, world) => t.match(world.context, { lastTurn: { status: 'completed' }, failuresInARow: 0 }),
  },
  {
    takes: '(any) TOOLS.CHANGED → judging',
    proves: 'a change of an MCP server is recorded and judged',
    given: async () => {},
    when: (world) => world.send({ type: 'TOOLS.CHANGED', tools: down }),
    shows: (t, world) => t.same(world.context.tools, down),
  },
  {
    takes: 'judging always [failureLasts] → failing',
    proves: 'a refused key fails every next turn',
    given: async () => {},
    when: (world) => world.end('failed', 'upstreamUnauthorized'),
    shows: (t, world) => t.same([world.health, world.context.failuresInARow], ['failing', 1]),
  },
  {
    takes: 'judging always [isImpaired] → degraded',
    proves: 'one failure that may pass is no failing workspace',
    given: async () => {},
    when: (world) => world.end('failed', 'upstreamRateLimited'),
    shows: (t, world) => t.equal(world.health, 'degraded'),
  },
  {
    takes: 'judging always [hasAnswered] → healthy',
    proves: 'a completed turn proves that the workspace works',
    given: async (world) => world.end('failed', 'upstreamUnauthorized'),
    when: (world) => world.end('completed'),
    shows: (t, world) => t.same([world.health, world.context.failure], ['healthy', null]),
  },
  {
    takes: 'judging always → unknown',
    proves: 'before the first turn nothing is known',
    given: async () => {},
    when: (world) => world.send({ type: 'TOOLS.CHANGED', tools: { total: 2, down: [], toolProblems: [] } }),
    shows: (t, world) => t.equal(world.health, 'unknown'),
  },
];

walkEvery(t, workspaceHealthMachine, () => new World(), walks);

t.test('the second failure with the same code is failing, with any code', async (t) => {
  const world = new World();
  world.end('failed', 'upstreamRejected');
  t.equal(world.health, 'degraded');
  world.end('failed', 'upstreamFailed');
  t.equal(world.health, 'degraded', 'another reason');
  world.end('failed', 'upstreamFailed');
  t.same([world.health, world.context.failuresInARow], ['failing', 3]);
});

t.test('a cancelled turn and a failure of one conversation change the last turn only', async (t) => {
  const world = new World();
  world.end('completed');
  for (const [status, code] of [
    ['cancelled', null],
    ['failed', 'contextTooLong'],
    ['failed', 'promptBlocked'],
    ['failed', 'agentUnsuited'],
  ] as const) {
    world.end(status, code);
    t.equal(world.health, 'healthy', String(code));
    t.match(world.context.lastTurn, { status, code });
  }
});

t.test('a missing MCP server degrades a workspace whose turns work', async (t) => {
  const world = new World();
  world.end('completed');
  world.send({ type: 'TOOLS.CHANGED', tools: down });
  t.equal(world.health, 'degraded');
  world.send({ type: 'TOOLS.CHANGED', tools: { total: 2, down: [], toolProblems: [] } });
  t.equal(world.health, 'healthy');
});

t.test('a restart with unchanged settings begins with the remembered failure, until a turn is completed', async (t) => {
  const message = 'The upstream answered 401.';
  const world = new World({
    lastTurn: { status: 'failed', endedAt: '2026-01-01T00:00:00.000Z', code: 'upstreamUnauthorized', message },
    failure: { code: 'upstreamUnauthorized', message },
    failuresInARow: 6,
  });
  t.equal(world.health, 'failing');
  world.end('completed');
  t.equal(world.health, 'healthy');
});
