import { ConfigChangeError, ConfigError, LockedFileError, type PlannedUserChange } from '../config/index.ts';
import type { ExitName } from './exit-codes.ts';

/** A failure that the user can correct: one line with the problem, one with the next step. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exit: ExitName;
  readonly hint: string | null;
  readonly code: string;
  /** Facts for programs: `details` of the error with `--json`. */
  readonly details: Readonly<Record<string, unknown>> | null;

  constructor(
    exit: ExitName,
    message: string,
    hint: string | null = null,
    code: string = exit,
    details: Readonly<Record<string, unknown>> | null = null,
  ) {
    super(message);
    this.exit = exit;
    this.hint = hint;
    this.code = code;
    this.details = details;
  }
}

/** A command line that cannot be understood. */
export const usageError = (message: string, command = ''): CliError =>
  new CliError('usage', message, `See: oratorio ${command === '' ? '' : `${command} `}--help`);

/** A configuration file that cannot be used. @param error names the file and the setting */
export const invalidConfig = ({ message }: Error): CliError =>
  new CliError('failure', message, 'Correct the file, then try again.', 'invalidConfig');

/**
 * Writes a planned change of the user's configuration.
 * @throws CliError when another process has damaged or locked the file
 */
export function saveUserChange(change: PlannedUserChange): void {
  try {
    change.apply();
  } catch (error) {
    if (error instanceof LockedFileError) throw new CliError('failure', error.message, 'Nothing was changed.');
    if (!(error instanceof ConfigError || error instanceof ConfigChangeError)) throw error;
    throw invalidConfig(error);
  }
}

export { quotedPath as quoted } from '../config/index.ts';
