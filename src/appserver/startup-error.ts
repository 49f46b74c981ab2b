/** Exit codes of the process (from sysexits.h where one fits). */
export const exitCodes = {
  ok: 0,
  usage: 2,
  /** EX_NOINPUT: there is no such workspace. */
  noWorkspace: 66,
  /** EX_UNAVAILABLE: a configured port is taken. */
  portTaken: 69,
  /** EX_SOFTWARE: a bug. */
  bug: 70,
  /** EX_OSERR: no permission, a full disk. */
  system: 71,
  /** EX_TEMPFAIL: another agent server holds the workspace. */
  held: 75,
  /** EX_CONFIG: a configuration file or the launch document cannot be used. */
  config: 78,
} as const;
export type ExitName = keyof typeof exitCodes;

/** The agent server cannot start. The message is one line for people and holds no secret. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
  readonly exitCode: number;

  constructor(exit: ExitName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCodes[exit];
  }
}
