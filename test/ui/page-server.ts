/**
 * Shared parts of the servers that stand in for a product and send its page. One after another has the same port: the browser then
 * still has the files of the page and their compiled code, which is a quarter of the work of a page load.
 */
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { contentSecurityPolicy } from '../../src/http/static-files.ts';
import { isFree, unusedPort } from '../ports.ts';

const ports: number[] = [];

/** Port that an earlier server of this process has left, or another unused one. */
export async function pagePort(): Promise<number> {
  for (const port of ports) if (await isFree(port)) return port;
  const port = await unusedPort();
  ports.push(port);
  return port;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const compressedFiles = new Map<string, Buffer>();

/** Compressed file of the page. Stronger compression, or one for each test, would take longer than the tests themselves. */
async function compressed(file: string): Promise<Buffer> {
  const known = compressedFiles.get(file);
  if (known) return known;
  const content = brotliCompressSync(await readFile(file), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });
  compressedFiles.set(file, content);
  return content;
}

/** Matches names that change with the content, as the build writes them. */
const hashed = /-[\da-f]{10}\.\w+$/;

/** Sends a file of the page with the headers of the product, or 404. */
export async function sendPageFile(response: ServerResponse, directory: string, name: string): Promise<void> {
  const file = join(directory, name);
  try {
    const content = await compressed(file);
    response
      .writeHead(200, {
        'content-type': types[extname(file)] ?? 'application/octet-stream',
        'content-encoding': 'br',
        'cache-control': hashed.test(file) ? 'public, max-age=31536000, immutable' : 'no-cache',
        'content-security-policy': contentSecurityPolicy,
      })
      .end(content);
  } catch {
    response.writeHead(404).end();
  }
}
