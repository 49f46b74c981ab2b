import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { DeployError } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { given } from './given.ts';

/**
 * Writes generated secrets, once: into the named file, else to the terminal or standard output. With `--json` only into a
 * file: JSON documents are saved and shared.
 */
export function printSecrets(context: CommandContext, secrets: ReadonlyMap<string, string>): void {
  const { output } = context;
  const file = given(context, 'secret-out');
  const values = [...secrets.values()];
  if (file !== undefined) {
    writeSecret(context.absolute(file), `${values.join('\n')}\n`);
    output.note(`The secret of the webhook is in ${file}. Enter it in the App, then remove the file.`);
  } else if (output.json) {
    output.note(
      'A secret of the webhook was made. It is in .env; with --secret-out it is written into a file of its own.',
    );
  } else {
    output.line('');
    for (const value of values) output.line(`  Webhook secret (shown once): ${output.colors.bold(value)}`);
  }
}

/** Checks, before any change, that the file does not exist yet. @throws CliError (usage) */
export function checkSecretOut(context: CommandContext): void {
  const file = given(context, 'secret-out');
  if (file === '-')
    throw new CliError(
      'usage',
      '--secret-out names a file, not an output.',
      'Without it a new secret is printed, once.',
    );
  if (file !== undefined && existsSync(context.absolute(file)))
    throw new CliError('usage', `${file} is there already.`, 'Name a file that is not there yet: --secret-out');
}

/** Writes a new file; never overwrites an existing one. */
function writeSecret(path: string, text: string): void {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new DeployError(
      'fileFailed',
      `The secret cannot be written into ${path} (${code}).`,
      'Name a file that is not there yet: --secret-out',
      {
        cause: error,
      },
    );
  }
}
