import { usageError } from './errors.ts';

/**
 * The port that `--port` names; 0 stands for any free one.
 *
 * @param command name of the command, for the hint of the error
 * @throws CliError (usage) for anything but a whole number from 0 to 65535
 */
export function portOf(text: string, command: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw usageError(`--port must be a number from 0 to 65535, not ${text}.`, command);
}
