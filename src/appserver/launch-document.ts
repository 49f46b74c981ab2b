import * as v from 'valibot';
import { defaults, LaunchDocument } from '../protocol/index.ts';
import { StartupError } from './startup-error.ts';

const longestBytes = defaults.supervise.launchDocumentBytes;
const deadlineMs = 10_000;

/** Input of `readLaunchDocument`. */
export type Input = AsyncIterable<string | Uint8Array> & { destroy(): unknown };

/**
 * Reads the launch document, one JSON line, from standard input and closes that.
 *
 * @throws StartupError (config) naming the invalid key, never its value: the document holds tokens
 */
export async function readLaunchDocument(input: Input): Promise<LaunchDocument> {
  const timer = setTimeout(() => input.destroy(), deadlineMs);
  try {
    return parseLaunchDocument(await readLine(input));
  } finally {
    clearTimeout(timer);
    input.destroy();
  }
}

async function readLine(input: Input): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of input) {
      const bytes = Buffer.from(chunk as Uint8Array);
      const end = bytes.indexOf('\n');
      size += bytes.length;
      if (size > longestBytes) throw refused(`is longer than ${longestBytes} bytes`);
      chunks.push(end < 0 ? bytes : bytes.subarray(0, end));
      if (end >= 0) break;
    }
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw refused(`did not arrive on standard input within ${deadlineMs} ms`);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** @throws StartupError (config) */
export function parseLaunchDocument(line: string): LaunchDocument {
  if (line.trim() === '') throw refused('is empty: --managed is for the Hub, which writes it to standard input');
  let document: unknown;
  try {
    document = JSON.parse(line);
  } catch {
    throw refused('is not JSON');
  }
  const checked = v.safeParse(LaunchDocument, document, { abortEarly: true });
  if (checked.success) return checked.output;
  const [issue] = checked.issues;
  const key = v.getDotPath(issue);
  throw refused(
    key === null ? 'is not a JSON object' : `is wrong at ${key}: expected ${issue.expected ?? 'another value'}`,
  );
}

const refused = (what: string) => new StartupError('config', `the launch document ${what}`);
