/**
 * Health of one workspace as its users meet it: whether turns come to an answer and tools can be called. A process that
 * answers probes can still be useless, because a key is refused or a model is missing.
 *
 * Detailed operation
 * 1. Each end of a turn and each change of an MCP server is recorded, and the health is judged again.
 * 2. A failure that lasts until a user acts (`lastingFailures`) makes the workspace `failing` at once, any other failure when
 *    the next turn fails with the same code. One failure that may pass makes it `degraded`, and so does an MCP server that is down.
 * 3. A cancelled turn, and a failure that concerns its conversation only (`conversationFailures`), change nothing but the
 *    last turn. A completed turn ends every doubt about the model.
 * 4. A server that is started again with unchanged settings begins with the failure that the Hub remembers.
 */
import { assertEvent, assign, type SnapshotFrom, setup } from 'xstate';

/** Failures that the next turn meets again, until a user changes something. */
export const lastingFailures: ReadonlySet<string> = new Set([
  'upstreamUnauthorized',
  'upstreamUnreachable',
  'upstreamQuotaExceeded',
  'budgetReached',
  'storageFailed',
]);

/** Failures that say nothing about the next turn: those of one conversation, and of a server that is restarted for an upgrade. */
export const conversationFailures: ReadonlySet<string> = new Set([
  'contextTooLong',
  'promptBlocked',
  'agentUnsuited',
  'programReplaced',
]);

export interface EndedTurn {
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** ISO 8601. */
  readonly endedAt: string;
  /** Code of the failure; null without one. */
  readonly code: string | null;
  /** The failure in a sentence; null without one. */
  readonly message: string | null;
}

export interface ToolServers {
  readonly total: number;
  readonly down: readonly {
    readonly name: string;
    readonly error: string | null;
    /** Waits for a log-in of the user. */
    readonly needsLogin?: boolean | undefined;
  }[];
  /** Sentences about tools that are left out or offered in part. They do not impair the workspace. */
  readonly toolProblems: readonly string[];
}

/** Failures of an earlier process of the same workspace with the same settings. */
export interface EarlierHealth {
  readonly lastTurn: EndedTurn | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly failuresInARow: number;
}

export interface WorkspaceHealthInput {
  readonly earlier: EarlierHealth | null;
}

export interface WorkspaceHealthContext extends EarlierHealth {
  /** The last two counted failures had the same code. */
  readonly isRepeated: boolean;
  /** A turn of this process has completed. */
  readonly hasAnswered: boolean;
  readonly tools: ToolServers;
}

export type WorkspaceHealthEvent =
  | { readonly type: 'TURN.ENDED'; readonly turn: EndedTurn }
  | { readonly type: 'TOOLS.CHANGED'; readonly tools: ToolServers };

/** Changes of the context by the end of a turn. */
function afterTurn(context: WorkspaceHealthContext, turn: EndedTurn): Partial<WorkspaceHealthContext> {
  const { status, code, message } = turn;
  if (status === 'completed') {
    return { lastTurn: turn, failure: null, failuresInARow: 0, isRepeated: false, hasAnswered: true };
  }
  if (status === 'cancelled' || code === null || conversationFailures.has(code)) return { lastTurn: turn };
  return {
    lastTurn: turn,
    failure: { code, message: message ?? '' },
    failuresInARow: context.failuresInARow + 1,
    isRepeated: context.failure?.code === code,
  };
}

export const workspaceHealthMachine = setup({
  types: {
    input: {} as WorkspaceHealthInput,
    context: {} as WorkspaceHealthContext,
    events: {} as WorkspaceHealthEvent,
  },
  guards: {
    failureLasts: ({ context }) =>
      context.failure !== null && (context.isRepeated || lastingFailures.has(context.failure.code)),
    isImpaired: ({ context }) => context.failure !== null || context.tools.down.length > 0,
    hasAnswered: ({ context }) => context.hasAnswered,
  },
  actions: {
    recordTurn: assign(({ context, event }) => {
      assertEvent(event, 'TURN.ENDED');
      return afterTurn(context, event.turn);
    }),
    recordTools: assign(({ event }) => {
      assertEvent(event, 'TOOLS.CHANGED');
      return { tools: event.tools };
    }),
  },
}).createMachine({
  id: 'workspace-health',
  description: 'Judges whether the turns and tools of a workspace work.',
  context: ({ input: { earlier } }) => ({
    lastTurn: earlier?.lastTurn ?? null,
    failure: earlier?.failure ?? null,
    failuresInARow: earlier?.failuresInARow ?? 0,
    isRepeated: (earlier?.failuresInARow ?? 0) > 1,
    hasAnswered: false,
    tools: { total: 0, down: [], toolProblems: [] },
  }),
  initial: 'judging',
  on: {
    'TURN.ENDED': { target: '.judging', actions: 'recordTurn' },
    'TOOLS.CHANGED': { target: '.judging', actions: 'recordTools' },
  },
  states: {
    judging: {
      description: 'Derives the health from the recorded facts.',
      meta: { kind: 'works', lane: 'spine', order: 0 },
      always: [
        { guard: 'failureLasts', target: 'failing' },
        { guard: 'isImpaired', target: 'degraded' },
        { guard: 'hasAnswered', target: 'healthy' },
        { target: 'unknown' },
      ],
    },
    unknown: {
      description: 'No turn has ended yet, and no tool is missing.',
      meta: { kind: 'rests', lane: 'spine', order: 1 },
    },
    healthy: {
      description: 'The last counted turn was completed, and every MCP server is there.',
      meta: { kind: 'serves', lane: 'spine', order: 2 },
    },
    degraded: {
      description: 'The last turn failed for a reason that may pass, or an MCP server is down.',
      meta: { kind: 'unwell', lane: 'exception', order: 1 },
    },
    failing: {
      description: 'Turns fail for a reason that lasts until a user acts.',
      meta: { kind: 'failed', lane: 'exception', order: 2 },
    },
  },
});

export type WorkspaceHealthSnapshot = SnapshotFrom<typeof workspaceHealthMachine>;

/** The judgement of a snapshot. */
export function healthOf({ value }: WorkspaceHealthSnapshot): 'unknown' | 'healthy' | 'degraded' | 'failing' {
  return value === 'judging' ? 'unknown' : value;
}
