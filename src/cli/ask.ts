/** Questions to a person at a terminal. A Ctrl-C at any of them ends the command with nothing changed. */
import { spawnSync } from 'node:child_process';
import { confirm, password, select, text } from '@clack/prompts';
import { visible } from '../lib/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';

/** Validates an answer: undefined when it is good, else the problem. */
export type Check = (answer: string) => string | undefined;

interface TextQuestion {
  readonly message: string;
  readonly placeholder?: string;
  readonly initial?: string;
  readonly check?: Check;
}

function answered<T extends string | boolean | undefined>(answer: T | symbol): T {
  if (typeof answer !== 'symbol') return answer;
  throw new CliError('interrupted', 'Cancelled: nothing was changed.');
}

const checked = (check: Check | undefined) =>
  check && {
    validate: (answer: string | undefined) => {
      const problem = check((answer ?? '').trim());
      return problem === undefined ? undefined : visible(problem);
    },
  };

/** Whether the command can ask a person: no option forbids it, and there is a terminal on both sides. */
export const canAsk = ({ options, output }: CommandContext): boolean =>
  options['yes'] !== true && !output.json && output.isTTY && process.stdin.isTTY === true;

/**
 * Whether typed or pasted lines wait at the terminal. A question would consume them, although they are meant for the shell. Node cannot
 * poll input without consuming it, so Perl does. Without Perl, this returns false.
 */
export function inputWaits(): boolean {
  const poll = 'vec($in, 0, 1) = 1; exit(select($in, undef, undef, 0) > 0 ? 10 : 0)';
  return spawnSync('perl', ['-e', poll], { stdio: ['inherit', 'ignore', 'ignore'], timeout: pollMs }).status === 10;
}

/** Longest wait for the poll, in milliseconds. */
const pollMs = 2_000;

export async function askText({ message, placeholder, initial, check }: TextQuestion): Promise<string> {
  const answer = await text({
    message: visible(message),
    ...(placeholder !== undefined && { placeholder: visible(placeholder, { multiline: false }) }),
    ...(initial !== undefined && { initialValue: initial }),
    ...checked(check),
  });
  return (answered<string | undefined>(answer) ?? '').trim();
}

/** An answer that the terminal does not show. */
export async function askSecret(message: string, check?: Check): Promise<string> {
  return (
    answered<string | undefined>(await password({ message: visible(message), mask: '•', ...checked(check) })) ?? ''
  ).trim();
}

export async function askChoice<T extends string>(
  message: string,
  choices: readonly { readonly value: T; readonly label: string; readonly hint?: string }[],
): Promise<T> {
  const options = choices.map(({ value, label, hint }) => ({
    value,
    label: visible(label),
    ...(hint !== undefined && { hint: visible(hint) }),
  }));
  // The library types its options by their possible values; ours are all texts.
  const answer = await select<string>({ message: visible(message), options });
  const chosen = answered<string>(answer);
  const found = choices.find(({ value }) => value === chosen);
  if (!found) throw new Error(`${chosen} was not among the choices`);
  return found.value;
}

export const askYesNo = async (message: string, initialValue: boolean): Promise<boolean> =>
  answered<boolean>(await confirm({ message: visible(message), initialValue }));
