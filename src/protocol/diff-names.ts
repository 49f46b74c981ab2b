/** Names of files in a unified diff, quoted as git quotes them. */

const escapes: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
};

const needsQuotes = (code: number): boolean => code < 0x20 || code === 0x7f || code === 0x22 || code === 0x5c;

/**
 * A name as git writes it in a diff with `core.quotePath=false`: in quotes with escapes when it has control characters, a quotation mark or a backslash.
 *
 * @param isBytes one character is one byte: all above ASCII are escaped, for a name that is not UTF-8
 */
export function diffName(name: string, isBytes = false): string {
  let quoted = '';
  let isPlain = true;
  for (const character of name) {
    const code = character.codePointAt(0) ?? 0;
    const isEscaped = needsQuotes(code) || (isBytes && code > 0x7f);
    if (isEscaped) isPlain = false;
    quoted += isEscaped ? (escapes[character] ?? `\\${code.toString(8).padStart(3, '0')}`) : character;
  }
  return isPlain ? name : `"${quoted}"`;
}

/** Prefix of the last line of a change that is only partly shown. Programs that read diffs skip such a line. */
export const unshownMark = '\\ Not shown: ';

/** First line of a file in a diff, without the line end. */
export const diffHead = (name: string, isBytes = false): string =>
  `diff --git ${diffName(`a/${name}`, isBytes)} ${diffName(`b/${name}`, isBytes)}`;

/** Line that names the earlier (`---`) or the later (`+++`) file. A tab ends a name with a blank in it, for programs that expect a time there. */
export function diffFileLine(sign: '---' | '+++', name: string | undefined, isBytes = false): string {
  if (name === undefined) return `${sign} /dev/null`;
  const shown = diffName(`${sign === '---' ? 'a' : 'b'}/${name}`, isBytes);
  return `${sign} ${shown}${shown.includes(' ') ? '\t' : ''}`;
}
