/** Cuts a user's text into pieces that may be steps, without cutting through quoted text. */

/** Separator before a further step on the same line: `then`, but not a shell's `then`, or the next number of a list. */
const separator = /(?<![;\s])[,.]?\s+(?:and\s+)?then\s+|(?<!\s)\s+(?=\d{1,2}[.)]\s)/gi;
/** Letters that suffice to recognise the beginning of a step. */
const beginning = 200;
const listMark = /^(?:\d{1,2}[.)]|[-*•])\s+/;
const courtesy = /^(?:(?:hello|hi|hey|please|and|then|now|first|next|finally|also|can you|could you)\b[,:!]?\s+)+/i;

/**
 * The pieces of `text`, without numbers of lists and words of courtesy. A line is cut only where `isStep` finds that the
 * rest begins like a step: the words of a step may hold a "then". A fence belongs to the line before it.
 */
export function pieces(text: string, isStep: (piece: string) => boolean): string[] {
  const plain = text.replaceAll('\r\n', '\n');
  const hidden = withoutQuotes(plain);
  const found: string[] = [];
  let from = 0;
  for (const line of hidden.split('\n')) {
    found.push(...cutLine(plain.slice(from, from + line.length), line, isStep));
    from += line.length + 1;
  }
  return found.map(tidy).filter((piece) => piece !== '');
}

/** `hidden` is `line` with its quoted text blanked, equally long. */
function cutLine(line: string, hidden: string, isStep: (piece: string) => boolean): string[] {
  const found: string[] = [];
  let begin = 0;
  for (const match of hidden.matchAll(separator)) {
    const next = match.index + match[0].length;
    if (!isStep(tidy(line.slice(next, next + beginning)))) continue;
    found.push(line.slice(begin, match.index));
    begin = next;
  }
  return [...found, line.slice(begin)];
}

const tidy = (piece: string): string =>
  piece
    .trim()
    .replace(listMark, '')
    .replace(courtesy, '')
    .replace(/(?<=["`])[.!]$/, '');

/** Quoted text, fences and JSON objects made unrecognisable: a mask of the same length, in which nothing of them is cut. */
function withoutQuotes(text: string): string {
  let mask = '';
  const next = /\n?```|[`"]|\bcall\s+(?:the\s+tool\s+)?[\w-]+(?:\s+with)?\s*(?=\{)/gi;
  for (let found = next.exec(text); found; found = next.exec(text)) {
    const begin = found.index;
    const end = endOfQuote(text, begin, next.lastIndex);
    mask += text.slice(mask.length, begin) + '_'.repeat(end - begin);
    next.lastIndex = end;
  }
  return mask + text.slice(mask.length);
}

/** Finds the end of a quotation that begins at `begin`, with a mark that ends at `inside`. An unclosed quotation is plain text; an unclosed fence or object reaches to the end. */
function endOfQuote(text: string, begin: number, inside: number): number {
  const mark = text.slice(begin, inside);
  if (mark.endsWith('```')) return endOfFence(text, inside);
  if (mark === '"') return endOfString(text, inside);
  return mark === '`' ? endOfCode(text, inside) : endOfObject(text, inside);
}

function endOfFence(text: string, inside: number): number {
  const close = /\n[ \t]*```/g;
  close.lastIndex = inside;
  return close.exec(text) ? close.lastIndex : text.length;
}

function endOfCode(text: string, inside: number): number {
  const end = text.indexOf('`', inside);
  return end === -1 || text.slice(inside, end).includes('\n') ? inside : end + 1;
}

/** Behind the closing quotation mark; strings do not span lines. */
function endOfString(text: string, inside: number): number {
  for (let at = inside; at < text.length && text[at] !== '\n'; at += 1) {
    if (text[at] === '"') return at + 1;
    if (text[at] === '\\') at += 1;
  }
  return inside;
}

function endOfObject(text: string, inside: number): number {
  let depth = 0;
  for (let at = inside; at < text.length; at += 1) {
    if (text[at] === '"') at = endOfString(text, at + 1) - 1;
    else if (text[at] === '{') depth += 1;
    else if (text[at] === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}
