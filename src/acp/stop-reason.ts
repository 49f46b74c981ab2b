import { RequestError, type StopReason } from '@agentclientprotocol/sdk';
import type { SeenTurn } from './thread-events.ts';

/** Errors of turns after which a user logs in, at the provider or at an external agent. */
const loginCodes: ReadonlySet<string> = new Set(['upstreamUnauthorized', 'agentLoginRequired']);

/** A turn with this end was not cancelled. */
const serverEnds: ReadonlySet<string> = new Set(['shutdown', 'crash']);

/**
 * Answers a prompt whose turn has ended.
 *
 * @throws RequestError when the turn has failed, or has ended with its server
 */
export function stopReasonOf({
  status,
  interruptedBy = '',
  finishReason = 'stop',
  error,
  items,
}: SeenTurn): StopReason {
  if (status === 'cancelled') {
    if (!serverEnds.has(interruptedBy)) return 'cancelled';
    throw RequestError.internalError({ interruptedBy }, 'the agent server ended in the middle of the turn');
  }
  if (status === 'failed') {
    const { code, message } = error ?? { code: 'internalError', message: 'The turn failed.' };
    if (loginCodes.has(code)) throw RequestError.authRequired({ code }, message);
    throw RequestError.internalError({ code }, message);
  }
  const isLimited = items.some((item) => item.type === 'systemNotice' && item.kind === 'callLimitReached');
  if (isLimited) return 'max_turn_requests';
  if (finishReason === 'length') return 'max_tokens';
  return finishReason === 'contentFilter' ? 'refusal' : 'end_turn';
}
