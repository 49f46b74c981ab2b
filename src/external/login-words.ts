import { plainText, shellWord } from '../lib/index.ts';
import type { AuthMethod } from './messages.ts';

const maxChars = 300;

/** Next step for an agent that needs a log-in, from the agent's login methods. Completes "log in: …". */
export function loginWords(agent: string, command: readonly string[], methods: readonly AuthMethod[]): string {
  const known = methods.filter(({ id }) => id !== undefined);
  if (known.length === 0) return 'see its documentation';
  const terminal = known.find(({ type }) => type === 'terminal');
  if (terminal) {
    const { args = [], env = {} } = terminal;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`);
    return `run ${plain([...variables, ...[...command, ...args].map(shellWord)].join(' '))}`;
  }
  const names = known.map(({ id = '', name }) => plain(name ?? id));
  return `run oratorio login --agent ${shellWord(agent)} (${names.join(', or ')})`;
}

const plain = (text: string): string => plainText(text).replaceAll(/\s+/g, ' ').trim().slice(0, maxChars);
