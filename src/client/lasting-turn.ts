/** A turn that is followed over lost connections. */
import * as v from 'valibot';
import { isRunningStatus } from '../protocol/index.ts';
import type { AppServerClient } from './app-server-client.ts';
import { AppServerConnectionError } from './errors.ts';
import { followTurn, type RunningTurn, type TurnEvent } from './running-turn.ts';

const Turn = v.looseObject({
  id: v.string(),
  status: v.string(),
  interruptedBy: v.optional(v.string()),
  items: v.optional(v.array(v.unknown()), []),
});
type Turn = v.InferOutput<typeof Turn>;
const ThreadResult = v.looseObject({ thread: v.looseObject({ turns: v.optional(v.array(Turn), []) }) });
const Said = v.looseObject({ type: v.literal('agentMessage'), id: v.string(), text: v.string() });

const isRunning = ({ status }: Turn): boolean => isRunningStatus(status);

/** Text of the messages of a turn that the caller has, by item. */
type SeenMessages = Map<string, string>;

/**
 * Follows a turn over lost connections, to its end. Messages are neither repeated nor cut; other events of the time without a
 * connection are missing.
 *
 * @param reconnect resolves with another connection to the agent server, or throws to give up
 * @throws AppServerConnectionError when the turn ended with its server, or is unknown there
 * @example for await (const event of lastingTurn(turn, () => connectAgain())) console.log(event.type);
 */
export function lastingTurn(
  turn: RunningTurn,
  reconnect: (reason: AppServerConnectionError) => Promise<AppServerClient>,
): RunningTurn {
  let current = turn;
  let isInterrupted = false;
  return {
    threadId: turn.threadId,
    turnId: turn.turnId,
    async interrupt() {
      isInterrupted = true;
      await current.interrupt();
    },
    async *[Symbol.asyncIterator]() {
      const seen: SeenMessages = new Map();
      for (;;) {
        try {
          yield* withMissingText(current, seen);
          return;
        } catch (error) {
          if (!(error instanceof AppServerConnectionError)) throw error;
          current = await rejoin(turn, reconnect, error);
          // The interruption may have been lost with the connection. A turn that has ended refuses it.
          if (isInterrupted) await current.interrupt().catch(() => undefined);
        }
      }
    },
  };
}

/** Error of a turn that ended with its server or is unknown: a new connection does not help. */
class LostTurnError extends AppServerConnectionError {}

/** Joins a turn again, and reconnects until it succeeds. */
async function rejoin(
  turn: RunningTurn,
  reconnect: (reason: AppServerConnectionError) => Promise<AppServerClient>,
  reason: AppServerConnectionError,
): Promise<RunningTurn> {
  for (let lost = reason; ; ) {
    const server = await reconnect(lost);
    try {
      return await joinTurn(server, turn);
    } catch (error) {
      if (!(error instanceof AppServerConnectionError) || error instanceof LostTurnError) throw error;
      lost = error;
    }
  }
}

/**
 * Joins a turn that another connection began: its current state comes first, then its further events.
 *
 * @throws AppServerConnectionError when the turn ended with its server, or is unknown
 * @example for await (const event of await joinTurn(server, { threadId, turnId })) console.log(event.type);
 */
export async function joinTurn(
  server: AppServerClient,
  { threadId, turnId }: Pick<RunningTurn, 'threadId' | 'turnId'>,
): Promise<RunningTurn> {
  const { turn: running, queue, leave } = followTurn(server, threadId, turnId);
  try {
    await server.request('thread/resume', { threadId });
    await server.request('thread/subscribe', { threadId, replayRecent: true });
    const answer = v.safeParse(ThreadResult, await server.request('thread/read', { threadId, includeTurns: true }));
    const turn = answer.success ? answer.output.thread.turns.find(({ id }) => id === turnId) : undefined;
    if (!turn) throw new LostTurnError('The agent server no longer knows the turn.');
    if (turn.status === 'cancelled' && turn.interruptedBy === 'crash')
      throw new LostTurnError('The agent server ended in the middle of the turn.');
    if (!isRunning(turn)) {
      queue.push({ method: 'turn/started', params: { threadId, turn } });
      queue.push({ method: `turn/${turn.status}`, params: { threadId, turn } });
    }
    return running;
  } catch (error) {
    leave();
    throw error;
  }
}

async function* withMissingText(turn: RunningTurn, seen: SeenMessages): AsyncGenerator<TurnEvent, void, undefined> {
  for await (const event of turn) {
    if (event.type === 'other' && event.method === 'turn/started') yield* missingText(event.params['turn'], seen);
    noteMessage(seen, event);
    yield event;
  }
}

function noteMessage(seen: SeenMessages, event: TurnEvent): void {
  if (event.type === 'message') seen.set(event.itemId, `${seen.get(event.itemId) ?? ''}${event.text}`);
}

/** Text of the turn's messages beyond the known text. A message that differs from the known one is left alone. */
function* missingText(given: unknown, seen: SeenMessages): Generator<TurnEvent> {
  const turn = v.safeParse(Turn, given);
  for (const item of turn.success ? turn.output.items : []) {
    const said = v.safeParse(Said, item);
    if (!said.success) continue;
    const { id: itemId, text } = said.output;
    const known = seen.get(itemId) ?? '';
    if (text.length <= known.length || !text.startsWith(known)) continue;
    const event = { type: 'message', itemId, text: text.slice(known.length) } as const;
    noteMessage(seen, event);
    yield event;
  }
}
