import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { bearer, permits, tokenOf } from './auth.ts';
import type { Forge } from './forge.ts';
import type { ForgeFile } from './model.ts';

const run = promisify(execFile);
const author = { name: 'Ada', email: 'ada@example.test', date: '2026-01-01T00:00:00Z' };
const environment = {
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: author.name,
  GIT_AUTHOR_EMAIL: author.email,
  GIT_AUTHOR_DATE: author.date,
  GIT_COMMITTER_NAME: author.name,
  GIT_COMMITTER_EMAIL: author.email,
  GIT_COMMITTER_DATE: author.date,
};

/** @returns the output of git, without the last line end */
export async function git(
  directory: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { env: { ...environment, ...more }, maxBuffer: 64 * 1_024 * 1_024 };
  const { stdout } = await run('git', ['--git-dir', directory, ...args], options);
  return stdout.replace(/\n$/, '');
}

export async function createBare(directory: string): Promise<void> {
  await run('git', ['init', '--quiet', '--bare', '--initial-branch=main', directory], { env: environment });
  const settings = '[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n[http]\n\treceivepack = false\n';
  appendFileSync(join(directory, 'config'), settings);
}

/** SHA of a ref: git writes each new one into a file of its own, and nothing here packs them. @throws for a missing one */
export const refOf = (directory: string, ref: string): string => readFileSync(join(directory, ref), 'utf8').trim();

export function setRef(directory: string, ref: string, sha: string): void {
  const file = join(directory, ref);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${sha}\n`);
}

const dataOf = (content: string): string => `data ${Buffer.byteLength(content)}\n${content}\n`;

/** Commands of `git fast-import` that make one commit, and print its SHA. */
function importOf(
  branch: string,
  parent: string | undefined,
  files: Readonly<Record<string, string | null>>,
  message: string,
): string {
  const changes = Object.entries(files).map(([path, content]) =>
    content === null ? `D ${JSON.stringify(path)}\n` : `M 100644 inline ${JSON.stringify(path)}\n${dataOf(content)}`,
  );
  const seconds = Date.parse(author.date) / 1_000;
  return [
    `commit refs/heads/${branch}\nmark :1\ncommitter ${author.name} <${author.email}> ${seconds} +0000\n`,
    dataOf(`${message}\n`),
    parent === undefined ? '' : `from ${parent}\n`,
    ...changes,
    '\nget-mark :1\ndone\n',
  ].join('');
}

/** One commit on `branch` with these files changed (null: deleted); without a working tree. @returns its SHA */
export async function commitFiles(
  directory: string,
  branch: string,
  files: Readonly<Record<string, string | null>>,
  { from = branch, message = 'A change' }: { readonly from?: string; readonly message?: string } = {},
): Promise<string> {
  const hasParent = existsSync(join(directory, `refs/heads/${from}`));
  const parent = hasParent ? refOf(directory, `refs/heads/${from}`) : undefined;
  // One program in place of three and two for each file. With `force`, a branch may begin again elsewhere.
  const child = spawn('git', ['--git-dir', directory, 'fast-import', '--quiet', '--done', '--force'], {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  child.stdin.end(importOf(branch, parent, files, message));
  const sha = (await text(child.stdout)).trim();
  const [code] = await ended;
  if (code !== 0) throw new Error(`git fast-import has ended with ${code}`);
  return sha;
}

const statuses: Readonly<Record<string, string>> = { A: 'added', M: 'modified', D: 'removed', R: 'renamed' };

/** Files as in the files API: compared with three dots, as GitHub does. */
export async function changedFiles(directory: string, base: string, head: string): Promise<ForgeFile[]> {
  // First `:modes SHAs letter`, path and, of a renamed file, new path for each file; after an empty field their patches.
  const [entries = '', ...rest] = (
    await git(directory, ['diff', '--raw', '-p', '-z', '-M', `${base}...${head}`])
  ).split('\0\0');
  const fields = entries.split('\0');
  const patches = rest
    .join('\0\0')
    .split(/^diff --git .*\n/m)
    .slice(1);
  const files: ForgeFile[] = [];
  for (let at = 0; at + 1 < fields.length; ) {
    const letter = /[A-Z](?=\d*$)/.exec(fields[at] ?? '')?.[0] ?? '';
    const width = letter === 'R' ? 3 : 2;
    const filename = fields[at + width - 1] ?? '';
    const patch = /^@@ [\s\S]*/m.exec(patches[files.length] ?? '')?.[0].replace(/\n$/, '');
    files.push({ filename, status: statuses[letter] ?? 'changed', ...(patch !== undefined && { patch }) });
    at += width;
  }
  return files;
}

let backend: string | undefined;

/** Path of git's own CGI program. `git http-backend` would be two processes. */
function httpBackend(): string {
  backend ??= join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git-http-backend');
  return backend;
}

/** Git over HTTP, by git's own CGI program; the token as GitHub wants it: basic, user `x-access-token`. */
export function serveGit(forge: Forge, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://forge.test');
  const [, owner = '', name = ''] = /^\/([^/]+)\/([^/]+)\.git\//.exec(url.pathname) ?? [];
  const repo = forge.repository(owner, name);
  if (!isAllowed(forge, request, repo?.id)) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="GitHub"' }).end('Authentication required');
    return;
  }
  if (!repo?.gitDirectory) {
    response.writeHead(404).end('Repository not found');
    return;
  }
  const cgi = spawn(httpBackend(), [], {
    env: {
      ...environment,
      GIT_PROJECT_ROOT: repo.gitDirectory,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname.slice(`/${owner}/${name}.git`.length),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      ...(request.headers['content-length'] && { CONTENT_LENGTH: request.headers['content-length'] }),
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  forge.children.add(cgi);
  cgi.on('close', () => forge.children.delete(cgi));
  cgi.on('error', () => response.destroy());
  // The client has disconnected: `close` of the response ends the program.
  cgi.stdin.on('error', () => response.destroy());
  response.on('close', () => cgi.kill());
  request.pipe(cgi.stdin);
  passOn(cgi.stdout, response);
}

function isAllowed(forge: Forge, request: IncomingMessage, repository: number | undefined): boolean {
  const [, encoded = ''] = /^basic (.+)$/i.exec(request.headers.authorization ?? '') ?? [];
  const [user = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  if (user !== 'x-access-token') return false;
  try {
    const { repositories, permissions } = tokenOf(forge, bearer(`token ${password.join(':')}`));
    const isNamed = repositories === undefined || (repository !== undefined && repositories.includes(repository));
    return isNamed && permits(permissions['contents'], 'read');
  } catch {
    return false;
  }
}

/** Headers first, then a body of any length (RFC 3875, section 6). */
function passOn(output: NodeJS.ReadableStream, response: ServerResponse): void {
  let head: Buffer | undefined = Buffer.alloc(0);
  output.on('data', (chunk: Buffer) => {
    if (head === undefined) {
      response.write(chunk);
      return;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const fields = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(/:\s*(.*)/s));
    const status = Number(fields.find(([field]) => field?.toLowerCase() === 'status')?.[1]?.slice(0, 3) ?? 200);
    for (const [field = '', value = ''] of fields)
      if (field.toLowerCase() !== 'status') response.setHeader(field, value);
    response.writeHead(status);
    response.write(head.subarray(end + 4));
    head = undefined;
  });
  output.on('end', () => {
    if (head !== undefined) response.writeHead(500);
    response.end();
  });
}
