import { HttpError } from '../../http/index.ts';
import { type ReviewErrorCode, reviewErrors } from '../errors.ts';

/** HTTP error of a table row. */
export const apiError = (
  code: ReviewErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): HttpError => new HttpError(reviewErrors[code].status, code, message, details);

export const notFound = (what: string): HttpError => apiError('notFound', `Unknown ${what}.`);

/** Body of every error response. */
export const errorBody = ({ code, message, details }: { code: string; message: string; details: unknown }) => ({
  error: { code, message, details: details ?? {} },
});
