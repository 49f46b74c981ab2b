/** Bounds of one review by an agent; times in milliseconds, lengths in characters unless said. */
export interface AgentLimits {
  /** Submissions of a draft. The last one counts, even with findings that have no place. */
  readonly submissions: number;
  /** Bytes of diff in the prompt. The model reads the rest in the worktree. */
  readonly promptDiffBytes: number;
  /** Names listed of the files that do not fit into the prompt. */
  readonly listedFiles: number;
  readonly titleChars: number;
  readonly descriptionChars: number;
  readonly focusChars: number;
  /** Length of each text of instructions. */
  readonly instructionChars: number;
  /** Number of open findings in the prompt, and length of each. */
  readonly openFindings: number;
  readonly findingChars: number;
  /** Time for an interrupted turn to end. */
  readonly endTurnMs: number;
  /** Time for one request to the agent server. */
  readonly requestMs: number;
  /** Time for a session to reach its agent server again after a lost connection. */
  readonly reconnectMs: number;
  /** Time for the Hub to find or start the agent server of a workspace. */
  readonly ensureMs: number;
}

export const defaultAgentLimits: AgentLimits = {
  submissions: 5,
  promptDiffBytes: 262_144,
  listedFiles: 200,
  titleChars: 300,
  descriptionChars: 8_000,
  focusChars: 1_000,
  instructionChars: 20_000,
  openFindings: 50,
  findingChars: 1_500,
  endTurnMs: 30_000,
  requestMs: 30_000,
  reconnectMs: 60_000,
  ensureMs: 120_000,
};
