import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

const stderrBytes = 64 * 1_024;
const messageLength = 500;

/** Output of a child, up to a limit. */
export interface CollectedOutput {
  /** There was more than was wanted. */
  readonly isCut: boolean;
  bytes(): Buffer;
  /** The end of standard error. */
  errors(): string;
}

/** Reads both outputs of a child. `onFull` is called once when standard output has exceeded `maxBytes`. */
export function collectOutput(child: ChildProcess, maxBytes: number, onFull: () => void): CollectedOutput {
  const chunks: Buffer[] = [];
  let size = 0;
  let isCut = false;
  let errors = Buffer.alloc(0);
  readable(child.stdout).on('data', (chunk: Buffer) => {
    if (isCut) return;
    const room = maxBytes - size;
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    size += Math.min(chunk.length, room);
    if (chunk.length <= room) return;
    isCut = true;
    onFull();
  });
  readable(child.stderr).on('data', (chunk: Buffer) => {
    errors = Buffer.concat([errors, chunk]).subarray(-stderrBytes);
  });
  return {
    get isCut() {
      return isCut;
    },
    bytes: () => Buffer.concat(chunks, size),
    errors: () => errors.toString('utf8'),
  };
}

function readable(stream: Readable | null): Readable {
  if (stream === null) throw new TypeError('The child has no pipe');
  return stream.on('error', () => {});
}

/**
 * Makes git's standard error fit for a message: without lines of the remote (`remote: …`), progress, control characters and
 * secrets. Bounded.
 */
export function cleanText(text: string, secrets: readonly string[] = []): string {
  const lines = text
    .split(/[\r\n]+/)
    .filter((line) => line !== '' && !/^(?:remote:|hint:|warning:|trace:)/.test(line))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
    .map((line) => line.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '?'));
  let cleaned = lines.slice(-6).join(' ');
  for (const secret of secrets) if (secret !== '') cleaned = cleaned.replaceAll(secret, '***');
  return cleaned.length > messageLength ? `${cleaned.slice(0, messageLength)}…` : cleaned;
}
