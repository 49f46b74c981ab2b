import type { ExitName } from './exit-codes.ts';

/** A failure the user can do something about: one line what, one line what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exit: ExitName;
  readonly hint: string | null;
  readonly code: string;

  constructor(exit: ExitName, message: string, hint: string | null = null, code: string = exit) {
    super(message);
    this.exit = exit;
    this.hint = hint;
    this.code = code;
  }
}

/** A command line that cannot be understood. */
export const usageError = (message: string, command = ''): CliError =>
  new CliError('usage', message, `See: oratorio ${command === '' ? '' : `${command} `}--help`);

/** A configuration file that cannot be used. @param error names the file and the setting */
export const invalidConfig = ({ message }: Error): CliError =>
  new CliError('failure', message, 'Correct the file, then try again.', 'invalidConfig');

export { quotedPath as quoted } from '../config/index.ts';
