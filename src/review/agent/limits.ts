/** Bounds of one review by an agent; times in milliseconds, lengths in characters unless said. */
export interface AgentLimits {
  /** How often a draft may be handed in; the last one holds as it is. */
  readonly submissions: number;
  /** Of diff in the prompt: what is beyond it the model reads in the worktree. */
  readonly promptDiffBytes: number;
  /** Names that are listed of what the prompt has no room for. */
  readonly listedFiles: number;
  readonly titleChars: number;
  readonly descriptionChars: number;
  readonly focusChars: number;
  /** Of each text of instructions. */
  readonly instructionChars: number;
  /** Number of open findings in the prompt, and length of each. */
  readonly openFindings: number;
  readonly findingChars: number;
  /** For an interrupted turn to end. */
  readonly endTurnMs: number;
  /** For one request to the agent server. */
  readonly requestMs: number;
  /** For the Hub to find or start the agent server of a workspace. */
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
  ensureMs: 120_000,
};
