/** Reads the files of a release from an https address or a local directory. */

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { outgoingFetch } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';

const maxRedirects = 5;
/** Time limit for the start of an answer, and for a small file. */
const answerMs = 30_000;
/** Time limit of the download of a tarball. */
const downloadMs = 20 * 60_000;

const nothingChanged = 'Nothing was changed.';
const failed = (message: string, code: string) => new CliError('failure', message, nothingChanged, code);

/** Public address of a release. @param version absent: the newest release */
export const releasedAddress = (version?: string): string =>
  `https://github.com/oratorio-dev/oratorio/releases/${version === undefined ? 'latest/download' : `download/v${version}`}/`;

/** Address of the release directory, with a trailing slash. @throws CliError usage for an address that is neither https nor file */
export function releaseAddress(text: string, command = 'self-update'): URL {
  const plain = text.startsWith('/') ? `file://${text.split('/').map(encodeURIComponent).join('/')}` : text;
  const url = URL.canParse(plain) ? new URL(plain) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'file:')
    throw usageError('The address of a release must be an https address or an absolute directory.', command);
  if (url.username !== '' || url.password !== '')
    throw usageError('The address of a release must not contain a user name or a password.', command);
  url.search = '';
  url.hash = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

/** Address in the option `--from`, where a path becomes absolute; undefined without the option. */
export function addressOption({ options, absolute }: CommandContext): string | undefined {
  const from = options['from'];
  if (typeof from !== 'string') return undefined;
  return from.includes('://') ? from : absolute(from);
}

interface Download {
  readonly directory: URL;
  readonly name: string;
  /** Size limit in bytes. */
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** Reads a small file. @throws CliError */
export async function readReleaseFile(download: Download): Promise<Buffer> {
  const signal = AbortSignal.any([download.signal, AbortSignal.timeout(answerMs)]);
  const chunks: Buffer[] = [];
  for await (const chunk of limited({ ...download, signal })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Downloads a file to the disk. @returns its SHA-256 in hexadecimal @throws CliError */
export async function downloadReleaseFile(download: Download, target: string): Promise<string> {
  const signal = AbortSignal.any([download.signal, AbortSignal.timeout(downloadMs)]);
  const hash = createHash('sha256');
  const hashed = async function* () {
    for await (const chunk of limited({ ...download, signal })) {
      hash.update(chunk);
      yield chunk;
    }
  };
  await pipeline(hashed(), createWriteStream(target, { flags: 'wx', mode: 0o600 }));
  return hash.digest('hex');
}

async function* limited(download: Download): AsyncGenerator<Buffer> {
  const { name, limit } = download;
  let bytes = 0;
  try {
    for await (const chunk of await open(download)) {
      bytes += chunk.length;
      if (bytes > limit) throw failed(`${name} is larger than ${limit} bytes.`, 'tooLarge');
      yield chunk;
    }
  } catch (error) {
    download.signal.throwIfAborted();
    if (error instanceof CliError) throw error;
    throw failed(`${name} could not be read: ${messageOf(error)}`, 'unreachable');
  }
}

async function open({ directory, name, signal }: Download): Promise<AsyncIterable<Buffer>> {
  if (directory.protocol === 'file:') {
    const path = join(fileURLToPath(directory), name);
    const found = await stat(path).catch(() => undefined);
    if (!found?.isFile()) throw failed(`There is no file ${path}.`, 'unreachable');
    return createReadStream(path, { signal });
  }
  let url = new URL(name, directory);
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const response = await outgoingFetch(url, { redirect: 'manual', signal });
    if (response.status === 200 && response.body) return Readable.fromWeb(response.body as never);
    await response.body?.cancel();
    const location = response.headers.get('location');
    if (response.status < 300 || response.status > 399 || location === null)
      throw failed(`${url.host} answers ${response.status} for ${name}.`, 'unreachable');
    url = new URL(location, url);
    if (url.protocol !== 'https:') throw failed(`${name} was redirected to an address that is not https.`, 'insecure');
  }
  throw failed(`${name} was redirected more than ${maxRedirects} times.`, 'unreachable');
}
