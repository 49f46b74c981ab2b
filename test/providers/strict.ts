/** Refusals that all services share: text that a strict reader of JSON does not take, and pictures whose bytes differ from their named type. */

/** The reason for which services refuse a body; undefined: none. */
export function refusalOf(body: unknown): string | undefined {
  return textProblem(body) ?? pictureProblem(body);
}

function textProblem(value: unknown, key = ''): string | undefined {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) return `The request body is not valid JSON: no low surrogate in string (${key})`;
    if (value.includes('\0'))
      return `unsupported Unicode escape sequence: \\u0000 cannot be converted to text (${key})`;
    // Services read the arguments of a call, which are JSON in a string.
    return key === 'arguments' ? textProblem(JSON.parse(value)) : undefined;
  }
  return inner(value, textProblem);
}

function inner(value: unknown, look: (value: unknown, key: string) => string | undefined): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, part] of Object.entries(value)) {
    const problem = look(key, 'a name') ?? look(part, key);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** A picture as each wire writes it: a data URL, or a type beside the data. */
function pictureProblem(value: unknown): string | undefined {
  if (typeof value === 'string') {
    if (!value.startsWith('data:')) return undefined;
    const [, type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(value) ?? [];
    return problemOf(type, data);
  }
  if (typeof value === 'object' && value !== null) {
    const { media_type: anthropic, mimeType: google, data } = value as Readonly<Record<string, unknown>>;
    const type = anthropic ?? google;
    if (typeof type === 'string' && typeof data === 'string') return problemOf(type, data);
  }
  return inner(value, pictureProblem);
}

const starts: Readonly<Record<string, (bytes: Buffer) => boolean>> = {
  'image/png': (bytes) => bytes.readUInt32BE(0) === 0x89504e47 && bytes.subarray(-8).includes('IEND'),
  'image/jpeg': (bytes) => bytes.readUInt16BE(0) === 0xffd8 && bytes.readUInt16BE(bytes.length - 2) === 0xffd9,
  'image/gif': (bytes) => bytes.toString('latin1', 0, 4) === 'GIF8' && bytes.at(-1) === 0x3b,
  'image/webp': (bytes) => bytes.toString('latin1', 8, 12) === 'WEBP' && bytes.readUInt32LE(4) === bytes.length - 8,
};

function problemOf(type: string, data: string): string | undefined {
  const bytes = Buffer.from(data, 'base64');
  if (bytes.toString('base64') !== data) return 'image: invalid base64 data';
  const isRight = starts[type];
  if (!isRight) return `image: media type ${type} is not supported`;
  if (bytes.length < 20 || !isRight(bytes)) return `Could not process image: it is not a whole ${type}`;
  if (type === 'image/png' && (bytes.readUInt32BE(16) === 0 || bytes.readUInt32BE(16) > 8_000))
    return 'image: dimensions';
  return undefined;
}
