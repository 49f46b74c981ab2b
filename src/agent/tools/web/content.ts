/** Conversion of an answer's body to text for a model. */
export type ContentKind = 'html' | 'text';

const html: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml']);
const texts: ReadonlySet<string> = new Set(
  'json ld+json x-ndjson ndjson jsonl xml javascript ecmascript x-javascript yaml x-yaml toml graphql sql x-sh x-httpd-php'
    .split(' ')
    .map((subtype) => `application/${subtype}`),
);

/** The media type of a `Content-Type`, without its parameters; empty when it is missing. */
export const mediaType = (contentType = ''): string => (contentType.split(';')[0] ?? '').trim().toLowerCase();

/** Kind of content of a media type; undefined: it cannot be shown as text. */
export function kindOf(type: string): ContentKind | undefined {
  if (html.has(type)) return 'html';
  return type.startsWith('text/') || texts.has(type) || /\+(json|xml|yaml)$/.test(type) ? 'text' : undefined;
}

/** Detects the kind of an answer without a `Content-Type`. A NUL byte excludes text. */
export function sniff(bytes: Buffer): ContentKind | undefined {
  const start = bytes.subarray(0, 1024);
  if (start.includes(0)) return undefined;
  return /^\s*<(!doctype html|html|head|body)\b/i.test(start.toString('latin1')) ? 'html' : 'text';
}

/**
 * Decodes `bytes` in the charset that their byte order mark, `Content-Type` or first lines name; else UTF-8. Invalid bytes become
 * U+FFFD.
 */
export function decodeText(bytes: Buffer, contentType = ''): string {
  const label = markOf(bytes) ?? /;\s*charset\s*=\s*["']?([^\s"';]+)/i.exec(contentType)?.[1] ?? declaredCharset(bytes);
  return decoderFor(label).decode(bytes);
}

function markOf(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 'utf-8' : undefined;
}

/** HTML has to declare it within the first 1 024 bytes; XML does in its very first line. */
function declaredCharset(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1', 0, 1024);
  const declared = /^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w-]+)/i.exec(start);
  return (declared ?? /<meta\b[^>]*?\bcharset\s*=\s*["']?([\w-]+)/i.exec(start))?.[1];
}

function decoderFor(label = 'utf-8'): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch {
    // An unknown charset: most of the page is still likely to be ASCII.
    return new TextDecoder('utf-8');
  }
}
