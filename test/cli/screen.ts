/** Text on a screen after output with the few control sequences that prompts and spinners use. */

/** One sequence that moves or erases, or one character. Everything else (colours, titles, modes) leaves no trace. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by control characters
const parts = /\u001b\[([0-9;?]*)([A-Za-z])|\u001b\][^\u0007]*\u0007|\u001b.|([\s\S])/gu;

class Screen {
  readonly lines: string[][] = [[]];
  #row = 0;
  #column = 0;

  readonly #moves: Readonly<Record<string, (count: number, argument: string) => void>> = {
    A: (count) => this.#go(this.#row - count, this.#column),
    B: (count) => this.#go(this.#row + count, this.#column),
    C: (count) => this.#go(this.#row, this.#column + count),
    D: (count) => this.#go(this.#row, this.#column - count),
    E: (count) => this.#go(this.#row + count, 0),
    F: (count) => this.#go(this.#row - count, 0),
    G: (count) => this.#go(this.#row, count - 1),
    J: () => {
      this.lines.splice(this.#row + 1);
      this.#line().splice(this.#column);
    },
    K: (_, argument) => this.#line().splice(argument === '2' ? 0 : this.#column),
  };

  control(letter: string, argument: string): void {
    this.#moves[letter]?.(Number(argument) || 1, argument);
  }

  print(character: string): void {
    if (character === '\n') this.#go(this.#row + 1, this.#column);
    else if (character === '\r') this.#column = 0;
    else if (character === '\b') this.#go(this.#row, this.#column - 1);
    else if (character >= ' ') {
      const line = this.#line();
      while (line.length < this.#column) line.push(' ');
      line[this.#column++] = character;
    }
  }

  #go(row: number, column: number): void {
    this.#row = Math.max(0, row);
    this.#column = Math.max(0, column);
    while (this.lines.length <= this.#row) this.lines.push([]);
  }

  #line(): string[] {
    const line = this.lines[this.#row] ?? [];
    this.lines[this.#row] = line;
    return line;
  }
}

/** The lines that are left, without spaces at their ends. */
export function screenOf(written: string): string {
  const screen = new Screen();
  for (const [, argument = '', letter, character] of written.matchAll(parts)) {
    if (letter !== undefined) screen.control(letter, argument);
    else if (character !== undefined) screen.print(character);
  }
  return screen.lines.map((line) => line.join('').trimEnd()).join('\n');
}
