type LineEnd = '\n' | '\r\n';

/** The more frequent one; undefined when there are no lines. */
export function lineEndOf(text: string): LineEnd | undefined {
  let all = 0;
  let withReturn = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    all += 1;
    if (text[at - 1] === '\r') withReturn += 1;
  }
  if (all === 0) return undefined;
  return withReturn * 2 > all ? '\r\n' : '\n';
}

/** The text with these line ends. */
export const toLineEnd = (text: string, lineEnd: LineEnd | undefined): string =>
  lineEnd === undefined ? text : text.replaceAll(/\r?\n/g, lineEnd);
