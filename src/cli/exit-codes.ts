/** Exit codes of this process. `--help` and `docs/cli.md` repeat this table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'Done. Also: following was ended with Ctrl-C.' },
  failure: { code: 1, meaning: 'Something else went wrong.' },
  usage: { code: 2, meaning: 'The command line is wrong.' },
  hubUnavailable: { code: 3, meaning: 'No Hub is running and none could be (or should be) started.' },
  workspaceNotFound: { code: 4, meaning: 'The path does not exist or is not a workspace.' },
  workspaceLocked: { code: 5, meaning: 'Another agent server owns the workspace and does not answer.' },
  startFailed: { code: 6, meaning: 'The agent server could not be started or is unhealthy.' },
  precondition: {
    code: 7,
    meaning: 'Something that is needed is missing or taken: engine, port, directory. Nothing was changed.',
  },
  credentials: { code: 8, meaning: 'The source refuses the credentials.' },
  unhealthy: {
    code: 9,
    meaning: 'A check has failed, or the stack or a change of it is not healthy. A change was undone where possible.',
  },
  interrupted: { code: 130, meaning: 'Interrupted by Ctrl-C before it was done.' },
  terminated: { code: 143, meaning: 'Ended by SIGTERM before it was done.' },
} as const satisfies Record<string, { code: number; meaning: string }>;

export type ExitName = keyof typeof exitCodes;
