import { HttpError } from '../http/index.ts';
import { ChatTurn } from './chat-turn.ts';
import { ResponseLog, type ResponseState } from './responses/log.ts';
import type { Outcome } from './watcher.ts';

/** Parts of an ended turn that answer the same request again. Stored as JSON. */
export interface AnswerRecord
  extends Pick<
    ChatTurn,
    'id' | 'created' | 'model' | 'sessionId' | 'text' | 'reasoning' | 'activities' | 'calls' | 'hasRunTools'
  > {
  /** Undefined: the answer is a chat completion. */
  readonly response?: ResponseState | undefined;
  /** The turn continued after the end of an agent server, and no client has this answer yet. */
  readonly isUnclaimed?: boolean;
  readonly outcome: Omit<Outcome, 'error'> & {
    readonly error: Pick<HttpError, 'status' | 'code' | 'message' | 'details' | 'headers'> | undefined;
  };
}

export function answerRecordOf(turn: ChatTurn): AnswerRecord {
  const { id, created, model, sessionId, text, reasoning, activities, calls, hasRunTools } = turn;
  const { finish = 'stop', usage, error } = turn.outcome ?? {};
  const outcome = {
    finish,
    usage,
    error: error && {
      status: error.status,
      code: error.code,
      message: error.message,
      details: error.details,
      headers: error.headers,
    },
  };
  return {
    id,
    created,
    model,
    sessionId,
    text,
    reasoning,
    activities,
    calls,
    hasRunTools,
    outcome,
    response: turn.response?.state,
  };
}

/** The ended turn of a record. */
export function answeredTurn(record: AnswerRecord): ChatTurn {
  const { id, created, model, sessionId, calls, outcome, response } = record;
  const turn = new ChatTurn({
    identity: { id, created },
    model,
    sessionId,
    showsActivity: false,
    onlyFinalText: false,
    callerTools: calls.map(({ name }) => name),
    onDeserted: () => {},
    response: response && new ResponseLog(response.head, response),
  });
  const { error } = outcome;
  turn.restore(record, {
    ...outcome,
    error: error && new HttpError(error.status, error.code, error.message, error.details, error.headers),
  });
  return turn;
}
