import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import type { Header } from './http-error.ts';
import { bytes, empty } from './reply.ts';
import type { Reply, RequestContext, Route } from './types.ts';

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};
const compressible = /^(?:text\/|application\/(?:json|manifest)|image\/svg)/;

/** Nothing from anywhere but this server, no inline code, no frame around it. */
export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** Headers of every answer to a browser: no other origin may use it, and it uses nothing from other origins. */
export const securityHeaders: readonly Header[] = [
  ['content-security-policy', contentSecurityPolicy],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
];

/** `name-<8 or more of hash>.ext`, as bundlers write it: such a file never changes under its name. */
const hashed = /\.\w+$(?<=[-.](?=[\w-]*\d)[\w-]{8,}\.\w+)/;

type Coding = 'br' | 'gzip';
type BytesReply = Extract<Reply, { kind: 'bytes' }>;

class StaticFile {
  readonly #body: Buffer;
  readonly #type: string;
  readonly #headers: readonly Header[];
  readonly #etag: string;
  readonly #compressible: boolean;
  readonly #replies = new Map<Coding | 'identity', BytesReply>();
  readonly #unchanged: BytesReply;

  constructor(path: string, body: Buffer) {
    this.#body = body;
    this.#type = types[extname(path).toLowerCase()] ?? 'application/octet-stream';
    this.#etag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
    this.#compressible = compressible.test(this.#type) && body.byteLength > 1024;
    this.#headers = [
      ['cache-control', hashed.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache'],
      ...securityHeaders,
      ['vary', 'accept-encoding'],
    ];
    // Weak: the same tag stands for every content coding (RFC 9110, section 8.8.1).
    this.#unchanged = empty(304, [['etag', `W/"${this.#etag}"`], ...this.#headers]);
  }

  answer(context: Pick<RequestContext, 'header'>): BytesReply {
    const known = context.header('if-none-match');
    if (known !== undefined && (known === '*' || known.includes(`"${this.#etag}"`))) return this.#unchanged;
    const coding = this.#compressible ? acceptedCoding(context.header('accept-encoding') ?? '') : 'identity';
    let reply = this.#replies.get(coding);
    if (reply === undefined) {
      reply = this.#encoded(coding);
      this.#replies.set(coding, reply);
    }
    return reply;
  }

  #encoded(coding: Coding | 'identity'): BytesReply {
    const headers: Header[] = [['etag', `W/"${this.#etag}"`], ...this.#headers];
    if (coding === 'identity') return bytes(200, this.#type, this.#body, headers);
    headers.push(['content-encoding', coding]);
    return bytes(200, this.#type, compressed(this.#body, this.#etag, coding), headers);
  }
}

function acceptedCoding(header: string): Coding | 'identity' {
  const accepted = new Set(
    header
      .toLowerCase()
      .split(',')
      .filter((item) => !/;\s*q=0(?:\.0*)?\s*$/.test(item))
      .map((item) => (item.split(';')[0] ?? '').trim()),
  );
  if (accepted.has('br')) return 'br';
  return accepted.has('gzip') ? 'gzip' : 'identity';
}

/** By coding and digest: servers of one process, as those of a test, have the same files. */
const compressedBodies = new Map<string, Buffer>();

/** Once per content and coding, when first asked for: most visitors sit on this machine, and starting must not wait for it. */
function compressed(body: Buffer, digest: string, coding: Coding): Buffer {
  const key = `${coding} ${digest}`;
  const made = compressedBodies.get(key) ?? compress(body, coding);
  compressedBodies.set(key, made);
  return made;
}

function compress(body: Buffer, coding: Coding): Buffer {
  const zlib = process.getBuiltinModule('node:zlib');
  if (coding === 'gzip') return zlib.gzipSync(body);
  return zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 6 } });
}

/** Handler of one document that is made, not read: served as a file of that name would be. */
export function staticDocument(path: string, body: Buffer): (context: Pick<RequestContext, 'header'>) => Reply {
  const file = new StaticFile(path, body);
  return (context) => file.answer(context);
}

/**
 * Answers by path for every regular file under `directory` (not through symbolic links), read now: every other file is missing,
 * so no request can name a path of the file system. `index.html` is also its directory. Throws when it cannot be read.
 */
export function staticAnswers(
  directory: string,
): ReadonlyMap<string, (context: Pick<RequestContext, 'header'>) => BytesReply> {
  const answers = new Map<string, (context: Pick<RequestContext, 'header'>) => BytesReply>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = `/${relative(directory, file).split(sep).map(encodeURIComponent).join('/')}`;
    const content = new StaticFile(path, readFileSync(file));
    const answer = (context: Pick<RequestContext, 'header'>) => content.answer(context);
    answers.set(path, answer);
    if (entry.name === 'index.html') answers.set(path.slice(0, -'index.html'.length), answer);
  }
  return answers;
}

/** Routes of `staticAnswers`; every other path returns 404. */
export const staticFiles = (directory: string): Route<undefined>[] =>
  [...staticAnswers(directory)].map(([path, handler]) => ({ method: 'GET', path, handler }));
