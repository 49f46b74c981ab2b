import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { DeployError } from '../errors.ts';
import { secretOf } from '../files/index.ts';

export interface SecretText {
  /** Unchanged text, without the line break at its end. */
  readonly text: string;
  /** Warnings about its source: other users can read it. */
  readonly warnings: readonly string[];
}

export interface SecretFileOptions {
  /** Stream that `-` stands for. */
  readonly stdin?: Readable;
  readonly signal?: AbortSignal;
}

/** No secret is longer; a private key has some three thousand. */
const mostBytes = 65_536;

/**
 * Reads a secret from a file, or from standard input for `-`. A pipe will do.
 * `what` names it for people: `The model key`.
 * @throws DeployError secretRefused when it is empty, too large, not text or cannot be read; never with a part of it
 */
export async function readSecretFile(
  path: string,
  what: string,
  { stdin = process.stdin, signal }: SecretFileOptions = {},
): Promise<SecretText> {
  if (path === '-') return { text: textOf(await readStream(stdin, what, signal), what), warnings: [] };
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw unreadable(path, what, error);
  });
  try {
    const facts = await file.stat();
    if (facts.isDirectory()) throw refused(`${what} in ${path} is a directory.`);
    const isOpen = facts.isFile() && (facts.mode & 0o077) !== 0;
    const warnings = isOpen ? [`${path} can be read by others than you. Better: chmod 600 ${path}`] : [];
    return { text: textOf(await readHandle(file, path, what), what), warnings };
  } finally {
    await file.close();
  }
}

/** Reads a secret of one line for `.env` and GitHub's form. @throws DeployError secretRefused with the reason */
export async function readSecretLine(path: string, what: string, options: SecretFileOptions = {}): Promise<SecretText> {
  const { text, warnings } = await readSecretFile(path, what, options);
  return { text: secretOf(text, what), warnings };
}

async function readHandle(file: FileHandle, path: string, what: string): Promise<Buffer> {
  try {
    // A pipe has no size: it is read until it is too much.
    return await readStream(file.createReadStream({ autoClose: false }), what);
  } catch (error) {
    throw error instanceof DeployError ? error : unreadable(path, what, error as NodeJS.ErrnoException);
  }
}

async function readStream(stream: Readable, what: string, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const stop = (): void => {
    stream.destroy(new DeployError('cancelled', `Reading ${what} was cancelled.`));
  };
  signal?.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of stream) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > mostBytes) throw refused(`${what} is larger than ${mostBytes} bytes.`);
      chunks.push(bytes);
    }
  } finally {
    signal?.removeEventListener('abort', stop);
  }
  return Buffer.concat(chunks);
}

function textOf(bytes: Buffer, what: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/[\r\n]+$/, '');
    if (text !== '') return text;
  } catch {
    throw refused(`${what} is not text in UTF-8.`);
  }
  throw refused(`${what} is empty.`);
}

const refused = (message: string): DeployError => new DeployError('secretRefused', message);

const unreadable = (path: string, what: string, error: NodeJS.ErrnoException): DeployError =>
  new DeployError('secretRefused', `${what} cannot be read from ${path} (${error.code ?? error.message}).`, null, {
    cause: error,
  });
