/** Parses docs/tutorial.md: commands, and the output that follows each. */

/** One fenced block. `terminal` is the word after the language: absent in the first terminal. */
export interface Block {
  readonly kind: 'sh' | 'text';
  readonly terminal: string;
  readonly text: string;
  /** Line of the page, from 1. */
  readonly line: number;
}

/** All fenced blocks, in order. @throws Error for a language other than `sh` and `text`, so that no command is left out */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w*) ?(\w*)\n([\s\S]*?)^```$/gm)].map(
    ([, kind, terminal = '', text = ''], at, all) => {
      const line = page.slice(0, all[at]?.index).split('\n').length;
      if (kind !== 'sh' && kind !== 'text') throw new Error(`line ${line}: a block in ${kind || 'no language'}`);
      return { kind, terminal: terminal || 'first', text, line };
    },
  );
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/**
 * The first line of `expected` that does not occur in `output`; undefined when all occur, in order. `…` stands for any text of a
 * line, and a line of nothing else for any lines. Spaces at the ends of lines do not count.
 */
export function missingLine(expected: string, output: string): string | undefined {
  const lines = output.split('\n').map((line) => line.trimEnd());
  let from = 0;
  for (const wanted of expected.split('\n').filter((line) => line.trim() !== '' && line.trim() !== '…')) {
    const pattern = new RegExp(`^${wanted.trimEnd().split('…').map(escaped).join('.*')}$`);
    const found = lines.findIndex((line, at) => at >= from && pattern.test(line));
    if (found === -1) return wanted;
    from = found + 1;
  }
  return undefined;
}
