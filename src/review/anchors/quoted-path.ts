const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 };

/**
 * Reads a path as git prints it (git-config(1), `core.quotePath`): plain, or in quotes with the escapes of C for its UTF-8 bytes.
 */
export function unquotePath(text: string): string {
  if (!text.startsWith('"')) return text;
  const parts: Buffer[] = [];
  const inside = text.slice(1, text.endsWith('"') && text.length > 1 ? -1 : undefined);
  for (const [, octal, letter, plain] of inside.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gsu)) {
    if (octal !== undefined) parts.push(Buffer.of(Number.parseInt(octal, 8) & 0xff));
    else if (letter !== undefined) parts.push(Buffer.of(escapes[letter] ?? letter.charCodeAt(0)));
    else parts.push(Buffer.from(plain ?? ''));
  }
  return Buffer.concat(parts).toString();
}

/** Length of the quoted path that begins `text`, with its quotes; all of it when the quote is never closed. */
export function quotedLength(text: string): number {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
