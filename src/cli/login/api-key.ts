import type { KeySettings } from '../../agent/index.ts';
import { readBoundedFile } from '../../lib/index.ts';
import { askSecret, canAsk } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';

const noKey: KeySettings = { ApiKey: undefined, ApiKeyCommand: undefined };
const sources = ['api-key-file', 'api-key-env', 'api-key-command'] as const;

/** Whether an option names the source of the key, so that a person is not asked. */
export const isKeyGiven = ({ options }: Pick<CommandContext, 'options'>): boolean =>
  sources.some((name) => typeof options[name] === 'string');

/** Longest file that can be a key, in bytes. */
const maxBytes = 16_384;

/**
 * The key from a file, an environment variable, a command or a hidden prompt; never from the command line, which other users
 * can read.
 * @param keyPage page that issues keys, '' for an unknown one; undefined: the provider needs none
 * @throws CliError
 */
export async function givenKey(context: CommandContext, keyPage: string | undefined): Promise<KeySettings> {
  const { options } = context;
  const [first, second] = sources.filter((name) => typeof options[name] === 'string');
  if (first && second) throw usageError(`--${first} and --${second} exclude each other.`, 'login');
  const value = first && options[first];
  if (first && typeof value === 'string') return readers[first](value, context);
  if (keyPage === undefined) return noKey;
  if (!canAsk(context)) {
    throw usageError('There is no key: give --api-key-file, --api-key-env or --api-key-command.', 'login');
  }
  const isOptional = keyPage === '';
  const key = await askSecret(
    isOptional ? 'Key (empty if the service needs none)' : `Key (get one at ${keyPage})`,
    (answer) => (answer === '' && isOptional ? undefined : problemOf(answer)),
  );
  return key === '' ? noKey : { ...noKey, ApiKey: key };
}

const readers: Readonly<
  Record<(typeof sources)[number], (value: string, context: CommandContext) => KeySettings | Promise<KeySettings>>
> = {
  async 'api-key-file'(file, { absolute }) {
    const isStandardInput = file === '-';
    const text = isStandardInput
      ? await standardInput()
      : readBoundedFile(absolute(file), { owner: 'any', links: 'follow', maxBytes });
    const key = text?.trim();
    if (key === undefined) throw usageError(`${file} does not exist.`, 'login');
    const problem = problemOf(key);
    if (problem !== undefined)
      throw usageError(`${isStandardInput ? 'Standard input' : file} holds no key. ${problem}`, 'login');
    return { ...noKey, ApiKey: key };
  },
  'api-key-env'(name, { env }) {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw usageError('--api-key-env takes the name of a variable.', 'login');
    if (!env[name]?.trim()) throw usageError(`The environment variable ${name} is not set.`, 'login');
    return { ...noKey, ApiKey: `\${${name}}` };
  },
  'api-key-command'(line) {
    const words = line.split(/\s+/).filter((word) => word !== '');
    if (words.length === 0) throw usageError('--api-key-command needs a program.', 'login');
    return { ...noKey, ApiKeyCommand: words };
  },
};

/** @throws CliError (usage) when it is longer than a key */
async function standardInput(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > maxBytes) throw usageError(`Standard input is larger than ${maxBytes} bytes.`, 'login');
  }
  return text;
}

function problemOf(key: string): string | undefined {
  if (key === '') return 'Paste the key; it is not shown.';
  // In the configuration, ${…} stands for a variable.
  return /\s|\$\{/.test(key) ? 'A key is one word.' : undefined;
}
