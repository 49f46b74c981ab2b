import { defaults } from '../protocol/index.ts';

/** Limits of the face for editors. Units are in the names. */
export const limits = {
  /** Of one message of the editor. */
  messageBytes: 32 * 1_048_576,
  /** Of a prompt on its way to the agent server: its frames are not longer. */
  promptBytes: defaults.jsonRpc.frameBytes - 65_536,
  /** Messages that wait for an editor which does not read. */
  unreadMessages: 10_000,
  /** Of a command's output, the end of which is shown while it runs. */
  outputChars: 20_000,
  outputMs: 200,
  /** Of a tool's result, and of each side of a difference. */
  contentChars: 100_000,
  /** How long the turns of an editor that has gone are waited for. */
  leaveMs: 2_000,
  sessionsPerPage: 100,
} as const;
