import { defaults } from '../protocol/index.ts';

/** What one run may bring, and how long it is waited for. Units are in the names. */
export const limits = {
  bodyBytes: defaults.http.chatBodyBytes,
  messages: defaults.chat.maxMessages,
  tools: 128,
  contextEntries: 100,
  /** Of one entry of context, or of the state. */
  contextChars: 20_000,
  /** Of all that becomes instructions. */
  instructionChars: 60_000,
  /** Of an id that a client has chosen. */
  idChars: 512,
  disconnectGraceMs: 5_000,
} as const;
