import { APICallError } from '@ai-sdk/provider';
import { ModelError } from '../../model.ts';
import { problemIn, refusedFault, reportedFault } from '../upstream/errors.ts';
import { isRecord, wordOf } from '../upstream/json.ts';

/** Depth of nested causes that is searched. */
const maxCauses = 5;

/**
 * The typed fault behind an error that a library threw or reported: our own connection's, a refusal, or an error inside the stream.
 * Anything else means that the answer was not in the form of its wire.
 */
export function libraryFault(thrown: unknown, clean: (text: string) => string): Error {
  const own = ownFault(thrown);
  if (own) return own;
  if (APICallError.isInstance(thrown)) {
    const { statusCode, responseHeaders = {}, responseBody, message } = thrown;
    if (statusCode !== undefined && (statusCode < 200 || statusCode > 299)) {
      return refusedFault(statusCode, responseHeaders, responseBody ?? message, { clean, now: Date.now() });
    }
    return unreadable(message, clean);
  }
  if (isRecord(thrown) && !(thrown instanceof Error)) {
    const inner = isRecord(thrown['data']) ? thrown['data'] : thrown;
    const problem = problemIn(inner) ?? problemIn({ error: inner });
    if (problem) return reportedFault(problem, clean);
  }
  return unreadable(thrown instanceof Error ? thrown.message : (wordOf(thrown) ?? 'no reason given'), clean);
}

function ownFault(thrown: unknown): Error | undefined {
  let error = thrown;
  for (let depth = 0; depth < maxCauses && error instanceof Error; depth += 1) {
    if (error instanceof ModelError || error.name === 'AbortError') return error;
    error = error.cause;
  }
  return undefined;
}

const unreadable = (reason: string, clean: (text: string) => string): ModelError =>
  new ModelError(
    'upstreamProtocol',
    `The upstream sent an answer that cannot be read: ${clean(reason).slice(0, 200)}.`,
  );
