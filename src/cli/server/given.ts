import { readSecretFile } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';

/** The value of an option, where it was given. */
export function given({ options }: CommandContext, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/** Directory of the stack, absolute. */
export const stackDirectory = (context: CommandContext, byDefault = '.'): string =>
  context.absolute(given(context, 'dir') ?? byDefault);

/** Options that are required when no terminal can prompt for them. */
export const isMissing = (context: CommandContext, command: string, flag: string, what: string): CliError =>
  usageError(
    `${what} is missing: give --${flag}${context.options['yes'] === true ? '' : ', or run it at a terminal to be asked'}.`,
    command,
  );

/** Reads a secret from a file; `-` is standard input. `what` names the secret in messages: `The model key`. */
export async function secretText(context: CommandContext, path: string, what: string): Promise<string> {
  const { text, warnings } = await readSecretFile(path === '-' ? path : context.absolute(path), what);
  for (const warning of warnings) context.output.warn(warning);
  return text;
}

/** `owner=7` of an option that may be given more than once. */
export function pairs(context: CommandContext, option: string, shape: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const text of context.lists[option] ?? []) {
    const at = text.indexOf('=');
    if (at < 1 || at === text.length - 1) throw new CliError('usage', `--${option} must be ${shape}, not ${text}.`);
    found.set(text.slice(0, at), text.slice(at + 1));
  }
  return found;
}
