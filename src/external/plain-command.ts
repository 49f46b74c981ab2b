import { shellWord } from '../lib/index.ts';

/** A word without quotes, in single quotes, or in double quotes without expansions. Words of other forms are not parsed. */
const word = /[ \t]*(?:([\w@%+:,./=-]+)|'([^']*)'|"([^"\\$`!]*)")(?=[ \t]|$)/y;
const shells = /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|z)?sh$/;
const commandFlags: ReadonlySet<string> = new Set(['-c', '-lc']);

/**
 * One spelling for commands that mean the same: words are quoted alike, and a shell around one script is removed. A script with more
 * than plain words stays unchanged.
 */
export function plainCommand(command: string): string {
  const words = wordsOf(command.trim());
  // The first word may set a variable, or name a program with such a name.
  if (!words?.[0] || words[0].includes('=')) return command.trim();
  const [program = '', flag = '', script] = words;
  const isWrapped = words.length === 3 && shells.test(program) && commandFlags.has(flag) && script !== undefined;
  return isWrapped ? plainCommand(script) : words.map(shellWord).join(' ');
}

function wordsOf(command: string): string[] | undefined {
  const words: string[] = [];
  word.lastIndex = 0;
  for (let at = 0; at < command.length; at = word.lastIndex) {
    const match = word.exec(command);
    if (!match) return undefined;
    words.push(match[1] ?? match[2] ?? match[3] ?? '');
  }
  return words;
}
