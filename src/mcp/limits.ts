import { defaults } from '../protocol/index.ts';

const mebibyte = 1_048_576;

/** Every timeout and limit of this room that is not a user's setting. Units are in the names. */
export const limits = {
  /** From the end of a server's input to SIGTERM, and from there to SIGKILL: together below what our own stop may take. */
  closeGraceMs: 500,
  gracefulStopMs: 1_000,
  killVerifyMs: defaults.supervise.killVerifyMs,
  /** For what a dead server left in its process group, between SIGTERM and SIGKILL. */
  sweepGraceMs: 500,
  /** A server on pipes that has not answered `server/discover` by then is one of the older era. At most half of its start-up time. */
  probeMs: 10_000,
  /** Before a subscription that the server ended is asked for again. */
  resubscribeMs: 1_000,
  /** After the exit of a server, for what is still in its pipes. */
  drainMs: 100,
  /** Of one message of a server. */
  messageBytes: 16 * mebibyte,
  stderrBytes: 8_192,
  /** Of standard error that an error text quotes. */
  quotedStderrChars: 1_000,
  errorChars: 500,
  tools: 512,
  descriptionChars: 4_000,
  resultChars: 50_000,
  images: 8,
  /** Of all images of one result, as they come: in base64. */
  imageChars: 8 * mebibyte,
} as const;
