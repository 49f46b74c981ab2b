import { type Header, HttpError } from '../http/index.ts';
import { type HubErrorBody, type HubErrorCode, hubErrors } from '../protocol/index.ts';

/** A refusal in the Hub's contract (specification §2.7 and §7.1). The status comes from the table unless the code has two. */
export function hubError(
  code: HubErrorCode,
  message: string,
  details: Record<string, unknown> | null = null,
  status: number = hubErrors[code].status,
  headers: readonly Header[] = [],
): HttpError {
  return new HttpError(status, code, message, details, headers);
}

/** The error object of specification §2.7. */
export function hubErrorBody({
  code,
  message,
  details,
}: {
  code: string;
  message: string;
  details: unknown;
}): HubErrorBody {
  if (code === 'unauthorized') return { error: { code, message: 'Missing or invalid Hub token.', details: null } };
  // The server room has a word of its own for a bug; ours is the contract's.
  if (code === 'internalError') return hubErrorBody({ code: 'hubInternalError', message, details });
  return { error: { code, message, details: isFilled(details) ? details : null } };
}

function isFilled(details: unknown): details is Record<string, unknown> {
  return typeof details === 'object' && details !== null && Object.keys(details).length > 0;
}
