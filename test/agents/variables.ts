/** Variables that `main.ts` sets for the tests of agents. */
export const variable = {
  /** Directory of the agents' programs. */
  programs: 'ORATORIO_TEST_AGENT_PROGRAMS',
  /** Names of the agents to test, with commas; absent: all. */
  names: 'ORATORIO_TEST_AGENTS',
  /** Rounds of each kill. */
  rounds: 'ORATORIO_TEST_AGENT_ROUNDS',
  /** Processes to kill, with commas; absent: each. */
  victims: 'ORATORIO_TEST_AGENT_VICTIMS',
} as const;
